"""Extremely randomised trees as plain arrays (Geurts, Ernst and Wehenkel, 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.folds import even_folds
from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS, Table
from galaxy_al.shards import row_blocks
from galaxy_al.system.threads import run_in_threads

N_TREES = 100
N_GROVES = 10  # trees are grown in so many parts, each in its own thread
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
        n_rows, n_columns = rows.shape
        cells = np.asarray(rows, dtype=np.float32).ravel()
        children = np.stack([self.left, self.right], axis=1).ravel()
        at = np.tile(self.roots, n_rows)
        on_the_way = np.arange(len(at))
        while len(on_the_way):
            node = at[on_the_way]
            cell = on_the_way // len(self.roots) * n_columns + self.feature[node]
            then = children[2 * node + (cells[cell] > self.threshold[node])]
            at[on_the_way] = then
            on_the_way = on_the_way[then != node]
        return at.reshape(n_rows, -1)


def fit_forest(
    rows: Table,
    targets: NDArray[np.integer[Any]],
    n_classes: int,
    seed: int,
    weights: NDArray[np.float64] | None = None,
) -> Forest:
    """Grow trees on labelled examples.

    Parameters
    ----------
    weights
        How much each label counts; None is fully.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> forest = fit_forest(rows, np.array([0, 0, 1, 1]), n_classes=2, seed=0)
    >>> forest.log_proba(rows).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    groves: list[Forest | None] = [None] * N_GROVES

    def grow(number: int) -> None:
        groves[number] = _grown(rows, targets, n_classes, seed * N_GROVES + number, weights)

    run_in_threads(grow, range(N_GROVES))
    return _together([grove for grove in groves if grove is not None])


def held_out_log_proba(
    rows: Table,
    targets: NDArray[np.integer[Any]],
    n_classes: int,
    seed: int,
    weights: NDArray[np.float64] | None = None,
) -> Table:
    """The log probabilities of each labelled example by trees that were grown without it."""
    folds = even_folds(targets, seed, N_GROVES)
    found = np.zeros((len(rows), n_classes))

    def predict(fold: int) -> None:
        out = folds == fold
        rest = None if weights is None else weights[~out]
        grove = _grown(rows[~out], targets[~out], n_classes, seed * N_GROVES + fold, rest)
        found[out] = grove.log_proba(rows[out])

    run_in_threads(predict, np.unique(folds).tolist())
    return found


def _grown(
    rows: Table,
    targets: NDArray[np.integer[Any]],
    n_classes: int,
    seed: int,
    weights: NDArray[np.float64] | None,
) -> Forest:
    """One grove."""
    from sklearn.ensemble import ExtraTreesClassifier

    grown = ExtraTreesClassifier(N_TREES // N_GROVES, random_state=seed)
    grown.fit(np.asarray(rows, dtype=np.float32), targets, weights)
    return _together([_as_forest(each.tree_, grown.classes_, n_classes) for each in grown])


def _as_forest(tree: Any, classes: NDArray[np.integer[Any]], n_classes: int) -> Forest:
    own, is_leaf = np.arange(tree.node_count), tree.children_left < 0
    votes = np.zeros((tree.node_count, n_classes), np.float32)
    votes[:, classes] = tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True)
    return Forest(
        roots=np.zeros(1, np.int32),
        feature=np.where(is_leaf, 0, tree.feature).astype(np.int32),
        threshold=np.where(is_leaf, 0, tree.threshold),
        left=np.where(is_leaf, own, tree.children_left).astype(np.int32),
        right=np.where(is_leaf, own, tree.children_right).astype(np.int32),
        votes=votes,
    )


def _together(parts: list[Forest]) -> Forest:
    """One forest of the trees of several."""
    firsts = np.append(0, np.cumsum([len(part.votes) for part in parts])[:-1]).astype(np.int32)
    return Forest(
        roots=np.concatenate([part.roots + first for part, first in zip(parts, firsts)]),
        feature=np.concatenate([part.feature for part in parts]),
        threshold=np.concatenate([part.threshold for part in parts]),
        left=np.concatenate([part.left + first for part, first in zip(parts, firsts)]),
        right=np.concatenate([part.right + first for part, first in zip(parts, firsts)]),
        votes=np.concatenate([part.votes for part in parts]),
    )
