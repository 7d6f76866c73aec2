"""A manifest for shards that were made by other software.

Every file is read once, by the workers, and its checksum is taken. A later run keeps the shards
that it knows in their order, reads those again that have changed, and adds new files after them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.cluster.checking import changed_files
from galaxy_al.cluster.connecting import LOCAL, connected
from galaxy_al.cluster.parts import ClusterParts
from galaxy_al.cluster.planning import PLAN, Made
from galaxy_al.data.shard_contents import IDS, IDS_ENDING, PARQUET, SHOWN, open_names, read_vectors
from galaxy_al.data.shard_files import MANIFEST, Manifest, Shard, ShardFile, ShardRecord
from galaxy_al.errors import GalaxyError
from galaxy_al.shards import Parts, row_blocks
from galaxy_al.system.addresses import (
    FileState,
    absolute,
    exists,
    fetch_unknown,
    files_in,
    is_remote,
    join,
)
from galaxy_al.system.files import reading

_AT_ONCE = 1 << 22  # hashes that are compared at once: 32 MB
_ROWS = 1 << 14  # that are checked at once


@dataclass(frozen=True)
class Found:
    """What a worker has found in the files of a shard."""

    record: ShardRecord
    kind: str
    width: int
    dtype: str


def write_manifest(folder: str, *, scheduler: str | None = None, model: str = "") -> Made:
    """Write the manifest of a folder of shards, or add new files and changed ones to it.

    Parameters
    ----------
    scheduler
        The address of a dask scheduler; by default processes on this machine.
    model
        The model that made the vectors, if you want it to be known.
    """
    folder = absolute(folder)
    if exists(join(folder, PLAN)):
        raise GalaxyError(f"{folder} was made by `galaxy-al embed`. Run that again to add to it.")
    earlier = _with_model(folder, model) if exists(join(folder, MANIFEST)) else None
    known = list(earlier.shards) if earlier else []
    files = files_in(folder)
    _check_there(folder, known, files)
    new = _new_files(files, {file.name for shard in known for file in shard.files})
    if not known and not new:
        raise GalaxyError(f"{folder} has no .npy or .parquet files.")
    with connected(scheduler or LOCAL) as client:
        known_files = [file for shard in known for file in shard.files]
        changed = changed_files(client, folder, known_files)
        again = [shard for shard in known if changed & {file.name for file in shard.files}]
        todo = [(shard.vectors.name, shard.model) for shard in again]
        todo += [(name, model) for name in new]
        found: list[Found] = []
        if todo:
            described = ClusterParts.of(client, todo).map(partial(describe, folder, files))
            found = described.reduce(_alone, _both)
        manifest = _joined(folder, earlier, sorted(found, key=_name))
        shards = ClusterParts.of(client, manifest.shards_in(folder, files))
        check_distinct_ids(shards, manifest)
    manifest.write(folder)
    return Made(manifest, len(new), tuple(sorted(changed)))


def _with_model(folder: str, model: str) -> Manifest:
    """The manifest of an earlier run; if it names no model, with the one that you say."""
    earlier = Manifest.read(folder)
    if not model or model == earlier.model:
        return earlier
    if earlier.model:
        raise GalaxyError(
            f"The manifest of {folder} says that its vectors were made by {earlier.model!r} and "
            f"not by {model!r}. Leave out --model, or remove {MANIFEST} to begin again."
        )
    shards = tuple(shard.model_copy(update={"model": model}) for shard in earlier.shards)
    return earlier.model_copy(update={"model": model, "shards": shards})


def _check_there(folder: str, known: list[ShardRecord], files: Mapping[str, FileState]) -> None:
    """Refuse to go on without a file that is in the manifest; one that has changed may."""
    for shard in known:
        for file in shard.files:
            if file.name not in files:
                raise GalaxyError(
                    f"A shard is missing: {join(folder, file.name)}. Put it back, or remove "
                    f"{MANIFEST} to begin again without it."
                )


def describe(folder: str, files: Mapping[str, FileState], given: tuple[str, str]) -> Found:
    """What there is to know about a shard, by the name of the file of its vectors, and its model.

    Parameters
    ----------
    files
        Of the folder.
    """
    name, model = given
    beside = (f"{Path(name).stem}.arrow", f"{Path(name).stem}{IDS_ENDING}")
    ids = next((other for other in beside if other in files), None)
    vectors, path = _opened(folder, name, files)
    with reading(join(folder, name)):
        values = read_vectors(path, vectors.sha256)
        _check_vectors(values)
    named, columns = None, []
    if ids is not None:
        named, path = _opened(folder, ids, files)
    if named is not None or name.endswith(PARQUET):
        with reading(join(folder, named.name if named else name)):
            table = open_names(path, (named or vectors).sha256)
            _check_names(table, len(values))
        columns = table.column_names
        model = _same_model(name, model, table)
    kind = next((kind for column, kind in SHOWN.items() if column in columns), "embeddings")
    if kind == "images" and is_remote(folder):
        kind = "embeddings"  # paths are looked for on this machine
    record = ShardRecord(rows=len(values), vectors=vectors, names=named, model=model)
    return Found(record, kind, values.shape[1], str(values.dtype))


def _same_model(name: str, model: str, table: Any) -> str:
    """The model that a file was made by, as you say, or as its metadata does."""
    said: str = (table.schema.metadata or {}).get(b"model", b"").decode()
    if model and said and model != said:
        raise GalaxyError(f"{name} was made by {said!r} and not by {model!r}, as it says itself.")
    return model or said


def check_distinct_ids(parts: Parts[Shard], manifest: Manifest) -> None:
    """Refuse an id that two rows have; at no time are all ids in one place."""
    if all(shard.has_numbers for shard in manifest.shards):
        return
    hashes = parts.map(_hashes)
    n_steps = -(-manifest.starts[-1] // _AT_ONCE)
    bounds = [(step << 64) // n_steps for step in range(n_steps + 1)]
    for low, high in pairwise(bounds):
        some = np.sort(hashes.reduce(partial(_between, low, high - 1), _concatenated))
        twice = some[1:][some[1:] == some[:-1]]
        if len(twice):
            _refuse_twice(parts.reduce(partial(_with_hashes, twice), _both))


def _new_files(names: Iterable[str], known: set[str]) -> list[str]:
    """The files with vectors that are not in the manifest."""
    return [
        name
        for name in names
        if name.endswith((".npy", PARQUET))
        and not name.endswith(IDS_ENDING)
        and not name.startswith(".")
        and name not in known
    ]


def _opened(folder: str, name: str, files: Mapping[str, FileState]) -> tuple[ShardFile, Path]:
    """What the manifest will say about a file, and the file on this machine."""
    address = join(folder, name)
    path = fetch_unknown(address, files[name].version)
    with reading(address):
        return ShardFile.of(name, path), path


def _check_vectors(values: NDArray[Any]) -> None:
    if values.ndim != 2 or values.dtype.kind != "f" or not values.size:
        raise GalaxyError(
            f"it has {values.shape} {values.dtype} numbers. Vectors are the rows of a table of "
            "floating-point numbers."
        )
    for low, high in row_blocks(len(values), _ROWS):
        finite = np.isfinite(values[low:high]).all(axis=1)
        if not finite.all():
            raise GalaxyError(f"row {low + int(finite.argmin())} is not finite.")


def _check_names(table: Any, n_rows: int) -> None:
    if len(table) != n_rows:
        raise GalaxyError(f"it has {len(table):,} ids for {n_rows:,} vectors.")
    for column in (IDS, *SHOWN):
        if column in table.column_names and table[column].null_count:
            raise GalaxyError(f"the column {column!r} has empty cells.")


def _joined(folder: str, earlier: Manifest | None, new: list[Found]) -> Manifest:
    """The manifest of all shards, if they belong together; those read again keep their place."""
    by_name = {_name(each): each for each in new}
    known = _known(earlier)
    renewed = [by_name.pop(_name(each), each) for each in known]
    _check_same_numbers(folder, known, renewed)
    found = [*renewed, *by_name.values()]
    first = found[0]
    for each in found:
        for what, mine, others in (
            ("kind", first.kind, each.kind),
            ("width", first.width, each.width),
            ("dtype", first.dtype, each.dtype),
            ("model", first.record.model, each.record.model),
            ("ids", _ids_are(first), _ids_are(each)),
        ):
            if mine != others:
                raise GalaxyError(
                    f"{folder}: {_name(first)} has the {what} {mine or 'none'!r} and {_name(each)} "
                    f"has {others or 'none'!r}. The shards of a pool are all made alike."
                )
    return Manifest(
        kind=first.kind,
        model=first.record.model,
        source=folder,
        width=first.width,
        dtype=first.dtype,
        shards=tuple(each.record for each in found),
    )


def _check_same_numbers(folder: str, before: list[Found], now: list[Found]) -> None:
    """Refuse other ids for rows that have not changed, as labels are stored by id."""
    for one, other in list(zip(before, now))[:-1]:
        if one.record.has_numbers and one.record.rows != other.record.rows:
            raise GalaxyError(
                f"{join(folder, _name(one))} had {one.record.rows:,} rows and now has "
                f"{other.record.rows:,}, so all rows after it would get other ids. Give ids to the "
                f"rows, or remove {MANIFEST} to begin again."
            )


def _known(earlier: Manifest | None) -> list[Found]:
    if earlier is None:
        return []
    own = (earlier.kind, earlier.width, earlier.dtype)
    return [Found(record, *own) for record in earlier.shards]


def _ids_are(found: Found) -> str:
    return "row numbers" if found.record.has_numbers else "given"


def _name(found: Found) -> str:
    return found.record.vectors.name


def _alone(found: Found) -> list[Found]:
    return [found]


def _both(one: list[Any], other: list[Any]) -> list[Any]:
    return one + other


def _hash(id: str) -> int:
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "big")


def _hashes(shard: Shard) -> NDArray[np.uint64]:
    ids = shard.names()[IDS].to_pylist()
    return np.sort(np.fromiter(map(_hash, ids), np.uint64, len(ids)))


def _between(low: int, high: int, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    first = hashes.searchsorted(np.uint64(low))
    return hashes[first : hashes.searchsorted(np.uint64(high), side="right")]


def _concatenated(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([one, other])


def _with_hashes(wanted: NDArray[np.uint64], shard: Shard) -> list[tuple[str, str]]:
    """The ids with some hashes, and the file that each is in."""
    wanted_here = set(wanted.tolist())
    name = (shard.record.names or shard.record.vectors).name
    return [(id, name) for id in shard.names()[IDS].to_pylist() if _hash(id) in wanted_here]


def _refuse_twice(found: list[tuple[str, str]]) -> None:
    """Name an id that is there twice; different ids can have the same hash."""
    seen: dict[str, str] = {}
    for id, name in sorted(found):
        if id in seen:
            raise GalaxyError(f"Two examples have the id {id!r}: in {seen[id]} and {name}.")
        seen[id] = name
