"""Which labels are left out together when a model is to predict labels it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

N_FOLDS = 5


def even_folds(
    targets: NDArray[np.integer[Any]], seed: int, n_folds: int = N_FOLDS
) -> NDArray[np.int64]:
    """A fold for each label, each class spread evenly over the folds, at random.

    Examples
    --------
    >>> folds = even_folds(np.repeat([0, 1], [5, 10]), seed=0)
    >>> np.bincount(folds[:5]).tolist(), np.bincount(folds[5:]).tolist()
    ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2])
    """
    rng = np.random.default_rng(seed)
    folds = np.empty(len(targets), dtype=np.int64)
    for k in np.unique(targets):
        members = rng.permutation(np.flatnonzero(targets == k))
        folds[members] = (np.arange(len(members)) + rng.integers(n_folds)) % n_folds
    if len(folds) > 1 and (folds == folds[0]).all():  # without it, nothing would be left to learn
        folds[0] = (folds[0] + 1) % n_folds
    return folds
