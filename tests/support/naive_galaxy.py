"""The paper's algorithms, written as they are printed: explicit edges, breadth-first search.

Slow and obvious. Nothing here is shared with the package.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction

import numpy as np


def ranking(proba, k):
    """Algorithm 2's A^(k), with exact arithmetic; ties by confidence, then by index."""

    def key(i):
        row = [Fraction(float(p)) for p in proba[i]]
        return (row[k] - max(row), max(row), i)

    return sorted(range(len(proba)), key=key)


def edges(ranked, order):
    """Algorithms 2 and 3: every node joined to its ``order`` neighbours on each side."""
    joined = set()
    for step in range(1, order + 1):
        joined |= {frozenset(pair) for pair in zip(ranked, ranked[step:])}
    return joined


def remove_cuts(joined, labels):
    """Algorithm 4: no edge between two labelled nodes of different labels."""

    def is_cut(edge):
        x, y = edge
        return x in labels and y in labels and labels[x] != labels[y]

    return {edge for edge in joined if not is_cut(edge)}


def distances(adjacent, sources):
    """Breadth-first search from one or several sources."""
    found = dict.fromkeys(sources, 0)
    queue = deque(sources)
    while queue:
        node = queue.popleft()
        for neighbour in adjacent.get(node, ()):
            if neighbour not in found:
                found[neighbour] = found[node] + 1
                queue.append(neighbour)
    return found


def midpoints(ranked, order, labels, k):
    """The length of equation (1)'s minimum in graph k, and every midpoint of such a path."""
    adjacent = {}
    for x, y in (tuple(e) for e in remove_cuts(edges(ranked, order), labels)):
        adjacent.setdefault(x, []).append(y)
        adjacent.setdefault(y, []).append(x)
    to_inside = distances(adjacent, [i for i in ranked if labels.get(i) == k])
    outside = [i for i in ranked if i in labels and labels[i] != k]
    lengths = [to_inside[j] for j in outside if j in to_inside]
    if not lengths:
        return None, set()
    shortest = min(lengths)
    to_outside = distances(adjacent, outside)
    half = shortest // 2
    halves = {(half, shortest - half), (shortest - half, half)}
    return shortest, {w for w in ranked if (to_inside.get(w), to_outside.get(w)) in halves}


class NaiveGalaxy:
    """The state of Algorithm 4's inner loop, and which queries it allows."""

    def __init__(self, proba, classes=None, rank=ranking):
        n_classes = np.shape(proba)[1]
        self.classes = list(range(n_classes)) if classes is None else classes
        self.rankings = {k: rank(proba, k) for k in self.classes}
        self.order = 1

    def allowed(self, labels, skipped=frozenset()):
        """Every midpoint of a shortest shortest path, by class; raises the order if it must."""
        rankings = {
            k: [i for i in ranked if i not in skipped] for k, ranked in self.rankings.items()
        }
        for order in range(self.order, len(next(iter(rankings.values()))) + 1):
            found = {k: midpoints(rankings[k], order, labels, k) for k in self.classes}
            lengths = [length for length, _ in found.values() if length is not None]
            if lengths:
                self.order = order
                return {k: w for k, (length, w) in found.items() if length == min(lengths)}
        return {}
