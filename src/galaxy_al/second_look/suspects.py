"""Suspected label errors: labels that a model which has not seen them finds unlikely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUSPECTED_FROM = 0.7  # chosen as benchmarks/second_look.py says
FEWEST = 5  # labels of a class, as many as there are folds: with fewer it is hardly known


@dataclass(frozen=True)
class Suspicions:
    """How suspicious each label is.

    Parameters
    ----------
    error
        How likely the model finds it that the example is of another class.
    suggested
        The class that the model finds most likely.
    is_suspect
        Whether to look at the label again.
    """

    error: NDArray[np.float64]
    suggested: NDArray[np.int64]
    is_suspect: NDArray[np.bool_]


def find_suspects(
    proba: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    trained_on: NDArray[np.integer[Any]] | None = None,
) -> Suspicions:
    """Find the labels that are likely errors.

    A label is suspected if the model prefers another class clearly: of the probability that the
    two have together, the other class has at least 70%. Each label is judged by itself, so no
    correction makes another suspicion come or go. Labels of a class with fewer than 5 labels are
    not suspected: without the one in question there is hardly anything to know the class by.

    Parameters
    ----------
    proba
        The class probabilities of the labelled examples, N x K, by models that were trained
        without them. They must be those in the pool, not those of balanced classes.
    labels
        The classes that the examples were given.
    trained_on
        The labels that the models were trained on, if some were corrected since.

    References
    ----------
    Confident learning, which the benchmark compares this with: Northcutt, Jiang and Chuang,
    "Confident learning: estimating uncertainty in dataset labels", JAIR 2021.

    Examples
    --------
    >>> proba = np.repeat([[0.9, 0.1], [0.2, 0.8]], 6, axis=0)
    >>> labels = np.repeat([0, 1], 6)
    >>> labels[3] = 1
    >>> found = find_suspects(proba, labels)
    >>> np.flatnonzero(found.is_suspect).tolist(), found.error[3].round(2), found.suggested[3]
    ([3], np.float64(0.9), np.int64(0))
    """
    given = proba[np.arange(len(labels)), labels].astype(np.float64)
    suggested = proba.argmax(axis=1).astype(np.int64)
    best = proba.max(axis=1, initial=0.0).astype(np.float64)
    counts = np.bincount(labels if trained_on is None else trained_on, minlength=proba.shape[1])
    is_known = counts[labels] >= FEWEST
    is_clear = (1 - SUSPECTED_FROM) * best >= SUSPECTED_FROM * given
    return Suspicions(1 - given, suggested, is_known & is_clear & (suggested != labels))
