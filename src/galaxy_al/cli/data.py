"""The commands of `galaxy-al data`: list, check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click


@click.group()
def data() -> None:
    """The paper's settings and your own pools.

    \b
    Example:
      galaxy-al data list
    """


@data.command("list")
def data_list() -> None:
    """List the settings, their sizes and whether their data is downloaded.

    The paper's eight; svhn-test-2 and svhn-test-3 are of SVHN's test digits, which it does not use.

    \b
    Example:
      galaxy-al data list
    """
    from galaxy_al.data import SETTINGS
    from galaxy_al.system.folders import home_folder

    click.echo(f"{'setting':<12}{'classes':>8}{'rare':>8}{'other':>8}{'epsilon':>9}  data")
    for setting in SETTINGS.values():
        rare, majority = sum(setting.sizes[:-1]), setting.sizes[-1]
        state = "downloaded" if setting.is_there else "not downloaded"
        click.echo(
            f"{setting.name:<12}{setting.n_classes:>8}{rare:>8,}{majority:>8,}"
            f"{setting.imbalance:>9.4f}  {state}"
        )
    click.echo(f"Archives are stored in {home_folder()}. Set GALAXY_AL_HOME to change this.")


def scheduler_option(help: str) -> Callable[..., Any]:
    """Add the option --scheduler; ``none`` is given on as the empty name."""

    def read(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
        return "" if given == "none" else given

    return click.option("--scheduler", callback=read, help=help)


def pool_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument POOL, a path, and the options that say how to read a table."""
    return _table_options(click.argument("pool", type=click.Path(path_type=Path)), command)


def pool_or_address_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same, for commands whose POOL may be at an address as s3://..."""
    return _table_options(click.argument("pool"), command)


def _table_options(
    argument: Callable[..., Any], command: Callable[..., None]
) -> Callable[..., None]:
    for decorate in (
        click.option("--id-column", help="The column with ids (default: id, if there is one)."),
        click.option("--column", help="The column with texts, image files or vectors."),
        click.option("--kind", help="What a table contains: texts, images or embeddings."),
        argument,
    ):
        command = decorate(command)
    return command


@data.command("check")
@pool_options
@click.option("--label-column", help="The column with the labels you already have.")
def data_check(
    pool: Path,
    kind: str | None,
    column: str | None,
    id_column: str | None,
    label_column: str | None,
) -> None:
    """Read a pool, and show what is in it and what cannot be used.

    \b
    Example:
      galaxy-al data check photos/
      galaxy-al data check mails.csv --kind texts --column body --label-column folder
    """
    from galaxy_al.data import load_pool

    found = load_pool(
        pool, kind=kind, column=column, id_column=id_column, label_column=label_column
    )
    click.echo(
        f"{len(found):,} {found.kind}, the first {found.ids[0]!r}, the last {found.ids[-1]!r}"
    )
    for class_index, name in enumerate(found.classes):
        click.echo(f"{int((found.labels == class_index).sum()):>10,} {name}")
    if found.classes:
        click.echo(f"{int((found.labels < 0).sum()):>10,} without a label")
    report_problems(list(found.problems().values()), len(found))


def report_problems(problems: Sequence[str], total: int, most: int | None = None) -> None:
    """Print which examples of a pool cannot be used, at most so many of them."""
    for problem in problems[:most]:
        click.echo(problem, err=True)
    if problems:
        click.echo(f"Cannot be used: {len(problems):,} of {total:,} examples")
