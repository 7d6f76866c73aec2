"""The kernel of a pool: where distances are measured, and sums of kernels, fast.

It is a Gaussian kernel, and a linear one added to it. A sum of Gaussian kernels needs the kernel of
every example with every landmark; a sum of linear ones is one slope per column.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import combine, squares
from galaxy_al.models.columns import EvenColumns
from galaxy_al.shards import (
    BLOCK,
    ShardedTable,
    filled_block,
    map_rows,
    random_rows,
    row_blocks,
)
from galaxy_al.system.floats import at_least_single
from galaxy_al.system.threads import run_in_threads

Table = NDArray[np.floating[Any]]

_SAMPLE = 1000  # examples whose distances give the kernel's width
_CENTER_SAMPLE = 10_000  # examples whose mean is the middle
_FARTHEST = 1e15  # from the pool's middle: squares stay finite
FARTHEST_LINEAR = 10.0  # beyond this an example counts as if it were here, in the linear kernel
_KEPT_BYTES = 600_000_000  # of the kernel's table, from one training to the next
_GROUP = 100  # columns that are computed and kept together


@dataclass(frozen=True)
class KernelSpace:
    """Where the Gaussian kernel is exp(-squared distance): vectors moved to the middle and scaled.

    Parameters
    ----------
    scale
        What each column is divided by.
    columns
        How columns are evened out before that; None takes them as they are.
    """

    middle: Table
    scale: Table
    columns: EvenColumns | None = None

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
            Whether to even out the columns and divide each by its standard deviation.
        """
        order = random_rows(len(pool), _CENTER_SAMPLE, np.random.default_rng(seed))
        sample: Table = np.asarray(pool[np.sort(order)])
        points: Table = np.asarray(pool[order[:_SAMPLE]], dtype=np.float64)
        columns = EvenColumns.of(sample) if per_column else None
        if columns is not None:
            sample, points = columns.even(sample), columns.even(points)
        middle = sample.mean(axis=0, dtype=np.float64)
        reach = np.maximum(sample.max(axis=0) - middle, middle - sample.min(axis=0))
        largest = float(reach.max()) or 1.0
        scale = np.full(sample.shape[1], largest)
        if per_column:
            spread = ((sample - middle) / largest).std(axis=0)
            scale *= np.where(spread > 0, spread, 1)
        typical = _typical((points - middle) / scale)
        exact = np.result_type(pool.dtype, np.float32)
        return cls(middle.astype(exact), scale * (width * np.sqrt(typical)), columns)

    def place(self, rows: Table, precision: Any = np.float32) -> Table:
        """Where some embeddings are."""
        return self.place_as_rows(rows, precision)[:, :-2]

    def place_as_rows(self, rows: Table, precision: Any = np.float32) -> Table:
        """Where some embeddings are, then the squared distance from the middle, then 1."""
        if self.columns is not None:
            rows = self.columns.even(rows)
        rows = at_least_single(rows)
        n_columns = rows.shape[1]
        wide = np.empty((len(rows), n_columns + 2), np.result_type(precision, np.float32))
        points = wide[:, :n_columns]
        np.subtract(rows, self.middle, out=points, casting="same_kind")
        points /= self.scale.astype(wide.dtype)
        wide[:, -2] = np.einsum("ij,ij->i", points, points)
        if not (wide[:, -2] <= _FARTHEST**2).all():
            np.clip(points, -_FARTHEST, _FARTHEST, out=points)
            wide[:, -2] = np.einsum("ij,ij->i", points, points)
        wide[:, -1] = 1
        return wide


