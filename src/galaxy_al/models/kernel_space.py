"""The Gaussian kernel of a pool: where distances are measured, and sums of kernels, fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import combine, squares
from galaxy_al.snapshot import row_blocks
from galaxy_al.system.threads import run_in_threads

Table = NDArray[np.floating[Any]]

_SAMPLE = 1000  # examples whose distances give the kernel's width
_CENTER_SAMPLE = 10_000  # examples whose mean is the middle
_FARTHEST = 1e15  # from the pool's middle: squares stay finite
_BLOCK_CELLS = 1 << 18  # of the kernel's table: a block stays in the cache
_KEPT_BYTES = 1 << 29  # of the kernel's table, from one training to the next
_ROWS_AT_ONCE = 1 << 12
_KEPT_ROWS_AT_ONCE = 1 << 9
_GROUP = 128  # columns that are computed at once
_GROWTH = 256  # columns that the table grows by


@dataclass(frozen=True)
class KernelSpace:
    """Where the kernel is exp(-squared distance): embeddings moved to the middle and scaled.

    Parameters
    ----------
    scale
        What each column is divided by.
    """

    middle: Table
    scale: Table

    @classmethod
    def of(
        cls, pool: Table, seed: int, *, width: float = 1, per_column: bool = False
    ) -> KernelSpace:
        """As wide as the median distance; where most examples are copies, as the mean one.

        Parameters
        ----------
        width
            The kernel's width, in median distances.
        per_column
            Whether to divide each column by its standard deviation first.
        """
        order = np.random.default_rng(seed).permutation(len(pool))
        sample = np.asarray(pool[np.sort(order[:_CENTER_SAMPLE])], dtype=np.float64)
        middle = sample.mean(axis=0)
        largest = float(np.abs(sample - middle).max()) or 1.0
        scale = np.full(sample.shape[1], largest)
        if per_column:
            spread = ((sample - middle) / largest).std(axis=0)
            scale *= np.where(spread > 0, spread, 1)
        points = (np.asarray(pool[order[:_SAMPLE]], dtype=np.float64) - middle) / scale
        lengths = squares(points)
        pairs = combine(points @ points.T, lengths[:, None], lengths)
        apart = pairs[np.triu_indices(len(points), 1)] if len(points) > 1 else np.ones(1)
        typical = float(np.median(apart)) or float(apart.mean()) or 1.0
        exact = np.result_type(pool, np.float32)
        return cls(middle.astype(exact), scale * (width * np.sqrt(typical)))

    def place(self, rows: Table, precision: Any = np.float32) -> Table:
        """Where some embeddings are."""
        placed = (rows - self.middle).astype(np.result_type(precision, np.float32), copy=False)
        placed /= self.scale.astype(placed.dtype)
        return np.clip(placed, -_FARTHEST, _FARTHEST, out=placed)


class PoolKernel:
    """The kernel of a pool's examples with each other.

    What it gives depends only on what is asked, to the last digit: not on what was kept, nor on
    which labels came first. A run that is resumed is the run it was.
    """

    def __init__(self, pool: Table, space: KernelSpace) -> None:
        self.pool, self.space = pool, space
        self._kept: dict[int, int] = {}  # the rows of examples in the table
        self._table: Table = self._no_table()

    def between(self, some: NDArray[np.intp], others: NDArray[np.intp]) -> Table:
        """The kernel of some examples, the rows, with others, the columns."""
        rows, columns = (self.space.place(self.pool[i], np.float64) for i in (some, others))
        return gaussian(rows, columns)

    def has_room(self, count: int) -> bool:
        """Whether the kernel with so many examples can be kept."""
        return 4 * len(self.pool) * count <= _KEPT_BYTES

    def times(self, some: NDArray[np.intp], weights: Table) -> Table:
        """The kernel of all examples with some, times one row of weights for each of those.

        If there is room, the kernel is kept, and the next call computes only what is new.
        """
        if not self.has_room(len(some)):
            self._kept, self._table = {}, self._no_table()
            return kernel_times(self.space, self.pool, self.pool[some], weights)
        new = self._make_room(some.tolist())
        groups = [new[at : at + _GROUP] for at in range(0, len(new), _GROUP)]
        points = [self._points(group) for group in groups]
        places = [[self._kept[i] for i in group] for group in groups]
        order = np.array([self._kept[i] for i in some.tolist()], dtype=np.intp)
        product = np.empty((len(self.pool), weights.shape[1]), dtype=np.float32)

        def add_up(bounds: tuple[int, int]) -> None:
            low, high = bounds
            block = self._table[low // _KEPT_ROWS_AT_ONCE, :, : high - low]
            rows = self.space.place(self.pool[low:high]) if groups else np.empty(0)
            for which, group in zip(places, points):
                block[which] = gaussian(group, rows)[: len(which)]
            product[low:high] = block[order].T @ weights

        run_in_threads(add_up, row_blocks(len(self.pool), _KEPT_ROWS_AT_ONCE))
        return product

    def _no_table(self) -> Table:
        """Blocks of the pool x kept examples x rows of a block."""
        n_blocks = -(-len(self.pool) // _KEPT_ROWS_AT_ONCE)
        return np.empty((n_blocks, 0, _KEPT_ROWS_AT_ONCE), np.float32)

    def _make_room(self, some: list[int]) -> list[int]:
        """Forget all examples but these, and give those that are new a row; returns the latter."""
        wanted = set(some)
        self._kept = {i: row for i, row in self._kept.items() if i in wanted}
        n_before, n_rows = self._table.shape[1], -(-len(some) // _GROWTH) * _GROWTH
        if n_rows > n_before:
            larger = np.empty((len(self._table), n_rows, _KEPT_ROWS_AT_ONCE), np.float32)
            larger[:, :n_before] = self._table
            self._table = larger
        free = iter(sorted(set(range(self._table.shape[1])) - set(self._kept.values())))
        new = [i for i in some if i not in self._kept]
        self._kept |= {i: next(free) for i in new}
        return new

    def _points(self, some: list[int]) -> Table:
        """Where some examples are, filled up to a group.

        A product's last digits depend on how many rows it has: it always has as many.
        """
        points = np.zeros((_GROUP, self.pool.shape[1]), np.float32)
        points[: len(some)] = self.space.place(self.pool[some])
        return points


def kernel_times(space: KernelSpace, pool: Table, landmarks: Table, weights: Table) -> Table:
    """The kernel of a pool's examples with landmarks, times one row of weights for each of those.

    The pool is read once, in blocks, by several threads.
    """
    points = space.place(landmarks)
    doubled, lengths = np.ascontiguousarray(2 * points.T), squares(points)
    weights = weights.astype(np.float32)
    product = np.empty((len(pool), weights.shape[1]), dtype=np.float32)

    def score(bounds: tuple[int, int]) -> None:
        low, high = bounds
        rows = space.place(pool[low:high])
        product[low:high] = _gaussian_of(rows, doubled, lengths) @ weights

    run_in_threads(score, _cached_blocks(len(pool), len(points)))
    return product


def _cached_blocks(size: int, n_columns: int) -> Iterator[tuple[int, int]]:
    rows = min(max(_BLOCK_CELLS // max(n_columns, 1), 64), _ROWS_AT_ONCE)
    return row_blocks(size, rows)


def gaussian(rows: Table, columns: Table) -> Table:
    """The kernel of rows with columns."""
    return _gaussian_of(rows, 2 * columns.T, squares(columns))


def _gaussian_of(rows: Table, doubled: Table, of_columns: Table) -> Table:
    """The kernel, from twice the columns and their squares; in place: a block stays in cache."""
    nearness = rows @ doubled
    nearness -= squares(rows)[:, None]
    nearness -= of_columns
    np.minimum(nearness, 0, out=nearness)
    kernel: Table = np.exp(nearness, out=nearness)
    return kernel
