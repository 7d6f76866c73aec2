"""SIMILAR with the FLQMI relaxation: Kothawade et al., NeurIPS 2021."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.gradients import residuals, squared_norms, unit_rows
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
    random.

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

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices in the order of the greedy choice."""
        labeled = snapshot.labeled()
        query = labeled[snapshot.labels[labeled] != snapshot.other]
        if not len(query):
            return Random().rank(snapshot, budget, rng)
        candidates = snapshot.askable()
        chosen = _greedy(_Similarity(snapshot, query, candidates), self.eta, budget)
        return candidates[chosen]


class _Similarity:
    """The cosines of candidates' gradient embeddings with those of the labelled rare examples."""

    def __init__(
        self, snapshot: Snapshot, query: NDArray[np.intp], candidates: NDArray[np.intp]
    ) -> None:
        self._proba, self._embeddings = snapshot.scores, snapshot.required_embeddings
        self._candidates, self.n_query = candidates, len(query)
        labels = snapshot.labels[query]
        self._query_residuals = unit_rows(residuals(self._proba[query], labels)).T
        query_embeddings = unit_rows(self._embeddings[query]).T
        self._query_embeddings = query_embeddings.astype(self._embeddings.dtype)

    def __len__(self) -> int:
        return len(self._candidates)

    def rows(self, which: NDArray[np.intp] | slice) -> NDArray[np.float64]:
        """One row for each of some candidates, one column for each rare example."""
        index = self._candidates[which]
        proba, embeddings = self._proba[index], self._embeddings[index]
        residual = residuals(proba, proba.argmax(axis=1))
        lengths = np.sqrt(squared_norms(residual) * squared_norms(embeddings))
        cosines: NDArray[np.float64] = residual @ self._query_residuals
        cosines *= embeddings @ self._query_embeddings
        cosines /= np.where(lengths > 0, lengths, 1)[:, None]
        return cosines


def _greedy(similarity: _Similarity, eta: float, budget: int) -> list[int]:
    """Positions of candidates, each the one that adds most to those before.

    What a candidate adds only gets less, from the second choice on. So what it added some time
    ago is a bound, and only the front, those with the largest bounds, is computed at each step.
    """
    n_wanted = min(budget, len(similarity))
    if not n_wanted:
        return []
    chosen = [int(_all_gains(similarity, eta, None).argmax())]
    cover = similarity.rows(np.array(chosen))[0]
    bounds = _all_gains(similarity, eta, cover)
    bounds[chosen] = -np.inf
    while len(chosen) < n_wanted:
        count = min(_FRONT, len(bounds))
        front = np.sort(np.argpartition(-bounds, count - 1)[:count])
        highest_behind = np.delete(bounds, front).max(initial=-np.inf)
        rows = similarity.rows(front)
        while len(chosen) < n_wanted:
            gains = np.where(bounds[front] > -np.inf, _gains(rows, eta, cover), -np.inf)
            bounds[front] = gains
            best = int(gains.argmax())
            if gains[best] < highest_behind:
                break
            chosen.append(int(front[best]))
            bounds[front[best]] = -np.inf
            np.maximum(cover, rows[best], out=cover)
    return chosen


def _all_gains(
    similarity: _Similarity, eta: float, cover: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    n_rows = max(min(_CELLS_AT_ONCE // similarity.n_query, ROWS_AT_ONCE), 1)
    blocks = row_blocks(len(similarity), n_rows)
    parts = [_gains(similarity.rows(slice(*block)), eta, cover) for block in blocks]
    return np.concatenate(parts)


def _gains(rows: NDArray[Any], eta: float, cover: NDArray[np.float64] | None) -> NDArray[Any]:
    """What candidates add to a set that is similar to the rare ones by ``cover``, or is empty."""
    added = rows if cover is None else np.maximum(rows - cover, 0)
    gains: NDArray[Any] = added.sum(axis=1) + eta * rows.max(axis=1)
    return gains
