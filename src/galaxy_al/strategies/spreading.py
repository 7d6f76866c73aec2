"""Keeping questions apart from what is labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import Columns, squared_distances

_MOST_RECENT = 100  # taken examples that are looked up one by one, before all are put together

_ROUNDING = 1e-10  # of the largest squared distance


class Apart:
    """Chooses examples far from those that are taken, and remembers where most of these are.

    Examples
    --------
    >>> embeddings = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> Apart().farthest([1, 2], {0: 1, 3: 1}, embeddings)
    2
    """

    def __init__(self) -> None:
        self._members: frozenset[int] = frozenset()
        self._columns = Columns(np.zeros((1, 1)))

    def farthest(
        self,
        candidates: Sequence[int],
        taken: Mapping[int, object],
        embeddings: NDArray[np.floating[Any]],
    ) -> int:
        """The candidate whose nearest taken example is farthest; the first of several.

        Distances count as the same if they differ by rounding only.
        """
        n_recent = len(taken) - len(self._members)
        if n_recent > _MOST_RECENT or not (self._members and self._members <= taken.keys()):
            self._members = frozenset(taken)
            self._columns = Columns(embeddings[sorted(taken)])
        points = embeddings[list(candidates)]
        distances = self._columns.squared_distances(points)
        if recent := [index for index in taken if index not in self._members]:
            distances = np.hstack([distances, squared_distances(points, embeddings[recent])])
        nearest = distances.min(axis=1)
        is_farthest = nearest >= nearest.max() - _ROUNDING * distances.max()
        return candidates[int(is_farthest.argmax())]
