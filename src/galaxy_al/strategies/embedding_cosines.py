"""The cosines of a pool's embeddings with some of them, kept as long as the embeddings last."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.shards import row_blocks
from galaxy_al.strategies.gradients import unit_rows
from galaxy_al.strategies.scoring import ROWS_AT_ONCE

_KEPT_BYTES = 2_000_000_000

Embeddings = NDArray[np.floating[Any]]
Indices = NDArray[np.intp]


def same_memory(one: Embeddings, other: Embeddings) -> bool:
    """Whether two arrays are the same one; the first must have been held all the time."""
    mine, its = one.__array_interface__, other.__array_interface__
    return all(mine[key] == its[key] for key in ("data", "shape", "strides", "typestr"))


class EmbeddingCosines:
    """Cosines in single precision: a row per example, a column per example that is asked for.

    Columns are computed when they are first asked for, and kept if there is room for all of them.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._columns: list[int] = []
        self._tables: list[NDArray[np.float32]] = []  # some columns each

    def are_of(self, embeddings: Embeddings) -> bool:
        """Whether they are the cosines of these embeddings."""
        return same_memory(self._embeddings, embeddings)

    def in_order(self, columns: Indices) -> Indices:
        """The same columns in the order in which `rows` gives them: as they are kept."""
        wanted, kept = set(columns.tolist()), set(self._columns)
        if kept - wanted:
            self._columns, self._tables, kept = [], [], set()
        new = [column for column in columns.tolist() if column not in kept]
        if new and 4 * len(self._embeddings) * len(wanted) <= _KEPT_BYTES:
            self._keep(new)
            new = []
        return np.array([*self._columns, *new], dtype=np.intp)

    def rows(self, rows: Indices, columns: Indices) -> NDArray[np.float32]:
        """The cosines of some examples with those that `in_order` gave."""
        if len(columns) > len(self._columns):
            return self._computed(rows, columns)
        return np.concatenate([table[rows] for table in self._tables], axis=1)

    def _keep(self, new: list[int]) -> None:
        table = np.empty((len(self._embeddings), len(new)), np.float32)
        for low, high in row_blocks(len(table), ROWS_AT_ONCE):
            table[low:high] = self._computed(np.arange(low, high), np.array(new, dtype=np.intp))
        self._columns += new
        self._tables.append(table)

    def _computed(self, rows: Indices, columns: Indices) -> NDArray[np.float32]:
        units = (unit_rows(self._embeddings[which]).astype(np.float32) for which in (rows, columns))
        these, those = units
        cosines: NDArray[np.float32] = these @ those.T
        return cosines
