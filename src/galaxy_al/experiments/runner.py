"""Running a suite: all its cells in parallel processes, watched from here."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.datasets import is_own_pool, labelled_pool, setting_title
from galaxy_al.experiments.results import Progress, Results
from galaxy_al.experiments.runs import run_cell
from galaxy_al.experiments.suite import Cell, Suite
from galaxy_al.system.files import locked
from galaxy_al.system.threads import n_threads

_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Standing:
    """How far a suite is.

    Parameters
    ----------
    progress
        By key, of the cells that have begun.
    running
        The cells that are being worked on.
    """

    cells: list[Cell]
    rounds: int
    progress: dict[str, Progress]
    running: list[Cell]

    @property
    def rounds_done(self) -> int:
        """Over all cells."""
        return sum(self._rounds(cell) for cell in self.cells)

    @property
    def cells_done(self) -> int:
        """Cells that have all their rounds."""
        return sum(self._rounds(cell) == self.rounds for cell in self.cells)

    def _rounds(self, cell: Cell) -> int:
        """Rounds done, or all if there is nothing left to ask."""
        found = self.progress.get(cell.key)
        if found is None:
            return 0
        return self.rounds if found.is_done(self.rounds) else found.rounds


def standing(suite: Suite, results: Results, running: list[Cell] | None = None) -> Standing:
    """How far a suite is by its results."""
    return Standing(suite.cells(), suite.rounds, results.progress(suite.rounds), running or [])


def run_suite(
    suite: Suite, path: Path, *, jobs: int | None = None, every: float = 1.0
) -> Iterator[Standing]:
    """Run what is missing of a suite, and tell how far it is every so many seconds.

    Cells run in processes of their own with one thread each: with more, sums would come out
    otherwise by a last digit, and a run that goes on would not be the one it was. A cell that
    fails does not stop the others; the first failure is raised at the end.

    Parameters
    ----------
    jobs
        How many cells at once; by default one for each core.
    """
    results = Results(path)
    with locked(path.with_name(path.name + ".lock"), wait=False):
        yield from _run_unfinished(suite, results, jobs or n_threads(), every)
    results.close()


def _run_unfinished(suite: Suite, results: Results, jobs: int, every: float) -> Iterator[Standing]:
    todo = _unfinished(suite, results)
    _check_data(suite, results, todo)
    with _one_thread_each():
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(jobs, len(todo) or 1), context, _end_with_parent) as processes:
            futures: dict[Future[None], Cell] = {
                processes.submit(run_cell, cell, suite.rounds, results.path): cell for cell in todo
            }
            try:
                yield from _watch(suite, results, futures, every)
            except BaseException:
                processes.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise
    _raise_first_failure(futures)


def _check_data(suite: Suite, results: Results, todo: list[Cell]) -> None:
    """Fetch and embed what is needed, once for all processes; refuse other data than before."""
    needed = {cell.setting for cell in todo} | set(filter(is_own_pool, suite.settings))
    for setting in suite.settings:
        if setting in needed:
            data = labelled_pool(setting, suite.head.takes_images)
            for cell in suite.cells():
                if cell.setting == setting:
                    results.check_data(cell, data.source)


def _unfinished(suite: Suite, results: Results) -> list[Cell]:
    progress = results.progress(suite.rounds)
    return [
        cell
        for cell in suite.cells()
        if cell.key not in progress or not progress[cell.key].is_done(suite.rounds)
    ]


def _watch(
    suite: Suite, results: Results, futures: dict[Future[None], Cell], every: float
) -> Iterator[Standing]:
    waiting = set(futures)
    while waiting:
        _, waiting = wait(waiting, timeout=every)
        running = [futures[future] for future in waiting if future.running()]
        yield standing(suite, results, running)


def _raise_first_failure(futures: dict[Future[None], Cell]) -> None:
    failures = [(cell, error) for future, cell in futures.items() if (error := future.exception())]
    if failures:
        cell, error = failures[0]
        if isinstance(error, BrokenProcessPool):
            raise GalaxyError(
                "A process was killed, perhaps for want of memory. What was done is kept: run it "
                "again to go on, with fewer jobs if need be."
            ) from error
        name = f"{cell.contender.label} on {setting_title(cell.setting)} with seed {cell.seed}"
        raise GalaxyError(
            f"{len(failures)} of {len(futures)} runs failed. The first, {name}: {error}"
        ) from error


def _end_with_parent() -> None:
    """Let a process end when the one that started it is killed, whatever it is doing."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started within use one thread."""
    before = {name: os.environ.get(name) for name in _THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(_THREAD_SETTINGS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
