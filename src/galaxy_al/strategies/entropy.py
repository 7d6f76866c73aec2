"""Entropy sampling: Settles, Active Learning Literature Survey, 2009."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot, View
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import lowest


class Entropy(Strategy):
    """Ask where the predicted distribution has the largest entropy.

    Examples
    --------
    >>> snapshot = Snapshot([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]])
    >>> Entropy().rank(snapshot, 2, np.random.default_rng(0)).tolist()
    [1, 0]
    """

    name = "entropy"
    summary = "largest entropy of the predicted distribution"
    paper = "Settles, 2009"
    works_on_shards = True
    view: View = "pool"

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """The ``budget`` askable indices with the largest entropy, ties by index."""
        return lowest(snapshot, budget, _negative_entropy)


def _negative_entropy(rows: NDArray[Any]) -> NDArray[Any]:
    # 0 log 0 is 0: the logarithm of 1 replaces that of 0.
    sums: NDArray[Any] = (rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=1)
    return sums
