"""Embedding a pool into shards, on many workers.

What each shard holds is planned first and written down: a second run keeps to the plan, makes only
what is missing, and adds new shards for new examples. A shard is complete when its record is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from galaxy_al.cluster.connecting import LOCAL, connected
from galaxy_al.cluster.planning import (
    Plan,
    PlannedPool,
    PlannedShard,
    check_same,
    first_plan,
    plan_shards,
    record_address,
)
from galaxy_al.data.pool import Pool
from galaxy_al.data.shard_files import Manifest, ShardRecord, write_vectors
from galaxy_al.errors import GalaxyError
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embedded_batches
from galaxy_al.models.protocols import Embedder
from galaxy_al.system.addresses import writing_address

_AHEAD = 2  # shards that wait for each worker


@dataclass(frozen=True)
class Made:
    """What embedding a pool into shards has made.

    Parameters
    ----------
    n_made
        Shards that were made now; the others were there already.
    """

    manifest: Manifest
    n_made: int


def embed_into_shards(
    pool: Pool,
    source: Path,
    out: str,
    *,
    embedder: str | None = None,
    scheduler: str | None = None,
    rows: int | None = None,
    dtype: str | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Made:
    """Embed a pool into shards, or finish what an earlier run began.

    Parameters
    ----------
    source
        Where the pool was read from.
    out
        A folder at any address that fsspec knows; it becomes a `ShardedPool`.
    embedder
        As of `load_embedder`; vectors that are given need none.
    scheduler
        The address of a dask scheduler; by default processes on this machine.
    rows
        In a shard; by default what takes 32 MB, and at most 4,096 images or texts.
    dtype
        Of the vectors; by default half precision, or as they are given.
    on_progress
        Called with the number of shards that are complete, and of all.
    """
    model = load_embedder(pool.kind, embedder) if pool.modality.is_embedded else None
    now, earlier = first_plan(pool, source, model, dtype), Plan.read(out)
    if earlier is not None:
        check_same(earlier, now, out)
    planned = plan_shards(pool, source, out, earlier or now, rows)
    planned.plan.write(out)
    total = len(planned.plan.shards)
    todo = [number for number in range(total) if planned.record(number) is None]
    on_progress(total - len(todo), total)
    if todo:
        with connected(scheduler or LOCAL) as client:
            tasks = (_task(planned, number, model) for number in todo)
            for done, _ in enumerate(_run(client, tasks), start=total - len(todo) + 1):
                on_progress(done, total)
    manifest = planned.manifest()
    manifest.write(out)
    return Made(manifest, len(todo))


@dataclass(frozen=True)
class ShardTask:
    """All that a worker needs to make a shard.

    Parameters
    ----------
    items
        The examples that are there.
    rows
        Their rows in the shard.
    model, version
        The name of the embedder, and its version; empty for vectors that are given.
    """

    out: str
    shard: PlannedShard
    kind: str
    width: int
    dtype: str
    items: Any
    rows: list[int]
    model: str
    version: str
    source: str


def _task(planned: PlannedPool, number: int, model: Embedder | None) -> ShardTask:
    plan, places = planned.plan, planned.places[number]
    rows = np.flatnonzero(places >= 0)
    return ShardTask(
        out=planned.out,
        shard=plan.shards[number],
        kind=plan.kind,
        width=plan.width,
        dtype=plan.dtype,
        items=planned.pool.modality.take(planned.pool.items, places[rows]),
        rows=rows.tolist(),
        model=model.name if model else "",
        version=model.version if model else "",
        source=planned.source_digest(number),
    )


def _run(client: Any, tasks: Iterator[ShardTask]) -> Iterator[ShardRecord]:
    """Make shards, only so many at a time that their examples fit into memory."""
    from distributed import as_completed

    from galaxy_al.cluster.parts import check_done

    n_ahead = _AHEAD * max(len(client.scheduler_info()["workers"]), 1)
    first = [client.submit(make_shard, task, pure=False) for task in islice(tasks, n_ahead)]
    running = as_completed(first)
    for future in running:
        check_done([future])
        yield future.result()
        for task in islice(tasks, 1):
            running.add(client.submit(make_shard, task, pure=False))


def make_shard(task: ShardTask) -> ShardRecord:
    """Make the vectors of a shard, then its record."""
    vectors = np.zeros((task.shard.rows, task.width), task.dtype)
    bad = dict.fromkeys(set(range(task.shard.rows)) - set(task.rows), "It is gone.")
    for rows, values, reasons in _vectors(task):
        with np.errstate(over="ignore"):
            vectors[rows] = values
        bad.update(reasons)
    for row in np.flatnonzero(~np.isfinite(vectors).all(axis=1)).tolist():
        vectors[row], bad[row] = 0, f"Its vector is not finite in {task.dtype}."
    record = ShardRecord(
        rows=task.shard.rows,
        vectors=write_vectors(task.out, task.shard.name, vectors),
        names=task.shard.names,
        source=task.source,
        model=f"{task.model} {task.version}".strip(),
        bad={str(row): reason for row, reason in sorted(bad.items())},
    )
    with writing_address(record_address(task.out, task.shard.name)) as part:
        part.write_text(record.model_dump_json(indent=1), encoding="utf-8")
    return record


def _vectors(task: ShardTask) -> Iterator[tuple[list[int], Any, dict[int, str]]]:
    """Some rows of the shard, their vectors, and why other rows have none."""
    if not task.model:
        yield task.rows, np.asarray(task.items), {}
        return
    embedder = _embedder(task.kind, task.model)
    if embedder.version != task.version:
        raise GalaxyError(
            f"A worker has another version of {task.model}: {embedder.version} instead of "
            f"{task.version}."
        )
    todo = range(len(task.rows))
    for vectors, bad in embedded_batches(task.items, todo, embedder, embedder.batch_size):
        reasons = {task.rows[at]: reason for at, reason in bad.items()}
        found = np.array(list(vectors.values())).reshape(len(vectors), task.width)
        yield [task.rows[at] for at in vectors], found, reasons


@lru_cache(1)
def _embedder(kind: str, name: str) -> Embedder:
    """The embedder of this process; a shard after the first finds it loaded."""
    return load_embedder(kind, name)
