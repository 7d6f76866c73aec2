"""The examples of a pool that can be asked, without a list of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray


class FreeExamples:
    """All examples of a pool but some, in order.

    Parameters
    ----------
    size
        Of the pool.
    busy
        The examples that cannot be asked.

    Examples
    --------
    >>> free = FreeExamples(6, busy=[0, 3])
    >>> len(free), free.at([0, 1, 2, 3]).tolist(), free.between(2, 5).tolist()
    (4, [1, 2, 4, 5], [2, 4])
    """

    def __init__(self, size: int, busy: Iterable[int]) -> None:
        self.size = size
        self.busy = np.unique(np.fromiter(busy, dtype=np.intp))
        self._n_free_before = self.busy - np.arange(len(self.busy))

    def __len__(self) -> int:
        return self.size - len(self.busy)

    def at(self, places: ArrayLike) -> NDArray[np.intp]:
        """The free examples at some places in their order."""
        wanted = np.asarray(places, dtype=np.intp)
        return wanted + self._n_free_before.searchsorted(wanted, side="right")

    def between(self, start: int, stop: int) -> NDArray[np.intp]:
        """The free examples from one index up to another."""
        first, last = self.busy.searchsorted([start, stop])
        is_free = np.ones(stop - start, dtype=bool)
        is_free[self.busy[first:last] - start] = False
        return start + np.flatnonzero(is_free)

    def contain(self, indices: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of some examples are free."""
        return ~np.isin(indices, self.busy)

    def without(self, others: Iterable[int]) -> FreeExamples:
        """Those of the free examples that are not among some others."""
        return FreeExamples(self.size, [*self.busy.tolist(), *others])
