"""Local outliers: examples that lie farther from the others than their surroundings do.

Breunig, Kriegel, Ng and Sander, LOF: Identifying Density-Based Local Outliers, SIGMOD 2000, with
random references instead of the whole pool: one pass over the pool, in memory that does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import combine, squares
from galaxy_al.shards import random_rows, row_blocks
from galaxy_al.system.threads import run_in_threads

SIZES = (200, 600, 2000)  # of sets of references, each within the next
NEIGHBOR = 6  # its distance is the scale of an example
_SURROUNDING = 4  # references that an example is compared with
_SCALE = SIZES[1]  # the set whose scale is kept
_CANDIDATES = 100_000  # of a larger pool, so many are looked at
_KEPT = 2000
_ROWS_AT_ONCE = 1 << 11
_LEAST = 1e-6  # scale beside the median one: copies have none

Table = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class LocalOutliers:
    """The examples of a pool that lie farthest out, the farthest first.

    Parameters
    ----------
    indices
        Of the pool.
    factors
        The geometric mean of the local outlier factors: about 1 inside a cluster.
    scales
        The distance to the 6th nearest of 600 references.
    points
        The embeddings.
    """

    indices: NDArray[np.intp]
    factors: NDArray[np.float64]
    scales: NDArray[np.float64]
    points: Table

    @cached_property
    def members(self) -> frozenset[int]:
        """The indices as a set."""
        return frozenset(self.indices.tolist())

    def factors_beside(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The factors, less for an example that is nearer to a known one than its scale."""
        is_near = distances < self.scales
        parts = np.divide(distances, self.scales, out=np.ones(len(is_near)), where=is_near)
        return self.factors * parts


def local_outliers(embeddings: Table) -> LocalOutliers:
    """The outliers of a pool; the same pool always has the same.

    The local outlier factor of an example is its scale divided by the mean scale of the 4 nearest
    references; its scale is the distance to the 6th nearest reference other than itself. The
    logarithms are averaged over three sets of random references, since a small set sees only what
    lies far from everything, and a large one may hold several examples of the class itself.

    Examples
    --------
    >>> pool = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[9, 9]], axis=0)
    >>> int(local_outliers(pool).indices[0])
    99
    """
    candidates = np.sort(_random(len(embeddings), _CANDIDATES, seed=0))
    references = _References(embeddings, choose_references(len(embeddings)), candidates)
    logs, scales = np.zeros(len(candidates)), np.empty(len(candidates))

    def measure(bounds: tuple[int, int]) -> None:
        here = slice(*bounds)
        distances = references.distances(candidates[here])
        for count in SIZES:
            scale, nearest = _scales(distances[:, :count])
            surrounding = references.surrounding(count, nearest)
            logs[here] += np.log((scale + references.least) / (surrounding + references.least))
            if count == _SCALE:
                scales[here] = scale

    run_in_threads(measure, row_blocks(len(candidates), _ROWS_AT_ONCE))
    first = np.argsort(-logs, kind="stable")[:_KEPT]
    kept, factors = candidates[first], np.exp(logs[first] / len(SIZES))
    return LocalOutliers(kept, factors, scales[first], np.asarray(embeddings[kept]))


def choose_references(size: int) -> NDArray[np.intp]:
    """Random examples that all others are compared with, 2,000 or half of a smaller pool."""
    return _random(size, min(SIZES[-1], -(-size // 2)), seed=1)


def _random(size: int, count: int, seed: int) -> NDArray[np.intp]:
    return random_rows(size, count, np.random.default_rng(seed))


class _References:
    """Random examples that others are compared with."""

    def __init__(
        self, embeddings: Table, indices: NDArray[np.intp], candidates: NDArray[np.intp]
    ) -> None:
        self._embeddings = embeddings
        self._middle = embeddings[indices].mean(axis=0, dtype=np.float64)
        self._points = self._centered(indices)
        self._squares = squares(self._points)
        self._place = {index: place for place, index in enumerate(indices.tolist())}
        between = self.distances(indices)
        self.scales = {count: _scales(between[:count, :count])[0] for count in SIZES}
        usual = float(np.median(self.scales[SIZES[-1]])) or self._farthest(candidates)
        self.least = _LEAST * usual or 1.0

    def _farthest(self, candidates: NDArray[np.intp]) -> float:
        """The largest distance of a candidate from the middle of the references."""
        blocks = row_blocks(len(candidates), _ROWS_AT_ONCE)
        largest = max(squares(self._centered(candidates[low:high])).max() for low, high in blocks)
        return float(np.sqrt(largest))

    def _centered(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        return np.asarray(self._embeddings[rows] - self._middle, dtype=np.float32)

    def surrounding(self, count: int, nearest: NDArray[np.intp]) -> NDArray[np.float64]:
        """The mean scale of some references; -1 is none."""
        scales = np.where(nearest >= 0, self.scales[count][nearest], 0)
        means: NDArray[np.float64] = scales.sum(axis=1) / np.maximum((nearest >= 0).sum(axis=1), 1)
        return means

    def distances(self, rows: NDArray[np.intp]) -> Table:
        """Squared distances of examples to the references, infinite to themselves."""
        points = self._centered(rows)
        found = combine(points @ self._points.T, squares(points)[:, None], self._squares)
        for at, index in enumerate(rows.tolist()):
            if index in self._place:
                found[at, self._place[index]] = np.inf
        return found


def _scales(distances: Table) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The distance to the 6th nearest reference, and the 4 nearest ones, -1 where there is none."""
    count = min(NEIGHBOR, distances.shape[1])
    near = np.argpartition(distances, count - 1, axis=1)[:, :count]
    apart = np.take_along_axis(distances, near, axis=1)
    order = np.argsort(apart, axis=1, kind="stable")
    nearest = np.take_along_axis(near, order, axis=1)
    is_other = np.isfinite(np.take_along_axis(apart, order, axis=1))
    scales = np.sqrt(np.where(np.isfinite(apart), apart, 0).max(axis=1).astype(np.float64))
    return scales, np.where(is_other, nearest, -1)[:, :_SURROUNDING]
