"""Connecting to a cluster, or starting one on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from galaxy_al.errors import GalaxyError, LostScheduler, one_line
from galaxy_al.system.extras import needs_extra
from galaxy_al.version import __version__

LOCAL = "local"
_SECONDS = 10  # to reach a scheduler, and to see its first worker

# Dask lets workers give freed memory back at once. To get it again takes longer than to sort it.
_QUIET = {"distributed.admin.large-graph-warning-threshold": "1GB"}  # vectors go with their task
_MALLOC, _KEPT = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(1 << 28)


@contextmanager
def connected(scheduler: str, n_workers: int | None = None) -> Iterator[Any]:
    """A client of a dask cluster.

    Parameters
    ----------
    scheduler
        The address of a scheduler, as ``tcp://host:8786``; ``"local"`` starts processes here.
    n_workers
        How many processes are started here, by default one per core.
    """
    with needs_extra("Working on a cluster", "scale"):
        import dask
        from distributed import Client, LocalCluster
    if scheduler != LOCAL:
        with dask.config.set(_QUIET), _reach(Client, scheduler) as client:
            check_versions(client)
            yield client
        return
    count = n_workers or os.cpu_count() or 1
    kept = {f"distributed.nanny.pre-spawn-environ.{name}": _KEPT for name in _MALLOC}
    with (
        dask.config.set({**kept, **_QUIET}),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        # Dask starts a worker again that is killed, but not if that happens twice in 15 seconds.
        cluster.adapt(minimum=count, maximum=count)
        yield client


def _reach(make_client: Any, scheduler: str) -> Any:
    try:
        with ThreadPoolExecutor(1) as threads:  # a notebook has a loop of its own in this one
            threads.submit(asyncio.run, _greet(scheduler)).result()
        client = make_client(scheduler, timeout=_SECONDS)
    except Exception as error:  # of many types, depending on what listens there
        reason = _reason(error)
        raise GalaxyError(f"Cannot reach a scheduler at {scheduler}: {reason}") from error
    try:
        client.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError as error:
        client.close()
        raise GalaxyError(f"The scheduler at {scheduler} has no workers.") from error
    return client


def _reason(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "what answers there is not a dask scheduler."
    if isinstance(error, TimeoutError | asyncio.TimeoutError) and not str(error):
        return f"no answer in {_SECONDS} seconds."
    return one_line(error)


async def _greet(scheduler: str) -> None:
    """Shake hands as dask does: its client would wait forever for what is not a scheduler."""
    from distributed.comm import connect

    comm = await asyncio.wait_for(connect(scheduler, timeout=_SECONDS), _SECONDS)
    comm.abort()


def check_versions(client: Any) -> None:
    """Refuse workers that have another version of galaxy-al, or none."""

    def find_version() -> str | None:  # inside: it is sent to workers that have no galaxy-al
        import importlib

        try:
            return str(importlib.import_module("galaxy_al.version").__version__)
        except ModuleNotFoundError:
            return None

    for worker, version in client.run(find_version).items():
        if version != __version__:
            found = f"galaxy-al {version}" if version else "no galaxy-al"
            raise GalaxyError(
                f"The worker at {worker} has {found}, and you have {__version__}. "
                "Install the same version everywhere."
            )


def lost_scheduler() -> LostScheduler:
    """The error if the scheduler is gone."""
    return LostScheduler(
        "The connection to the scheduler was lost. Start again when it is back, or with another "
        "--scheduler."
    )


@contextmanager
def naming_lost_scheduler() -> Iterator[None]:
    """Say it if the scheduler is gone: dask only says that tasks were cancelled."""
    try:
        yield
    except CancelledError as error:
        raise lost_scheduler() from error