class PoolKernel:
    """The kernel of a pool's examples with each other.

    Parameters
    ----------
    linear
        How much of the linear kernel is added.

    Notes
    -----
    What it gives depends only on what is asked, to the last digit: not on what was kept, nor on
    which labels came first. A run that is resumed is the run it was.
    """

    def __init__(self, pool: Table, space: KernelSpace, linear: float = 0.0) -> None:
        self.pool, self.space, self._linear = pool, space, linear
        self._kept: dict[int, int] = {}  # the places of examples in the table
        self._table: list[Table] = []  # groups of examples: blocks of the pool x group x rows
        self._is_asked_again = False

    def between(self, some: NDArray[np.intp], others: NDArray[np.intp]) -> Table:
        """The kernel of some examples, the rows, with others, the columns."""
        rows = self.space.place_as_rows(self.pool[some], np.float64)
        columns = self.space.place_as_rows(self.pool[others], np.float64)
        near = _gaussian_of(rows, _as_columns(columns[:, :-2]))
        if self._linear:
            near += self._linear * (_bounded(rows) @ _bounded(columns).T)
        return near

    def slopes(self, some: NDArray[np.intp], weights: Table) -> Table:
        """The linear kernel with some examples, times one row of weights for each: per column."""
        points = _bounded(self.space.place_as_rows(self.pool[some], np.float64))
        return (self._linear * (points.T @ weights)).astype(np.float32)

    def has_room(self, count: int) -> bool:
        """Whether the kernel with so many examples can be kept."""
        return 4 * len(self.pool) * count <= _KEPT_BYTES

    def times(self, some: NDArray[np.intp], weights: Table, slopes: Table) -> Table:
        """The kernel of all examples with some, times one row of weights for each of those.

        If there is room, the second call keeps the Gaussian kernel, and later ones compute only
        what is new of it.
        """
        if isinstance(self.pool, ShardedTable) or not self.has_room(len(some)):
            self._kept, self._table = {}, []
            group = _GROUP if self.has_room(len(some)) else None
            return kernel_times(self.space, self.pool, self.pool[some], weights, slopes, group)
        sources, new = self._find(some.tolist())
        groups = [new[at : at + _GROUP] for at in range(0, len(new), _GROUP)]
        columns = [_group_of_columns(self.space.place(self.pool[some[at]])) for at in groups]
        targets = self._make_room(some, new)
        product = np.empty((len(self.pool), weights.shape[1]), dtype=np.float32)

        def add_up(bounds: tuple[int, int]) -> None:
            low, high = bounds
            number = low // BLOCK
            block = np.empty((len(some), BLOCK), np.float32)
            for group, which, inside in sources:
                block[which] = self._table[group][number, inside]
            rows = self.space.place_as_rows(filled_block(self.pool[low:high]))
            for asked, points in zip(groups, columns):
                block[asked] = _gaussian_of(points, rows.T)[: len(asked)]
            for group, which, inside in targets:
                self._table[group][number, inside] = block[which]
            product[low:high] = (block.T @ weights + _linear_part(rows, slopes))[: high - low]

        run_in_threads(add_up, row_blocks(len(self.pool), BLOCK))
        return product

    def _find(self, some: list[int]) -> tuple[list[_InGroup], list[int]]:
        """Where the examples that are kept are in the table, and which of them are not kept."""
        kept = [at for at, i in enumerate(some) if i in self._kept]
        return (
            _by_group(kept, [self._kept[some[at]] for at in kept]),
            [at for at, i in enumerate(some) if i not in self._kept],
        )

    def _make_room(self, some: NDArray[np.intp], new: list[int]) -> list[_InGroup]:
        """Forget all examples but these, and give those that are new a place; returns the latter.

        The first time none gets any: a table that is used once is not worth its memory.
        """
        if not self._is_asked_again:
            self._is_asked_again = True
            return []
        wanted = set(some.tolist())
        self._kept = {i: place for i, place in self._kept.items() if i in wanted}
        n_blocks = -(-len(self.pool) // BLOCK)
        while len(self._table) * _GROUP < len(some):
            self._table.append(np.empty((n_blocks, _GROUP, BLOCK), np.float32))
        free = sorted(set(range(len(self._table) * _GROUP)) - set(self._kept.values()))
        self._kept |= dict(zip(some[new].tolist(), free))
        return _by_group(new, free[: len(new)])


_InGroup = tuple[int, NDArray[np.intp], NDArray[np.intp]]
"""A group of the table, which of the examples that were asked for are in it, and where."""


def _by_group(which: list[int], places: list[int]) -> list[_InGroup]:
    groups, inside = np.divmod(np.array(places, dtype=np.intp), _GROUP)
    asked, members = np.array(which, dtype=np.intp), (groups == g for g in np.unique(groups))
    return [(int(groups[are][0]), asked[are], inside[are]) for are in members]


def _typical(points: Table) -> float:
    """The median squared distance of two points."""
    lengths = squares(points)
    pairs = combine(points @ points.T, lengths[:, None], lengths)
    apart = pairs[np.triu_indices(len(points), 1)] if len(points) > 1 else np.ones(1)
    return float(np.median(apart)) or float(apart.mean()) or 1.0


@dataclass(frozen=True)
class KernelSum:
    """The kernel with landmarks, times one row of weights for each of those, of a block of rows.

    Parameters
    ----------
    columns
        The landmarks as columns, all together or in groups.
    slopes
        The same sum of linear kernels, from `PoolKernel.slopes`.
    """

    space: KernelSpace
    columns: tuple[Table, ...]
    weights: Table
    slopes: Table
    is_grouped: bool

    def __call__(self, rows: Table) -> Table:
        """The sums of some rows."""
        placed = self.space.place_as_rows(rows)
        if self.is_grouped:
            near = _scratch(len(self.columns) * _GROUP, len(rows))
            for number, group in enumerate(self.columns):
                own = near[number * _GROUP : (number + 1) * _GROUP]
                _gaussian_of(group, placed.T, own)
            gaussian: Table = near[: len(self.weights)].T @ self.weights
        else:
            near = _scratch(len(rows), self.columns[0].shape[1])
            gaussian = _gaussian_of(placed, self.columns[0], near) @ self.weights
        gaussian += _linear_part(placed, self.slopes)
        return gaussian


def kernel_times(
    space: KernelSpace,
    pool: Table,
    landmarks: Table,
    weights: Table,
    slopes: Table,
    group: int | None = None,
) -> Table:
    """The kernel of a pool's examples with landmarks, times one row of weights for each of those.

    Parameters
    ----------
    slopes
        The same sum of linear kernels, from `PoolKernel.slopes`.
    group
        How many landmarks are computed together; by default all. The last digits depend on it.
    """
    placed = space.place(landmarks)
    columns: tuple[Table, ...] = (_as_columns(placed),)
    if group is not None:
        bounds = row_blocks(len(placed), group)
        columns = tuple(_group_of_columns(placed[low:high]) for low, high in bounds)
    weights = weights.astype(np.float32)
    work = KernelSum(space, columns, weights, slopes, is_grouped=group is not None)
    product: Table = map_rows(work, pool, n_columns=weights.shape[1])
    return product


def _group_of_columns(points: Table) -> Table:
    """Points as rows of a product with others as columns, filled up to a group.

    A product's last digits depend on how many rows it has: it always has as many.
    """
    filled = np.zeros((_GROUP, points.shape[1]), np.float32)
    filled[: len(points)] = points
    return _as_columns(filled).T


_of_thread = local()


def _scratch(n_rows: int, n_columns: int) -> Table:
    """A block of this thread's memory, always the same.

    The allocator may give a block back after each use, and fresh pages cost as much as the product.
    """
    kept: Table | None = getattr(_of_thread, "kept", None)
    if kept is None or kept.size < n_rows * n_columns:
        kept = _of_thread.kept = np.empty(n_rows * n_columns, np.float32)
    return kept[: n_rows * n_columns].reshape(n_rows, n_columns)


def _gaussian_of(rows: Table, columns: Table, out: Table | None = None) -> Table:
    """The kernel, in place: a block stays in the cache."""
    nearness: Table = np.matmul(rows, columns, out=out)
    if nearness.max(initial=0) > 0:  # by rounding
        np.minimum(nearness, 0, out=nearness)
    return np.exp(nearness, out=nearness)


def _linear_part(rows: Table, slopes: Table) -> Table:
    part: Table = rows[:, :-2] @ slopes
    part *= _shrinkage(rows)[:, None]
    return part


def _bounded(rows: Table) -> Table:
    """Points, none of them farther from the middle than is allowed."""
    bounded: Table = rows[:, :-2] * _shrinkage(rows)[:, None]
    return bounded


def _shrinkage(rows: Table) -> Table:
    """What moves points that are too far from the middle back: 1 for all others."""
    shrinkage: Table = FARTHEST_LINEAR / np.sqrt(np.maximum(rows[:, -2], FARTHEST_LINEAR**2))
    return shrinkage


def _as_columns(points: Table) -> Table:
    """Points with two more numbers each: rows times these columns are minus squared distances."""
    lengths = np.einsum("ij,ij->i", points, points)
    return np.vstack([2 * points.T, -np.ones_like(lengths), -lengths])
