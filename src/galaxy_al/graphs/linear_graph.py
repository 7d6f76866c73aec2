"""One class's linear graph: labels, gaps, cuts, and the next midpoint.

At order m every node of a ranking is joined to the m nodes on each side of it. Labelled nodes are
positive (of the class) or negative; edges between the two are cut. A shortest path from a
positive to a negative node never passes through a labelled one, so no search is needed:

- a *gap* is two labelled nodes of opposite sign with only unlabelled nodes between them. With
  d the difference of their ranks, the path over it has length max(2, ceil(d / m));
- a *cut* is such a pair with nothing between, d = 1. Outward from it on either side, past
  labelled nodes, is the first unlabelled node: a *side*. It has neighbours of both signs,
  hence a path of length 2, as soon as m is its *reach*, the distance to the cut's far end.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from galaxy_al.graphs.lazy_heap import LazyHeap
from galaxy_al.graphs.ranking import Ranking, sort_key


class Gap(NamedTuple):
    """Two labelled nodes of opposite sign; the random number breaks ties of length."""

    length: int
    tie_break: float
    left: int
    right: int
    is_exact: bool  # otherwise the length is a lower bound

    @property
    def key(self) -> int:
        """A labelled node has one gap to its right."""
        return self.left


class Side(NamedTuple):
    """What lies outward of a cut; the random number breaks ties of reach."""

    reach: int
    tie_break: float
    far: int
    near: int
    outermost: int  # the last labelled node before the side

    @property
    def key(self) -> tuple[int, int]:
        """A cut has two sides."""
        return self.far, self.near


class Path(NamedTuple):
    """A shortest path: the ranks of its ends and of its midpoint."""

    low: int
    high: int
    middle: int


class LinearGraph:
    """Finds the shortest shortest path of one class's ranking and its midpoint.

    Parameters
    ----------
    ranking
        The class's ranking.
    nodes
        The labelled nodes in the order of the ranking.
    keys
        Their keys in the ranking (`sort_keys_of`).
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
        self._gaps: LazyHeap[Gap] = LazyHeap()
        self._sides: LazyHeap[Side] = LazyHeap()
        for at in np.flatnonzero(np.diff(positive)).tolist():
            self._join(at)

    def mark(self, node: int, key: float, positive: bool) -> None:
        """Label a node, or change its sign."""
        at = self._position(node, key)
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
        at = self._position(node, key)
        del self._nodes[at], self._keys[at], self._positive[node]
        self._gaps.discard(node)
        self._join(at - 1)
        self._renew_sides(at - 1, at)

    def close_up(self, node: int, key: float) -> None:
        """Take note that an unlabelled node was removed from the ranking."""
        self._join(self._position(node, key) - 1)

    def labels(self) -> list[tuple[int, bool]]:
        """The ranks of the labelled nodes, and whether they are of the class."""
        return [(self._ranking.rank(node), self._positive[node]) for node in self._nodes]

    def first_order(self) -> int | None:
        """The lowest order at which there is a path, if any."""
        if self._shortest_gap():
            return 1
        side = self._nearest_side()
        return side.reach if side else None

    def least_length(self, order: int) -> float:
        """A lower bound of `length` that costs nothing."""
        if order > 1 and len(self._sides):
            return 2
        gap = self._gaps.bound()
        return self._hops(gap.length, order) if gap else math.inf

    def length(self, order: int, most: float = math.inf) -> float:
        """The length of the shortest path at this order, infinite if there is none.

        If it is longer than ``most``, the answer is only a lower bound that is larger than that.
        """
        gap = self._shortest_gap(max(most, 2) * order)
        if order > 1:
            side = self._nearest_side()
            if side and side.reach <= order:
                return 2
        return self._hops(gap.length, order) if gap else math.inf

    def midpoint(self, order: int) -> int:
        """The middle node of a shortest path at this order."""
        return self._ranking.node(self.path(order).middle)

    def path(self, order: int) -> Path:
        """A shortest path at this order; there must be one."""
        rank = self._ranking.rank
        gap, side = self._shortest_gap(), self._nearest_side() if order > 1 else None
        if side and side.reach <= order and not (gap and self._prefers_gap(gap, side)):
            far, near = rank(side.far), rank(side.near)
            middle = rank(side.outermost) + near - far
            return Path(min(far, middle), max(far, middle), middle)
        if gap is None:
            raise AssertionError(f"There is no path at order {order}.")
        left = rank(gap.left)
        return Path(left, left + gap.length, left + self._middle(gap.length, order))

    @staticmethod
    def _hops(length: int, order: int) -> int:
        """The length of the shortest path over a gap."""
        return max(2, -(-length // order))

    def _prefers_gap(self, gap: Gap, side: Side) -> bool:
        """Of two paths of length 2 the one that a lower order already has, ties at random."""
        reach = -(-gap.length // 2)
        return reach < side.reach or (reach == side.reach and self._rng.random() < 0.5)

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

    def _position(self, node: int, key: float) -> int:
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
        self._gaps.discard(left)
        if at + 1 == len(self._nodes):
            return
        right = self._nodes[at + 1]
        if self._positive[left] == self._positive[right]:
            return
        # At first only a bound: most gaps are never the shortest, and their ends never ranked.
        low, high = self._ranking.bounds(left), self._ranking.bounds(right)
        is_exact = low[0] == low[1] and high[0] == high[1] > low[0] + 1
        self._add_gap(max(high[0] - low[1], 1), left, right, is_exact)

    def _add_gap(self, length: int, left: int, right: int, is_exact: bool) -> None:
        self._gaps.put(Gap(length, self._rng.random(), left, right, is_exact))

    def _shortest_gap(self, most: float = math.inf) -> Gap | None:
        """The shortest gap; if it is longer than ``most``, perhaps one whose length is a bound."""
        while (gap := self._gaps.smallest()) and not gap.is_exact and gap.length <= most:
            self._measure(gap)
        return gap

    def _measure(self, gap: Gap) -> None:
        """Find out how long a gap is; if there is nothing between its ends it is a cut."""
        left, right = gap.left, gap.right
        length = self._ranking.rank(right) - self._ranking.rank(left)
        if length > 1:
            self._add_gap(length, left, right, is_exact=True)
        else:
            self._gaps.discard(gap.key)
            self._add_side(left, right, right)
            self._add_side(right, left, left)

    def _add_side(self, far: int, near: int, outermost: int) -> None:
        reach = self._reach(far, outermost)
        self._sides.put(Side(reach, self._rng.random(), far, near, outermost))

    def _reach(self, far: int, outermost: int) -> int:
        return abs(self._ranking.rank(outermost) - self._ranking.rank(far)) + 1

    def _nearest_side(self) -> Side | None:
        while side := self._sides.smallest():
            outermost = self._outermost(side)
            if outermost == side.outermost and side.reach == self._reach(side.far, outermost):
                return side
            self._sides.discard(side.key)
            if outermost is not None:
                self._add_side(side.far, side.near, outermost)
        return None

    def _outermost(self, side: Side) -> int | None:
        """The last labelled node before the side, from the last one known; None if there is none.

        There is none if the cut is gone, the nodes between are not all labelled, the ranking
        ends, or another cut lies nearer. In the ranking ``. + - - - . .`` the cut's far end is the
        ``+``, its near end the first ``-``, the outermost the last ``-``, and the side the dot
        after it.
        """
        _, _, far, near, outermost = side
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
        margin, _, top, _ = self._ranking.place(node)
        return self._position(node, sort_key(margin, top))

    def _renew_sides(self, left: int, right: int) -> None:
        """Look outward from two labelled nodes for cuts that may be in sight again."""
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
