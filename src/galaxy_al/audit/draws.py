"""The draws of an audit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Counts = NDArray[np.int64]

CANNOT_TELL = -1


@dataclass(frozen=True)
class Draws:
    """The draws of an audit in the order in which they were made, and what they showed.

    Parameters
    ----------
    strata
        The stratum that each draw was from.
    classes
        The class of each drawn example, or `CANNOT_TELL`, which counts as none.
    n_free, chances
        Before each draw, the examples without a label of each stratum, and its chance.
    known
        Before each draw, how many examples of each stratum (row) and class (column) had got a
        label since the audit began, in any way.
    is_blind
        Of each draw, whether it was made before the strata: uniformly from all that had no label.
        None if no draw was.
    """

    strata: NDArray[np.intp]
    classes: NDArray[np.intp]
    n_free: Counts
    chances: Values
    known: Counts
    is_blind: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.strata)

    @property
    def times(self) -> Values:
        """How many examples a draw from each stratum stands for."""
        return np.divide(
            self.n_free, self.chances, out=np.zeros_like(self.chances), where=self.chances > 0
        )

    def within(self, is_wanted: NDArray[np.bool_]) -> Draws:
        """The draws from some strata, as if there were no others."""
        rows = is_wanted[self.strata]
        chances = np.where(is_wanted, self.chances[rows], 0.0)
        chances /= chances.sum(axis=1, keepdims=True)
        parts = (self.strata[rows], self.classes[rows], self.n_free[rows])
        is_blind = None if self.is_blind is None else self.is_blind[rows]
        return Draws(*parts, chances, self.known[rows], is_blind)

    @property
    def n_hits(self) -> Counts:
        """Before each draw and after the last, the draws of each stratum and class so far."""
        hits = np.zeros((len(self) + 1, *self.known.shape[1:]), dtype=np.int64)
        told = np.flatnonzero(self.classes != CANNOT_TELL)
        hits[told + 1, self.strata[told], self.classes[told]] = 1
        return hits.cumsum(axis=0)

    @property
    def n_draws(self) -> Counts:
        """Before each draw and after the last, the draws of each stratum so far."""
        draws = np.zeros((len(self) + 1, self.n_free.shape[1]), dtype=np.int64)
        draws[np.arange(len(self)) + 1, self.strata] = 1
        return draws.cumsum(axis=0)
