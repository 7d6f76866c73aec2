"""How good a classifier is on a pool: pure functions of truth and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def per_class_accuracy(truth: ArrayLike, predicted: ArrayLike, n_classes: int) -> NDArray[Any]:
    """The share of each class's examples that were predicted right; NaN for an absent class.

    Examples
    --------
    >>> per_class_accuracy([0, 0, 1, 1], [0, 1, 1, 1], n_classes=2).tolist()
    [0.5, 1.0]
    """
    truth, predicted = _classes(truth, "truth"), _classes(predicted, "predicted")
    if truth.shape != predicted.shape:
        raise ValueError(
            f"truth and predicted must have one shape, got {truth.shape} and {predicted.shape}."
        )
    size = np.bincount(truth, minlength=n_classes)
    right = np.bincount(truth[truth == predicted], minlength=n_classes)
    with np.errstate(invalid="ignore"):
        return right / size


def balanced_accuracy(truth: ArrayLike, predicted: ArrayLike) -> float:
    """The plain mean over the classes of the per-class accuracy: ACC_bal of the paper.

    Classes are those that occur in ``truth``.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    truth = _classes(truth, "truth")
    n_classes = int(truth.max()) + 1
    return float(np.nanmean(per_class_accuracy(truth, predicted, n_classes)))


def rare_average_precision(truth: ArrayLike, proba: ArrayLike, other: int) -> float:
    """The mean over the rare classes of the average precision of their probability.

    Rare are all classes of ``truth`` but ``other``.

    Examples
    --------
    >>> rare_average_precision([0, 1, 1], [[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]], other=1)
    0.5
    """
    from sklearn.metrics import average_precision_score

    truth, proba = np.asarray(truth), np.asarray(proba)
    rare = [k for k in np.unique(truth).tolist() if k != other]
    if not rare:
        raise ValueError(f"There is no rare class: every example is of class {other}.")
    return float(np.mean([average_precision_score(truth == k, proba[:, k]) for k in rare]))


def _classes(values: ArrayLike, name: str) -> NDArray[np.integer[Any]]:
    array = np.asarray(values)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu" or array.min() < 0:
        raise ValueError(
            f"{name} must be a list of at least one class, 0 or more each, "
            f"got shape {array.shape} of {array.dtype}."
        )
    return array
