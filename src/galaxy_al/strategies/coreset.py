"""Core-set: Sener and Savarese, Active Learning for Convolutional Neural Networks, ICLR 2018."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import combine
from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.gradients import squared_norms
from galaxy_al.strategies.scoring import ROWS_AT_ONCE


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
    summary = "greedy k-center: farthest from everything labelled"
    paper = "Sener and Savarese, ICLR 2018"
    needs = ("embeddings",)

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices, ties by index; a random first one if nothing is labelled."""
        candidates, labeled = snapshot.askable(), snapshot.labeled()
        if not (len(candidates) and budget > 0):
            return candidates[:0]
        embeddings = snapshot.required_embeddings
        distances = _Distances(embeddings)
        nearest = np.full(snapshot.size, -1.0)
        nearest[candidates] = _squared_distances(embeddings, labeled)[candidates]
        center = int(nearest.argmax()) if len(labeled) else int(rng.choice(candidates))
        chosen = [center]
        for _ in range(min(budget, len(candidates)) - 1):
            nearest[center] = -1
            np.minimum(nearest, distances.to(center), out=nearest)
            center = int(nearest.argmax())
            chosen.append(center)
        return np.array(chosen, dtype=np.intp)


class _Distances:
    """Squared distances of all examples to one of them.

    Centred by the mean: with an offset that is large beside the spread, single precision would
    not see the distances. The embeddings themselves are not copied.
    """

    def __init__(self, embeddings: NDArray[np.floating[Any]]) -> None:
        self._embeddings = embeddings
        self._mean = embeddings.mean(axis=0, dtype=np.float64)
        self._norms = np.concatenate(
            [
                squared_norms(embeddings[low:high] - self._mean)
                for low, high in row_blocks(len(embeddings), ROWS_AT_ONCE)
            ]
        )

    def to(self, center: int) -> NDArray[np.floating[Any]]:
        offset = self._embeddings[center] - self._mean
        dots = self._embeddings @ offset.astype(self._embeddings.dtype) - self._mean @ offset
        return combine(dots, self._norms, self._norms[center])


def _squared_distances(
    embeddings: NDArray[np.floating[Any]], labeled: NDArray[np.intp]
) -> NDArray[np.float64]:
    """From each example to the nearest labelled one; infinite if there is none."""
    from sklearn.metrics import pairwise_distances_argmin_min

    if not len(labeled):
        return np.full(len(embeddings), np.inf)
    distances = pairwise_distances_argmin_min(embeddings, embeddings[labeled])[1]
    return np.asarray(distances, dtype=np.float64) ** 2
