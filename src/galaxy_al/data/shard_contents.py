"""What is in the files of a shard: vectors, ids, and texts or paths.

Vectors lie in ``.npy`` or Parquet files (column ``embedding``). Ids lie in the same Parquet file
(column ``id``), in an ``.arrow`` file, or in an array (``.ids.npy``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError
from galaxy_al.system.addresses import kept_file
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import writing

VECTORS, IDS = "embedding", "id"
SHOWN = {"text": "texts", "path": "images"}  # what examples are, by the column that shows them
PARQUET, IDS_ENDING = ".parquet", ".ids.npy"
_OPEN_NAMES = 64  # files of ids that a process keeps open


def read_vectors(path: Path, sha256: str) -> NDArray[Any]:
    """The vectors of a file, mapped; Parquet is unpacked once into a temporary file."""
    if path.suffix == PARQUET:
        unpacked = kept_file(f"{sha256}.npy")
        if not unpacked.exists():
            with writing(unpacked) as part:
                save_array(part, _unpacked(path))
        path = unpacked
    try:
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "mmap length" not in str(error):
            raise
        raise GalaxyError("it is cut short.") from error
    return mapped


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write an ``.npy`` file; an error says why the system refuses to."""
    with path.open("wb") as file:
        np.save(_Writer(file), values, allow_pickle=False)


class _Writer:
    """A file that NumPy does not know to be one: of a full disk it would only count the bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        return self._file.write(data)


def _unpacked(path: Path) -> NDArray[Any]:
    with needs_extra("Reading Parquet files", "data"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    if VECTORS not in pq.read_schema(path).names:
        raise GalaxyError(f"it has no column {VECTORS!r}.")
    column = pq.read_table(path, columns=[VECTORS])[VECTORS].combine_chunks()
    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(check(column.type) for check in is_list):
        raise GalaxyError(f"the column {VECTORS!r} holds {column.type} and not lists of numbers.")
    values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    rows = len(column)
    width = len(values) // max(rows, 1)
    is_even = column.null_count == 0 and all(
        length == width for length in column.value_lengths().unique().to_pylist()
    )
    if not is_even:
        raise GalaxyError(f"the lists in the column {VECTORS!r} have different lengths.")
    return values.reshape(rows, width)


@lru_cache(_OPEN_NAMES)
def open_names(path: Path, sha256: str) -> Any:
    """A table of the ids, and of the texts or the paths if they are there.

    Parameters
    ----------
    sha256
        The checksum of the file: another one is another table.
    """
    with needs_extra("Reading ids", "data"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    if path.name.endswith(IDS_ENDING):
        table = pa.table({IDS: np.load(path, allow_pickle=False)})
    elif path.suffix == PARQUET:
        names = pq.read_schema(path).names
        table = pq.read_table(path, columns=[name for name in (IDS, *SHOWN) if name in names])
    else:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    if IDS not in table.column_names:
        raise GalaxyError(f"it has no column {IDS!r}.")
    return table.set_column(table.column_names.index(IDS), IDS, table[IDS].cast(pa.string()))


def texts_at(table: Any, column: str, rows: Sequence[int]) -> list[str]:
    """The values of a column in some rows."""
    values: list[str] = table[column].take(np.array(rows, dtype=np.int64)).to_pylist()
    return values


def find_ids(table: Any, ids: Sequence[str]) -> dict[str, int]:
    """The rows of those of some ids that are there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_wanted = pc.is_in(table[IDS], value_set=pa.array(ids, pa.string()))
    rows = np.flatnonzero(is_wanted.to_numpy(zero_copy_only=False)).tolist()
    return dict(zip(texts_at(table, IDS, rows), rows))
