"""SIMILAR with the FLQMI relaxation: Kothawade et al., NeurIPS 2021."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.embedding_cosines import EmbeddingCosines
from galaxy_al.strategies.gradients import residuals, unit_rows
from galaxy_al.strategies.random import Random
from galaxy_al.strategies.scoring import ROWS_AT_ONCE

_FRONT = 1024  # candidates computed at each step
_CELLS_AT_ONCE = 1 << 22


class Similar(Strategy):
    """Ask for a set of examples like the rare ones found so far.

    The set A greedily maximises the facility-location mutual information with the labelled rare
    examples Q of all rounds, sum over q of max over a of s(q, a) plus eta times sum over a of
    max over q of s(q, a), where s is the cosine of the gradient embeddings, by the true label
    for Q and by the most likely one for the pool. While no rare example is known it asks at
    random. The cosines of the embeddings are kept between batches, as long as these are the same
    array.

    Parameters
    ----------
    eta
        How much being like some rare example counts beside covering all of them.

    Examples
    --------
    >>> embeddings = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.1]])
    >>> snapshot = Snapshot([[0.6, 0.4]] * 3, [0, -1, -1], embeddings)
    >>> Similar().rank(snapshot, 1, np.random.default_rng(0)).tolist()
    [1]
    """

    name = "similar"
    summary = "most like the rare examples found so far (FLQMI)"
    paper = "Kothawade et al., NeurIPS 2021"
    needs = ("embeddings",)

    def __init__(self, eta: float = 1.0) -> None:
        if not 0 <= eta < np.inf:
            raise InvalidArgument(f"eta must be a number of at least 0, got {eta!r}.")
        self.eta = eta
        self._cosines: EmbeddingCosines | None = None

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices in the order of the greedy choice."""
        labeled = snapshot.labeled()
        query = labeled[snapshot.labels[labeled] != snapshot.other]
        if not len(query):
            return Random().rank(snapshot, budget, rng)
        candidates, embeddings = snapshot.askable(), snapshot.required_embeddings
        if self._cosines is None or not self._cosines.are_of(embeddings):
            self._cosines = EmbeddingCosines(embeddings)
        query = self._cosines.in_order(query)
        similarity = _Similarity(snapshot, query, candidates, self._cosines)
        return candidates[_greedy(similarity, self.eta, budget)]


