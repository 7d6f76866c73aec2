"""Kernel logistic regression: one fit, nothing to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.cutoffs import cutoff
from galaxy_al.models.folds import even_folds
from galaxy_al.models.kernel_space import (
    KernelSpace,
    PoolKernel,
    Table,
    kernel_times,
)
from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS, rare_log_odds, softmax
from galaxy_al.models.logistic import LogisticFit
from galaxy_al.models.protocols import weights_of
from galaxy_al.models.triangular import triangular_inverse
from galaxy_al.shards import Rows, map_parts, map_rows, reduce_rows, row_blocks
from galaxy_al.system.threads import one_blas_thread, run_in_threads

# Of the prior on the weights: with few labels it holds them back, with many it is outweighed.
PRECISION = 0.05
MOST_LANDMARKS = 2000
# With more landmarks, a large pool is scored with so many first; all count for the candidates.
MOST_COARSE = 1000

# Candidates are likelier than this to be rare; at least so many, at most this share of the pool.
_LIKELY = float(np.log(0.05 / 0.95))
_CANDIDATES = 5_000
_MOST_CANDIDATES = 0.5
_REFINED_AT_ONCE = 1 << 16
_LABELS_AT_ONCE = 256
_JITTER = 1e-6  # on the diagonal: copies among the landmarks do no harm


class KernelTrainer:
    """Trains logistic regression in the space of a Gaussian kernel, with a linear one added.

    Nothing is chosen by cross-validation, which is misled by labels not sampled at random:

    - The kernel's width is the median distance in the pool, and the prior on the weights is fixed.
    - Labels are not weighted. To choose examples by what they look like does not change how likely
      each class is, given what they look like, and that is what is learned.

    Parameters
    ----------
    width
        The kernel's width, in median distances.
    per_column
        Whether every column counts the same, whatever its unit.
    linear
        How much of a linear kernel is added, of vectors whose median distance is 1.

    Examples
    --------
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]])
    >>> model = KernelTrainer(n_classes=2).fit(embeddings, {0: 0, 2: 1})
    >>> model.proba(embeddings).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        *,
        n_classes: int,
        seed: int = 0,
        width: float = 1,
        per_column: bool = False,
        linear: float = 0.0,
    ) -> None:
        self._n_classes, self._seed = n_classes, seed
        self._width, self._per_column, self._linear = width, per_column, linear
        self._kernel: PoolKernel | None = None

    def fit(
        self, pool: Table, labels: Mapping[int, int], weights: Mapping[int, float] | None = None
    ) -> KernelModel:
        """Train on the labelled examples of a table of embeddings.

        Parameters
        ----------
        weights
            How much a label counts, by index; those that are not named count fully.
        """
        if self._kernel is None or self._kernel.pool is not pool:
            space = KernelSpace.of(pool, self._seed, width=self._width, per_column=self._per_column)
            self._kernel = PoolKernel(pool, space, self._linear * self._width**2)
        kernel, known = self._kernel, np.array(sorted(labels), dtype=np.intp)
        targets = np.array([labels[i] for i in known.tolist()], dtype=np.int64)
        rng = np.random.default_rng(self._seed)
        landmarks = _even_choice(targets, MOST_LANDMARKS, rng)
        first = _even_choice(targets[landmarks], MOST_COARSE, rng)
        landmarks = np.append(landmarks[first], np.delete(landmarks, first))
        with one_blas_thread():
            fitted = _fit(
                kernel,
                known,
                targets,
                weights_of(known, weights),
                landmarks,
                len(first),
                self._n_classes,
                self._seed,
            )
        model = KernelModel(
            space=kernel.space,
            landmarks=pool[known[landmarks]].astype(
                np.result_type(pool.dtype, np.float32), copy=False
            ),
            axes=fitted.axes,
            slopes=kernel.slopes(known[landmarks], fitted.axes),
            head=fitted.head,
            held_out=fitted.held_out,
        )
        if kernel.has_room(len(landmarks)) or len(first) == len(landmarks):
            features = kernel.times(known[landmarks], model.axes, model.slopes)
            return replace(model, scored=(pool, features))
        slopes = kernel.slopes(known[landmarks[: len(first)]], fitted.first_axes)
        coarse = Coarse(np.arange(len(first)), fitted.first_axes, slopes, 0.0)
        return model.looking_first(coarse, pool)


