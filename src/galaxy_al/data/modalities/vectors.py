"""Vectors that are ready: an array, or a column of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.modalities.base import Items, Modality, Source
from galaxy_al.data.tables import Table
from galaxy_al.errors import GalaxyError
from galaxy_al.shards import row_blocks
from galaxy_al.system.files import digest, file_state, reading

SUFFIXES = (".npy", ".npz")
_LARGEST = 1e30  # of a number in a vector: what is computed from it stays finite
_MOST_NUMBERS = 512  # of a vector that the page draws


class Vectors(Modality):
    """Embeddings that another tool has made."""

    name = "embeddings"
    columns = ("embedding", "embeddings", "vector")
    help = "An array, or a table."

    def reads(self, path: Path) -> bool:
        """Whether it is an array by its name."""
        return path.suffix.lower() in SUFFIXES

    def read(self, path: Path) -> Source:
        """The array of an ``.npy`` file; of an ``.npz`` file the array ``embeddings``."""
        arrays = _read_arrays(path)
        if "embeddings" not in arrays:
            raise GalaxyError(f"{path} has no array 'embeddings', but: {', '.join(arrays)}.")
        embeddings = arrays["embeddings"]
        if embeddings.ndim != 2 or embeddings.dtype.kind not in "fiu" or not len(embeddings):
            raise GalaxyError(
                f"{path}: embeddings must be a table of numbers, got shape {embeddings.shape} of "
                f"{embeddings.dtype}."
            )
        ids = as_texts(arrays.get("ids", np.arange(len(embeddings))))
        classes = tuple(as_texts(arrays.get("classes", np.empty(0, dtype=str))))
        content = digest([file_state(path)])
        return Source(ids, embeddings, content, arrays.get("labels"), classes)

    def read_column(self, table: Table, column: str) -> Items:
        """The vectors of a column, all of one length."""
        return table.vectors(column)

    def problems(self, items: Items, ids: Sequence[str]) -> dict[int, str]:
        """The vectors that hold anything but finite numbers of a usual size."""
        rows, bad = np.asarray(items), dict[int, str]()
        for low, high in row_blocks(len(rows), 1 << 14):
            usable = (np.abs(rows[low:high].astype(np.float64)) < _LARGEST).all(axis=1)
            for row in (low + np.flatnonzero(~usable)).tolist():
                is_finite = np.isfinite(rows[row]).all()
                what = f"has a number beyond {_LARGEST:g}" if is_finite else "is not finite"
                bad[row] = f"The embedding of {ids[row]!r} {what}."
        return bad

    def show(self, items: Items, index: int) -> dict[str, Any]:
        """The first numbers, and how many there are."""
        vector = np.asarray(items[index], dtype=np.float64)
        numbers = np.where(np.isfinite(vector), vector, 0)[:_MOST_NUMBERS]
        return {"vector": numbers.tolist(), "width": len(vector)}

    def hugging_face(
        self, items: Any, indices: Sequence[int]
    ) -> tuple[str, list[Any], dict[str, Any]]:
        """The vectors as lists of numbers."""
        inner = {"dtype": "float64", "_type": "Value"}
        vectors = [items[i].tolist() for i in indices]
        return "embedding", vectors, {"feature": inner, "_type": "List"}


def as_texts(array: NDArray[Any]) -> list[str]:
    """The values of an array as texts."""
    values = array.tolist()
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name; a single one is the embeddings."""
    with reading(path):
        if path.suffix.lower() == ".npy":
            return {"embeddings": np.load(path, mmap_mode="r", allow_pickle=False)}
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = dict(content)
    return {"embeddings": next(iter(arrays.values()))} if len(arrays) == 1 else arrays
