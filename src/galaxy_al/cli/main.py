"""The command line: one short function per command."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import click

from galaxy_al.cli.audit import audit
from galaxy_al.cli.bench import bench
from galaxy_al.cli.data import data
from galaxy_al.cli.prediction import predict
from galaxy_al.cli.project import export, init, label, status, train
from galaxy_al.cli.review import review
from galaxy_al.cli.shards import embed, manifest
from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.version import __version__


@click.group()
@click.version_option(__version__, prog_name="galaxy-al")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Find and label the rare classes of a large pool with as few labels as possible."""
    context.ensure_object(dict)["debug"] = debug


@cli.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("galaxy-demo.png"),
    show_default=True,
    help="Where to write the picture.",
)
def demo(output: Path) -> None:
    """Compare the default strategy, GALAXY and three baselines on three rare digits.

    \b
    Example:
      galaxy-al demo --output demo.png
    """
    from galaxy_al.experiments.console.demo import show_demo

    if not output.parent.is_dir():
        raise GalaxyError(f"Cannot write {output}: there is no folder {output.parent}.")
    show_demo(output)


@cli.command()
def strategies() -> None:
    """List the strategies: what each asks for, what it needs, and its paper.

    \b
    Example:
      galaxy-al strategies
    """
    from galaxy_al.strategies import STRATEGIES

    width = max(map(len, STRATEGIES))
    for name, strategy in STRATEGIES.items():
        needs = ", ".join(("scores", *strategy.needs))
        click.echo(f"{click.style(f'{name:<{width}}', bold=True)}  {strategy.summary}")
        needs += f"; answers within a batch: {strategy.needs_answers}"
        for line in (f"needs {needs}", strategy.paper):
            click.secho(f"{'':<{width}}  {line}", dim=True)


@cli.command()
@click.option(
    "--draws", type=click.IntRange(min=10), default=400, show_default=True,
    help="Simulations per point of the grid.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random numbers.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("galaxy-theory.png"),
    show_default=True,
    help="Where to write the picture: .png, .svg or .pdf.",
)
def theory(draws: int, seed: int, output: Path) -> None:
    """Simulate the paper's theorems over a grid and compare them with their bounds.

    \b
    Example:
      galaxy-al theory --draws 100 --output theory.png
    """
    from galaxy_al.experiments.console.theory import show_theory

    show_theory(draws, seed, output)


_PROJECTS = (init, label, status, review, audit, export, train, predict)
for command in (bench, data, embed, manifest, *_PROJECTS):
    cli.add_command(command)


def main() -> None:
    """Run the command line and exit.

    The exit code is 1 for an error that galaxy-al reports, 2 for wrong usage, 70 for a bug and
    130 for Ctrl+C.
    """
    settings = {"debug": False}
    try:
        code = cli.main(prog_name="galaxy-al", standalone_mode=False, obj=settings)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = 130
    except Exception as error:
        if settings["debug"]:
            traceback.print_exc()
        code = 1 if isinstance(error, GalaxyError) else 70
        click.echo(f"galaxy-al: {_message(error)}", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _message(error: Exception) -> str:
    if isinstance(error, GalaxyError):
        return one_line(error)
    return (
        f"internal error: {type(error).__name__}: {one_line(error)}. This is a bug. "
        "Run `galaxy-al --debug ...` for the traceback, and report it."
    )