@dataclass(frozen=True)
class KernelModel:
    """A trained kernel head.

    Parameters
    ----------
    axes
        Turn an example's Gaussian kernel with the landmarks into one feature less than there are
        classes.
    slopes
        Turn an example's place into what linear kernels add to these features.
    head
        The last layer: the weights and biases that turn the features into logits.
    coarse
        How a large pool is looked through first; None if all landmarks count at once.
    held_out
        The logits of each labelled example, by ascending index, by a model trained without it and
        the other labels of its fold.
    scored
        The pool it was trained with, and the features of that.
    """

    space: KernelSpace
    landmarks: Table
    axes: Table
    slopes: Table
    head: tuple[Table, Table]
    coarse: Coarse | None = None
    held_out: Table | None = field(default=None, repr=False)
    scored: tuple[Table, Table] | None = field(default=None, repr=False)

    def features(self, pool: Table) -> Table:
        """The inputs of the last layer."""
        if self.scored is not None and self.scored[0] is pool:
            return self.scored[1]
        if self.coarse is None:
            return self.fine_features(pool)
        found = self._coarse_features(pool, self.coarse)
        return self._refined(found, self._odds(found), pool, self.coarse.all_from)

    def looking_first(self, coarse: Coarse, pool: Table) -> KernelModel:
        """The same model, which looks through the pool with some of the landmarks first."""
        found = self._coarse_features(pool, coarse)
        odds = self._odds(found)
        all_from = cutoff(odds, _n_candidates(odds))
        scored = pool, self._refined(found, odds, pool, all_from)
        return replace(self, coarse=replace(coarse, all_from=all_from), scored=scored)

    def _refined(self, features: Table, odds: Table, pool: Table, all_from: float) -> Table:
        """The features, from all landmarks for examples with at least these log odds."""
        work = partial(_refine, replace(self, held_out=None, scored=None), all_from)
        refined: Table = map_parts(work, features, odds, pool, n_columns=features.shape[1])
        return refined

    def _coarse_features(self, pool: Table, coarse: Coarse) -> Table:
        landmarks = self.landmarks[coarse.landmarks]
        return kernel_times(self.space, pool, landmarks, coarse.axes, coarse.slopes)

    def fine_features(self, rows: Table) -> Table:
        """The inputs of the last layer, from all landmarks."""
        return kernel_times(self.space, rows, self.landmarks, self.axes, self.slopes)

    def logits(self, pool: Table) -> Table:
        """The logits of all examples, N x K, in single precision."""
        logits: Table = map_rows(self.last_layer, self.features(pool), n_columns=len(self.head[1]))
        return logits

    @property
    def last_layer(self) -> LastLayer:
        """What turns features into logits."""
        weights, bias = self.head
        return LastLayer(weights.T.copy(), bias.astype(np.float32))

    def _odds(self, features: Table) -> Table:
        """The log odds of being rare, N x 1."""
        odds: Table = map_rows(partial(_rare_odds, self.last_layer), features, n_columns=1)
        return odds

    def proba(self, pool: Table) -> Table:
        """The class probabilities of all examples, N x K.

        A class that had no label gets 0. While only one had, all are equally likely.
        """
        return softmax(self.logits(pool))


@dataclass(frozen=True)
class LastLayer:
    """Turns features into logits."""

    weights: Table
    bias: Table

    def __call__(self, features: Table) -> Table:
        """The logits of a block of features."""
        logits: Table = features @ self.weights
        logits += self.bias
        return logits


def _rare_odds(last_layer: LastLayer, features: Table) -> Table:
    return rare_log_odds(last_layer(features))[:, None]


def _refine(model: KernelModel, all_from: float, features: Rows, odds: Rows, pool: Rows) -> Rows:
    refined, which = features.values.copy(), np.flatnonzero(odds.values[:, 0] >= all_from)
    for low, high in row_blocks(len(which), _REFINED_AT_ONCE):
        rows = which[low:high]
        refined[rows] = model.fine_features(pool.values[rows])
    return Rows(features.start, refined)


@dataclass(frozen=True)
class Coarse:
    """Some of the landmarks, and which examples all of them are for.

    Parameters
    ----------
    landmarks, axes, slopes
        Which landmarks, and their weights.
    all_from
        All landmarks count for examples with at least these log odds of being rare.
    """

    landmarks: NDArray[np.intp]
    axes: Table
    slopes: Table
    all_from: float


