"""The commands of `galaxy-al bench`: run, suites, status, export, plot, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from galaxy_al.errors import GalaxyError

if TYPE_CHECKING:
    from galaxy_al.experiments.suite import Size, Suite

_RESULTS = Path("galaxy-bench.sqlite")
_OF_A_POOL = ("labels", "kind", "column", "batch_size", "rounds")
_POSITIVE = click.IntRange(min=1)


@click.group()
def bench() -> None:
    """Compare strategies: the paper's experiments, or your own labelled data.

    \b
    Example:
      galaxy-al bench run figure4 --size frozen
      galaxy-al bench report figure4 --size frozen
    """


def _suite_options(command: Callable[..., None]) -> Callable[..., None]:
    """The suite or pool, and the file with the results."""
    for decorate in (
        click.option(
            "--results",
            type=click.Path(dir_okay=False, path_type=Path),
            default=_RESULTS,
            show_default=True,
            help="The SQLite file that stores the results.",
        ),
        click.option(
            "--size",
            type=click.Choice(["paper", "frozen"]),
            help="frozen (default): a head on embeddings; paper: ResNet-18, needs a GPU.",
        ),
        click.option(
            "--pool",
            type=click.Path(path_type=Path),
            help="Your own labelled data instead of a suite.",
        ),
        click.option("--labels", help="The column of the pool with the labels."),
        click.option("--kind", help="What the pool holds: texts, images or embeddings."),
        click.option("--column", help="The column of the pool with texts, image files or vectors."),
        click.option(
            "--batch-size", type=_POSITIVE, help="Labels per round with --pool (default 100)."
        ),
        click.option("--rounds", type=_POSITIVE, help="Rounds with --pool (default 20)."),
        click.argument("suite", required=False),
    ):
        command = decorate(command)
    return command


def _suite(options: dict[str, Any]) -> Suite:
    from galaxy_al.experiments.datasets import own_pool
    from galaxy_al.experiments.suite import load_suite, pool_suite

    name, path = options["suite"], options["pool"]
    size: Size | None = options["size"]
    if (name is None) == (path is None):
        raise GalaxyError("Name either a suite or your own data with --pool.")
    if path is None:
        _refuse(options, _OF_A_POOL, "is for --pool; a suite defines its own.")
        return load_suite(name, size or "frozen")
    _refuse(options, ("size",), "is for suites, not for --pool.")
    pool = own_pool(path, *(options[option] for option in ("labels", "kind", "column")))
    return pool_suite(pool, path.stem, options["batch_size"] or 100, options["rounds"] or 20)


def _refuse(options: dict[str, Any], names: Iterable[str], why: str) -> None:
    for name in names:
        if options[name] is not None:
            raise GalaxyError(f"--{name.replace('_', '-')} {why}")


@bench.command()
@_suite_options
@click.option("--jobs", type=_POSITIVE, help="Parallel runs (default: one per core).")
@click.option("--scheduler", help="Run on a dask cluster: tcp://host:8786, or local.")
@click.option(
    "--dry-run", is_flag=True, help="Only show what is left to do, and what it will cost here."
)
@click.option(
    "--log", multiple=True, help="Report rounds to tensorboard:DIR, mlflow:URI or wandb:PROJECT."
)
def run(
    results: Path,
    jobs: int | None,
    scheduler: str | None,
    dry_run: bool,
    log: tuple[str, ...],
    **options: Any,
) -> None:
    """Run a suite, or the part of it that is missing. You can stop and resume at any time.

    SUITE is a TOML file or the name of an installed suite (see bench suites).

    \b
    Example:
      galaxy-al bench run figure4 --size frozen
      galaxy-al bench run --pool mails.csv --labels category
      galaxy-al bench run figure4 --size frozen --scheduler tcp://head-node:8786
      galaxy-al bench run figure4 --size paper --dry-run
    """
    from galaxy_al.experiments.console.bench import show_costs, show_run
    from galaxy_al.experiments.trackers import make_tracker

    if dry_run:
        show_costs(_suite(options), results, jobs)
        return
    trackers = [make_tracker(spec) for spec in log]
    show_run(_suite(options), results, jobs, scheduler, trackers)
    click.echo(f"The results are in {results}. See them with bench report and the same options.")


@bench.command()
def suites() -> None:
    """List the installed suites.

    \b
    Example:
      galaxy-al bench suites
    """
    from galaxy_al.experiments.suite import load_suite, suite_names

    for name in suite_names():
        suite = load_suite(name, "frozen")
        click.echo(f"{name:<14}{suite.figure}: {suite.title}")


@bench.command()
@_suite_options
def status(results: Path, **options: Any) -> None:
    """Show the progress of a suite.

    \b
    Example:
      galaxy-al bench status figure4
    """
    from rich.console import Console

    from galaxy_al.experiments.console.bench import status_table
    from galaxy_al.experiments.results import Results

    Console().print(status_table(_suite(options), Results(results, must_exist=True)))


@bench.command()
@click.option(
    "--results", type=click.Path(path_type=Path), default=_RESULTS, show_default=True,
    help="The SQLite file that stores the results.",
)  # fmt: skip
@click.option(
    "--format", "ending", type=click.Choice(["csv", "parquet", "json"]), default="csv",
    show_default=True, help="json: one object per line.",
)  # fmt: skip
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="By default beside the results.",
)
def export(results: Path, ending: str, output: Path | None) -> None:
    """Write every round as a table: measures, seconds, indices, versions.

    \b
    Example:
      galaxy-al bench export --format parquet --output rounds.parquet
    """
    from galaxy_al.data.tables import write_table
    from galaxy_al.experiments.results import Results

    suffix = ".jsonl" if ending == "json" else f".{ending}"
    target = output or results.with_suffix(suffix)
    table = Results(results, must_exist=True).table()
    write_table(target, table, suffix)
    click.echo(f"{len(table['key']):,} rounds in {target}")


@bench.command()
@_suite_options
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("figures"),
    show_default=True, help="The folder to write into.",
)  # fmt: skip
@click.option(
    "--format", "formats", type=click.Choice(["png", "svg", "pdf"]), multiple=True,
    default=["png"], show_default=True, help="Repeat for several formats.",
)  # fmt: skip
def plot(results: Path, output: Path, formats: tuple[str, ...], **options: Any) -> None:
    """Draw the figures of a suite: means and standard errors, smoothed and raw.

    \b
    Example:
      galaxy-al bench plot figure4 --format png --format pdf
    """
    from galaxy_al.experiments.plots import save_figure, setting_figure
    from galaxy_al.system.files import make_folder

    suite, found = _found(options, results)
    make_folder(output)
    for setting in found:
        panels = {measure: setting.curves[measure] for measure in suite.measures}
        figure = setting_figure(f"{suite.title}: {setting.name}", panels)
        for path in save_figure(figure, output / f"{suite.name}-{setting.name}", formats):
            click.echo(path)


@bench.command()
@_suite_options
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="By default SUITE.html."
)
def report(results: Path, output: Path | None, **options: Any) -> None:
    """Write the figures and tables of a suite as one self-contained HTML page.

    An output that ends in .md gets only the tables.

    \b
    Example:
      galaxy-al bench report figure4 --output figure4.html
    """
    from galaxy_al.experiments.html import html_report, markdown_report
    from galaxy_al.system.files import writing

    suite, found = _found(options, results)
    target = output or Path(f"{suite.name}.html")
    make = markdown_report if target.suffix == ".md" else html_report
    with writing(target) as part:
        part.write_text(make(suite, found), encoding="utf-8")
    click.echo(f"The report is in {target}")


def _found(options: dict[str, Any], results: Path) -> tuple[Suite, Any]:
    from galaxy_al.experiments.results import Results
    from galaxy_al.experiments.tables import read_results

    suite = _suite(options)
    found = read_results(suite, Results(results, must_exist=True))
    if not found:
        raise GalaxyError(f"{results} has no results of {suite.name} ({suite.size}).")
    return suite, found
