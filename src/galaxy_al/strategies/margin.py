"""Margin sampling: Scheffer, Decomain and Wrobel, Active Hidden Markov Models, 2001."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot, View
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.scoring import lowest


class Margin(Strategy):
    """Ask where the two most likely classes are nearest to each other.

    Examples
    --------
    >>> snapshot = Snapshot([[0.5, 0.4, 0.1], [0.4, 0.3, 0.3], [0.45, 0.45, 0.1]])
    >>> Margin().rank(snapshot, 2, np.random.default_rng(0)).tolist()
    [2, 0]
    """

    name = "margin"
    summary = "smallest lead of the most likely class over the second"
    paper = "Scheffer, Decomain and Wrobel, IDA 2001"
    works_on_shards = True
    view: View = "pool"

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """The ``budget`` askable indices with the smallest margin, ties by index."""
        return lowest(snapshot, budget, _lead)


def _lead(rows: NDArray[Any]) -> NDArray[Any]:
    second, first = np.partition(rows, (-2, -1), axis=1)[:, -2:].T
    lead: NDArray[Any] = first - second
    return lead
