"""Running a suite: its runs work in parallel processes, and this one reports their progress."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from galaxy_al.cluster.jobs import run_jobs
from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.datasets import is_own_pool, load_labeled_pool, setting_title
from galaxy_al.experiments.results import Results, RunProgress
from galaxy_al.experiments.runs import ClusterRun, PlayedRound, complete_run, play_on_worker
from galaxy_al.experiments.suite import Run, Suite
from galaxy_al.system.files import locked
from galaxy_al.system.threads import n_threads

_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class SuiteProgress:
    """How much of a suite is done.

    Parameters
    ----------
    progress
        By key, of the runs that have a round.
    running
        The runs that a process is working on.
    """

    runs: list[Run]
    rounds: int
    progress: dict[str, RunProgress]
    running: list[Run]

    @property
    def rounds_done(self) -> int:
        """Over all runs."""
        return sum(self._rounds(run) for run in self.runs)

    @property
    def runs_done(self) -> int:
        """Runs that have all their rounds."""
        return sum(self._rounds(run) == self.rounds for run in self.runs)

    def _rounds(self, run: Run) -> int:
        """Rounds done; all of them if nothing is left to ask."""
        found = self.progress.get(run.key)
        if found is None:
            return 0
        return self.rounds if found.is_done(self.rounds) else found.rounds


def suite_progress(
    suite: Suite, results: Results, running: list[Run] | None = None
) -> SuiteProgress:
    """The progress of a suite according to its results."""
    return SuiteProgress(suite.runs(), suite.rounds, results.progress(suite.rounds), running or [])


def run_suite(
    suite: Suite,
    path: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    every: float = 1.0,
) -> Iterator[SuiteProgress]:
    """Run what is missing of a suite, and report its progress every ``every`` seconds.

    Each run has a process with one thread: with more threads sums can differ in the last digit,
    and a run that resumes would not repeat its numbers. A run that fails does not stop the
    others; the first failure is raised at the end.

    Parameters
    ----------
    jobs
        How many runs at once; by default one per core, or one on a GPU.
    scheduler
        The dask scheduler whose workers do the runs instead; the numbers are the same.
    """
    results = Results(path)
    with locked(path.with_name(path.name + ".lock"), wait=False):
        if scheduler is None:
            yield from _run_unfinished(suite, results, jobs or default_jobs(suite), every)
        else:
            yield from _run_on_cluster(suite, results, scheduler, every)
    results.close()


def default_jobs(suite: Suite) -> int:
    """One run per core; if networks are trained on a GPU, one after the other."""
    if suite.head.takes_images:
        from galaxy_al.models.networks.devices import pick_device

        if pick_device("auto").type != "cpu":
            return 1
    return n_threads()


def _run_on_cluster(
    suite: Suite, results: Results, scheduler: str, every: float
) -> Iterator[SuiteProgress]:
    """Workers play the rounds, and this process stores them: the file need not be within reach."""
    todo = _unfinished(suite, results)
    _check_data(suite, results, todo)
    jobs = [ClusterRun(run, suite.rounds, results.asked(run)) for run in todo]
    stored = {run.key: len(job.asked.batches) for run, job in zip(todo, jobs)}

    def store(job: ClusterRun, played: PlayedRound) -> None:
        if played.number > stored[job.run.key]:
            about = {"n_examples": played.n_examples, "n_rare": played.n_rare}
            results.begin(job.run, **about, data=played.data)
            results.add(job.run, played.number, played.step, played.seconds)
            stored[job.run.key] = played.number

    failures: list[tuple[Run, BaseException]] = []
    for left, failed in run_jobs(scheduler, play_on_worker, jobs, store, every) if jobs else ():
        failures = [(job.run, error) for job, error in failed]
        yield suite_progress(suite, results, [job.run for job in left])
    _raise_first(failures, len(jobs))


def _run_unfinished(
    suite: Suite, results: Results, jobs: int, every: float
) -> Iterator[SuiteProgress]:
    todo = _unfinished(suite, results)
    _check_data(suite, results, todo)
    with _one_thread_each():
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(jobs, len(todo) or 1), context, _end_with_parent) as processes:
            futures: dict[Future[None], Run] = {
                processes.submit(complete_run, run, suite.rounds, results.path): run for run in todo
            }
            try:
                yield from _watch(suite, results, futures, every)
            except BaseException:
                processes.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise
    _raise_first_failure(futures)


def _check_data(suite: Suite, results: Results, todo: list[Run]) -> None:
    """Fetch and embed the data once for all processes; refuse data that has changed."""
    needed = {run.setting for run in todo} | set(filter(is_own_pool, suite.settings))
    for setting in suite.settings:
        if setting in needed:
            data = load_labeled_pool(setting, suite.head.takes_images)
            for run in suite.runs():
                if run.setting == setting:
                    results.check_data(run, data.source)


def _unfinished(suite: Suite, results: Results) -> list[Run]:
    progress = results.progress(suite.rounds)
    return [
        run
        for run in suite.runs()
        if run.key not in progress or not progress[run.key].is_done(suite.rounds)
    ]


def _watch(
    suite: Suite, results: Results, futures: dict[Future[None], Run], every: float
) -> Iterator[SuiteProgress]:
    waiting = set(futures)
    while waiting:
        _, waiting = wait(waiting, timeout=every)
        running = [futures[future] for future in waiting if future.running()]
        yield suite_progress(suite, results, running)


def _raise_first_failure(futures: dict[Future[None], Run]) -> None:
    failures = [(run, error) for future, run in futures.items() if (error := future.exception())]
    _raise_first(failures, len(futures))


def _raise_first(failures: Sequence[tuple[Run, BaseException]], n_runs: int) -> None:
    if failures:
        run, error = failures[0]
        if isinstance(error, BrokenProcessPool):
            raise GalaxyError(
                "A process was killed, perhaps because memory ran out. Finished rounds are stored: "
                "run the command again to resume, with fewer --jobs if necessary."
            ) from error
        name = f"{run.method.label} on {setting_title(run.setting)} with seed {run.seed}"
        kind = GalaxyError if isinstance(error, GalaxyError) else RuntimeError  # which is a bug
        message = f"{len(failures)} of {n_runs} runs failed. The first, {name}: {error}"
        raise kind(message) from error


def _end_with_parent() -> None:
    """End this process when its parent is killed, even in the middle of a computation."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started inside use one thread."""
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
