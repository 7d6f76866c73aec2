"""Long jobs on a cluster that report while they work."""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from galaxy_al.cluster.connecting import connected, lost_scheduler, naming_lost_scheduler
from galaxy_al.system.threads import at_most_threads, one_blas_thread

Item = TypeVar("Item")
Report = Callable[[Any], None]


def run_jobs(
    scheduler: str,
    work: Callable[[Item, Report], Any],
    items: Sequence[Item],
    on_report: Callable[[Item, Any], None],
    every: float,
) -> Iterator[tuple[list[Item], list[tuple[Item, Exception]]]]:
    """Do some work for each item on a cluster; what it reports arrives here as it goes.

    Every ``every`` seconds it yields the items that are still worked on, and the failures so far.
    Work that is lost with its worker begins again, and reports the same again. It uses one thread:
    with more, sums can differ in the last digit.
    """
    from distributed import wait

    topic, reports = f"galaxy-al-{uuid4().hex}", queue.SimpleQueue[tuple[int, bytes]]()
    with connected(scheduler) as client:
        client.subscribe_topic(topic, lambda event: reports.put(event[1]))
        futures = [
            client.submit(_do, work, item, number, topic, pure=False)
            for number, item in enumerate(items)
        ]
        waiting, failures = set(range(len(items))), dict[int, Exception]()
        while waiting:
            _wait_a_little(wait, [futures[number] for number in waiting], every)
            _pass_on(reports, items, on_report)
            for number in sorted(waiting):
                if futures[number].status == "error":
                    failures[number] = futures[number].exception()
                elif futures[number].status == "finished":
                    for report in futures[number].result():  # events may be late
                        on_report(items[number], report)
                elif futures[number].status == "cancelled":
                    raise lost_scheduler()
                else:
                    continue
                waiting.remove(number)
            left = [items[number] for number in sorted(waiting)]
            yield left, [(items[number], error) for number, error in failures.items()]


def _wait_a_little(wait: Any, futures: list[Any], seconds: float) -> None:
    try:
        with naming_lost_scheduler():
            wait(futures, timeout=seconds, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return


def _pass_on(
    reports: queue.SimpleQueue[tuple[int, bytes]],
    items: Sequence[Item],
    on_report: Callable[[Item, Any], None],
) -> None:
    while not reports.empty():
        number, report = reports.get()
        on_report(items[number], pickle.loads(report))


def _do(work: Callable[[Any, Report], Any], item: Any, number: int, topic: str) -> list[Any]:
    """Do the work on a worker; returns all reports again."""
    from distributed import get_worker

    reports: list[Any] = []
    worker = get_worker()

    def report(content: Any) -> None:
        reports.append(content)
        worker.log_event(topic, (number, pickle.dumps(content)))

    with at_most_threads(1), one_blas_thread():
        work(item, report)
    return reports
