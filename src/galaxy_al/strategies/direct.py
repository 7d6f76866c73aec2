"""DIRECT: Nuggehalli, Zhang, Jain and Nowak, Deep Active Learning under Imbalance and Label Noise.

Class k's ranking is here the pool by descending margin p_k - max p, GALAXY's read from its end. A
threshold j says that the first j examples are of class k. Its score is the number of labels it gets
right less those it gets wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.ranking import Ranking, build_rankings, sort_nodes
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import check_count
from galaxy_al.strategies.session import QueuedSession, Session, Start

_DROPS_AT_ONCE = 1 << 16


class Direct(Strategy):
    """Find each class's best threshold although some labels are wrong, and label around it.

    Half of the budget shrinks the version space, in which the best threshold lies; the other
    half goes to the examples next to the best thresholds.

    Parameters
    ----------
    annotators
        How many examples are handed out before answers are needed while the version space
        shrinks, the paper's B1. What is next to a class's threshold is always handed out at once.

    Examples
    --------
    >>> from galaxy_al import Snapshot
    >>> proba = np.linspace([0.99, 0.01], [0.01, 0.99], num=99)
    >>> session = Direct(annotators=4).start(Snapshot(proba), rng=np.random.default_rng(0))
    >>> group = [session.ask() for _ in range(4)]
    >>> for index in group:
    ...     session.tell(index, int(index > 20))
    >>> session.ask() not in group
    True
    """

    name = "direct"
    summary = "best thresholds although labels err, for many annotators"
    paper = "Nuggehalli et al., 2023"
    works_on_shards = True
    needs_answers = "in groups"

    def __init__(self, annotators: int = 20) -> None:
        check_count("annotators", annotators)
        self.annotators = annotators

    def open_session(self, start: Start) -> Session:
        """A session that repeats its two halves after ``budget`` questions."""
        return DirectSession(self, start)


class _Descending:
    """A class's ranking, from the largest margin down."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    def __len__(self) -> int:
        return len(self._ranking)

    def place(self, node: int) -> int:
        """How many nodes are before a node."""
        return len(self) - 1 - self._ranking.rank(node)

    def nodes(self, places: Iterable[int]) -> Iterator[int]:
        """The nodes at some places."""
        return (self._ranking.node(len(self) - 1 - place) for place in places)


@dataclass
class _Reduction:
    """Shrink the version space of a class, the places from low to high, in groups."""

    target: int
    n_left: int
    low: int = -1
    high: int = -1
    factor: float = 1.0


