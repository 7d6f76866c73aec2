"""The command line: one short function a command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from galaxy_al.errors import GalaxyError
from galaxy_al.version import __version__


@click.group()
@click.version_option(__version__, prog_name="galaxy-al")
def cli() -> None:
    """Find and label the rare classes of a large pool with as few labels as possible."""


@cli.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("galaxy-demo.png"),
    show_default=True,
    help="Where to write the picture.",
)
def demo(output: Path) -> None:
    """Run GALAXY beside three baselines on digits of which three are rare.

    \b
    Example:
      galaxy-al demo --output demo.png
    """
    from galaxy_al.experiments.show_demo import show_demo

    if not output.parent.is_dir():
        raise GalaxyError(f"There is no folder {output.parent} to write {output.name} into.")
    show_demo(output)


@cli.command()
def strategies() -> None:
    """List the strategies: what they ask for, what they need, and the paper.

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


def main() -> None:
    """Run the command line; an error is one line and exit code 1."""
    try:
        cli()
    except (GalaxyError, ValueError, OSError) as error:
        click.echo(f"galaxy-al: {error}", err=True)
        sys.exit(1)
