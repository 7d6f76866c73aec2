"""Uniform random sampling, the baseline of baselines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy


class Random(Strategy):
    """Ask about examples sampled uniformly without replacement.

    Examples
    --------
    >>> snapshot = Snapshot(np.full((5, 2), 0.5), labels=[0, -1, -1, 1, -1])
    >>> sorted(Random().rank(snapshot, 3, np.random.default_rng(0)).tolist())
    [1, 2, 4]
    """

    name = "random"
    summary = "uniform over what is not labelled"
    paper = "none: the baseline of baselines"
    works_on_shards = True
    is_random = True

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices, sampled uniformly without replacement."""
        free = snapshot.free
        return free.at(rng.choice(len(free), size=min(budget, len(free)), replace=False))
