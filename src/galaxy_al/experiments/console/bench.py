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

from galaxy_al.experiments.costs import costs_of, measure_speed
from galaxy_al.experiments.datasets import is_own_pool, load_labeled_pool, setting_title
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.runner import (
    SuiteProgress,
    default_jobs,
    run_suite,
    suite_progress,
)
from galaxy_al.experiments.suite import Suite
from galaxy_al.experiments.trackers import Tracker, new_rounds

_RUNNING_SHOWN = 12


def show_run(
    suite: Suite,
    path: Path,
    jobs: int | None,
    scheduler: str | None,
    trackers: Sequence[Tracker],
) -> None:
    """Run a suite and show its progress: rounds, rate, time left, accuracies."""
    console = Console()
    title = f"{suite.title} ({suite.figure}, {suite.size}): {len(suite.runs())} runs"
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
    total, done = len(suite.runs()) * suite.rounds, suite_progress(suite, results).rounds_done
    task = bar.add_task("", total=total, completed=done, rate="")
    with (
        _reporting(suite, results, trackers) as report,
        Live(bar, console=console, refresh_per_second=2, transient=True) as live,
    ):
        for now in run_suite(suite, path, jobs=jobs, scheduler=scheduler):
            speed = bar.tasks[0].speed or 0
            bar.update(task, completed=now.rounds_done, rate=f"{60 * speed:,.0f} per minute")
            live.update(Group(bar, _running(now)))
            report()
    _print_left_out(suite, console)
    console.print(status_table(suite, results))


@contextmanager
def _reporting(
    suite: Suite, results: Results, trackers: Sequence[Tracker]
) -> Iterator[Callable[[], None]]:
    """Gives a function that reports the new rounds to the trackers."""
    runs, reported = {run.key: run for run in suite.runs()}, set[tuple[str, int]]()

    def report() -> None:
        for key, n_labels, measures in new_rounds(results.table(), reported) if trackers else ():
            for tracker in trackers if key in runs else ():
                tracker.log(runs[key], n_labels, measures)

    if trackers:
        new_rounds(results.table(), reported)
    try:
        yield report
    finally:
        for tracker in trackers:
            tracker.close()


def show_costs(suite: Suite, path: Path, jobs: int | None) -> None:
    """Show what is left of a suite with the paper's network, and what it will cost here."""
    console = Console()
    speed = measure_speed(suite.head)
    progress = Results(path, must_exist=True).progress(suite.rounds) if path.exists() else {}
    costs, at_once = costs_of(suite, progress, speed), jobs or default_jobs(suite)
    table = Table(title=escape(f"{suite.title} ({suite.size}): what is left"))
    table.add_column("setting")
    for column in ("runs", "rounds", "M trained", "M scored", "hours", "GB per job"):
        table.add_column(column, justify="right")
    for cost in costs:
        millions = (f"{count / 1e6:,.1f}" for count in (cost.trained, cost.scored))
        hours = f"{cost.seconds / at_once / 3600:,.1f}"
        cells = (f"{cost.runs:,}", f"{cost.rounds:,}", *millions, hours, f"{cost.memory / 1e9:.1f}")
        table.add_row(escape(setting_title(cost.setting)), *cells)
    console.print(table)
    whole = sum(cost.seconds for cost in costs) / at_once / 3600
    console.print(
        f"About {whole:,.1f} hours with --jobs {at_once}. A job trains on {speed.training:,.0f} "
        f"images per second here and scores {speed.scoring:,.0f}. M: millions of images, each as "
        "often as it is used. What the strategies take is not counted."
    )


def _print_left_out(suite: Suite, console: Console) -> None:
    for setting in filter(is_own_pool, suite.settings):
        count = load_labeled_pool(setting, False).n_left_out
        if count:
            console.print(f"Left out (unreadable or not finite): {count:,}")


def _running(now: SuiteProgress) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(f"running ({now.runs_done} of {len(now.runs)} are done)", style="dim")
    for column in ("seed", "labels", "balanced accuracy"):
        table.add_column(column, justify="right", style="dim")
    for run in now.running[:_RUNNING_SHOWN]:
        found = now.progress.get(run.key)
        figures = (f"{found.n_labels:,}", f"{found.balanced_accuracy:.3f}") if found else ("", "")
        name = f"{setting_title(run.setting)}, {run.method.label}"
        table.add_row(escape(name), str(run.seed), *figures)
    return table


def status_table(suite: Suite, results: Results) -> Table:
    """The progress of each strategy on each setting, and its accuracy."""
    now = suite_progress(suite, results)
    title = f"{suite.title}: {now.runs_done} of {len(now.runs)} runs are done"
    table = Table(title=escape(title))
    table.add_column("setting")
    table.add_column("strategy")
    for column in ("runs done", "rounds", "balanced accuracy"):
        table.add_column(column, justify="right")
    groups = defaultdict(list)
    for run in now.runs:
        groups[run.setting, run.method.label].append(now.progress.get(run.key))
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
