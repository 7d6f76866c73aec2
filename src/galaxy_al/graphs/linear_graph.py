"""One class's linear graph: labels, gaps, cuts, and the next midpoint.

At order m every node of the line is joined to the m nodes on each side of it. Labelled nodes are
positive (of the class) or negative; edges between the two are cut. A shortest path from a
positive to a negative node never passes through a labelled one, so no search is needed:

- a *gap* is two labelled nodes of opposite sign with only unlabelled nodes between them. With
  d the difference of their ranks, the path over it has length max(2, ceil(d / m));
- a *cut* is such a pair with nothing between, d = 1. Outward from it on either side, past
  labelled nodes, stands the first unlabelled node: a *side*. It has neighbours of both signs,
  hence a path of length 2, as soon as m is its *reach*, the distance to the cut's far end.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import TypeVar

import numpy as np

from galaxy_al.errors import InvalidArgument
from galaxy_al.graphs.ranking import Ranking

# Entries of the heaps. One that was replaced or is gone stays until it comes up: an entry counts
# only if the dictionary beside the heap still holds it.
# The random number breaks ties between equally short ones.
_Gap = tuple[int, float, int, int, bool]  # length, random, left node, right node, length is exact
_Side = tuple[int, float, int, int, int]  # reach, random, far end, near end, outermost labelled

Entry = TypeVar("Entry", _Gap, _Side)


class LinearGraph:
    """Finds the shortest shortest path of one class's line and its midpoint.

    Parameters
    ----------
    ranking
        The class's line.
    nodes
        The labelled nodes in the line's order.
    keys
        Their keys on the line (`line_keys`).
    positive
        Whether they are of the class.
    rng
        Breaks ties.
    """

    def __init__(
        self,
        ranking: Ranking,
        nodes: list[int],
        keys: list[float],
        positive: list[bool],
        rng: np.random.Generator,
    ) -> None:
        self._ranking = ranking
        self._rng = rng
        self._nodes = nodes
        self._keys = keys
        self._positive = dict(zip(nodes, positive))
        self._gap_after: dict[int, _Gap] = {}  # by the left end
        self._gaps: list[_Gap] = []
        self._sides: list[_Side] = []
        self._side_of: dict[tuple[int, int], _Side] = {}  # by the far and the near end
        for at in np.flatnonzero(np.diff(positive)).tolist():
            self._join(at)

    def mark(self, node: int, key: float, positive: bool) -> None:
        """Label a node, or change its sign."""
        at = self._place(node, key)
        known = self._positive.get(node)
        self._positive[node] = positive
        if known is None:
            self._nodes.insert(at, node)
            self._keys.insert(at, key)
            if self._is_among(at, positive):
                return
        if known != positive:
            self._join(at - 1)
            self._join(at)
        if known is (not positive):
            self._renew_sides(at, at)

    def unmark(self, node: int, key: float) -> None:
        """Withdraw a node's label."""
        at = self._place(node, key)
        del self._nodes[at], self._keys[at], self._positive[node]
        self._gap_after.pop(node, None)
        self._join(at - 1)
        self._renew_sides(at - 1, at)

    def close_up(self, node: int, key: float) -> None:
        """Notice that an unlabelled node was taken off the line."""
        self._join(self._place(node, key) - 1)

    def labels(self) -> list[tuple[int, bool]]:
        """The ranks of the labelled nodes, and whether they are of the class."""
        return [(self._ranking.rank(node), self._positive[node]) for node in self._nodes]

    def span(self) -> tuple[int, int]:
        """The ranks between which the next midpoint is: a gap's ends, or what a side reaches."""
        rank, gap, side = self._ranking.rank, self._shortest_gap(), self._nearest_side()
        if gap:
            return rank(gap[2]), rank(gap[3])
        if side is None:
            return -1, len(self._ranking)
        _, _, far, near, outermost = side
        ends = rank(far), rank(outermost) + rank(near) - rank(far)
        return min(ends), max(ends)

    def first_order(self) -> int | None:
        """The lowest order at which there is a path, if any."""
        if self._shortest_gap():
            return 1
        side = self._nearest_side()
        return side[0] if side else None

    def least_length(self, order: int) -> float:
        """A bound below `length` that costs nothing."""
        if order > 1 and self._sides:
            return 2
        return self._hops(self._gaps[0][0], order) if self._gaps else math.inf

    def length(self, order: int, most: float = math.inf) -> float:
        """The length of the shortest path at this order, infinite if there is none.

        A path longer than ``most`` does not matter: the answer is then only a bound above it.
        """
        gap = self._shortest_gap(max(most, 2) * order)
        if order > 1:
            side = self._nearest_side()
            if side and side[0] <= order:
                return 2
        return self._hops(gap[0], order) if gap else math.inf

    def midpoint(self, order: int) -> int:
        """The middle node of a shortest path at this order."""
        rank = self._ranking.rank
        gap, side = self._shortest_gap(), self._nearest_side() if order > 1 else None
        if side and side[0] <= order and not (gap and self._prefers_gap(gap, side)):
            _, _, far, near, outermost = side
            return self._ranking.node(rank(outermost) + rank(near) - rank(far))
        if gap is None:
            raise InvalidArgument(f"There is no path at order {order}.")
        length, _, left, _, _ = gap
        return self._ranking.node(rank(left) + self._middle(length, order))

    @staticmethod
    def _hops(length: int, order: int) -> int:
        """The length of the shortest path over a gap."""
        return max(2, -(-length // order))

    def _prefers_gap(self, gap: _Gap, side: _Side) -> bool:
        """Of two paths of length 2 the one that a lower order already has, ties by chance."""
        reach = -(-gap[0] // 2)
        return reach < side[0] or (reach == side[0] and self._rng.random() < 0.5)

    def _middle(self, length: int, order: int) -> int:
        """The step from a gap's left end to the midpoint of its shortest path nearest the middle.

        The halves of a path of L hops have h and L - h hops, with h = L / 2 rounded down or up;
        w is on it if the left end is within h * order of it and the right one within the rest.
        """
        hops = self._hops(length, order)
        candidates = set()
        for half in {hops // 2, hops - hops // 2}:
            low, high = length - (hops - half) * order, half * order
            for middle in {length // 2, length - length // 2}:
                candidates.add(min(max(middle, low, 1), high, length - 1))
        nearest = min(abs(2 * c - length) for c in candidates)
        ties = sorted(c for c in candidates if abs(2 * c - length) == nearest)
        return ties[0] if len(ties) == 1 else ties[int(self._rng.integers(len(ties)))]

    def _place(self, node: int, key: float) -> int:
        """How many labelled nodes lie below a node."""
        at = bisect_left(self._keys, key)
        if at < len(self._keys) and self._keys[at] == key:
            place, end = self._ranking.place(node), bisect_right(self._keys, key, at)
            at = bisect_left(self._nodes, place, at, end, key=self._ranking.place)
        return at

    def _is_among(self, at: int, positive: bool) -> bool:
        """Whether the labelled neighbours of labelled node number ``at`` all have this sign."""
        nodes, sign = self._nodes, self._positive
        return (at == 0 or sign[nodes[at - 1]] == positive) and (
            at + 1 == len(nodes) or sign[nodes[at + 1]] == positive
        )

    def _join(self, at: int) -> None:
        """Look again at the pair of labelled nodes number ``at`` and ``at + 1``."""
        if not 0 <= at < len(self._nodes):
            return
        left = self._nodes[at]
        self._gap_after.pop(left, None)
        if at + 1 == len(self._nodes):
            return
        right = self._nodes[at + 1]
        if self._positive[left] == self._positive[right]:
            return
        # At first only a bound: most gaps are never the shortest, and their ends never ranked.
        low, high = self._ranking.bounds(left), self._ranking.bounds(right)
        exact = low[0] == low[1] and high[0] == high[1] > low[0] + 1
        self._add_gap(max(high[0] - low[1], 1), left, right, exact)

    def _add_gap(self, length: int, left: int, right: int, exact: bool) -> None:
        gap = (length, self._rng.random(), left, right, exact)
        self._gap_after[left] = gap
        _push(self._gaps, gap, self._gap_after.values())

    def _shortest_gap(self, most: float = math.inf) -> _Gap | None:
        """The shortest gap; if it is longer than ``most``, perhaps one whose length is a bound."""
        while self._gaps:
            length, _, left, right, exact = gap = self._gaps[0]
            current = self._gap_after.get(left) is gap
            if current and (exact or length > most):
                return gap
            heappop(self._gaps)
            if current:
                self._measure(left, right)
        return None

    def _measure(self, left: int, right: int) -> None:
        """Find out how long a gap is; if there is nothing between its ends it is a cut."""
        length = self._ranking.rank(right) - self._ranking.rank(left)
        if length > 1:
            self._add_gap(length, left, right, exact=True)
        else:
            del self._gap_after[left]
            self._add_side(left, right, right)
            self._add_side(right, left, left)

    def _add_side(self, far: int, near: int, outermost: int) -> None:
        side = (self._reach(far, outermost), self._rng.random(), far, near, outermost)
        self._side_of[far, near] = side
        _push(self._sides, side, self._side_of.values())

    def _reach(self, far: int, outermost: int) -> int:
        return abs(self._ranking.rank(outermost) - self._ranking.rank(far)) + 1

    def _nearest_side(self) -> _Side | None:
        while self._sides:
            reach, _, far, near, known = side = self._sides[0]
            current = self._side_of.get((far, near)) is side
            outermost = self._outermost(far, near, known) if current else None
            if outermost == known and reach == self._reach(far, known):
                return side
            heappop(self._sides)
            if current:
                del self._side_of[far, near]
            if outermost is not None:
                self._add_side(far, near, outermost)
        return None

    def _outermost(self, far: int, near: int, outermost: int) -> int | None:
        """The last labelled node before the side, from the last one known; None if there is none.

        There is none if the cut is gone, the nodes between are not all labelled, the line ends,
        or another cut lies nearer. On the line ``. + - - - . .`` the cut's far end is the ``+``,
        its near end the first ``-``, the outermost the last ``-``, and the side the dot after it.
        """
        if not all(node in self._positive for node in (far, near, outermost)):
            return None
        rank = self._ranking.rank
        step = rank(near) - rank(far)
        if abs(step) != 1 or self._positive[far] == self._positive[near]:
            return None
        at, here = self._labeled_below(outermost), rank(outermost)
        if at - self._labeled_below(far) != here - rank(far):
            return None
        while 0 <= here + step < len(self._ranking):
            at, here = at + step, here + step
            if not (0 <= at < len(self._nodes) and rank(self._nodes[at]) == here):
                return outermost
            outermost = self._nodes[at]
            if self._positive[outermost] != self._positive[near]:
                return None
        return None

    def _labeled_below(self, node: int) -> int:
        key, _, top, _ = self._ranking.place(node)
        return self._place(node, key or top)

    def _renew_sides(self, left: int, right: int) -> None:
        """Look outward from two labelled nodes for cuts that may have come into sight again."""
        for at, step in ((left, -1), (right, 1)):
            cut = self._next_cut(at, step)
            if cut is not None:
                self._add_side(cut[0], cut[1], cut[1])

    def _next_cut(self, at: int, step: int) -> tuple[int, int] | None:
        """The first cut from a labelled node on, past adjoining labelled ones: far and near end."""
        if not 0 <= at < len(self._nodes):
            return None
        near = self._nodes[at]
        while 0 <= at + step < len(self._nodes):
            at += step
            far = self._nodes[at]
            if abs(self._ranking.rank(far) - self._ranking.rank(near)) != 1:
                return None
            if self._positive[far] != self._positive[near]:
                return far, near
            near = far
        return None


def _push(heap: list[Entry], entry: Entry, current: Collection[Entry]) -> None:
    """Add an entry to a heap; when most of it is out of date, keep only what is current."""
    heappush(heap, entry)
    if len(heap) > 2 * len(current) + 16:
        heap[:] = current
        heapify(heap)
