"""Kernel logistic regression: one fit, nothing to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.kernel_space import (
    KernelSpace,
    PoolKernel,
    Table,
    gaussian,
    kernel_times,
)
from galaxy_al.models.leave_one_out import leave_one_out
from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS, rare_log_odds, softmax
from galaxy_al.snapshot import row_blocks
from galaxy_al.system.threads import one_blas_thread

# Of the prior on the weights: with few labels it holds them back, with many it is outweighed.
PRECISION = 0.05
MOST_LANDMARKS = 2000
# With more landmarks, a large pool is scored with so many first; all count for the candidates.
MOST_COARSE = 1000

_TOLERANCE = 1e-4  # of the solver
_CANDIDATES = 50_000  # or one in twenty, if these are more
_REFINED_AT_ONCE = 1 << 16
_JITTER = 1e-6  # on the diagonal: copies among the landmarks do no harm


class KernelTrainer:
    """Trains logistic regression in the space of a Gaussian kernel.

    Nothing is chosen by cross-validation, which is misled by labels not sampled at random:

    - The kernel's width is the median distance in the pool, and the prior on the weights is fixed.
    - Labels are not weighted. To choose examples by what they look like does not change how likely
      each class is, given what they look like, and that is what is learned.

    Parameters
    ----------
    width
        The kernel's width, in median distances.
    per_column
        Whether to divide each column by its standard deviation first.

    Examples
    --------
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]])
    >>> model = KernelTrainer(n_classes=2).fit(embeddings, {0: 0, 2: 1})
    >>> model.proba(embeddings).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self, *, n_classes: int, seed: int = 0, width: float = 1, per_column: bool = False
    ) -> None:
        self._n_classes, self._seed = n_classes, seed
        self._width, self._per_column = width, per_column
        self._kernel: PoolKernel | None = None

    def fit(self, pool: Table, labels: Mapping[int, int]) -> KernelModel:
        """Train on the labelled examples of a table of embeddings."""
        if self._kernel is None or self._kernel.pool is not pool:
            space = KernelSpace.of(pool, self._seed, width=self._width, per_column=self._per_column)
            self._kernel = PoolKernel(pool, space)
        kernel, known = self._kernel, np.array(sorted(labels), dtype=np.intp)
        targets = np.array([labels[i] for i in known.tolist()], dtype=np.int64)
        rng = np.random.default_rng(self._seed)
        landmarks = _even_choice(targets, MOST_LANDMARKS, rng)
        coarse = _even_choice(targets[landmarks], MOST_COARSE, rng)
        with one_blas_thread():
            fitted = _fit(kernel, known, targets, landmarks, coarse, self._n_classes)
        model = KernelModel(
            space=kernel.space,
            landmarks=pool[known[landmarks]],
            axes=fitted.axes,
            head=fitted.head,
            held_out=fitted.held_out,
        )
        if kernel.has_room(len(landmarks)) or len(coarse) == len(landmarks):
            return replace(model, scored=(pool, kernel.times(known[landmarks], fitted.axes)))
        return model.looking_first(coarse, pool)


