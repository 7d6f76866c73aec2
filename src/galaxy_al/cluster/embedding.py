"""Embedding a pool into shards, on many workers.

What each shard holds is planned first and written down: a second run keeps to the plan, makes only
what is missing, and adds new shards for new examples. A shard is complete when its record is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np

from galaxy_al.cluster.connecting import LOCAL, connected
from galaxy_al.cluster.planning import (
    Made,
    Plan,
    PlannedPool,
    PlannedShard,
    check_empty,
    check_manifest,
    check_same,
    first_plan,
    plan_shards,
    read_record,
    record_address,
)
from galaxy_al.data.pool import Pool
from galaxy_al.data.shard_contents import IDS
from galaxy_al.data.shard_files import Shard, ShardRecord, read_names, write_vectors
from galaxy_al.data.tables import is_unicode
from galaxy_al.errors import GalaxyError
from galaxy_al.models.embedders import known_as, load_embedder
from galaxy_al.models.embedding import embedded_batches
from galaxy_al.models.protocols import Embedder
from galaxy_al.system.addresses import absolute, files_in, is_remote, writing_address
from galaxy_al.system.files import locked, make_folder

_AHEAD = 2  # shards that wait for each worker


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
        In a new shard; by default as before, or what takes 32 MB, and at most 4,096 images or
        texts.
    dtype
        Of the vectors; by default half precision, or as they are given.
    on_progress
        Called with the number of shards that are complete, and of all.
    """
    out = absolute(out)
    with connected(scheduler or LOCAL) as client, only_one(out):  # nothing is written before
        check_manifest(out)
        earlier, files = Plan.read(out), files_in(out)
        if earlier is None:
            check_empty(out, files)
        else:
            embedder, dtype = embedder or earlier.embedder, dtype or earlier.dtype
        model = load_embedder(pool.kind, embedder) if pool.modality.is_embedded else None
        now = first_plan(pool, source, model, dtype).model_copy(update={"rows": rows})
        if earlier is None:
            now.write(out)
        else:
            check_same(earlier, now, out)
            kept = {"shards": earlier.shards, "rows": rows or earlier.rows}
            now = now.model_copy(update=kept)
        planned = plan_shards(pool, source, out, now, files)
        if earlier is not None:
            planned.check_same_pool(earlier)
        made = _make(client, planned, model, on_progress)
    is_other = earlier is not None and earlier.shards != () and now.rows != earlier.rows
    return replace(made, has_other_rows=is_other)


def _make(
    client: Any,
    planned: PlannedPool,
    model: Embedder | None,
    on_progress: Callable[[int, int], None],
) -> Made:
    """Make the shards that are missing or have changed, then the manifest."""
    total = len(planned.plan.shards)
    changed = _find_changed(client, planned)
    todo = [n for n in range(total) if n in changed or planned.record(n) is None]
    planned.renew_names(todo)
    planned.plan.write(planned.out)
    on_progress(total - len(todo), total)
    starts = list(accumulate((shard.rows for shard in planned.plan.shards), initial=0))
    tasks = (_task(planned, number, starts[number], model) for number in todo)
    for done, _ in enumerate(_run(client, tasks), start=total - len(todo) + 1):
        on_progress(done, total)
    manifest = planned.manifest()
    manifest.write(planned.out)
    return Made(manifest, len(todo), tuple(changed.values()))


def _find_changed(client: Any, planned: PlannedPool) -> dict[int, str]:
    """The shards whose vectors are not what was written, and the names of their files.

    The files of the ids were checked when they were read.
    """
    from galaxy_al.cluster.checking import changed_files

    records = enumerate(map(planned.record, range(len(planned.plan.shards))))
    files = {number: record.vectors for number, record in records if record is not None}
    changed = changed_files(client, planned.out, list(files.values()))
    return {number: file.name for number, file in files.items() if file.name in changed}


@contextmanager
def only_one(folder: str) -> Iterator[None]:
    """Refuse a second process that would write to the same shards; at other addresses it could."""
    if is_remote(folder):
        yield
        return
    make_folder(Path(folder))
    with locked(Path(folder) / ".lock", wait=False):
        yield


