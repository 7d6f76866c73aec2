"""The command line: one short function a command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from galaxy_al.cli.bench import bench
from galaxy_al.cli.project import (
    export,
    init,
    label,
    pool_options,
    predict,
    report_problems,
    status,
    train,
)
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
    """Run the default, GALAXY and three baselines on digits of which three are rare.

    \b
    Example:
      galaxy-al demo --output demo.png
    """
    from galaxy_al.experiments.console.demo import show_demo

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


@cli.group()
def data() -> None:
    """The paper's settings and your own pools.

    \b
    Example:
      galaxy-al data list
    """


@data.command("list")
def data_list() -> None:
    """List the paper's settings, their sizes and whether their data is there.

    \b
    Example:
      galaxy-al data list
    """
    from galaxy_al.data import SETTINGS
    from galaxy_al.system.folders import home_folder

    click.echo(f"{'setting':<12}{'classes':>8}{'rare':>8}{'other':>8}{'epsilon':>9}  data")
    for setting in SETTINGS.values():
        rare, other = sum(setting.sizes[:-1]), setting.sizes[-1]
        there = "there" if setting.is_there else "not downloaded"
        click.echo(
            f"{setting.name:<12}{setting.n_classes:>8}{rare:>8,}{other:>8,}"
            f"{setting.imbalance:>9.4f}  {there}"
        )
    click.echo(f"Archives are kept in {home_folder()}; GALAXY_AL_HOME says otherwise.")


@data.command("check")
@pool_options
@click.option("--label-column", help="Where a table has labels that are known already.")
def data_check(
    pool: Path,
    kind: str | None,
    column: str | None,
    id_column: str | None,
    label_column: str | None,
) -> None:
    """Read a pool of yours and say what is in it and what is wrong with it.

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
    for code, name in enumerate(found.classes):
        click.echo(f"{int((found.labels == code).sum()):>10,} {name}")
    if found.classes:
        click.echo(f"{int((found.labels < 0).sum()):>10,} without a label")
    report_problems(list(found.problems().values()), len(found))


@cli.command()
@click.option("--draws", type=click.IntRange(min=10), default=400, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("galaxy-theory.png"),
    show_default=True,
    help="Where to write the picture: .png, .svg or .pdf.",
)
def theory(draws: int, seed: int, output: Path) -> None:
    """Simulate the paper's theorems over a grid, and compare with their bounds.

    \b
    Example:
      galaxy-al theory --draws 100 --output theory.png
    """
    from galaxy_al.experiments.console.theory import show_theory

    show_theory(draws, seed, output)


for command in (bench, init, label, status, export, train, predict):
    cli.add_command(command)


def main() -> None:
    """Run the command line; an error is one line and exit code 1."""
    try:
        cli()
    except (GalaxyError, ValueError, OSError) as error:
        click.echo(f"galaxy-al: {error}", err=True)
        sys.exit(1)
