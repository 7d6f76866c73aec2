"""Multinomial logistic regression with a Gaussian prior, for the features of a kernel.

These vary a lot in a few directions and hardly at all in most, so a gradient method takes hundreds
of steps on them. The weights are sought in coordinates in which the curvature is about the same in
all directions. There some twenty steps do, and half as many to fit again without a few labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.log_odds import Table
from galaxy_al.models.triangular import triangular_inverse
from galaxy_al.shards import row_blocks
from galaxy_al.system.threads import one_at_a_time, run_in_threads, worker_threads

TOLERANCE = 0.03  # of the gradient in those coordinates, in units of the log likelihood
_FOLD_TOLERANCE = 0.013  # of fits without some labels, times the root of the number of labels
_CURVATURE = 0.01  # of a label's loss that the coordinates assume: most labels are certain
_BIAS_PRECISION = 1e-3  # the bias has no prior; with hardly any the equations can be solved
_MOST_STEPS = 1000
_CELLS_AT_ONCE = 1 << 20


class LogisticFit:
    """A logistic regression, fitted to all labels and, if asked, without some.

    Parameters
    ----------
    inputs
        n x m, in single precision.
    targets
        The classes, from 0 to K - 1; each has at least one example.
    precision
        Of the prior on each class's weights.
    sample_weights
        How much each label counts; None is fully.

    Attributes
    ----------
    weights, bias
        K x m and K: logits are ``inputs @ weights.T + bias``.

    Examples
    --------
    >>> inputs = np.array([[-1.0], [-0.5], [0.5], [1.0]], dtype=np.float32)
    >>> fit = LogisticFit(inputs, np.array([0, 0, 1, 1]), 1.0)
    >>> (inputs @ fit.weights.T + fit.bias).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    >>> fit.held_out(folds=np.array([0, 1, 0, 1])).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        inputs: Table,
        targets: NDArray[np.integer[Any]],
        precision: float,
        sample_weights: NDArray[np.float64] | None = None,
    ) -> None:
        self._inputs, self._targets = inputs, targets
        self._sample_weights = None if sample_weights is None else sample_weights.astype(np.float32)
        n_classes = int(targets.max()) + 1
        # Two classes have one row of weights, the difference of two: twice the variance.
        n_rows, self._precision = (1, precision / 2) if n_classes == 2 else (n_classes, precision)
        self._coordinates = _coordinates(inputs, self._precision)
        with worker_threads() as run:
            whole = _Problem(
                inputs, targets, self._sample_weights, self._coordinates, self._precision, run
            )
            self._point = whole.minimum(np.zeros((n_rows, inputs.shape[1] + 1)), TOLERANCE)
        self._rows = whole.weights(self._point)
        weights = _all_classes(self._rows, axis=0)
        self.weights, self.bias = weights[:, :-1], weights[:, -1]

    def held_out(self, folds: NDArray[np.integer[Any]]) -> Table:
        """The logits of each example by a fit without its fold, n x K.

        The biases stay those of all examples: a class whose only label is left out still exists.
        """
        logits = np.empty((len(self._inputs), len(self._rows)), np.float32)
        tolerance = _FOLD_TOLERANCE * len(self._inputs) ** 0.5

        def fit_without(fold: int) -> None:
            out = folds == fold
            weights = self._sample_weights
            rest = _Problem(
                self._inputs[~out],
                self._targets[~out],
                None if weights is None else weights[~out],
                self._coordinates,
                self._precision,
                one_at_a_time,
                bias=self._rows[:, -1],
            )
            found = rest.minimum(self._point, tolerance)
            logits[out] = _logits(self._inputs[out], rest.weights(found))

        run_in_threads(fit_without, np.unique(folds).tolist())
        return _all_classes(logits, axis=1)


