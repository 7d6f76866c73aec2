"""Extremely randomised trees as plain arrays (Geurts, Ernst and Wehenkel, 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.folds import even_folds
from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS, Table
from galaxy_al.snapshot import row_blocks
from galaxy_al.system.threads import run_in_threads

N_TREES = 100
_ROWS_AT_ONCE = 1 << 10
LEAST = 0.002  # of a probability: no tree voted for the class


@dataclass(frozen=True)
class Forest:
    """Trees whose nodes stand in one table; a leaf is its own child.

    Parameters
    ----------
    roots
        The first node of each tree.
    feature, threshold
        An example goes left where this feature is at most the threshold.
    left, right
        The children of each node.
    votes
        The class shares of each node, one column per class.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    votes: NDArray[np.float32]

    def log_proba(self, rows: Table) -> Table:
        """The logarithms of the class probabilities; a class without labels gets next to none."""
        found = np.empty((len(rows), self.votes.shape[1]), np.float32)

        def score(bounds: tuple[int, int]) -> None:
            low, high = bounds
            found[low:high] = self.votes[self._leaves(rows[low:high])].mean(axis=1)

        run_in_threads(score, row_blocks(len(rows), _ROWS_AT_ONCE))
        seen = self.votes[self.roots].sum(axis=0) > 0
        logs = np.log(np.maximum(found, LEAST))
        logs[:, ~seen] = LOGIT_WITHOUT_LABELS
        return logs

    def _leaves(self, rows: Table) -> NDArray[np.int32]:
        """The leaf of each row in each tree."""
        rows = np.asarray(rows, dtype=np.float32)
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        which = np.arange(len(rows))[:, None]
        while True:
            goes_left = rows[which, self.feature[at]] <= self.threshold[at]
            then = np.where(goes_left, self.left[at], self.right[at])
            if (then == at).all():
                return then
            at = then


def fit_forest(rows: Table, targets: NDArray[np.integer[Any]], n_classes: int, seed: int) -> Forest:
    """Grow trees on labelled examples.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> forest = fit_forest(rows, np.array([0, 0, 1, 1]), n_classes=2, seed=0)
    >>> forest.log_proba(rows).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    from sklearn.ensemble import ExtraTreesClassifier

    grown = ExtraTreesClassifier(N_TREES, random_state=seed)
    grown.fit(np.asarray(rows, dtype=np.float32), targets)
    trees = [tree.tree_ for tree in grown.estimators_]
    sizes = [tree.node_count for tree in trees]
    roots = np.append(0, np.cumsum(sizes)[:-1])
    own = np.arange(sum(sizes))
    shift = np.repeat(roots, sizes)
    left, right, feature, threshold = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("children_left", "children_right", "feature", "threshold")
    )
    is_leaf = left < 0
    values = np.concatenate([tree.value[:, 0] for tree in trees])
    votes = np.zeros((len(own), n_classes), np.float32)
    votes[:, grown.classes_] = values / values.sum(axis=1, keepdims=True)
    return Forest(
        roots=roots.astype(np.int32),
        feature=np.where(is_leaf, 0, feature).astype(np.int32),
        threshold=np.where(is_leaf, 0, threshold),
        left=np.where(is_leaf, own, left + shift).astype(np.int32),
        right=np.where(is_leaf, own, right + shift).astype(np.int32),
        votes=votes,
    )


def held_out_log_proba(
    rows: Table, targets: NDArray[np.integer[Any]], n_classes: int, seed: int
) -> Table:
    """The log probabilities of each labelled example by trees that were grown without it."""
    folds = even_folds(targets, seed)
    found = np.zeros((len(rows), n_classes))
    for fold in np.unique(folds):
        inside = folds == fold
        forest = fit_forest(rows[~inside], targets[~inside], n_classes, seed)
        found[inside] = forest.log_proba(rows[inside])
    return found