@dataclass(frozen=True)
class ShardTask:
    """All that a worker needs to make a shard.

    Parameters
    ----------
    items
        The examples that are there.
    rows
        Their rows in the shard.
    unnamed
        Those of them whose names are not Unicode.
    start
        The index of its first row.
    model, version
        The name of the embedder, and its version; empty for vectors that are given.
    """

    out: str
    shard: PlannedShard
    start: int
    kind: str
    width: int
    dtype: str
    items: Any
    rows: list[int]
    unnamed: list[int]
    model: str
    version: str
    source: str


def _task(planned: PlannedPool, number: int, start: int, model: Embedder | None) -> ShardTask:
    plan, places = planned.plan, planned.places[number]
    rows = np.flatnonzero(places >= 0)
    items: Any = planned.pool.modality.take(planned.pool.items, places[rows])
    names = [planned.pool.ids[place] for place in places[rows]]
    if hasattr(items, "paths"):
        items = replace(items, paths=[path.resolve() for path in items.paths])
        names = list(map(str, items.paths))
    return ShardTask(
        out=planned.out,
        shard=plan.shards[number],
        start=start,
        kind=plan.kind,
        width=plan.width,
        dtype=plan.dtype,
        items=items,
        rows=rows.tolist(),
        unnamed=[row for row, name in zip(rows.tolist(), names) if not is_unicode(name)],
        model=model.name if model else "",
        version=model.version if model else "",
        source=planned.source_digest(number),
    )


def _run(client: Any, tasks: Iterator[ShardTask]) -> Iterator[ShardRecord]:
    """Make shards, only so many at a time that their examples fit into memory."""
    from distributed import as_completed

    from galaxy_al.cluster.parts import check_done

    running, n_running = as_completed(), 0

    def fill() -> int:
        """Give the workers that there are now enough to do; returns how many shards wait."""
        wanted = _AHEAD * max(sum(client.nthreads().values()), 1) - n_running
        some = islice(tasks, max(wanted, 0))
        new = [client.submit(make_shard, task, pure=False) for task in some]
        running.update(new)
        return n_running + len(new)

    n_running = fill()
    for future in running:
        check_done([future])
        yield future.result()
        n_running -= 1
        n_running = fill()


def make_shard(task: ShardTask) -> ShardRecord:
    """Make the vectors of a shard, then its record."""
    _check_seen(task)
    gone = sorted(set(range(task.shard.rows)) - set(task.rows))
    vectors = _vectors_before(task)
    bad = dict.fromkeys(gone, "is gone.")
    bad.update(dict.fromkeys(task.unnamed, "is not valid Unicode."))
    problems = dict[int, str]()
    for rows, values, reasons in _vectors(task):
        with np.errstate(over="ignore"):
            vectors[rows] = values
        problems.update(reasons)
    for row in np.flatnonzero(~np.isfinite(vectors).all(axis=1)).tolist():
        vectors[row], bad[row] = 0, f"has a vector that is not finite in {task.dtype}."
    problems.update(_with_ids(task, bad))
    record = ShardRecord(
        rows=task.shard.rows,
        vectors=write_vectors(task.out, task.shard.name, vectors),
        names=task.shard.names,
        source=task.source,
        model=known_as(task.model, task.version),
        bad={str(row): reason for row, reason in sorted(problems.items())},
    )
    with writing_address(record_address(task.out, task.shard.name)) as part:
        part.write_text(record.model_dump_json(indent=1), encoding="utf-8")
    return record


def _with_ids(task: ShardTask, bad: dict[int, str]) -> dict[int, str]:
    """Sentences about some examples of a shard that begin with their ids."""
    if not bad:
        return {}
    if task.shard.names is None:
        return {row: f"'{task.start + row}' {said}" for row, said in bad.items()}
    ids = read_names(task.out, task.shard.names)[IDS]
    return {row: f"{ids[row]!r} {said}" for row, said in bad.items()}


def _check_seen(task: ShardTask) -> None:
    paths = getattr(task.items, "paths", [])
    if paths and not any(path.exists() for path in paths):
        raise GalaxyError(
            f"A worker cannot see {paths[0]}. The pool must be at the same place on all machines."
        )


def _vectors_before(task: ShardTask) -> Any:
    """The vectors of a shard that is made again, for examples that are gone; otherwise zeros."""
    vectors = np.zeros((task.shard.rows, task.width), task.dtype)
    if len(task.rows) < task.shard.rows and (record := read_record(task.out, task.shard.name)):
        shard = Shard(task.out, task.width, task.dtype, record, 0)
        with suppress(GalaxyError):
            vectors[:] = shard.open().values
    return vectors


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
