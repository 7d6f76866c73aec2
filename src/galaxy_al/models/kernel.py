"""Kernel logistic regression: one fit, nothing to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.kernel_space import KernelSpace, PoolKernel, Table, kernel_times
from galaxy_al.models.leave_one_out import leave_one_out
from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS, softmax
from galaxy_al.system.threads import one_blas_thread

# Of the prior on the weights: with few labels it holds them back, with many it is outweighed.
PRECISION = 0.05
MOST_LANDMARKS = 1000

_TOLERANCE = 1e-4  # of the solver
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
        landmarks = _landmarks(targets, np.random.default_rng(self._seed))
        with one_blas_thread():
            fitted = _fit(kernel, known, targets, landmarks, self._n_classes)
        features = kernel.times(known[landmarks], fitted.axes)
        return KernelModel(
            space=kernel.space,
            landmarks=pool[known[landmarks]],
            axes=fitted.axes,
            head=fitted.head,
            held_out=fitted.held_out,
            scored=(pool, features),
        )


@dataclass(frozen=True)
class KernelModel:
    """A trained kernel head.

    Parameters
    ----------
    axes
        Turn an example's kernel with the landmarks into one feature less than there are classes.
    head
        The last layer: the weights and biases that turn the features into logits.
    held_out
        The logits of each labelled example, by ascending index, by a model trained without it.
    scored
        The pool it was trained with, and the features of that.
    """

    space: KernelSpace
    landmarks: Table
    axes: Table
    head: tuple[Table, Table]
    held_out: Table | None = field(default=None, repr=False)
    scored: tuple[Table, Table] | None = field(default=None, repr=False)

    def features(self, pool: Table) -> Table:
        """The inputs of the last layer."""
        if self.scored is not None and self.scored[0] is pool:
            return self.scored[1]
        return kernel_times(self.space, pool, self.landmarks, self.axes)

    def logits(self, pool: Table) -> Table:
        """The logits of all examples, N x K, in single precision."""
        weights, bias = self.head
        return self.features(pool) @ weights.T + bias.astype(np.float32)

    def proba(self, pool: Table) -> Table:
        """The class probabilities of all examples, N x K.

        A class that had no label gets 0. While only one had, all are equally likely.
        """
        return softmax(self.logits(pool))


@dataclass(frozen=True)
class _Fitted:
    axes: Table
    head: tuple[Table, Table]
    held_out: Table


def _landmarks(targets: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.intp]:
    """All labelled examples; of too many the same number of each class, at random."""
    if len(targets) <= MOST_LANDMARKS:
        return np.arange(len(targets))
    mixed = rng.permutation(len(targets))
    by_class = [mixed[targets[mixed] == k] for k in np.unique(targets)]
    turns = np.concatenate([np.arange(len(members)) for members in by_class])
    in_turn = np.concatenate(by_class)[np.argsort(turns, kind="stable")]
    return np.sort(in_turn[:MOST_LANDMARKS])


def _fit(
    kernel: PoolKernel,
    known: NDArray[np.intp],
    targets: NDArray[np.int64],
    landmarks: NDArray[np.intp],
    n_classes: int,
) -> _Fitted:
    seen = np.unique(targets)
    if len(seen) < 2:
        return _nothing(len(known), len(landmarks), n_classes)
    from scipy.linalg import qr, solve_triangular
    from sklearn.linear_model import LogisticRegression

    gram = kernel.between(known[landmarks], known)
    lower = np.linalg.cholesky(gram[:, landmarks] + _JITTER * np.eye(len(landmarks)))
    inputs = lower if len(landmarks) == len(known) else _solve(lower, gram).T
    inputs = np.ascontiguousarray(inputs, dtype=np.float32)
    # Two classes have one row of weights, the difference of two: its variance is twice as large.
    inverse = (2 if len(seen) == 2 else 1) / PRECISION
    solver = LogisticRegression(C=inverse, tol=_TOLERANCE, max_iter=1000).fit(inputs, targets)
    weights, bias = solver.coef_, solver.intercept_
    if len(seen) == 2:
        weights, bias = np.append(0 * weights, weights, axis=0), np.append(0 * bias, bias)
    held_out = leave_one_out(
        inputs, inputs @ weights.T + bias, np.searchsorted(seen, targets), PRECISION
    )
    # Only differences between classes count: one axis less than classes spans all of them.
    axes, differences = qr((weights[:-1] - weights[-1]).T, mode="economic")
    dual = solve_triangular(lower.T, axes)
    layer = np.zeros((n_classes, len(seen) - 1)), np.full(n_classes, LOGIT_WITHOUT_LABELS)
    layer[0][seen[:-1]], layer[1][seen] = differences.T, bias
    all_held_out = np.full((len(known), n_classes), LOGIT_WITHOUT_LABELS)
    all_held_out[:, seen] = held_out
    head = layer[0].astype(np.float32), layer[1]
    return _Fitted(dual.astype(np.float32), head, all_held_out)


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
