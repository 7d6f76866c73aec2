"""The command line, as tests call it."""

import csv

from click.testing import CliRunner

from galaxy_al.cli.main import cli


def run(*arguments, fails=False):
    """The result of a command."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if not fails and result.exception is not None:
        raise result.exception
    return result


def read_csv(path):
    """The rows of a table as dictionaries."""
    return list(csv.DictReader(path.read_text().splitlines()))


def init(folder, *more, fails=False):
    """Create a project for ``pool.npy`` in a folder."""
    return run(
        "init", folder / "project", "--embeddings", folder / "pool.npy",
        "--classes", "scratch, dent", "--other", "fine", *more, fails=fails,
    )  # fmt: skip
