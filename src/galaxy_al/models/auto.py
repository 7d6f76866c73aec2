"""The head that needs no choices: it learns from few labels on vectors of any kind.

A kernel head serves embeddings best. Tables and pixels vary in few directions; there trees are as
good and make other errors, so the two are averaged. The probabilities are those in the pool: how
frequent the classes are is read off the pool and not off the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.calibration import fit_sharpness
from galaxy_al.models.cutoffs import cutoff
from galaxy_al.models.effective_rank import effective_rank
from galaxy_al.models.forest import Forest, fit_forest, held_out_log_proba
from galaxy_al.models.kernel import KernelModel, KernelTrainer
from galaxy_al.models.log_odds import Table, log_softmax, rare_log_odds, softmax
from galaxy_al.models.protocols import weights_of
from galaxy_al.shards import Rows, map_parts, map_rows, reduce_rows, row_blocks
from galaxy_al.snapshot import Snapshot, balanced_proba

FEW_DIRECTIONS = 10  # up to so many, columns are evened out and trees averaged in
_EMBEDDINGS = {"width": 0.75, "linear": 1.0}
_TABLES = {"width": 0.6, "linear": 1.0, "per_column": True}
_CANDIDATES = 50_000  # examples that the trees look at: those likeliest to be rare
_ROWS_AT_ONCE = 1 << 14
_UNITS = 1 << 40  # in which probabilities are counted


class AutoTrainer:
    """Trains the default head.

    Parameters
    ----------
    keep_head
        Snapshots get the kernel head's last layer and its inputs; otherwise the embeddings.

    Examples
    --------
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]])
    >>> model = AutoTrainer(n_classes=2).fit(embeddings, {0: 0, 2: 1})
    >>> model.proba(embeddings).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, *, n_classes: int, seed: int = 0, keep_head: bool = False) -> None:
        self._n_classes, self._seed, self._keep_head = n_classes, seed, keep_head
        self._pool: Table | None = None

    def fit(self, pool: Table, labels: Mapping[int, int]) -> AutoModel:
        """Train on the labelled examples of a table of embeddings."""
        return self.fit_weighted(pool, labels, {})

    def fit_weighted(
        self, pool: Table, labels: Mapping[int, int], weights: Mapping[int, float]
    ) -> AutoModel:
        """Train on labels of which some count less than 1, by index."""
        if self._pool is not pool:
            self._prepare(pool)
        kernel = self._kernel.fit(pool, labels, weights)
        known = np.array(sorted(labels), dtype=np.intp)
        targets = np.array([labels[i] for i in known.tolist()], dtype=np.int64)
        held_out = kernel.held_out
        assert held_out is not None
        model = AutoModel(kernel, keep_head=self._keep_head)
        if self._has_trees and len(set(targets.tolist())) > 1:
            rows = pool[known], targets, self._n_classes, self._seed, weights_of(known, weights)
            trees_from = cutoff(_odds(kernel.logits(pool)), _CANDIDATES)
            model = replace(model, trees=fit_forest(*rows), trees_from=trees_from)
            held_out = (log_softmax(held_out) + held_out_log_proba(*rows)) / 2
        model = replace(model, sharpness=fit_sharpness(held_out, targets))
        proba = model.proba(pool)
        priors = _class_priors(proba, known, targets)
        unseen = HeldOut(known, targets, softmax(model.sharpness * held_out))
        if not self._keep_head:
            kernel = replace(kernel, scored=None)
        return replace(
            model, kernel=kernel, class_priors=priors, scored=(pool, proba), held_out=unseen
        )

    def _prepare(self, pool: Table) -> None:
        self._pool = pool
        self._has_trees = effective_rank(pool, self._seed) <= FEW_DIRECTIONS
        shape: dict[str, Any] = _TABLES if self._has_trees else _EMBEDDINGS
        self._kernel = KernelTrainer(n_classes=self._n_classes, seed=self._seed, **shape)


@dataclass(frozen=True)
class HeldOut:
    """The labels of a model, and what it would say of them had it not seen them.

    Parameters
    ----------
    indices, targets
        The labelled examples, ascending, and their classes.
    proba
        Their probabilities by models that were trained without them.
    """

    indices: NDArray[np.intp]
    targets: NDArray[np.int64]
    proba: Table