@dataclass(frozen=True)
class KernelModel:
    """A trained kernel head.

    Parameters
    ----------
    axes
        Turn an example's kernel with the landmarks into one feature less than there are classes.
    head
        The last layer: the weights and biases that turn the features into logits.
    coarse
        How a large pool is looked through first; None if all landmarks count at once.
    held_out
        The logits of each labelled example, by ascending index, by a model trained without it.
    scored
        The pool it was trained with, and the features of that.
    """

    space: KernelSpace
    landmarks: Table
    axes: Table
    head: tuple[Table, Table]
    coarse: Coarse | None = None
    held_out: Table | None = field(default=None, repr=False)
    scored: tuple[Table, Table] | None = field(default=None, repr=False)

    def features(self, pool: Table) -> Table:
        """The inputs of the last layer."""
        if self.scored is not None and self.scored[0] is pool:
            return self.scored[1]
        if self.coarse is None:
            return kernel_times(self.space, pool, self.landmarks, self.axes)
        found = self._coarse_features(pool, self.coarse)
        odds = rare_log_odds(self._logits(found))
        self._refine(found, pool, np.flatnonzero(odds >= self.coarse.all_from))
        return found

    def looking_first(self, some: NDArray[np.intp], pool: Table) -> KernelModel:
        """The same model, which looks through the pool with some of the landmarks first."""
        coarse = Coarse(some, self._project(some), 0.0)
        found = self._coarse_features(pool, coarse)
        odds = rare_log_odds(self._logits(found))
        n_candidates = min(max(_CANDIDATES, len(pool) // 20), len(pool))
        cutoff = float(np.partition(odds, -n_candidates)[-n_candidates])
        self._refine(found, pool, np.flatnonzero(odds >= cutoff))
        return replace(self, coarse=replace(coarse, all_from=cutoff), scored=(pool, found))

    def _refine(self, features: Table, pool: Table, which: NDArray[np.intp]) -> None:
        """Compute the features of some examples from all landmarks, in place."""
        for low, high in row_blocks(len(which), _REFINED_AT_ONCE):
            rows = which[low:high]
            features[rows] = kernel_times(self.space, pool[rows], self.landmarks, self.axes)

    def _project(self, some: NDArray[np.intp]) -> Table:
        """The weights of some landmarks that come nearest to the function of all of them."""
        points = self.space.place(self.landmarks, np.float64)
        among = gaussian(points[some], points[some]) + _JITTER * np.eye(len(some))
        projected: Table = np.linalg.solve(among, gaussian(points[some], points) @ self.axes)
        return projected.astype(np.float32)

    def _coarse_features(self, pool: Table, coarse: Coarse) -> Table:
        return kernel_times(self.space, pool, self.landmarks[coarse.landmarks], coarse.axes)

    def logits(self, pool: Table) -> Table:
        """The logits of all examples, N x K, in single precision."""
        return self._logits(self.features(pool))

    def _logits(self, features: Table) -> Table:
        weights, bias = self.head
        return features @ weights.T + bias.astype(np.float32)

    def proba(self, pool: Table) -> Table:
        """The class probabilities of all examples, N x K.

        A class that had no label gets 0. While only one had, all are equally likely.
        """
        return softmax(self.logits(pool))


@dataclass(frozen=True)
class Coarse:
    """Some of the landmarks, and which examples all of them are for.

    Parameters
    ----------
    landmarks, axes
        Which landmarks, and their weights.
    all_from
        All landmarks count for examples with at least these log odds of being rare.
    """

    landmarks: NDArray[np.intp]
    axes: Table
    all_from: float


@dataclass(frozen=True)
class _Fitted:
    axes: Table
    head: tuple[Table, Table]
    held_out: Table


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
    landmarks: NDArray[np.intp],
    coarse: NDArray[np.intp],
    n_classes: int,
) -> _Fitted:
    seen = np.unique(targets)
    if len(seen) < 2:
        return _nothing(len(known), len(landmarks), n_classes)
    from scipy.linalg import qr, solve_triangular
    from sklearn.linear_model import LogisticRegression

    gram = kernel.between(known[landmarks], known)
    lower, inputs = _inputs(gram, landmarks)
    # Two classes have one row of weights, the difference of two: its variance is twice as large.
    inverse = (2 if len(seen) == 2 else 1) / PRECISION
    solver = LogisticRegression(C=inverse, tol=_TOLERANCE, max_iter=1000).fit(inputs, targets)
    weights, bias = solver.coef_, solver.intercept_
    if len(seen) == 2:
        weights, bias = np.append(0 * weights, weights, axis=0), np.append(0 * bias, bias)
    logits = inputs @ weights.T + bias
    if len(coarse) < len(landmarks):  # leverages need fewer features than a fit
        inputs = _inputs(gram[coarse], landmarks[coarse])[1]
    held_out = leave_one_out(inputs, logits, np.searchsorted(seen, targets), PRECISION)
    # Only differences between classes count: one axis less than classes spans all of them.
    axes, differences = qr((weights[:-1] - weights[-1]).T, mode="economic")
    dual = solve_triangular(lower.T, axes)
    layer = np.zeros((n_classes, len(seen) - 1)), np.full(n_classes, LOGIT_WITHOUT_LABELS)
    layer[0][seen[:-1]], layer[1][seen] = differences.T, bias
    all_held_out = np.full((len(known), n_classes), LOGIT_WITHOUT_LABELS)
    all_held_out[:, seen] = held_out
    head = layer[0].astype(np.float32), layer[1]
    return _Fitted(dual.astype(np.float32), head, all_held_out)


def _inputs(gram: Table, landmarks: NDArray[np.intp]) -> tuple[Table, Table]:
    """The kernel among the landmarks, factored, and features with the same products as it."""
    lower = np.linalg.cholesky(gram[:, landmarks] + _JITTER * np.eye(len(landmarks)))
    inputs = lower if gram.shape[1] == len(landmarks) else _solve(lower, gram).T
    return lower, np.ascontiguousarray(inputs, dtype=np.float32)


def _nothing(n_labels: int, n_landmarks: int, n_classes: int) -> _Fitted:
    """With labels of one class there is nothing to tell apart."""
    head = np.zeros((n_classes, 1), np.float32), np.zeros(n_classes)
    axes = np.zeros((n_landmarks, 1), np.float32)
    return _Fitted(axes, head, np.zeros((n_labels, n_classes)))


def _solve(lower: Table, right: Table) -> Table:
    """Solve a triangular system in parts: SciPy lets no other thread run while it solves one."""
    from scipy.linalg import solve_triangular

    solution = np.empty_like(right)
    for at in range(0, right.shape[1], 64):
        part = slice(at, at + 64)
        solution[:, part] = solve_triangular(lower, right[:, part], lower=True)
    return solution
