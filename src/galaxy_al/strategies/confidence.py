"""Confidence sampling: Settles, Active Learning Literature Survey, 2009."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot, View
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import lowest


class Confidence(Strategy):
    """Ask where the most likely class is least likely.

    Examples
    --------
    >>> snapshot = Snapshot([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    >>> Confidence().rank(snapshot, 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """

    name = "confidence"
    summary = "smallest probability of the most likely class"
    paper = "Settles, 2009"
    works_on_shards = True
    view: View = "pool"

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """The ``budget`` askable indices with the smallest max p, ties by index."""
        return lowest(snapshot, budget, lambda rows: rows.max(axis=1))
