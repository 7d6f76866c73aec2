"""BASE, balanced selection: Emam et al., Active Learning at the ImageNet Scale, 2021."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.free_examples import FreeExamples
from galaxy_al.shards import Rows, map_rows, reduce_rows
from galaxy_al.snapshot import Snapshot, View
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import random_numbers, smallest


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
    works_on_shards = True
    needs = ("embeddings", "head")
    view: View = "pool"

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """The ``budget`` askable indices, ties at random; the classes' nearest come first.

        Class after class takes its share of those still there; what does not divide goes to the
        first classes. All may be as far from a class without labels.
        """
        distances, free = boundary_distances(snapshot), snapshot.free
        budget, key = min(budget, len(free)), int(rng.integers(1 << 63))
        candidates, near = reduce_rows(
            partial(_nearest_of, free, budget, key),
            partial(_nearest_of_both, budget, key),
            distances,
        )
        left, taken, turns = np.arange(len(candidates)), [], []
        for target in range(snapshot.n_classes):
            share = budget // snapshot.n_classes + (target < budget % snapshot.n_classes)
            nearest = smallest(near[left, target], share)
            taken.append(left[nearest])
            turns.append(np.arange(share))
            left = np.delete(left, nearest)
        in_turn = np.argsort(np.concatenate(turns), kind="stable")
        chosen: NDArray[np.intp] = candidates[np.concatenate(taken)[in_turn]]
        return chosen


Near = tuple[NDArray[np.intp], NDArray[Any]]


def _nearest_of(free: FreeExamples, budget: int, key: int, part: Rows) -> Near:
    """The free examples of a part that are among the nearest of some class, in random order."""
    indices = free.between(part.start, part.stop)
    return _nearest(indices, part.values[indices - part.start], budget, key)


def _nearest_of_both(budget: int, key: int, one: Near, other: Near) -> Near:
    indices, distances = (np.concatenate(both) for both in zip(one, other))
    return _nearest(indices, distances, budget, key)


def _nearest(indices: NDArray[np.intp], distances: NDArray[Any], budget: int, key: int) -> Near:
    order = np.argsort(random_numbers(indices, key), kind="stable")
    indices, distances = indices[order], distances[order]
    kept = np.unique(np.concatenate([smallest(column, budget) for column in distances.T]))
    return indices[kept], distances[kept]


def boundary_distances(snapshot: Snapshot) -> NDArray[np.floating[Any]]:
    """The distance of each example to each class's decision boundary, N x K.

    Two classes with equal weights have no boundary: it is infinitely far, or everywhere.
    """
    embeddings, (weights, bias) = snapshot.required_embeddings, snapshot.required_head
    dtype = np.result_type(embeddings.dtype, np.float32)
    layer = weights.astype(dtype), bias.astype(dtype)
    distances: NDArray[np.floating[Any]] = map_rows(
        partial(_distances, layer, np.linalg.norm(weights[:, None] - weights, axis=2)),
        embeddings,
        snapshot.scores,
        n_columns=snapshot.n_classes,
        dtype=dtype,
    )
    return distances


def _distances(
    layer: tuple[NDArray[Any], NDArray[Any]],
    between: NDArray[np.float64],
    embeddings: NDArray[Any],
    scores: NDArray[Any],
) -> NDArray[Any]:
    weights, bias = layer
    logits = embeddings.astype(weights.dtype, copy=False) @ weights.T + bias
    rows, predicted = np.arange(len(scores)), scores.argmax(axis=1)
    lead = np.abs(logits[rows, predicted, None] - logits)
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(lead > 0, lead / between[predicted], 0)
    distances[rows, predicted] = np.inf
    distances[rows, predicted] = distances.min(axis=1)
    return distances
