"""The files of a pool in shards: vectors, ids, and a manifest that says what there must be.

The manifest has the rows and the checksum of every file. A file is checked when it is first opened,
and again whenever it was written to. `shard_contents.py` knows what is in the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from galaxy_al.data.shard_contents import (
    PARQUET,
    find_ids,
    open_names,
    read_vectors,
    save_array,
    texts_at,
)
from galaxy_al.errors import GalaxyError
from galaxy_al.shards import Rows
from galaxy_al.system.addresses import (
    FileState,
    exists,
    fetch,
    is_remote,
    join,
    read_address,
    size_of,
    writing_address,
)
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import checksum, reading
from galaxy_al.system.validation import validated

MANIFEST = "manifest.json"
FORMAT = 1

_REPAIR = (
    "Put the file back as it was, or run `galaxy-al embed` again, or `galaxy-al manifest` if the "
    "files are your own."
)
_checked: dict[tuple[Path, str], tuple[int, int]] = {}  # size and time, by path and checksum


class ChangedFile(GalaxyError):  # noqa: N818 - reads as what happened
    """A file of a shard is missing or not what the manifest says."""


class ShardFile(BaseModel):
    """One file of a shard, as it was when it was made."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    bytes: Annotated[int, Field(ge=0)]
    sha256: str

    @classmethod
    def of(cls, name: str, path: Path) -> ShardFile:
        """What there is to know about a file that was just written."""
        return cls(name=name, bytes=path.stat().st_size, sha256=checksum(path, "sha256"))

    def open(self, folder: str, version: str = "") -> Path:
        """The file on this machine, checked; one at another address is fetched.

        Parameters
        ----------
        version
            Of a file at another address, as `files_in` says.
        """
        address = join(folder, self.name)
        if not is_remote(folder):
            self.check_size(address, size_of(address))
        path = fetch(address, self.sha256, version)
        with reading(address):
            state = path.stat().st_size, path.stat().st_mtime_ns
            if _checked.get((path, self.sha256)) != state:
                if checksum(path, "sha256") != self.sha256:
                    raise ChangedFile(
                        f"{address} has changed since the manifest was written. {_REPAIR}"
                    )
                _checked[path, self.sha256] = state
        return path

    def check_size(self, address: str, size: int | None) -> None:
        """Refuse a file that is missing or cut short, without reading it."""
        if size is None:
            raise ChangedFile(f"A shard is missing: {address}. {_REPAIR}")
        if size != self.bytes:
            raise ChangedFile(
                f"{address} has {size:,} bytes instead of the {self.bytes:,} in the manifest: it "
                f"is incomplete or another file. {_REPAIR}"
            )


class ShardRecord(BaseModel):
    """What the manifest says about a shard.

    Parameters
    ----------
    vectors, names
        The file of the vectors, and that of the ids; None if these are in the same Parquet file, or
        if the ids are the numbers of the rows.
    source
        Differs when what it was made of does.
    model
        The model that made the vectors; empty if that is not known.
    bad
        Why rows have no vector, by their number in the shard.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    rows: Annotated[int, Field(ge=1)]
    vectors: ShardFile
    names: ShardFile | None = None
    source: str = ""
    model: str = ""
    bad: dict[str, str] = {}

    @property
    def files(self) -> list[ShardFile]:
        """The files of the shard."""
        return [file for file in (self.vectors, self.names) if file is not None]

    @property
    def has_numbers(self) -> bool:
        """Whether its ids are the numbers of the rows."""
        return self.names is None and not self.vectors.name.endswith(PARQUET)


def _is_dtype(name: str) -> str:
    try:
        np.dtype(name)
    except TypeError:
        raise ValueError(f"{name!r} is not a type of numbers") from None
    return name


class Manifest(BaseModel):
    """What a pool in shards consists of.

    Parameters
    ----------
    kind
        What the examples are: a name from `MODALITIES`.
    model
        The name and version of the model that made the vectors; empty if they were given.
    embedder
        The name of the embedder that is this model; empty if it is not one of ours.
    source
        The pool that they were made from.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Annotated[int, Field(ge=1, le=FORMAT)] = FORMAT
    kind: str
    model: str = ""
    embedder: str = ""
    source: str = ""
    width: Annotated[int, Field(ge=1)]
    dtype: Annotated[str, AfterValidator(_is_dtype)]
    shards: Annotated[tuple[ShardRecord, ...], Field(strict=False, min_length=1)]

    @classmethod
    def read(cls, folder: str) -> Manifest:
        """Read the manifest of a folder."""
        address = join(folder, MANIFEST)
        if not exists(address):
            raise GalaxyError(
                f"{folder} is not a pool in shards: it has no {MANIFEST}. Make one with `galaxy-al "
                "embed`, or `galaxy-al manifest` if it has shards of your own. If embedding was "
                "stopped, run that again: it continues."
            )
        with reading(address):
            values = json.loads(read_address(address))
        refuse_newer(values, address)
        manifest = validated(cls, values, Path(address))
        manifest.check_models(folder)
        return manifest

    def check_models(self, folder: str) -> None:
        """Refuse vectors of two models."""
        for shard in self.shards:
            if shard.model and shard.model != self.model:
                raise GalaxyError(
                    f"{join(folder, shard.vectors.name)} was made by {shard.model!r}, and the pool "
                    f"by {self.model!r}. Vectors of two models cannot be compared."
                )

    def check_files(self, folder: str, found: Mapping[str, FileState]) -> None:
        """Refuse a pool with missing or truncated files before any work is done."""
        for shard in self.shards:
            for file in shard.files:
                state = found.get(file.name)
                file.check_size(join(folder, file.name), state and state.size)

    def write(self, folder: str) -> None:
        """Write the manifest to a folder."""
        self.check_models(folder)
        with writing_address(join(folder, MANIFEST)) as part:
            part.write_text(self.model_dump_json(indent=1), encoding="utf-8")

    @property
    def starts(self) -> list[int]:
        """The index of the first row of each shard, and the number of rows."""
        return list(accumulate((shard.rows for shard in self.shards), initial=0))

    def shards_in(self, folder: str, found: Mapping[str, FileState]) -> list[Shard]:
        """The shards of a folder with these files."""
        versions = {name: state.version for name, state in found.items()}
        return [
            Shard(
                folder,
                self.width,
                self.dtype,
                record,
                start,
                {file.name: versions[file.name] for file in record.files},
            )
            for record, start in zip(self.shards, self.starts)
        ]


