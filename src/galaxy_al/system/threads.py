"""How many threads to use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

Item = TypeVar("Item")

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


def n_threads() -> int:
    """The number in ``OMP_NUM_THREADS``, by default one per core; fewer in `at_most_threads`."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    count = int(wanted) if wanted.isdecimal() and int(wanted) else os.cpu_count() or 1
    limit = _limit.get()
    return count if limit is None else min(count, limit)


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Use no more threads than these for the work that this thread does here."""
    before = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(before)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let every matrix product use one thread.

    The threads of a BLAS library wait for each other without sleeping. If another process uses the
    cores, small products on two threads take ten times as long as on one.
    """
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(1)
def _libraries(n_modules: int) -> Any:
    """The loaded libraries; to look for them takes a while, and only an import can change them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_at_a_time(work: Callable[[Item], None], items: Iterable[Item]) -> None:
    """Do some work for each item."""
    for item in items:
        work(item)


@contextmanager
def worker_threads() -> Iterator[Callable[[Callable[[Item], None], Iterable[Item]], None]]:
    """A function that does some work for each item, in `n_threads` threads.

    Meanwhile every matrix product uses one thread.
    """
    with one_blas_thread():
        if n_threads() == 1:
            yield one_at_a_time
            return
        with ThreadPoolExecutor(n_threads()) as threads:
            yield lambda work, items: one_at_a_time(lambda _: None, threads.map(work, items))


def run_in_threads(work: Callable[[Item], None], items: Iterable[Item]) -> None:
    """Do some work for each item, in `n_threads` threads with one BLAS thread each."""
    with worker_threads() as run:
        run(work, items)
