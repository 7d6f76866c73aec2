"""Suspected label errors: labels that a model which has not seen them finds unlikely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUSPECTED_FROM = 0.35  # measured: benchmarks/second_look.py
FEWEST = 5  # labels of a class, as many as there are folds: with fewer it is hardly known
_STEPS = 200
_BEFORE = (1, 10)  # one error in ten labels, until the labels say more


@dataclass(frozen=True)
class Suspicions:
    """How suspicious each label is.

    Parameters
    ----------
    error
        How likely each label is an error.
    suggested
        The class that the model finds most likely for each.
    is_suspect
        Whether to look at it again: an error is likely enough, and the model suggests another
        class.
    """

    error: NDArray[np.float64]
    suggested: NDArray[np.int64]
    is_suspect: NDArray[np.bool_]


def find_suspects(
    proba: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]], *, fewest: int = FEWEST
) -> Suspicions:
    """Find the labels that are likely errors.

    If a share e of all labels is wrong, and p is the probability of the given class, a label is an
    error with the odds e (1 - p) : (1 - e) p. The share e is unknown, so it is estimated with the
    chances by expectation maximization: few labels are suspected where labels and model agree.

    Parameters
    ----------
    proba
        The class probabilities of the labelled examples, N x K, by models that were trained
        without them. They must be those in the pool, not those of balanced classes.
    labels
        The classes that the examples were given.
    fewest
        Labels of a class with fewer labels are not suspected: without the one in question there
        is hardly anything to know the class by.

    References
    ----------
    Confident learning, which the benchmark compares this with: Northcutt, Jiang and Chuang,
    "Confident learning: estimating uncertainty in dataset labels", JAIR 2021.

    Examples
    --------
    >>> proba = np.repeat([[0.99, 0.01], [0.01, 0.99]], 50, axis=0)
    >>> labels = np.repeat([0, 1], 50)
    >>> labels[3] = 1
    >>> found = find_suspects(proba, labels)
    >>> np.flatnonzero(found.is_suspect), found.suggested[3]
    (array([3]), np.int64(0))
    """
    if not len(labels):
        return Suspicions(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_))
    given = proba[np.arange(len(labels)), labels].astype(np.float64)
    is_known = np.bincount(labels, minlength=proba.shape[1])[labels] >= fewest
    error = np.where(is_known, _chances(given, is_known), 0.0)
    suggested = proba.argmax(axis=1).astype(np.int64)
    return Suspicions(error, suggested, (error >= SUSPECTED_FROM) & (suggested != labels))


def _chances(given: NDArray[np.float64], counts: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How likely each label is an error; some of them count for the share of errors."""
    n_errors, n = _BEFORE
    share = n_errors / n
    error = np.zeros_like(given)
    for _ in range(_STEPS):
        wrong, right = share * (1 - given), (1 - share) * given
        error = wrong / (wrong + right)
        before, share = share, (error[counts].sum() + n_errors) / (counts.sum() + n)
        if abs(share - before) < 1e-9:
            break
    return error
