"""BADGE: Ash et al., Deep Batch Active Learning by Diverse, Uncertain Gradient Lower Bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot, View
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.gradients import residuals, squared_norms


class Badge(Strategy):
    """Seed k-means++ on gradient embeddings: uncertain, hence long, and far from each other.

    Examples
    --------
    >>> snapshot = Snapshot([[0.5, 0.5], [0.9, 0.1], [0.6, 0.4]], None, np.eye(3))
    >>> Badge().rank(snapshot, 1, np.random.default_rng(0)).tolist()
    [0]
    """

    name = "badge"
    summary = "k-means++ on gradient embeddings: uncertain and diverse"
    paper = "Ash et al., ICLR 2020"
    needs = ("embeddings",)
    view: View = "pool"

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices: the longest gradient, then each sampled by D squared."""
        embeddings = snapshot.required_embeddings
        residual = residuals(snapshot.scores, snapshot.scores.argmax(axis=1))
        norms = squared_norms(residual) * squared_norms(embeddings)
        free = np.zeros(snapshot.size, dtype=bool)
        free[snapshot.askable()] = True
        chosen: list[int] = []
        nearest = np.where(free, np.inf, 0)
        for _ in range(min(budget, int(np.count_nonzero(free)))):
            center = _draw(nearest, free, rng) if chosen else _first(norms, free)
            chosen.append(center)
            free[center] = False
            dots = (embeddings @ embeddings[center]) * (residual @ residual[center])
            np.minimum(nearest, norms + norms[center] - 2 * dots, out=nearest)
            np.maximum(nearest, 0, out=nearest)
            nearest[center] = 0
        return np.array(chosen, dtype=np.intp)


def _first(norms: NDArray[np.float64], free: NDArray[np.bool_]) -> int:
    return int(np.where(free, norms, -1).argmax())


def _draw(weights: NDArray[np.float64], free: NDArray[np.bool_], rng: np.random.Generator) -> int:
    """An index sampled in proportion to its weight; uniform if no free example has any weight."""
    sums = np.cumsum(weights)
    if sums[-1] <= 0:
        return int(rng.choice(np.flatnonzero(free)))
    sampled = np.searchsorted(sums, rng.random() * sums[-1], side="right")
    return int(min(sampled, np.searchsorted(sums, sums[-1])))
