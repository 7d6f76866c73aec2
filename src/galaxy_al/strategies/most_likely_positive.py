"""Most likely positive, the heuristic of active search: Warmuth et al., 2001 and 2003."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import lowest


class MostLikelyPositive(Strategy):
    """Ask where some rare class is most likely.

    Examples
    --------
    >>> snapshot = Snapshot([[0.1, 0.9], [0.7, 0.3], [0.4, 0.6]])
    >>> MostLikelyPositive().rank(snapshot, 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """

    name = "most-likely-positive"
    summary = "largest probability of any rare class"
    paper = "Warmuth et al., NIPS 2001"
    works_on_shards = True

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """The ``budget`` askable indices with the largest rare probability, ties by index."""
        rare = [k for k in range(snapshot.n_classes) if k != snapshot.other]
        return lowest(snapshot, budget, lambda rows: -rows[:, rare].max(axis=1))
