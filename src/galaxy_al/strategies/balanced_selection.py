"""BASE, balanced selection: Emam et al., Active Learning at the ImageNet Scale, 2021."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot, View, row_blocks
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import ROWS_AT_ONCE, smallest


class BalancedSelection(Strategy):
    """Ask for each class the examples nearest to its decision boundary, equally many.

    Distances are measured in the space of the embeddings. For an example predicted j the
    boundary of class k is the one between j and k, and that of j the nearest of all.

    Examples
    --------
    >>> embeddings = np.array([[3.0, 0.0], [0.2, 0.0], [-0.1, 0.0], [-4.0, 0.0]])
    >>> head = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2)
    >>> scores = 1 / (1 + np.exp(-2 * embeddings[:, 0]))
    >>> snapshot = Snapshot(np.stack([scores, 1 - scores], axis=1), None, embeddings, head)
    >>> BalancedSelection().rank(snapshot, 2, np.random.default_rng(0)).tolist()
    [2, 1]
    """

    name = "base"
    summary = "nearest to each class's boundary, equally many a class"
    paper = "Emam et al., 2021"
    needs = ("embeddings", "head")
    view: View = "pool"

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """The ``budget`` askable indices, ties at random; the classes' nearest come first.

        Class after class takes its share of those still there; what does not divide goes to the
        first classes. All may be as far from a class without labels.
        """
        candidates = snapshot.askable()
        distances = boundary_distances(snapshot, candidates)
        order = rng.permutation(len(candidates))
        candidates, distances = candidates[order], distances[order]
        budget, n_classes = min(budget, len(candidates)), snapshot.n_classes
        left, taken, turns = np.arange(len(candidates)), [], []
        for target in range(n_classes):
            share = budget // n_classes + (target < budget % n_classes)
            nearest = smallest(distances[left, target], share)
            taken.append(left[nearest])
            turns.append(np.arange(share))
            left = np.delete(left, nearest)
        in_turn = np.argsort(np.concatenate(turns), kind="stable")
        return candidates[np.concatenate(taken)[in_turn]]


def boundary_distances(
    snapshot: Snapshot, candidates: NDArray[np.intp]
) -> NDArray[np.floating[Any]]:
    """The distance of each candidate to each class's decision boundary.

    Two classes with the same weights have no boundary: it is infinitely far, or everywhere.
    """
    embeddings, (weights, bias) = snapshot.required_embeddings, snapshot.required_head
    between = np.linalg.norm(weights[:, None] - weights, axis=2)
    dtype = embeddings.dtype
    distances = np.empty((len(candidates), snapshot.n_classes), dtype)
    for low, high in row_blocks(len(candidates), ROWS_AT_ONCE):
        rows, here = candidates[low:high], np.arange(high - low)
        logits = embeddings[rows] @ weights.T.astype(dtype) + bias.astype(dtype)
        predicted = snapshot.scores[rows].argmax(axis=1)
        lead = np.abs(logits[here, predicted, None] - logits)
        with np.errstate(divide="ignore", invalid="ignore"):
            block = np.where(lead > 0, lead / between[predicted], 0)
        block[here, predicted] = np.inf
        block[here, predicted] = block.min(axis=1)
        distances[low:high] = block
    return distances