class _Problem:
    """The negative log posterior of some labels, as a function of a point in the coordinates.

    Parameters
    ----------
    sample_weights
        How much each label counts; None is fully.
    run
        Does work for several items.
    bias
        The biases, if they are fixed.
    """

    def __init__(
        self,
        inputs: Table,
        targets: NDArray[np.integer[Any]],
        sample_weights: Table | None,
        coordinates: Table,
        precision: float,
        run: Callable[[Callable[[int], None], Iterable[int]], None],
        bias: Table | None = None,
    ) -> None:
        self._inputs, self._targets, self._coordinates = inputs, targets, coordinates
        self._sample_weights = sample_weights
        self._precision = np.full(inputs.shape[1] + 1, precision, np.float32)
        self._precision[-1] = 0
        self._run, self._bias = run, bias
        self._blocks = list(row_blocks(len(inputs), max(_CELLS_AT_ONCE // inputs.shape[1], 1)))

    def weights(self, point: NDArray[np.float64]) -> Table:
        """The weights at a point, with the biases as the last column."""
        weights: Table = point.astype(np.float32) @ self._coordinates
        if self._bias is not None:
            weights[:, -1] = self._bias
        return weights

    def minimum(self, start: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
        """The point where the posterior is highest."""
        from scipy.optimize import minimize

        def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            loss, gradient = self._loss_and_gradient(flat.reshape(start.shape))
            return loss, gradient.ravel().astype(np.float64)

        options = {"maxiter": _MOST_STEPS, "gtol": tolerance, "ftol": 1e-12, "maxls": 50}
        found = minimize(
            loss_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", options=options
        )
        point: NDArray[np.float64] = found.x.reshape(start.shape)
        return point

    def _loss_and_gradient(self, point: NDArray[np.float64]) -> tuple[float, Table]:
        weights = self.weights(point)
        losses = np.zeros(len(self._blocks))
        slopes = np.zeros((len(self._blocks), *weights.shape), np.float32)

        def add_up(number: int) -> None:
            losses[number], slopes[number] = self._block(self._blocks[number], weights)

        self._run(add_up, range(len(self._blocks)))
        shrunk = self._precision * weights
        slope = slopes.sum(axis=0) + shrunk
        if self._bias is not None:
            slope[:, -1] = 0
        loss = losses.sum() + 0.5 * float((shrunk.astype(np.float64) * weights).sum())
        return loss, slope @ self._coordinates.T

    def _block(self, bounds: tuple[int, int], weights: Table) -> tuple[float, Table]:
        """The negative log likelihood of some labels, and its slope."""
        inputs, targets = self._inputs[slice(*bounds)], self._targets[slice(*bounds)]
        table = _all_classes(_logits(inputs, weights), axis=1)
        rows = np.arange(len(targets))
        table -= table.max(axis=1, keepdims=True)
        own = table[rows, targets]
        np.exp(table, out=table)
        totals = table.sum(axis=1, keepdims=True)
        logs = np.log(totals)
        table /= totals
        table[rows, targets] -= 1
        if self._sample_weights is not None:
            counts = self._sample_weights[slice(*bounds), None]
            own, logs, table = own * counts[:, 0], logs * counts, table * counts
        loss = float(logs.sum(dtype=np.float64) - own.sum(dtype=np.float64))
        residuals = table[:, -len(weights) :]
        return loss, np.hstack([residuals.T @ inputs, residuals.sum(axis=0)[:, None]])


def _logits(inputs: Table, weights: Table) -> Table:
    with np.errstate(invalid="ignore"):  # BLAS sets the flag for finite numbers, now and then
        logits: Table = inputs @ weights[:, :-1].T + weights[:, -1]
    return logits


def _all_classes(table: Table, axis: int) -> Table:
    """With the zeros of the first class, where there are two and only one has weights."""
    if table.shape[axis] > 1:
        return table
    return np.concatenate([np.zeros_like(table), table], axis=axis)


def _coordinates(inputs: Table, precision: float) -> Table:
    """What turns a point into weights and a bias: points times this."""
    from scipy.linalg import cholesky

    with_bias = np.hstack([inputs, np.ones((len(inputs), 1), inputs.dtype)])
    curvature = _CURVATURE * (with_bias.T @ with_bias)
    curvature[np.diag_indices_from(curvature)] += precision
    curvature[-1, -1] += _BIAS_PRECISION
    return triangular_inverse(cholesky(curvature, lower=True, check_finite=False))
