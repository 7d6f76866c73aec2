"""Core-set: Sener and Savarese, Active Learning for Convolutional Neural Networks, ICLR 2018."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.gradients import squared_norms


class Coreset(Strategy):
    """Ask, again and again, for the example farthest from all labelled and chosen ones.

    Examples
    --------
    >>> embeddings = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> snapshot = Snapshot(np.full((4, 2), 0.5), [0, -1, -1, -1], embeddings)
    >>> Coreset().rank(snapshot, 2, np.random.default_rng(0)).tolist()
    [3, 2]
    """

    name = "coreset"
    summary = "greedy k-centre: farthest from everything labelled"
    paper = "Sener and Savarese, ICLR 2018"
    needs = ("embeddings",)

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices, ties by index; a random first one if nothing is labelled."""
        candidates, labeled = snapshot.askable(), snapshot.labeled()
        if not len(candidates):
            return candidates
        embeddings = snapshot.required_embeddings
        norms = squared_norms(embeddings)
        nearest = np.full(snapshot.size, -1.0)
        nearest[candidates] = _squared_distances(embeddings, labeled)[candidates]
        centre = int(nearest.argmax()) if len(labeled) else int(rng.choice(candidates))
        chosen = [centre]
        for _ in range(min(budget, len(candidates)) - 1):
            nearest[centre] = -1
            distances = norms + norms[centre] - 2 * (embeddings @ embeddings[centre])
            np.maximum(distances, 0, out=distances)
            np.minimum(nearest, distances, out=nearest)
            centre = int(nearest.argmax())
            chosen.append(centre)
        return np.array(chosen, dtype=np.intp)


def _squared_distances(
    embeddings: NDArray[np.floating], labeled: NDArray[np.intp]
) -> NDArray[np.float64]:
    """From each example to the nearest labelled one; infinite if there is none."""
    from sklearn.metrics import pairwise_distances_argmin_min

    if not len(labeled):
        return np.full(len(embeddings), np.inf)
    distances = pairwise_distances_argmin_min(embeddings, embeddings[labeled])[1]
    return np.asarray(distances, dtype=np.float64) ** 2
