"""Core-set: Sener and Savarese, Active Learning for Convolutional Neural Networks, ICLR 2018."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.distances import combine
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.embedding_cosines import same_memory
from galaxy_al.strategies.gradients import squared_norms

_FRONT = 1024  # candidates whose distances are brought up to date at each step
_CENTERS_AT_ONCE = 1024

Indices = NDArray[np.intp]


class Coreset(Strategy):
    """Ask, again and again, for the example farthest from all labelled and chosen ones.

    Distances are kept between batches as long as the embeddings are the same array.

    Examples
    --------
    >>> embeddings = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> snapshot = Snapshot(np.full((4, 2), 0.5), [0, -1, -1, -1], embeddings)
    >>> Coreset().rank(snapshot, 2, np.random.default_rng(0)).tolist()
    [3, 2]
    """

    name = "coreset"
    summary = "greedy k-center: farthest from everything labelled"
    paper = "Sener and Savarese, ICLR 2018"
    needs = ("embeddings",)

    def __init__(self) -> None:
        self._centers: _Centers | None = None

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> Indices:
        """``budget`` askable indices, ties by index; a random first one if nothing is labelled."""
        candidates, labeled = snapshot.askable(), snapshot.labeled()
        n_wanted = min(budget, len(candidates))
        if n_wanted <= 0:
            return candidates[:0]
        centers = self._centers_at(snapshot.required_embeddings, labeled)
        chosen = []
        if not len(centers):
            chosen = [int(rng.choice(candidates))]
            centers.add(chosen)
        is_free = np.zeros(snapshot.size, dtype=bool)
        is_free[candidates] = True
        is_free[chosen] = False
        chosen += centers.add_farthest(is_free, n_wanted - len(chosen))
        return np.array(chosen, dtype=np.intp)

    def _centers_at(self, embeddings: NDArray[np.floating[Any]], labeled: Indices) -> _Centers:
        """Distances to what is labelled, from the last batch on if nothing else was a center."""
        kept = self._centers
        if kept is None or not kept.can_continue(embeddings, labeled):
            kept = self._centers = _Centers(embeddings)
        kept.add(labeled.tolist())
        return kept


class _Centers:
    """The distance of each example to the nearest of some centers, computed when it matters.

    A distance only gets less when there is another center. So what it was some centers ago is a
    bound, and only the front, the examples with the largest bounds, is brought up to date.
    """

    def __init__(self, embeddings: NDArray[np.floating[Any]]) -> None:
        self._embeddings = embeddings
        self._mean = embeddings.mean(axis=0, dtype=np.float64)
        self._places: dict[int, int] = {}  # by center, in the order in which they were added
        self._points: list[NDArray[np.float64]] = []
        self._bounds = np.full(len(embeddings), np.inf)
        self._n_counted = np.zeros(len(embeddings), dtype=np.intp)  # centers, for each bound

    def __len__(self) -> int:
        return len(self._places)

    def can_continue(self, embeddings: NDArray[np.floating[Any]], labeled: Indices) -> bool:
        """Whether these embeddings lie in the same memory, and all centers are labelled now."""
        is_same = same_memory(self._embeddings, embeddings)
        return is_same and self._places.keys() <= set(labeled.tolist())

    def add(self, nodes: list[int]) -> None:
        """Add those that are not centers yet."""
        new = [node for node in nodes if node not in self._places]
        self._places |= {node: len(self._places) + at for at, node in enumerate(new)}
        self._points += list(self._rows(np.array(new, dtype=np.intp)))

    def add_farthest(self, is_free: NDArray[np.bool_], count: int) -> list[int]:
        """Make so many free examples centers, each the farthest from all centers before it."""
        chosen: list[int] = []
        while len(chosen) < count:
            front, highest_behind = self._front(is_free)
            rows, distances = self._rows(front), self._up_to_date(front)
            while len(chosen) < count:
                best = int(distances.argmax())
                if distances[best] < highest_behind or distances[best] == -1:
                    break
                chosen.append(int(front[best]))
                is_free[front[best]] = False
                self.add([int(front[best])])
                distances = np.minimum(distances, _squared_distances(rows, rows[best : best + 1]))
                distances[~is_free[front]] = -1
        return chosen

    def _front(self, is_free: NDArray[np.bool_]) -> tuple[Indices, float]:
        """The free examples with the largest bounds, ascending, and the largest of all others."""
        bounds = np.where(is_free, self._bounds, -1.0)
        count = min(_FRONT, int(np.count_nonzero(is_free)))
        if count == np.count_nonzero(is_free):
            return np.flatnonzero(is_free), -np.inf
        order = np.argpartition(-bounds, count)
        return np.sort(order[:count]), float(bounds[order[count]])

    def _up_to_date(self, front: Indices) -> NDArray[np.float64]:
        """The distances of the front, which become its bounds."""
        rows, since = self._rows(front), int(self._n_counted[front].min())
        for low in range(since, len(self), _CENTERS_AT_ONCE):
            points = np.array(self._points[low : low + _CENTERS_AT_ONCE])
            self._bounds[front] = np.minimum(self._bounds[front], _squared_distances(rows, points))
        self._n_counted[front] = len(self)
        return self._bounds[front].copy()

    def _rows(self, nodes: Indices) -> NDArray[np.float64]:
        """Centred: with an offset that is large beside the spread, distances would be lost."""
        rows: NDArray[np.float64] = self._embeddings[nodes] - self._mean
        return rows


def _squared_distances(
    rows: NDArray[np.float64], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """From each row to the nearest of some points."""
    dots, lengths = rows @ points.T, squared_norms(rows)[:, None]
    nearest: NDArray[np.float64] = combine(dots, lengths, squared_norms(points)).min(axis=1)
    return nearest
