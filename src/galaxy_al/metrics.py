"""How good a classifier is on a pool: pure functions of truth and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from galaxy_al.errors import InvalidArgument


def per_class_accuracy(truth: ArrayLike, predicted: ArrayLike, n_classes: int) -> NDArray[Any]:
    """The share of each class's examples that were predicted right; NaN for an absent class.

    Examples
    --------
    >>> per_class_accuracy([0, 0, 1, 1], [0, 1, 1, 1], n_classes=2).tolist()
    [0.5, 1.0]
    """
    truth, predicted = _both(truth, predicted)
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


def confusion(truth: ArrayLike, predicted: ArrayLike, n_classes: int) -> NDArray[np.intp]:
    """How many examples of each class (row) were predicted as each class (column).

    Examples
    --------
    >>> confusion([0, 0, 1, 1], [0, 1, 1, 1], n_classes=2).tolist()
    [[1, 1], [0, 2]]
    """
    truth, predicted = _both(truth, predicted)
    pairs = np.bincount(truth * n_classes + predicted, minlength=n_classes**2)
    return pairs.reshape(n_classes, n_classes)


def rare_f1(truth: ArrayLike, predicted: ArrayLike, majority: int) -> float:
    """The mean over the rare classes of F1, the harmonic mean of precision and recall.

    Rare are all classes of ``truth`` but ``majority``.

    Examples
    --------
    >>> rare_f1([0, 0, 1, 1], [0, 1, 1, 1], majority=1)
    0.6666666666666666
    """
    truth, predicted = _both(truth, predicted)
    table = confusion(truth, predicted, int(max(truth.max(), predicted.max())) + 1)
    right, both = table.diagonal(), table.sum(axis=0) + table.sum(axis=1)
    return float(np.mean([2 * right[k] / both[k] for k in _rare(truth, majority)]))


def rare_precision(truth: ArrayLike, predicted: ArrayLike, majority: int) -> float:
    """The share of the examples predicted as a rare class that are of that class; 1 if none are.

    Examples
    --------
    >>> rare_precision([0, 1, 1, 1], [0, 0, 1, 1], majority=1)
    0.5
    """
    truth, predicted = _both(truth, predicted)
    alarms = predicted != majority
    return float(np.mean(truth[alarms] == predicted[alarms])) if alarms.any() else 1.0


def rare_recall(truth: ArrayLike, predicted: ArrayLike, majority: int) -> float:
    """The share of the examples of rare classes that are predicted as their class.

    Examples
    --------
    >>> rare_recall([0, 0, 1, 1], [0, 1, 1, 1], majority=1)
    0.5
    """
    truth, predicted = _both(truth, predicted)
    _rare(truth, majority)
    rare = truth != majority
    return float(np.mean(truth[rare] == predicted[rare]))


def log_loss(truth: ArrayLike, proba: ArrayLike) -> float:
    """The mean negative logarithm of the probability of the true class, at most 34.5 each.

    Examples
    --------
    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.0, 1.0]]), 3)
    0.347
    """
    truth = _classes(truth, "truth")
    chosen = np.asarray(proba)[np.arange(len(truth)), truth].astype(np.float64)
    return float(-np.log(np.maximum(chosen, 1e-15)).mean())


def brier_score(truth: ArrayLike, proba: ArrayLike) -> float:
    """The mean squared distance between the probabilities and the true class as 0 and 1.

    Examples
    --------
    >>> brier_score([0, 1], [[0.5, 0.5], [0.0, 1.0]])
    0.25
    """
    truth, table = _classes(truth, "truth"), np.asarray(proba)
    chosen = table[np.arange(len(truth)), truth].astype(np.float64)
    squares = np.einsum("ij,ij->i", table, table, dtype=np.float64)
    return float((squares - 2 * chosen + 1).mean())


def calibration_error(wanted: ArrayLike, probability: ArrayLike, n_bins: int = 15) -> float:
    """The expected calibration error: the distance of probabilities from what comes true.

    The examples are cut into bins of equal mass by probability. In each bin, the mean probability
    is compared with the share that is wanted.

    Examples
    --------
    >>> calibration_error([True, False], [0.75, 0.25], n_bins=2)
    0.25
    """
    bins = reliability(wanted, probability, n_bins)
    total = sum(size for _, _, size in bins)
    return float(sum(abs(said - true) * size for said, true, size in bins) / total)


def reliability(
    wanted: ArrayLike, probability: ArrayLike, n_bins: int = 15
) -> list[tuple[float, float, int]]:
    """Of bins of equal mass: the mean probability, the share that is wanted, and the size.

    Examples
    --------
    >>> reliability([True, False], [0.9, 0.1], n_bins=2)
    [(0.1, 0.0, 1), (0.9, 1.0, 1)]
    """
    wanted, probability = np.asarray(wanted), np.asarray(probability, dtype=np.float64)
    order = np.argsort(probability, kind="stable")
    return [
        (float(probability[rows].mean()), float(wanted[rows].mean()), len(rows))
        for rows in np.array_split(order, n_bins)
        if len(rows)
    ]


def rare_found(truth: ArrayLike, labeled: ArrayLike, majority: int) -> int:
    """How many of some labelled examples are of a rare class.

    Examples
    --------
    >>> rare_found([0, 1, 1, 0], labeled=[0, 1, 2], majority=1)
    1
    """
    indices = np.asarray(labeled, dtype=np.intp)
    return int(np.count_nonzero(_classes(truth, "truth")[indices] != majority))


def rare_average_precision(truth: ArrayLike, proba: ArrayLike, majority: int) -> float:
    """The mean over the rare classes of the average precision of their probability.

    Rare are all classes of ``truth`` but ``majority``.

    Examples
    --------
    >>> rare_average_precision([0, 1, 1], [[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]], majority=1)
    0.5
    """
    truth, proba = np.asarray(truth), np.asarray(proba)
    scores = [average_precision(truth == k, proba[:, k]) for k in _rare(truth, majority)]
    return float(np.mean(scores))


def average_precision(wanted: ArrayLike, score: ArrayLike) -> float:
    """The mean precision at each wanted example, the best scores first; ties count together.

    Examples
    --------
    >>> average_precision([True, False, True], [0.9, 0.8, 0.7])
    0.8333333333333333
    """
    wanted, score = np.asarray(wanted), np.asarray(score)
    heights, counts = np.unique(score[wanted], return_counts=True)
    # How many examples lie at or above each height at which there is a wanted one.
    step = np.bincount(np.searchsorted(heights, score, side="right"), minlength=len(heights) + 1)
    above = np.cumsum(step[::-1])[::-1][1:]
    found = np.cumsum(counts[::-1])[::-1]
    return float((counts * found / above).sum() / found[0])


def _rare(truth: NDArray[Any], majority: int) -> list[int]:
    rare = [k for k in np.unique(truth).tolist() if k != majority]
    if not rare:
        raise InvalidArgument(f"No example is of a rare class: all are of class {majority}.")
    return rare


def _both(
    truth: ArrayLike, predicted: ArrayLike
) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
    truth, predicted = _classes(truth, "truth"), _classes(predicted, "predicted")
    if truth.shape != predicted.shape:
        raise InvalidArgument(
            f"truth and predicted must have one shape, got {truth.shape} and {predicted.shape}."
        )
    return truth, predicted


def _classes(values: ArrayLike, name: str) -> NDArray[np.integer[Any]]:
    array = np.asarray(values)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu" or array.min() < 0:
        raise InvalidArgument(
            f"{name} must be a list of at least one class, 0 or more each, "
            f"got shape {array.shape} of {array.dtype}."
        )
    return array
