"""Entropy sampling: Settles, Active Learning Literature Survey, 2009."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy, lowest


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

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """The ``budget`` askable indices with the largest entropy, ties by index."""
        candidates = snapshot.askable()
        proba = snapshot.proba[candidates]
        # 0 log 0 is 0: the logarithm of 1 stands in for that of 0.
        negative_entropy = (proba * np.log(np.where(proba > 0, proba, 1))).sum(axis=1)
        return lowest(negative_entropy, candidates, budget)