@dataclass(frozen=True)
class _Fitted:
    """The head, and the axes as functions of all landmarks or of the first ones alone."""

    axes: Table
    first_axes: Table
    head: tuple[Table, Table]
    held_out: Table


def _n_candidates(odds: Table) -> int:
    """How many examples are candidates for a rare class."""
    n_likely: int = reduce_rows(_count_likely, lambda one, other: one + other, odds)
    least = min(_CANDIDATES, len(odds))
    most = max(least, int(_MOST_CANDIDATES * len(odds)))
    return min(max(n_likely, least), most)


def _count_likely(odds: Rows) -> int:
    return int(np.count_nonzero(odds.values >= _LIKELY))


def _even_choice(
    targets: NDArray[np.int64], most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """All labelled examples; of too many the same number of each class, at random."""
    if len(targets) <= most:
        return np.arange(len(targets))
    mixed = rng.permutation(len(targets))
    by_class = [mixed[targets[mixed] == k] for k in np.unique(targets)]
    turns = np.concatenate([np.arange(len(members)) for members in by_class])
    in_turn = np.concatenate(by_class)[np.argsort(turns, kind="stable")]
    return np.sort(in_turn[:most])


def _fit(
    kernel: PoolKernel,
    known: NDArray[np.intp],
    targets: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    landmarks: NDArray[np.intp],
    n_first: int,
    n_classes: int,
    seed: int,
) -> _Fitted:
    seen, classes = np.unique(targets, return_inverse=True)
    if len(seen) < 2:
        return _nothing(len(known), len(landmarks), n_classes)
    inverse, inputs = _inputs(kernel, known, landmarks)
    fit = LogisticFit(inputs, classes, PRECISION, weights)
    # Only differences between classes count: one axis less than classes spans all of them.
    fitted = fit.weights.astype(np.float64)
    axes, differences = np.linalg.qr((fitted[:-1] - fitted[-1]).T)
    layer = np.zeros((n_classes, len(seen) - 1)), np.full(n_classes, LOGIT_WITHOUT_LABELS)
    layer[0][seen[:-1]], layer[1][seen] = differences.T, fit.bias
    held_out = np.full((len(known), n_classes), LOGIT_WITHOUT_LABELS)
    # With many landmarks, the fits without some labels make do with the first.
    has_all = n_first == len(landmarks)
    few = inputs if has_all else inputs[:, :n_first].copy()
    without = fit if has_all else LogisticFit(few, classes, PRECISION, weights)
    held_out[:, seen] = without.held_out(even_folds(targets, seed))
    # A feature is a function of its own landmark and those before it, orthogonal to the others:
    # without the last ones it is the nearest function that the first landmarks make.
    first = inverse[:n_first, :n_first].T @ axes[:n_first]
    return _Fitted(
        axes=(inverse.T @ axes).astype(np.float32),
        first_axes=first.astype(np.float32),
        head=(layer[0].astype(np.float32), layer[1]),
        held_out=held_out,
    )


def _inputs(
    kernel: PoolKernel, known: NDArray[np.intp], landmarks: NDArray[np.intp]
) -> tuple[Table, Table]:
    """Features of the labels with the same products as the kernel among the landmarks.

    The first result turns the kernel with the landmarks into them.
    """
    among = kernel.between(known[landmarks], known[landmarks])
    lower = np.linalg.cholesky(among + _JITTER * np.eye(len(landmarks)))
    inverse = triangular_inverse(lower)
    inputs = np.empty((len(known), len(landmarks)), np.float32)
    inputs[landmarks] = lower
    others = np.delete(np.arange(len(known)), landmarks)
    to_features = inverse.T.astype(np.float32)

    def compute(bounds: tuple[int, int]) -> None:
        rows = others[slice(*bounds)]
        near = kernel.between(known[rows], known[landmarks]).astype(np.float32)
        inputs[rows] = near @ to_features

    run_in_threads(compute, row_blocks(len(others), _LABELS_AT_ONCE))
    return inverse, inputs


def _nothing(n_labels: int, n_landmarks: int, n_classes: int) -> _Fitted:
    """With labels of one class there is nothing to tell apart."""
    head = np.zeros((n_classes, 1), np.float32), np.zeros(n_classes)
    axes = np.zeros((n_landmarks, 1), np.float32)
    return _Fitted(axes, axes, head, np.zeros((n_labels, n_classes)))