class _Similarity:
    """The cosines of candidates' gradient embeddings with those of the labelled rare examples.

    Each is the product of the cosine of the residuals and that of the embeddings.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        query: NDArray[np.intp],
        candidates: NDArray[np.intp],
        cosines: EmbeddingCosines,
    ) -> None:
        self._proba, self._embeddings = snapshot.scores, snapshot.required_embeddings
        self._candidates, self.n_query = candidates, len(query)
        self._cosines, self._query = cosines, query
        labels = snapshot.labels[query]
        self._query_residuals = unit_rows(residuals(self._proba[query], labels)).T
        self._query_embeddings = unit_rows(self._embeddings[query]).T
        self._rough_residuals = self._query_residuals.astype(np.float32)

    def __len__(self) -> int:
        return len(self._candidates)

    def rows(self, which: NDArray[np.intp]) -> NDArray[np.float64]:
        """One row for each of some candidates, one column for each rare example."""
        index = self._candidates[which]
        cosines: NDArray[np.float64] = self._residuals(index) @ self._query_residuals
        cosines *= unit_rows(self._embeddings[index]) @ self._query_embeddings
        return cosines

    def rough_rows(self, which: NDArray[np.intp] | slice) -> NDArray[np.float32]:
        """The same in single precision, from the cosines that are kept."""
        index = self._candidates[which]
        rows = self._residuals(index).astype(np.float32) @ self._rough_residuals
        rows *= self._cosines.rows(index, self._query)
        return rows

    def first_bounds(self, eta: float) -> NDArray[np.float64]:
        """At least what each candidate adds to nothing.

        The sum of its cosines is a single product: with the sum of the rare examples' gradients.
        """
        total = self._query_residuals @ self._query_embeddings.T
        found = []
        for low, high in row_blocks(len(self), ROWS_AT_ONCE):
            index = self._candidates[low:high]
            rows = unit_rows(self._embeddings[index]) @ total.T
            found.append(np.einsum("ij,ij->i", rows, self._residuals(index)))
        return np.concatenate(found) + eta + self.slack(eta)

    def bounds(self, eta: float, cover: NDArray[np.float64]) -> NDArray[np.float64]:
        """At least what each candidate adds to a set."""
        n_rows = max(_CELLS_AT_ONCE // self.n_query, 64)
        blocks = (slice(*bounds) for bounds in row_blocks(len(self), n_rows))
        found = [_gains(self.rough_rows(block), eta, cover) for block in blocks]
        return np.concatenate(found) + self.slack(eta)

    def slack(self, eta: float) -> float:
        """More than sums of cosines in single precision are off."""
        return 2e-6 * (self.n_query + eta)

    def _residuals(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        proba = self._proba[index]
        return unit_rows(residuals(proba, proba.argmax(axis=1)))


def _greedy(similarity: _Similarity, eta: float, budget: int) -> list[int]:
    """Positions of candidates, each the one that adds most to those before.

    What a candidate adds only gets less, from the second choice on. So what it added some time
    ago is a bound, and only the front, those with the largest bounds, is computed at each step: in
    single precision first, and exactly for those that may then be the best.
    """
    n_wanted = min(budget, len(similarity))
    if not n_wanted:
        return []
    chosen, cover = _choose(similarity, eta, None, similarity.first_bounds(eta), 1)
    assert cover is not None
    bounds = similarity.bounds(eta, cover)
    bounds[chosen] = -np.inf
    return chosen + _choose(similarity, eta, cover, bounds, n_wanted - 1)[0]


def _choose(
    similarity: _Similarity,
    eta: float,
    cover: NDArray[np.float64] | None,
    bounds: NDArray[np.float64],
    count: int,
) -> tuple[list[int], NDArray[np.float64] | None]:
    """So many candidates, each the one that adds most, and what they cover then."""
    chosen: list[int] = []
    slack, n_front = similarity.slack(eta), _FRONT
    n_known = np.full(len(bounds), -1)  # how many were chosen when a bound was computed
    while len(chosen) < count:
        n_front = min(n_front, len(bounds))
        front = np.sort(np.argpartition(-bounds, n_front - 1)[:n_front])
        highest_behind = np.delete(bounds, front).max(initial=-np.inf)
        # As many as are as good as equal can be more than the front holds.
        n_front = 2 * n_front if (n_known[front] == len(chosen)).all() else _FRONT
        rough = similarity.rough_rows(front)
        while len(chosen) < count:
            likely = np.where(bounds[front] > -np.inf, _gains(rough, eta, cover), -np.inf)
            bounds[front], n_known[front] = likely + slack, len(chosen)
            close = np.flatnonzero(likely >= likely.max() - 2 * slack)
            rows = similarity.rows(front[close])
            gains = np.where(bounds[front[close]] > -np.inf, _gains(rows, eta, cover), -np.inf)
            best = int(gains.argmax())
            if gains[best] < highest_behind:
                break
            chosen.append(int(front[close[best]]))
            bounds[chosen[-1]] = -np.inf
            cover = rows[best].copy() if cover is None else np.maximum(cover, rows[best])
    return chosen, cover


def _gains(
    rows: NDArray[Any], eta: float, cover: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """What candidates add to a set that is similar to the rare ones by ``cover``, or is empty."""
    best = rows.max(axis=1).astype(np.float64)
    if cover is None:
        return np.asarray(rows.sum(axis=1, dtype=np.float64) + eta * best)
    added = rows - cover.astype(rows.dtype)
    gains: NDArray[np.float64] = np.maximum(added, 0, out=added).sum(axis=1) + eta * best
    return gains
