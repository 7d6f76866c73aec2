"""Probabilities that mean what they say, from labels that were not sampled at random.

All logits are multiplied by one number, the sharpness, with which they best predict labels that the
model was trained without. Above 1 it is believed: a model of few labels is too cautious. Below 1
half of it is believed (of its logarithm): most labels are around the cut, where classes are harder
to tell apart than elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.log_odds import Table, log_softmax

_BELIEVED = 0.5  # of the logarithm of a sharpness below 1
_SPREAD = 0.25  # of the logarithm of the sharpness, before any label is seen
_MOST_LOG = 1.0


def fit_sharpness(held_out: Table, targets: NDArray[np.integer[Any]]) -> float:
    """What to multiply logits by.

    Parameters
    ----------
    held_out
        The logits of the labelled examples by models trained without them, n x K; the last class is
        the majority class.
    targets
        Their classes.

    Examples
    --------
    >>> cautious = np.tile([[0.3, 0.0], [-0.3, 0.0]], (100, 1))
    >>> round(fit_sharpness(cautious, np.tile([0, 1], 100)), 1)
    2.7
    """
    is_rare = targets < held_out.shape[1] - 1
    if is_rare.all() or not is_rare.any():
        return 1.0
    best = _best_log_sharpness(held_out, targets)
    return float(np.exp(best if best > 0 else _BELIEVED * best))


def _best_log_sharpness(held_out: Table, targets: NDArray[np.integer[Any]]) -> float:
    """The logarithm of what held-out logits predict best with; few labels keep it near 0."""
    from scipy.optimize import minimize_scalar

    rows = np.arange(len(targets))

    def loss(log_factor: float) -> float:
        logs = log_softmax(np.exp(log_factor) * held_out)[rows, targets]
        return float(-logs.sum() + (log_factor / _SPREAD) ** 2 / 2)

    found = minimize_scalar(loss, bounds=(-_MOST_LOG, _MOST_LOG), method="bounded")
    return float(found.x)
