"""The buckets of one class's ranking, looked into wherever their rows lie."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.places import MANY_ROWS, Nodes, Place
from galaxy_al.graphs.sorted_rows import Scored, SortedRows
from galaxy_al.shards import Parts

_MOST_FETCHED = 1 << 16  # rows of a bucket that are fetched; a larger one is searched where it is
_PIVOTS = 256  # places that a search compares at once

Window = tuple[int, int]


class Buckets:
    """The buckets of one class's ranking.

    Parameters
    ----------
    parts
        The parts of the pool, sorted for the class.
    starts
        How many rows lie below each bucket, and how many there are.
    """

    def __init__(self, parts: Parts[SortedRows], target: int, starts: list[int]) -> None:
        self.starts = starts
        self._parts, self._target = parts, target
        self._ordered: dict[int, Nodes] = {}

    def of_rank(self, rank: int) -> int:
        """The bucket that a rank is in."""
        return bisect_right(self.starts, rank) - 1

    def node(self, bucket: int, position: int) -> int:
        """The node at a position in a bucket."""
        if self._is_fetched(bucket):
            return int(self._in_order(bucket)[position])
        return self._search(bucket, position)

    def position(self, bucket: int, place: Place) -> int:
        """How many nodes of a bucket lie below the place of one of them."""
        if self._is_fetched(bucket) and self._size(bucket) <= MANY_ROWS:
            return int((self._in_order(bucket) == place[-1]).argmax())
        work = partial(_position, self._target, bucket, place)
        position: int = self._parts.reduce(work, lambda one, other: one + other)
        return position

    def _size(self, bucket: int) -> int:
        return self.starts[bucket + 1] - self.starts[bucket]

    def _is_fetched(self, bucket: int) -> bool:
        return len(self._parts) == 1 or self._size(bucket) <= _MOST_FETCHED

    def _in_order(self, bucket: int) -> Nodes:
        if bucket not in self._ordered:
            if len(self._parts) == 1:
                (whole,) = self._parts.some(partial(_in_order, self._target), {0: bucket})
                self._ordered[bucket] = whole
            else:
                rows = self._parts.reduce(partial(_scored, self._target, bucket), _both)
                self._ordered[bucket] = rows.in_order()
        return self._ordered[bucket]

    def _search(self, bucket: int, position: int) -> int:
        """Narrow down where the node is, until what is left can be fetched."""
        key = self._target, bucket
        all_parts = dict.fromkeys(range(len(self._parts)))
        ends = self._parts.some(partial(_n_rows, *key), all_parts)
        windows = {number: (0, end) for number, end in enumerate(ends) if end}
        while sum(high - low for low, high in windows.values()) > _MOST_FETCHED:
            windows = self._narrowed(bucket, position, windows)
        rows = self._parts.some(partial(_scored_between, *key), windows)
        left = Scored(*(np.concatenate(columns) for columns in zip(*rows)))
        return int(left.in_order()[position - sum(low for low, _ in windows.values())])

    def _narrowed(
        self, bucket: int, position: int, windows: dict[int, Window]
    ) -> dict[int, Window]:
        """The part of each window between two places that the position lies between."""
        key, count = (self._target, bucket), max(_PIVOTS // len(windows), 1)
        found = self._parts.some(partial(_some_places, *key, count), windows)
        pivots = sorted(place for places in found for place in places)
        given = {number: (window, pivots) for number, window in windows.items()}
        below = np.array(self._parts.some(partial(_positions, *key), given))
        at = int(below.sum(axis=0).searchsorted(position, side="right"))
        narrowed = {}
        for (number, (low, high)), positions in zip(windows.items(), below.tolist()):
            low = positions[at - 1] if at > 0 else low
            high = positions[at] if at < len(pivots) else high
            narrowed[number] = (low, high)
        return narrowed


def _both(one: Scored, other: Scored) -> Scored:
    return Scored(*(np.concatenate(columns) for columns in zip(one, other)))


def _in_order(target: int, part: SortedRows, bucket: int) -> Nodes:
    return part.in_order(target, bucket)


def _scored(target: int, bucket: int, part: SortedRows) -> Scored:
    return part.scored(target, bucket)


def _scored_between(target: int, bucket: int, part: SortedRows, window: Window) -> Scored:
    return part.scored(target, bucket, *window)


def _n_rows(target: int, bucket: int, part: SortedRows, _: None) -> int:
    return len(part.in_order(target, bucket))


def _position(target: int, bucket: int, place: Place, part: SortedRows) -> int:
    return part.position(target, bucket, place)


def _some_places(
    target: int, bucket: int, count: int, part: SortedRows, window: Window
) -> list[Place]:
    """Evenly spaced places in a window."""
    low, high = window
    at: NDArray[np.intp] = np.unique(np.linspace(low, high, count + 2)[1:-1].astype(np.intp))
    nodes = part.in_order(target, bucket)
    return [part.place(target, int(nodes[i])) for i in at if i < high]


def _positions(
    target: int, bucket: int, part: SortedRows, given: tuple[Window, list[Place]]
) -> list[int]:
    """How many nodes of the bucket lie below each place, within the window."""
    (low, high), places = given
    return [min(max(part.position(target, bucket, place), low), high) for place in places]