def refuse_newer(values: Any, address: str) -> None:
    """Refuse the content of a manifest that a later version has written."""
    version = values.get("format") if isinstance(values, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise GalaxyError(
            f"{address} was written by a newer galaxy-al (its format is {version}, this one reads "
            f"up to {FORMAT}). Upgrade galaxy-al to open it."
        )


@dataclass(frozen=True)
class Shard:
    """A shard of a pool, wherever its files are.

    Parameters
    ----------
    versions
        Of its files when the pool was opened, by name.
    """

    folder: str
    width: int
    dtype: str
    record: ShardRecord
    start: int
    versions: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> Rows:
        """The vectors, mapped from the file."""
        file = self.record.vectors
        path, address = self._opened(file), join(self.folder, file.name)
        with reading(address):
            values = read_vectors(path, file.sha256)
        if values.shape != (self.record.rows, self.width) or str(values.dtype) != self.dtype:
            raise GalaxyError(
                f"{address} has {values.shape} {values.dtype} numbers, and the manifest says "
                f"{(self.record.rows, self.width)} {self.dtype}."
            )
        return Rows(self.start, values)

    def names_of(self, column: str, indices: Sequence[int]) -> list[str]:
        """The ids of some examples of the shard, or their texts or paths."""
        if (names := self.names()) is None:
            return [str(index) for index in indices]
        return texts_at(names, column, [index - self.start for index in indices])

    def find(self, ids: Sequence[str]) -> dict[str, int]:
        """The indices of those of some ids that are in the shard."""
        if (names := self.names()) is None:
            rows = range(self.start, self.start + self.record.rows)
            return {id: int(id) for id in ids if id == _as_number(id) and int(id) in rows}
        return {id: row + self.start for id, row in find_ids(names, ids).items()}

    def names(self) -> Any:
        """The table of the ids; None if they are the numbers of the rows."""
        if self.record.has_numbers:
            return None
        file = self.record.names or self.record.vectors
        path = self._opened(file)
        with reading(join(self.folder, file.name)):
            return open_names(path, file.sha256)

    def check(self) -> None:
        """Refuse files that have changed."""
        self.open()
        self.names()

    def _opened(self, file: ShardFile) -> Path:
        return file.open(self.folder, self.versions.get(file.name, ""))


def _as_number(id: str) -> str:
    return str(int(id)) if id.isascii() and id.isdecimal() else ""


def write_vectors(folder: str, name: str, vectors: NDArray[Any]) -> ShardFile:
    """Write the vectors of a shard."""
    with writing_address(join(folder, f"{name}.npy")) as part:
        save_array(part, vectors)
        return ShardFile.of(f"{name}.npy", part)


def write_names(folder: str, name: str, columns: Mapping[str, Sequence[str]]) -> ShardFile:
    """Write the ids of a shard: the column ``id``, ``text`` for texts and ``path`` for images."""
    with needs_extra("Writing ids", "data"):
        import pyarrow as pa

    table = pa.table({key: pa.array(values, pa.string()) for key, values in columns.items()})
    with writing_address(join(folder, f"{name}.arrow")) as part:
        with pa.ipc.new_file(str(part), table.schema) as out:
            out.write_table(table)
        return ShardFile.of(f"{name}.arrow", part)


def read_names(folder: str, names: ShardFile, version: str = "") -> dict[str, list[str]]:
    """All ids of a shard, and its texts or paths: what `write_names` has written."""
    path = names.open(folder, version)
    columns: dict[str, list[str]] = open_names(path, names.sha256).to_pydict()
    return columns
