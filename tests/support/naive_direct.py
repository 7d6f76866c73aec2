"""DIRECT as its definition says: whole rankings, thresholds scored one by one, ends dropped singly.

Where the generator decides, everything it may decide is kept as possible.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

from support.naive_galaxy import ranking


def signs(ranked, labels, k):
    """+1 where labelled k, -1 where labelled otherwise, 0 where not labelled."""
    return [0 if i not in labels else 1 if labels[i] == k else -1 for i in ranked]


def score(w, j):
    return sum(w[:j]) - sum(w[j:])


def best_thresholds(w):
    scores = [score(w, j) for j in range(len(w) + 1)]
    return [j for j, value in enumerate(scores) if value == max(scores)]


def version_space(w):
    """The last + before the first -, and its mirror from the other end."""
    low = 0
    for place, sign in enumerate(w):
        if sign < 0:
            break
        if sign > 0:
            low = place
    high = len(w) - 1
    for place in reversed(range(len(w))):
        if w[place] > 0:
            break
        if w[place] < 0:
            high = place
    return low, high


def shrunk(w, low, high, factor):
    """Every interval that may be left when the worse end is dropped until it is short enough."""
    size = high - low + 1
    wanted = max(int(size / factor), 1)
    possible = {(low, high)}
    for _ in range(size - wanted):
        after = set()
        for a, b in possible:
            if score(w, a) <= score(w, b):
                after.add((a + 1, b))
            if score(w, a) >= score(w, b):
                after.add((a, b - 1))
        possible = after
    return possible


def outward(ranked, threshold, free, count):
    """Free examples from a threshold on, left and right in turn."""
    left = [i for i in reversed(ranked[:threshold]) if i in free]
    right = [i for i in ranked[threshold:] if i in free]
    turns = []
    while left or right:
        turns += left[:1] + right[:1]
        left, right = left[1:], right[1:]
    return turns[:count]


class State(NamedTuple):
    """Where DIRECT may be within a budget."""

    reductions: tuple[tuple[int, int], ...]  # class, and labels left for it
    space: tuple[int, int] | None  # of the first of these, once it has begun
    factor: float
    left: int
    unwidened: frozenset[int]
    n_widenings: int


class NaiveDirect:
    """Follows a session of one budget by its groups."""

    def __init__(self, proba, budget, annotators):
        n_classes, half = proba.shape[1], budget // 2
        self.rankings = [ranking(proba, k)[::-1] for k in range(n_classes)]
        self.annotators = annotators
        every, n_widenings = frozenset(range(n_classes)), min(n_classes, budget - half)
        self.states = set()
        for with_more in combinations(range(n_classes), half % n_classes):
            shares = [half // n_classes + (k in with_more) for k in range(n_classes)]
            reductions = tuple((k, share) for k, share in enumerate(shares) if share)
            self.states.add(State(reductions, None, 1.0, budget, every, n_widenings))

    def check(self, group, labels):
        """Assert that this group may be asked next, given the labels known before."""
        self.states = {
            after for state in self.states for after in self._after(state, group, labels)
        }
        assert self.states

    def _after(self, state, group, labels):
        if not state.reductions:
            yield from self._after_widening(state, group, labels)
            return
        (k, n_labels), *later = state.reductions
        ranked, w = self.rankings[k], signs(self.rankings[k], labels, k)
        wanted = min(n_labels, self.annotators)
        for space, factor in self._spaces(state, w, n_labels):
            inside = {i for i in ranked[space[0] : space[1] + 1] if i not in labels}
            if not inside:  # nothing to ask: on to the next class, or to the second half
                ended = state._replace(reductions=tuple(later), space=None)
                yield from self._after(ended, group, labels)
            elif set(group) <= inside and len(group) == min(wanted, len(inside)):
                left = state._replace(left=state.left - len(group), space=None)
                if n_labels > len(group):
                    rest = ((k, n_labels - len(group)), *later)
                    yield left._replace(reductions=rest, space=space, factor=factor)
                else:
                    yield left._replace(reductions=tuple(later))

    def _spaces(self, state, w, n_labels):
        if state.space is not None:
            return [(space, state.factor) for space in shrunk(w, *state.space, state.factor)]
        low, high = version_space(w)
        unlabelled = sum(sign == 0 for sign in w[low : high + 1])
        n_groups = math.ceil(n_labels / self.annotators)
        return [((low, high), max(unlabelled, 1) ** (1 / n_groups))]

    def _after_widening(self, state, group, labels):
        share = math.ceil(state.left / state.n_widenings)
        free = set(self.rankings[0]) - labels.keys()
        for k in state.unwidened:
            thresholds = best_thresholds(signs(self.rankings[k], labels, k))
            if any(outward(self.rankings[k], j, free, share) == group for j in thresholds):
                yield state._replace(
                    left=state.left - len(group),
                    unwidened=state.unwidened - {k},
                    n_widenings=state.n_widenings - 1,
                )
