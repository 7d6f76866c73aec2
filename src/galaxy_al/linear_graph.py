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

from bisect import bisect_left
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from galaxy_al.ranking import Place, Ranking

# Entries of the heaps, which forget nothing: an entry counts only if it still describes the line.
# The random number breaks ties between equally short ones.
_Gap = tuple[int, float, int, int, bool]  # length, random, left node, right node, length is exact
_Side = tuple[int, float, int, int, int]  # reach, random, far end, near end, outermost labelled


class LinearGraph:
    """Finds the shortest shortest path of one class's line and its midpoint.

    Parameters
    ----------
    ranking
        The class's line.
    places
        The places of the labelled nodes, in the line's order.
    positive
        For each of them, whether it is of the class.
    rng
        Breaks ties.
    """

    def __init__(
        self,
        ranking: Ranking,
        places: list[Place],
        positive: list[bool],
        rng: np.random.Generator,
    ) -> None:
        self._ranking = ranking
        self._rng = rng
        nodes = [place[-1] for place in places]
        self._places = places
        self._place_of = dict(zip(nodes, places))
        self._positive = dict(zip(nodes, positive))
        self._gap_after: dict[int, _Gap] = {}  # by the left end
        self._gaps: list[_Gap] = []
        self._sides: list[_Side] = []
        for at in _changes(positive):
            self._join(at)

    def mark(self, place: Place, positive: bool) -> None:
        """Label a node, or change its sign."""
        node = place[-1]
        at = bisect_left(self._places, place)
        known = self._positive.get(node)
        self._positive[node] = positive
        if known is None:
            self._place_of[node] = place
            self._places.insert(at, place)
            if self._sign(at - 1) != positive or self._sign(at + 1) != positive:
                self._join(at - 1)
                self._join(at)
        elif known != positive:
            self._join(at - 1)
            self._join(at)
            self._renew_sides(at, at)

    def unmark(self, node: int) -> None:
        """Withdraw a node's label."""
        at = self._index(node)
        del self._places[at], self._place_of[node], self._positive[node]
        self._gap_after.pop(node, None)
        self._join(at - 1)
        self._renew_sides(at - 1, at)

    def close_up(self, place: Place) -> None:
        """Notice that an unlabelled node at this place was taken off the line."""
        self._join(bisect_left(self._places, place) - 1)

    def first_order(self) -> int | None:
        """The lowest order at which there is a path, if any."""
        if self._shortest_gap():
            return 1
        side = self._nearest_side()
        return side[0] if side else None

    def length(self, order: int) -> int | None:
        """The length of the shortest path at this order, if there is one."""
        gap = self._shortest_gap()
        if gap and gap[0] <= 2 * order:
            return 2
        if order > 1:
            side = self._nearest_side()
            if side and side[0] <= order:
                return 2
        return -(-gap[0] // order) if gap else None

    def midpoint(self, order: int) -> int:
        """The middle node of a shortest path at this order."""
        gap, side = self._shortest_gap(), self._nearest_side() if order > 1 else None
        if side and side[0] <= order and not (gap and self._prefers_gap(gap, side)):
            step = 1 if self._place_of[side[3]] > self._place_of[side[2]] else -1
            return self._ranking.node(self._ranking.rank(side[4]) + step)
        if gap is None:
            raise ValueError(f"There is no path at order {order}.")
        start = self._ranking.rank(gap[2])
        return self._ranking.node(start + self._middle(gap[0], order))

    def _prefers_gap(self, gap: _Gap, side: _Side) -> bool:
        """Of two paths of length 2 the one that a lower order already has, ties by chance."""
        reach = -(-gap[0] // 2)
        return reach < side[0] or (reach == side[0] and self._rng.random() < 0.5)

    def _middle(self, length: int, order: int) -> int:
        """The step from a gap's left end to the midpoint of its shortest path nearest the middle.

        The halves of a path of L hops have h and L - h hops, with h = L / 2 rounded down or up;
        w is on it if the left end is within h * order of it and the right one within the rest.
        """
        hops = max(2, -(-length // order))
        candidates = set()
        for half in {hops // 2, hops - hops // 2}:
            low, high = length - (hops - half) * order, half * order
            for middle in {length // 2, length - length // 2}:
                candidates.add(min(max(middle, low, 1), high, length - 1))
        nearest = min(abs(2 * c - length) for c in candidates)
        ties = sorted(c for c in candidates if abs(2 * c - length) == nearest)
        return ties[0] if len(ties) == 1 else ties[int(self._rng.integers(len(ties)))]

    def _index(self, node: int) -> int:
        return bisect_left(self._places, self._place_of[node])

    def _sign(self, at: int) -> bool | None:
        return self._positive[self._places[at][-1]] if 0 <= at < len(self._places) else None

    def _join(self, at: int) -> None:
        """Look again at the pair of labelled nodes number ``at`` and ``at + 1``."""
        if not 0 <= at < len(self._places):
            return
        left = self._places[at][-1]
        self._gap_after.pop(left, None)
        if at + 1 == len(self._places) or self._sign(at) == self._sign(at + 1):
            return
        # At first only a bound: most gaps are never the shortest, and their ends never ranked.
        right = self._places[at + 1][-1]
        low, high = self._ranking.bounds(left), self._ranking.bounds(right)
        self._add_gap(max(high[0] - low[1], 1), left, right, exact=False)

    def _add_gap(self, length: int, left: int, right: int, exact: bool) -> None:
        gap = (length, self._rng.random(), left, right, exact)
        self._gap_after[left] = gap
        heappush(self._gaps, gap)

    def _shortest_gap(self) -> _Gap | None:
        while self._gaps:
            gap = self._gaps[0]
            current = self._gap_after.get(gap[2]) is gap
            if current and gap[4]:
                return gap
            heappop(self._gaps)
            if current:
                self._measure(gap[2], gap[3])
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
        reach = self._reach(far, outermost)
        heappush(self._sides, (reach, self._rng.random(), far, near, outermost))

    def _reach(self, far: int, outermost: int) -> int:
        return abs(self._ranking.rank(outermost) - self._ranking.rank(far)) + 1

    def _nearest_side(self) -> _Side | None:
        while self._sides:
            reach, _, far, near, known = side = self._sides[0]
            outermost = self._outermost(far, near, known)
            if outermost == known and reach == self._reach(far, known):
                return side
            heappop(self._sides)
            if outermost is not None:
                self._add_side(far, near, outermost)
        return None

    def _outermost(self, far: int, near: int, outermost: int) -> int | None:
        """The last labelled node before the side, from the last one known; None if there is none.

        There is none if the cut is gone, the nodes between are not all labelled, the line ends,
        or another cut lies nearer.
        """
        if not all(node in self._positive for node in (far, near, outermost)):
            return None
        rank, at = self._ranking.rank, self._index(outermost)
        step = 1 if self._place_of[near] > self._place_of[far] else -1
        cut_closed = self._positive[far] != self._positive[near]
        all_labeled = at - self._index(far) == rank(outermost) - rank(far)
        if not (cut_closed and abs(rank(near) - rank(far)) == 1 and all_labeled):
            return None
        here = rank(outermost)
        while 0 <= here + step < len(self._ranking):
            if not 0 <= at + step < len(self._places):
                return outermost
            following = self._places[at + step][-1]
            if rank(following) != here + step:
                return outermost
            if self._positive[following] != self._positive[near]:
                return None
            outermost, at, here = following, at + step, here + step
        return None

    def _renew_sides(self, left: int, right: int) -> None:
        """Look outward from two labelled nodes for cuts that may have come into sight again."""
        for at, step in ((left, -1), (right, 1)):
            cut = self._next_cut(at, step)
            if cut is not None:
                self._add_side(cut[0], cut[1], cut[1])

    def _next_cut(self, at: int, step: int) -> tuple[int, int] | None:
        """The first cut from a labelled node on, past adjoining labelled ones: far and near end."""
        if not 0 <= at < len(self._places):
            return None
        near = self._places[at][-1]
        while 0 <= at + step < len(self._places):
            at += step
            far = self._places[at][-1]
            if abs(self._ranking.rank(far) - self._ranking.rank(near)) != 1:
                return None
            if self._positive[far] != self._positive[near]:
                return far, near
            near = far
        return None


def gap_ends(places: list[Place], positive: list[bool]) -> NDArray[np.intp]:
    """The labelled nodes next to one of the other sign, in the line's order."""
    ends = {at + step for at in _changes(positive) for step in (0, 1)}
    return np.array([places[at][-1] for at in sorted(ends)])


def _changes(positive: list[bool]) -> list[int]:
    """Where the sign differs from the next one's."""
    return [at for at in range(len(positive) - 1) if positive[at] != positive[at + 1]]
