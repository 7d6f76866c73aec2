"""What `galaxy-al bench run` and `bench status` show in the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from galaxy_al.experiments.datasets import is_own_pool, labelled_pool, setting_title
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.runner import Standing, run_suite, standing
from galaxy_al.experiments.suite import Suite
from galaxy_al.experiments.trackers import Logger, new_rounds

_RUNNING_SHOWN = 12


def show_run(suite: Suite, path: Path, jobs: int | None, loggers: Sequence[Logger]) -> None:
    """Run a suite and show how far it is: cells, rate, time left, accuracies."""
    console = Console()
    title = f"{suite.title} ({suite.figure}, {suite.size}): {len(suite.cells())} runs"
    console.print(escape(title), style="bold")
    results = Results(path)
    bar = Progress(
        TextColumn("Rounds"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
    )
    total, done = len(suite.cells()) * suite.rounds, standing(suite, results).rounds_done
    task = bar.add_task("", total=total, completed=done, rate="")
    with (
        _telling(suite, results, loggers) as tell,
        Live(bar, console=console, refresh_per_second=2, transient=True) as live,
    ):
        for now in run_suite(suite, path, jobs=jobs):
            speed = bar.tasks[0].speed or 0
            bar.update(task, completed=now.rounds_done, rate=f"{60 * speed:,.0f} a minute")
            live.update(Group(bar, _running(now)))
            tell()
    _tell_left_out(suite, console)
    console.print(status_table(suite, results))


@contextmanager
def _telling(
    suite: Suite, results: Results, loggers: Sequence[Logger]
) -> Iterator[Callable[[], None]]:
    """Tells loggers of the rounds that have come since the last time, or the beginning."""
    cells, told = {cell.key: cell for cell in suite.cells()}, set[tuple[str, int]]()

    def tell() -> None:
        for key, n_labels, measures in new_rounds(results.table(), told) if loggers else ():
            for logger in loggers if key in cells else ():
                logger.log(cells[key], n_labels, measures)

    if loggers:
        new_rounds(results.table(), told)
    try:
        yield tell
    finally:
        for logger in loggers:
            logger.close()


def _tell_left_out(suite: Suite, console: Console) -> None:
    for setting in filter(is_own_pool, suite.settings):
        count = labelled_pool(setting, False).n_left_out
        if count:
            console.print(f"Left out because they cannot be read or are not finite: {count:,}")


def _running(now: Standing) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(f"running ({now.cells_done} of {len(now.cells)} are done)", style="dim")
    for column in ("seed", "labels", "balanced accuracy"):
        table.add_column(column, justify="right", style="dim")
    for cell in now.running[:_RUNNING_SHOWN]:
        found = now.progress.get(cell.key)
        figures = (f"{found.n_labels:,}", f"{found.balanced_accuracy:.3f}") if found else ("", "")
        name = f"{setting_title(cell.setting)}, {cell.contender.label}"
        table.add_row(escape(name), str(cell.seed), *figures)
    return table


def status_table(suite: Suite, results: Results) -> Table:
    """How far each strategy is on each setting, and how accurate."""
    now = standing(suite, results)
    title = f"{suite.title}: {now.cells_done} of {len(now.cells)} runs are done"
    table = Table(title=escape(title))
    table.add_column("setting")
    table.add_column("strategy")
    for column in ("runs done", "rounds", "balanced accuracy"):
        table.add_column(column, justify="right")
    groups = defaultdict(list)
    for cell in now.cells:
        groups[cell.setting, cell.contender.label].append(now.progress.get(cell.key))
    for (setting, label), found in groups.items():
        begun = [progress for progress in found if progress]
        done = sum(progress.is_done(suite.rounds) for progress in begun)
        rounds = sum(min(progress.rounds, suite.rounds) for progress in begun)
        mean = sum(progress.balanced_accuracy for progress in begun) / max(len(begun), 1)
        accuracy = f"{mean:.3f}" if begun else ""
        total = f"{rounds:,} of {len(found) * suite.rounds:,}"
        name = escape(setting_title(setting))
        table.add_row(name, escape(label), f"{done} of {len(found)}", total, accuracy)
    return table
