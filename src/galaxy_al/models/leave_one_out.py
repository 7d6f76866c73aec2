"""What a logistic regression would say of each of its labels had it been trained without it.

One step of Newton's method from the fitted weights, instead of one fit per label: Rahnama Rad
and Maleki, A scalable estimate of the out-of-sample prediction error via approximate
leave-one-out cross-validation, JRSS B, 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.log_odds import Table, softmax

_BIAS_PRECISION = 1e-3  # the bias has no prior; with hardly any the equations can be solved
_LEAST_LEFT = 0.05  # of a label's own curvature: one alone in its corner still has a finite shift


def leave_one_out(
    inputs: Table, logits: Table, targets: NDArray[np.integer[Any]], precision: float
) -> NDArray[np.float64]:
    """The logits of each example by a model that was not trained on it, n x K.

    Each class is taken against all others together, which is exact for two classes, up to the
    one step.

    Parameters
    ----------
    inputs
        The features that the model was trained on, n x m.
    logits
        The model's own logits.
    precision
        Of the prior on each class's weights.

    Examples
    --------
    >>> inputs = np.array([[-1.0], [-0.5], [0.5], [1.0]], dtype=np.float32)
    >>> logits = np.hstack([0 * inputs, 2 * inputs])
    >>> left_out = leave_one_out(inputs, logits, np.array([0, 1, 1, 1]), precision=1.0)
    >>> bool(left_out[1, 1] - left_out[1, 0] < logits[1, 1] - logits[1, 0])
    True
    """
    n_classes = logits.shape[1]
    proba = softmax(logits.astype(np.float64))
    is_class = np.eye(n_classes)[targets]
    with_bias = np.hstack([inputs, np.ones((len(inputs), 1), inputs.dtype)])
    # A shift of one class against the others moves its weights by (K - 1) / K.
    share = (n_classes - 1) / n_classes
    shifts = np.zeros_like(proba)
    for k in range(1 if n_classes == 2 else 0, n_classes):
        curvature = proba[:, k] * (1 - proba[:, k])
        leverage = _leverages(with_bias, curvature, precision * share)
        left = np.maximum(1 - curvature * leverage, _LEAST_LEFT)
        shifts[:, k] = -leverage * (is_class[:, k] - proba[:, k]) / left
    if n_classes > 2:
        shifts *= share
    return logits + shifts


def _leverages(inputs: Table, curvature: NDArray[np.float64], precision: float) -> Table:
    """How much each example's logit moves per unit of its own residual."""
    from scipy.linalg import cholesky, solve_triangular

    weighted = inputs * np.sqrt(curvature).astype(inputs.dtype)[:, None]
    hessian = weighted.T @ weighted
    hessian[np.diag_indices_from(hessian)] += precision
    hessian[-1, -1] += _BIAS_PRECISION - precision
    lower = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
    solved = solve_triangular(lower, inputs.T, lower=True, overwrite_b=False, check_finite=False)
    leverages: Table = np.einsum("ij,ij->j", solved, solved)
    return leverages