@dataclass(frozen=True)
class AutoModel:
    """The trained default head.

    Parameters
    ----------
    trees
        None for vectors that vary in many directions.
    trees_from
        The trees count for examples that the kernel head gives at least these log odds of being
        rare. In a large pool all others are hardly ever rare, and trees are slow.
    sharpness
        What logits are multiplied by, so that probabilities are calibrated.
    class_priors
        How frequent each class is in the pool; 0 for one without labels, and for all while only
        one has any.
    held_out
        What it says of its labels had it not seen them; None in a saved model.
    scored
        The pool it was trained with, and the probabilities of that.
    """

    kernel: KernelModel
    trees: Forest | None = None
    trees_from: float = -np.inf
    sharpness: float = 1.0
    class_priors: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    keep_head: bool = False
    held_out: HeldOut | None = field(default=None, repr=False)
    scored: tuple[Table, Table] | None = field(default=None, repr=False)

    @property
    def n_classes(self) -> int:
        """The number K of classes."""
        return len(self.kernel.head[1])

    def proba(self, pool: Table) -> Table:
        """The class probabilities of all examples, N x K: how likely each class is in the pool.

        A class that had no label gets 0. While only one had, all are equally likely.
        """
        if self.scored is not None and self.scored[0] is pool:
            return self.scored[1]
        last_layer, n_classes = self.kernel.last_layer, self.n_classes
        if self.trees is None:
            finish: Any = partial(_proba_of, self.sharpness, last_layer)
            table = self.kernel.features(pool)
        else:
            finish = partial(_proba_of, self.sharpness, _as_they_are)
            average = partial(_average_in_trees, self.trees, self.trees_from)
            table = map_parts(average, self.kernel.logits(pool), pool, n_columns=n_classes)
        proba: Table = map_rows(finish, table, n_columns=n_classes)
        return proba

    def balanced(self, pool: Table) -> Table:
        """The class probabilities of all examples, as if all classes were as frequent."""
        return balanced_proba(self.proba(pool), self.class_priors)

    def snapshot(self, pool: Table, labels: NDArray[Any] | None = None) -> Snapshot:
        """The scores of a pool, and what else strategies need."""
        priors = self.class_priors if self.class_priors.any() else None
        proba, features, head = self.proba(pool), pool, None
        if self.keep_head:
            weights, bias = (self.sharpness * part for part in self.kernel.head)
            if priors is not None:
                bias = bias - np.log(np.where(priors > 0, priors, 1))
            features, head = self.kernel.features(pool), (weights, bias)
        return Snapshot(proba, labels, features, head, class_priors=priors)


def _as_they_are(logits: Table) -> Table:
    return logits


def _proba_of(sharpness: float, logits_of: Callable[[Table], Table], rows: Table) -> Table:
    """The calibrated probabilities of a block of examples."""
    logits = logits_of(rows)
    logits = logits * logits.dtype.type(sharpness)
    return softmax(logits, out=logits)


def _odds(logits: Table) -> Table:
    odds: Table = map_parts(
        lambda rows: Rows(rows.start, rare_log_odds(rows.values)[:, None]), logits, n_columns=1
    )
    return odds


def _average_in_trees(trees: Forest, trees_from: float, logits: Rows, pool: Rows) -> Rows:
    """Average the kernel head's log probabilities with the trees', where these count."""
    averaged = logits.values.copy()
    which = np.flatnonzero(rare_log_odds(averaged) >= trees_from)
    for low, high in row_blocks(len(which), _ROWS_AT_ONCE):
        rows = which[low:high]
        averaged[rows] = (log_softmax(averaged[rows]) + trees.log_proba(pool.values[rows])) / 2
    return Rows(logits.start, averaged)


def _class_priors(
    proba: Table, known: NDArray[np.intp], targets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How frequent each class is: labels are known, other examples count by their probabilities."""
    seen = np.unique(targets)
    class_priors = np.zeros(proba.shape[1])
    if len(seen) < 2:
        return class_priors
    sums = reduce_rows(_sums, _added, proba)
    total = np.array([units / _UNITS for units in sums])
    total -= proba[known].sum(axis=0, dtype=np.float64)
    total += np.bincount(targets, minlength=len(total))
    class_priors[seen] = np.maximum(total, 0)[seen] / len(proba)
    return class_priors


def _sums(part: Rows) -> list[int]:
    """The sum of each column, in whole units: however they are added up, it is the same."""
    sums = [0] * part.values.shape[1]
    for low, high in row_blocks(len(part.values), _ROWS_AT_ONCE):
        units = np.rint(part.values[low:high].astype(np.float64) * _UNITS).astype(np.int64)
        sums = _added(sums, units.sum(axis=0).tolist())
    return sums


def _added(one: list[int], other: list[int]) -> list[int]:
    return [mine + others for mine, others in zip(one, other)]
