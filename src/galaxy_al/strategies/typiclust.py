"""TypiClust: Hacohen, Dekel and Weinshall, Active Learning on a Budget, ICML 2022."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import squared_distances
from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import check_count
from galaxy_al.strategies.session import RankedSession, Session, Start

_NEIGHBORS = 20
_MOST_CLUSTERS = 500
_BATCHES = 4
_ROWS_AT_ONCE = 1 << 10


class TypiClust(Strategy):
    """Ask for the most typical example of every cluster, the clusters without labels first.

    It looks at no scores, and so needs no model: it is what asks while no second class is known.
    There are as many clusters as there will be labels, 500 at most. An example is the more typical
    the nearer the 20 nearest ones of its cluster are on average.

    Parameters
    ----------
    candidates
        The clusters of a larger pool are computed from this many random examples.

    Examples
    --------
    >>> embeddings = np.array([[0.0], [1.0], [2.0], [90.0], [91.0], [92.0]])
    >>> snapshot = Snapshot(np.full((6, 2), 0.5), embeddings=embeddings)
    >>> sorted(TypiClust().rank(snapshot, 2, np.random.default_rng(0)).tolist())
    [1, 4]
    """

    name = "typiclust"
    summary = "the most typical example of every cluster"
    paper = "Hacohen, Dekel and Weinshall, ICML 2022"
    needs = ("embeddings",)

    def __init__(self, candidates: int = 5000) -> None:
        check_count("candidates", candidates)
        self.candidates = candidates

    def open_session(self, start: Start) -> Session:
        """A session whose clusters serve for several batches, since they take long to compute."""
        most = min(_BATCHES * start.budget, self.candidates)
        return RankedSession(self, replace(start, budget=most))

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices, one of each cluster in turn, the emptiest first."""
        free, labeled = snapshot.askable(), snapshot.labeled()
        if not (len(free) and budget > 0):
            return free[:0]
        if len(free) > self.candidates:
            size = min(max(self.candidates, budget), len(free))
            free = np.sort(rng.choice(free, size=size, replace=False))
        rows = np.concatenate([free, labeled])
        points = _centered(snapshot.required_embeddings[rows])
        cluster = _clusters(points, min(len(labeled) + budget, len(rows), _MOST_CLUSTERS), rng)
        n_labels = Counter(cluster[len(free) :].tolist())
        members = {
            k: inside[_by_typicality(points[inside])].tolist()
            for k in range(int(cluster.max()) + 1)
            if len(inside := np.flatnonzero(cluster[: len(free)] == k))
        }
        return free[_in_turn(members, n_labels, budget)]


def _in_turn(members: dict[int, list[int]], n_labels: Counter[int], budget: int) -> list[int]:
    """Again and again the next of the cluster with the fewest labels, of those the largest."""
    sizes = {k: len(inside) for k, inside in members.items()}
    chosen: list[int] = []
    while members and len(chosen) < budget:
        k = min(members, key=lambda k: (n_labels[k], -sizes[k], k))
        chosen.append(members[k].pop(0))
        n_labels[k] += 1
        if not members[k]:
            del members[k]
    return chosen


def _centered(rows: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """In the middle and of size 1: single precision then sees distances beside a large offset."""
    exact = rows - rows.mean(axis=0, dtype=np.float64)
    scaled: NDArray[np.floating[Any]] = (exact / (np.abs(exact).max() or 1)).astype(np.float32)
    return scaled


def _clusters(
    points: NDArray[np.floating[Any]], count: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(1 << 31))
    means = MiniBatchKMeans(count, batch_size=max(1024, count), n_init=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        found: NDArray[np.intp] = means.fit_predict(points)
    return found


def _by_typicality(points: NDArray[np.floating[Any]]) -> NDArray[np.intp]:
    """The most typical first."""
    count = min(_NEIGHBORS, len(points) - 1)
    means = np.zeros(len(points))
    for low, high in row_blocks(len(points), _ROWS_AT_ONCE) if count else ():
        apart = squared_distances(points[low:high], points)
        apart[np.arange(high - low), np.arange(low, high)] = np.inf  # not its own neighbour
        means[low:high] = np.sqrt(np.partition(apart, count - 1)[:, :count]).mean(axis=1)
    return np.argsort(means, kind="stable")