class DirectSession(QueuedSession):
    """Hands out groups; an answer that is not in when the next group is made does not count.

    A skipped example stays in the rankings like one that is not labelled.
    """

    def __init__(self, strategy: Direct, start: Start) -> None:
        super().__init__(start)
        self._annotators = strategy.annotators
        self._rankings: dict[int, _Descending] = {}
        self._reductions: deque[_Reduction] = deque()
        self._widenings: deque[int] = deque()
        self._n_left = 0

    def _next_group(self) -> list[int]:
        while True:
            if not (self._reductions or self._widenings):
                self._plan()
            group = self._reduce() if self._reductions else self._widen()
            if group:
                self._n_left -= len(group)
                return group

    def _plan(self) -> None:
        """Begin with a budget: half of it to shrink, what then is left to label around."""
        n_classes, half = self.snapshot.n_classes, self._budget // 2
        self._n_left = self._budget
        quotas = np.full(n_classes, half // n_classes)
        quotas[self._rng.permutation(n_classes)[: half % n_classes]] += 1
        steps = (_Reduction(k, quota) for k, quota in enumerate(quotas.tolist()) if quota)
        self._reductions.extend(steps)
        in_random_order = self._rng.permutation(n_classes).tolist()
        self._widenings.extend(in_random_order[: self._budget - half])
        self._rank_classes({step.target for step in self._reductions} | set(self._widenings))

    def _rank_classes(self, classes: set[int]) -> None:
        """Rank the pool for the classes that have no ranking yet."""
        wanted = {}
        for target in sorted(classes - self._rankings.keys()):
            nodes, signs = self._labeled_in_order(target)
            # The ends of the version space are looked up first: lookups between are then fast.
            ends = (i for i in reversed(_version_space(signs)) if 0 <= i < len(nodes))
            wanted[target] = [nodes[i] for i in ends] or [0]
        rankings = build_rankings(self.snapshot.scores, wanted) if wanted else {}
        self._rankings.update(
            (target, _Descending(ranking)) for target, ranking in rankings.items()
        )

    def _reduce(self) -> list[int]:
        """The next group of the first reduction; from the second on the version space shrinks."""
        step = self._reductions[0]
        nodes, signs = self._labeled_in_order(step.target)
        if step.high < 0:
            self._open(step, nodes, signs)
        else:
            self._shrink(step, nodes, signs)
        group = self._sample_between(step, min(step.n_left, self._annotators))
        step.n_left -= len(group)
        if not (group and step.n_left):
            self._reductions.popleft()
        return group

    def _open(self, step: _Reduction, nodes: list[int], signs: NDArray[np.int64]) -> None:
        ranking = self._rankings[step.target]
        low, high = _version_space(signs)
        step.low = ranking.place(nodes[low]) if low >= 0 else 0
        step.high = ranking.place(nodes[high]) if high < len(nodes) else len(ranking) - 1
        n_labeled = min(high, len(nodes) - 1) - max(low, 0) + 1
        n_unlabeled = step.high - step.low + 1 - n_labeled
        step.factor = max(n_unlabeled, 1) ** (1 / math.ceil(step.n_left / self._annotators))

    def _shrink(self, step: _Reduction, nodes: list[int], signs: NDArray[np.int64]) -> None:
        """Drop one end after the other, each time the one whose threshold scores worse.

        The score at the high end less that at the low end is twice the sum of the signs between.
        It changes only where a labelled example is dropped, so we go from one to the next.
        """
        place = self._rankings[step.target].place
        first, last = (bisect_left(nodes, end, key=place) for end in (step.low, step.high))
        inner = deque(zip(map(place, nodes[first:last]), signs[first:last].tolist()))
        balance = sum(sign for _, sign in inner)
        size = step.high - step.low + 1
        n_drop = size - max(int(size / step.factor), 1)
        while n_drop > 0:
            to_first = inner[0][0] - step.low + 1 if inner else n_drop
            to_last = step.high - inner[-1][0] if inner else n_drop
            from_low, from_high = self._drops(balance, n_drop, to_first, to_last)
            step.low, step.high = step.low + from_low, step.high - from_high
            n_drop -= from_low + from_high
            if inner and from_low == to_first:
                balance -= inner.popleft()[1]
            elif inner and from_high == to_last:
                balance -= inner.pop()[1]

    def _drops(self, balance: int, count: int, to_first: int, to_last: int) -> tuple[int, int]:
        """How many are dropped from each end until a label is, ``count`` at most."""
        if balance > 0:
            return min(to_first, count), 0
        if balance < 0:
            return 0, min(to_last, count)
        n_low = n_high = 0
        while n_low < to_first and n_high < to_last and n_low + n_high < count:
            drops = self._rng.random(min(count - n_low - n_high, _DROPS_AT_ONCE)) < 0.5
            low, high = n_low + drops.cumsum(), n_high + (~drops).cumsum()
            ends = int(low.searchsorted(to_first)), int(high.searchsorted(to_last))
            until = min(*ends, len(drops) - 1)
            n_low, n_high = int(low[until]), int(high[until])
        return n_low, n_high

    def _sample_between(self, step: _Reduction, count: int) -> list[int]:
        """Free examples, uniform in the version space, ``count`` if there are so many."""
        ranking, places = self._rankings[step.target], range(step.low, step.high + 1)
        if len(places) <= 2 * (self.state.n_busy + count):
            free = np.array(list(filter(self.state.is_free, ranking.nodes(places))), dtype=np.intp)
            shuffled: list[int] = self._rng.permutation(free)[:count].tolist()
            return shuffled
        found: dict[int, None] = {}
        while len(found) < count:
            place = int(self._rng.integers(step.low, step.high + 1))
            found.update(dict.fromkeys(filter(self.state.is_free, ranking.nodes([place]))))
        return list(found)

    def _widen(self) -> list[int]:
        """Free examples next to a class's best threshold, left and right in turn."""
        share = math.ceil(self._n_left / len(self._widenings))
        target = self._widenings.popleft()
        ranking, threshold = self._rankings[target], self._best_threshold(target)
        sides = range(threshold - 1, -1, -1), range(threshold, len(ranking))
        left, right = (filter(self.state.is_free, ranking.nodes(side)) for side in sides)
        in_turn = (node for pair in zip_longest(left, right) for node in pair)
        return list(islice((node for node in in_turn if node is not None), share))

    def _best_threshold(self, target: int) -> int:
        """The threshold that scores highest, chosen uniformly from those that tie.

        The score is the same all the way from one labelled example to the next.
        """
        nodes, signs = self._labeled_in_order(target)
        ranking, score = self._rankings[target], np.append(0, signs.cumsum())
        firsts, lengths = [], []
        for i in np.flatnonzero(score == score.max()).tolist():
            firsts.append(ranking.place(nodes[i - 1]) + 1 if i > 0 else 0)
            last = ranking.place(nodes[i]) if i < len(nodes) else len(ranking)
            lengths.append(last - firsts[-1] + 1)
        chosen = int(self._rng.integers(sum(lengths)))
        before = np.cumsum(lengths) - lengths
        stretch = int(before.searchsorted(chosen, side="right")) - 1
        return firsts[stretch] + chosen - int(before[stretch])

    def _labeled_in_order(self, target: int) -> tuple[list[int], NDArray[np.int64]]:
        """The labelled examples in order of rank, and 1 for those of the class, -1 for others."""
        known = np.array(sorted(self.state.labels), dtype=np.intp)
        if not len(known):
            return [], np.empty(0, dtype=np.int64)
        order, _ = next(sort_nodes(self.snapshot.scores, known, [target]))
        nodes: list[int] = known[order][::-1].tolist()
        return nodes, np.array([1 if self.state.labels[node] == target else -1 for node in nodes])


def _version_space(signs: NDArray[np.int64]) -> tuple[int, int]:
    """Among labels in order of rank, the last + before the first -, and the mirror of that.

    -1 and the number of labels mean the ends of the ranking.
    """
    positive, negative = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
    first_negative = int(negative[0]) if len(negative) else len(signs)
    last_positive = int(positive[-1]) if len(positive) else -1
    return first_negative - 1, last_positive + 1
