"""Duplicates with different labels: pairs of examples that are nearly the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import squared_distances
from galaxy_al.shards import row_blocks

# Chosen on images of CIFAR-10; see docs/appendix/benchmarks.md for what they find elsewhere.
NEAR = 0.4  # of the typical distance between neighbors
SAME_LOOK = 0.15  # between two thumbnails
_ROWS = 1024

Table = NDArray[np.floating[Any]]
Pair = tuple[int, int]
Name = TypeVar("Name", int, str)


def near_pairs(
    vectors: Table, labels: NDArray[np.integer[Any]], distance: float
) -> list[tuple[int, int]]:
    """The pairs with different labels that are at most a distance apart, each with i < j.

    All distances are compared in blocks, so memory grows with the number of vectors only. Single
    precision finds candidates; these are then measured in double precision.

    Examples
    --------
    >>> vectors = np.array([[0.0], [0.1], [5.0], [0.1]])
    >>> near_pairs(vectors, np.array([0, 1, 1, 0]), 0.2)
    [(0, 1), (1, 3)]
    """
    points = (vectors - vectors.mean(axis=0, dtype=np.float64)).astype(np.float32)
    squares = np.einsum("ij,ij->i", points, points)
    slack = 4e-5 * float(squares.max(initial=0.0))  # what single precision may lose
    bound = np.float32(distance**2 + slack)
    found: list[Pair] = []
    for low, high in row_blocks(len(points), _ROWS):
        apart = points[low:high] @ points[low:].T
        apart *= -2
        apart += squares[low:high, None]
        apart += squares[low:]
        rows, columns = np.nonzero(apart <= bound)
        one, other = rows + low, columns + low
        kept = (one < other) & (labels[one] != labels[other])
        found += _measured(vectors, one[kept], other[kept], distance)
    return found


def _measured(
    vectors: Table, one: NDArray[np.intp], other: NDArray[np.intp], distance: float
) -> Iterable[Pair]:
    """Those of some pairs that are near enough."""
    for low, high in row_blocks(len(one), _ROWS):
        between = vectors[one[low:high]].astype(np.float64) - vectors[other[low:high]]
        is_near = np.einsum("ij,ij->i", between, between) <= distance**2
        yield from zip(one[low:high][is_near].tolist(), other[low:high][is_near].tolist())


def typical_distance(sample: Table) -> float:
    """The median distance of an example to its nearest neighbor, in a sample of a pool.

    Examples
    --------
    >>> typical_distance(np.array([[0.0], [1.0], [3.0]]))
    1.0
    """
    if len(sample) < 2:
        return 0.0
    apart = squared_distances(sample, sample)
    np.fill_diagonal(apart, np.inf)
    return float(np.sqrt(np.median(apart.min(axis=1))))


def groups_of(pairs: Iterable[tuple[Name, Name]]) -> list[list[Name]]:
    """What is connected by pairs, as groups in ascending order.

    Examples
    --------
    >>> groups_of([(4, 7), (1, 2), (7, 9)])
    [[1, 2], [4, 7, 9]]
    """
    group_of: dict[Name, list[Name]] = {}
    for pair in pairs:
        one, other = (group_of.setdefault(name, [name]) for name in pair)
        if one is not other:
            one += other
            group_of.update(dict.fromkeys(other, one))
    distinct = {id(group): sorted(group) for group in group_of.values()}
    return sorted(distinct.values())
