"""What `galaxy-al bench run` and `bench status` show in the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from galaxy_al.experiments.bench import Standing, run_suite, standing
from galaxy_al.experiments.loggers import Logger, new_rounds
from galaxy_al.experiments.pools import setting_title
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.suites import Suite

_RUNNING_SHOWN = 12


def show_run(suite: Suite, path: Path, jobs: int | None, loggers: Sequence[Logger]) -> None:
    """Run a suite and show how far it is: cells, rate, time left, accuracies."""
    console = Console()
    cells = {cell.key: cell for cell in suite.cells()}
    console.print(f"[bold]{suite.title}[/bold] ({suite.figure}, {suite.size}): {len(cells)} runs")
    results, told = Results(path), set[tuple[str, int]]()
    bar = Progress(
        TextColumn("Rounds"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
    )
    begun = standing(suite, results)
    total = len(cells) * suite.rounds
    task = bar.add_task("", total=total, completed=begun.rounds_done, rate="")
    with Live(bar, console=console, refresh_per_second=2, transient=True) as live:
        for now in run_suite(suite, path, jobs=jobs):
            speed = bar.tasks[0].speed or 0
            bar.update(task, completed=now.rounds_done, rate=f"{60 * speed:,.0f} a minute")
            live.update(Group(bar, _running(now)))
            for key, n_labels, measures in new_rounds(results.table(), told) if loggers else ():
                for logger in loggers if key in cells else ():
                    logger.log(cells[key], n_labels, measures)
    for logger in loggers:
        logger.close()
    console.print(status_table(suite, results))


def _running(now: Standing) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(f"running ({now.cells_done} of {len(now.cells)} are done)", style="dim")
    for column in ("seed", "labels", "balanced accuracy"):
        table.add_column(column, justify="right", style="dim")
    for cell in now.running[:_RUNNING_SHOWN]:
        found = now.progress.get(cell.key)
        figures = (f"{found.n_labels:,}", f"{found.balanced_accuracy:.3f}") if found else ("", "")
        name = f"{setting_title(cell.setting)}, {cell.contender.label}"
        table.add_row(name, str(cell.seed), *figures)
    return table


def status_table(suite: Suite, results: Results) -> Table:
    """How far each strategy is on each setting, and how accurate."""
    now = standing(suite, results)
    table = Table(title=f"{suite.title}: {now.cells_done} of {len(now.cells)} runs are done")
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
        table.add_row(setting_title(setting), label, f"{done} of {len(found)}", total, accuracy)
    return table
