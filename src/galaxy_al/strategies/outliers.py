"""Local outliers first: Breunig et al., LOF: Identifying Density-Based Local Outliers, 2000."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.free_examples import FreeExamples
from galaxy_al.graphs.distances import squared_distances
from galaxy_al.graphs.local_outliers import LocalOutliers, local_outliers
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.label_state import LabelState


class Outliers(Strategy):
    """Ask for what lies farther out than its surroundings, and not beside what is labelled.

    A rare class often lies apart from the rest. But some lie within it: never ask for outliers
    alone. It looks at no scores, and so needs no model.

    An example beside a labelled one counts as less of an outlier: if it is nearer than its scale,
    its factor is multiplied by the share of that scale that lies between the two. The outliers are
    computed once per pool and the 2,000 farthest are kept: an object of this class belongs to one
    pool. When all of these are asked, it asks at random.

    Examples
    --------
    >>> embeddings = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[9, 9]], axis=0)
    >>> snapshot = Snapshot(np.full((100, 2), 0.5), embeddings=embeddings)
    >>> Outliers().rank(snapshot, 1, np.random.default_rng(0)).tolist()
    [99]
    """

    name = "outliers"
    summary = "farther out than its surroundings, and not beside a label"
    paper = "Breunig et al., SIGMOD 2000"
    works_on_shards = True
    needs = ("embeddings",)

    def __init__(self) -> None:
        self._known = _OutliersOfPool()

    def find_with(self, find: Callable[[NDArray[np.floating[Any]]], LocalOutliers]) -> None:
        """Find the outliers of a pool with this function, which may know them already."""
        self._known.find = find

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Note the embeddings; the outliers are computed when they are first asked for."""
        self._known.set_pool(snapshot.required_embeddings)

    def find_now(self) -> None:
        """Find the outliers of the pool that was prepared, so that no question has to wait."""
        _ = self._known.found

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices, the farthest out first."""
        if self._known.size != snapshot.size:
            self.prepare(snapshot, rng=rng)
        chosen = self._known.spread_out(snapshot.free, budget)
        if len(chosen) == budget:
            return chosen
        others = snapshot.free.without(chosen.tolist())
        count = min(budget - len(chosen), len(others))
        return np.append(chosen, others.at(rng.choice(len(others), count, replace=False)))

    def pay(self, state: LabelState, snapshot: Snapshot, rng: np.random.Generator) -> bool:
        """Whether outliers seem to be rare more often than random examples are.

        Decided by Thompson sampling: the less is known, the more it is left to chance. As long as
        nothing rare has a label, they do.
        """
        if not any(label != snapshot.other for label in state.labels.values()):
            return True
        if self._known.size != snapshot.size:
            self.prepare(snapshot, rng=rng)
        outliers = self._known.found.members - state.random
        rates = [
            _possible_rate(
                [state.labels[i] != snapshot.other for i in asked & state.labels.keys()], rng
            )
            for asked in (outliers, state.random)
        ]
        return rates[0] > rates[1]


def _possible_rate(answers: Sequence[bool], rng: np.random.Generator) -> float:
    """How often an answer is yes: a sample of what is possible after these answers."""
    return float(rng.beta(1 + sum(answers), 1 + len(answers) - sum(answers)))


class _OutliersOfPool:
    """The outliers of a pool, computed once; all copies of a session share them."""

    def __init__(self) -> None:
        self._embeddings: NDArray[np.floating[Any]] = np.empty((0, 1))
        self._found: LocalOutliers | None = None
        self.find: Callable[[NDArray[np.floating[Any]]], LocalOutliers] = local_outliers

    def __copy__(self) -> _OutliersOfPool:
        return self

    @property
    def size(self) -> int:
        return len(self._embeddings)

    def set_pool(self, embeddings: NDArray[np.floating[Any]]) -> None:
        if embeddings is not self._embeddings:
            self._embeddings, self._found = embeddings, None

    @property
    def found(self) -> LocalOutliers:
        if self._found is None:
            self._found = self.find(self._embeddings)
        return self._found

    def spread_out(self, free: FreeExamples, count: int) -> NDArray[np.intp]:
        """At most ``count`` free outliers, each away from busy examples and from those before."""
        outliers, chosen = self.found, []
        is_left = free.contain(outliers.indices)
        nearest = np.full(len(is_left), np.inf)
        if len(free.busy):
            nearest = squared_distances(outliers.points, self._embeddings[free.busy]).min(axis=1)
        for _ in range(min(count, int(is_left.sum()))):
            values = np.where(is_left, outliers.factors_beside(np.sqrt(nearest)), -1)
            at = int(values.argmax())
            is_left[at] = False
            chosen.append(at)
            apart = squared_distances(outliers.points, outliers.points[at : at + 1])[:, 0]
            np.minimum(nearest, apart, out=nearest)
        return outliers.indices[chosen]
