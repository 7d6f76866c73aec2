"""What each shard of a pool will hold: planned before it is made, and kept to by later runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from galaxy_al.data.pool import Pool
from galaxy_al.data.shard_contents import IDS
from galaxy_al.data.shard_files import (
    MANIFEST,
    ChangedFile,
    Manifest,
    ShardFile,
    ShardRecord,
    read_names,
    refuse_newer,
    write_names,
)
from galaxy_al.data.tables import is_unicode
from galaxy_al.errors import GalaxyError
from galaxy_al.models.embedders import known_as
from galaxy_al.models.protocols import Embedder
from galaxy_al.shards import row_blocks
from galaxy_al.system.addresses import FileState, exists, join, read_address, writing_address
from galaxy_al.system.files import digest, file_state, reading
from galaxy_al.system.validation import validated

PLAN = "plan.json"
_BYTES = 1 << 25  # of the vectors of a shard
_LEAST_ROWS, _MOST_ROWS = 1 << 10, 1 << 20
_MOST_EMBEDDED = 1 << 12  # a worker that is lost costs minutes at most


class PlannedShard(BaseModel):
    """A shard, and the file of its ids; None if these are the numbers of the rows."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    rows: Annotated[int, Field(ge=1)]
    names: ShardFile | None = None


class Plan(BaseModel):
    """The shards of a pool, made or to be made.

    Parameters
    ----------
    rows
        Of a new shard.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: str
    model: str
    embedder: str = ""
    source: str
    width: int
    dtype: str
    rows: int | None = None
    shards: Annotated[tuple[PlannedShard, ...], Field(strict=False)] = ()

    @classmethod
    def read(cls, out: str) -> Plan | None:
        """The plan of an earlier run, if there was one."""
        address = join(out, PLAN)
        if not exists(address):
            return None
        with reading(address):
            values = json.loads(read_address(address))
        return validated(cls, values, Path(address))

    def write(self, out: str) -> None:
        """Keep the plan for later runs."""
        with writing_address(join(out, PLAN)) as part:
            part.write_text(self.model_dump_json(indent=1), encoding="utf-8")


def first_plan(pool: Pool, source: Path, model: Embedder | None, dtype: str | None) -> Plan:
    """The plan of a pool, still without shards."""
    if model is not None:
        width, known, usual = model.width, known_as(model.name, model.version), "float16"
    else:
        vectors = pool.modality.vectors(pool.items)
        width, known = vectors.shape[1], ""
        usual = str(vectors.dtype) if vectors.dtype.kind == "f" else "float32"
    folder = source if source.is_dir() else source.parent
    return Plan(
        kind=pool.kind,
        model=known,
        embedder=model.name if model is not None else "",
        source=str(folder.resolve()),
        width=width,
        dtype=dtype or usual,
    )


def check_manifest(out: str) -> None:
    """Refuse to overwrite a manifest of a later version; one that is broken is made again."""
    address = join(out, MANIFEST)
    if exists(address):
        with suppress(json.JSONDecodeError):
            refuse_newer(json.loads(read_address(address)), address)


def check_empty(out: str, files: Iterable[str]) -> None:
    """Refuse a folder with files that no plan speaks of: one could be overwritten."""
    others = [name for name in files if not name.startswith(".")]
    if others:
        raise GalaxyError(f"{out} is not empty: it has {others[0]}. Choose another folder.")


def check_same(earlier: Plan, now: Plan, out: str) -> None:
    """Refuse to mix vectors of two models, or of two kinds."""
    for what in ("kind", "model", "width", "dtype"):
        before, wanted = getattr(earlier, what), getattr(now, what)
        if before != wanted:
            raise GalaxyError(
                f"{out} holds shards with the {what} {before or 'none'!r}, and these would have "
                f"{wanted or 'none'!r}. Choose another folder."
            )


@dataclass(frozen=True)
class Made:
    """What a run has made of a folder.

    Parameters
    ----------
    n_made
        Shards that are new or were made again; the others were there already.
    changed
        The files of earlier shards that were not what the manifest said.
    has_other_rows
        Whether new shards have another number of rows than the earlier ones.
    """

    manifest: Manifest
    n_made: int
    changed: tuple[str, ...] = ()
    has_other_rows: bool = False


@dataclass
class PlannedPool:
    """A pool and the plan of its shards.

    Parameters
    ----------
    files
        Those that were in the folder before.
    places
        The index in the pool of each row of each shard; -1 if the example is gone.
    """

    pool: Pool
    source: Path
    out: str
    plan: Plan
    files: Mapping[str, FileState]
    places: list[np.ndarray[Any, np.dtype[np.intp]]] = field(default_factory=list)

    def source_digest(self, number: int) -> str:
        """Differs when the examples of a shard do."""
        places = self.places[number]
        is_gone = places < 0
        parts = [is_gone.tobytes()] if is_gone.any() else []
        items: Any = self.pool.modality.take(self.pool.items, places[~is_gone])
        if self.pool.kind == "texts":
            return digest([*parts, *map(str, items)])
        paths = getattr(items, "paths", None)
        if paths is not None:
            return digest([*parts, *map(_size_and_time, paths)])
        return digest([*parts, np.asarray(items).tobytes()])

    def record(self, number: int) -> ShardRecord | None:
        """The record of a shard that is complete, and still what it was made of."""
        record = read_record(self.out, self.plan.shards[number].name)
        if record is None or record.source != self.source_digest(number):
            return None
        files = self.files
        is_there = all(f.name in files and files[f.name].size == f.bytes for f in record.files)
        return record if is_there else None

    def names(self, names: ShardFile) -> dict[str, list[str]]:
        """The ids of a shard, and its texts or paths."""
        state = self.files.get(names.name)
        try:
            return read_names(self.out, names, state.version if state else "")
        except ChangedFile as error:
            raise GalaxyError(
                f"{join(self.out, names.name)} is missing or has changed. It says which examples "
                "are in the shard. Put it back as it was, or embed into another folder."
            ) from error

    def check_same_pool(self, earlier: Plan) -> None:
        """Refuse to put another pool into the same folder."""
        numbers = range(len(earlier.shards))
        is_made = [read_record(self.out, earlier.shards[number].name) for number in numbers]
        if not any(is_made) or any(self.record(number) for number in numbers):
            return
        has_names = any(shard.names for shard in earlier.shards)
        is_known = any((places >= 0).any() for places in self.places[: len(numbers)])
        if not (has_names and is_known and earlier.source == self.plan.source):
            raise GalaxyError(
                f"{self.out} holds the shards of another pool, made from {earlier.source}, or all "
                "examples have changed. Choose another folder."
            )

    def renew_names(self, numbers: Sequence[int]) -> None:
        """Write the names of shards that are made again, where they have changed."""
        shards = list(self.plan.shards)
        for number in numbers:
            shard, places = shards[number], self.places[number]
            if shard.names is None or (places < 0).all():
                continue
            before = self.names(shard.names)
            rows = np.flatnonzero(places >= 0).tolist()
            now = {key: list(values) for key, values in before.items()}
            for key, values in _columns(self.pool, self, places[places >= 0]).items():
                for row, value in zip(rows, values):
                    now[key][row] = value
            if now != before:
                name = f"{shard.name}-{self.source_digest(number)[:8]}"
                names = write_names(self.out, name, now)
                shards[number] = shard.model_copy(update={"names": names})
        self.plan = self.plan.model_copy(update={"shards": tuple(shards)})

    def manifest(self) -> Manifest:
        """The manifest, when all shards are complete."""
        records = [read_record(self.out, shard.name) for shard in self.plan.shards]
        plan = self.plan
        for shard, record in zip(plan.shards, records):
            if record is None:
                raise GalaxyError(
                    f"{record_address(self.out, shard.name)} is missing, though a worker has "
                    "written it. All machines must see the same folder."
                )
        return Manifest(
            kind=plan.kind,
            model=plan.model,
            embedder=plan.embedder,
            source=plan.source,
            width=plan.width,
            dtype=plan.dtype,
            shards=tuple(record for record in records if record is not None),
        )


def plan_shards(
    pool: Pool, source: Path, out: str, plan: Plan, files: Mapping[str, FileState]
) -> PlannedPool:
    """The shards that there are, and new ones for new examples; their ids are written."""
    planned = PlannedPool(pool, source, out, plan, files)
    all_ids = [printable(id) for id in pool.ids]
    index_of = {id: index for index, id in enumerate(all_ids)}
    is_numbered = all(shard.names is None for shard in plan.shards) and _are_numbers(all_ids)
    n_planned, known = 0, set[str]()
    for shard in plan.shards:
        if shard.names is None:
            ids = [str(n_planned + row) for row in range(shard.rows)]
        else:
            ids = planned.names(shard.names)[IDS]
        planned.places.append(np.array([index_of.get(id, -1) for id in ids], dtype=np.intp))
        n_planned += shard.rows
        known.update(ids)
    new = np.array([i for i, id in enumerate(all_ids) if id not in known], dtype=np.intp)
    shards = list(plan.shards)
    for low, high in row_blocks(len(new), plan.rows or _usual_rows(plan, pool)):
        here, name = new[low:high], f"{len(shards):06d}"
        names = None if is_numbered else write_names(out, name, _columns(pool, planned, here))
        shards.append(PlannedShard(name=name, rows=len(here), names=names))
        planned.places.append(here)
    planned.plan = plan.model_copy(update={"shards": tuple(shards)})
    return planned


def _are_numbers(ids: Sequence[str]) -> bool:
    return all(id == str(row) for row, id in enumerate(ids))


def _usual_rows(plan: Plan, pool: Pool) -> int:
    fitting = _BYTES // (plan.width * np.dtype(plan.dtype).itemsize)
    most = _MOST_EMBEDDED if pool.modality.is_embedded else _MOST_ROWS
    return min(max(1 << max(fitting.bit_length() - 1, 0), _LEAST_ROWS), most)


def _columns(
    pool: Pool, planned: PlannedPool, here: np.ndarray[Any, np.dtype[np.intp]]
) -> Mapping[str, list[str]]:
    columns = {"id": [printable(pool.ids[i]) for i in here.tolist()]}
    items: Any = pool.modality.take(pool.items, here)
    if pool.kind == "texts":
        columns["text"] = [str(text) for text in items]
    if hasattr(items, "paths"):
        folder = Path(planned.plan.source)
        columns["path"] = [printable(_within(path, folder)) for path in items.paths]
    return columns


def printable(name: str) -> str:
    """A name; bytes of a file name that are not Unicode are spelled out."""
    if is_unicode(name):
        return name
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _within(path: Path, folder: Path) -> str:
    whole = path.resolve()
    return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else str(whole)


def _size_and_time(path: Path) -> str:
    return file_state(path).removeprefix(str(path.absolute())).rpartition(" ")[0]


def record_address(out: str, name: str) -> str:
    """Where the record of a shard is; it is written last."""
    return join(out, f"{name}.json")


def read_record(out: str, name: str) -> ShardRecord | None:
    """The record of a shard that is complete."""
    address = record_address(out, name)
    if not exists(address):
        return None
    with reading(address):
        values = json.loads(read_address(address))
    return validated(ShardRecord, values, Path(address))
