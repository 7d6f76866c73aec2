"""S2: Dasarathy, Nowak and Zhu, S2: An Efficient Graph Based Active Learning Algorithm, 2015.

Algorithm 1 of the GALAXY paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.graphs.neighbor_graph import NearestLabels, checked_graph, knn_graph, nearest_label
from galaxy_al.snapshot import UNLABELED, Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.guessing import GuessingSession
from galaxy_al.strategies.random import Random
from galaxy_al.strategies.scoring import check_count
from galaxy_al.strategies.session import Session, Start

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class S2(Strategy):
    """Bisect the shortest path between any two different labels on a graph of neighbours.

    The graph is made once, by `prepare` or of the first snapshot, and kept: an object of this
    class belongs to one pool. For a pool of another size it is built again; another one of the
    same size must be prepared.

    Parameters
    ----------
    graph
        An adjacency matrix, sparse or dense, of the pool; what is not 0 is an edge, in both
        directions. By default `knn_graph` of the embeddings.
    k
        The neighbours that each example is joined with in that.

    Examples
    --------
    >>> path = np.diag(np.ones(4), 1)
    >>> snapshot = Snapshot(np.full((5, 2), 0.5), [0, -1, -1, -1, 1])
    >>> S2(path).start(snapshot, rng=np.random.default_rng(0)).ask()
    2
    """

    name = "s2"
    summary = "bisects between differing labels on a graph of neighbours"
    paper = "Dasarathy, Nowak and Zhu, COLT 2015"
    needs: tuple[str, ...] = ("embeddings",)
    needs_answers = "each"

    def __init__(self, graph: Any = None, k: int = 10) -> None:
        check_count("k", k)
        self.k = k
        self._given = graph is not None
        self.graph: Any = checked_graph(graph) if self._given else None
        if self._given:
            self.needs = ()

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Make the graph, or see that the given one fits."""
        if not self._given:
            self.graph = knn_graph(snapshot.required_embeddings, self.k)
        elif self.graph.shape[0] != snapshot.size:
            raise InvalidArgument(
                f"graph has {self.graph.shape[0]} nodes, the pool {snapshot.size}."
            )

    def open_session(self, start: Start) -> Session:
        """A session in which the budget does not matter."""
        return S2Session(self, start)

    def graph_for(self, snapshot: Snapshot, rng: np.random.Generator) -> csr_array:
        """The graph of this pool, made now if it was not yet."""
        if self.graph is None or self.graph.shape[0] != snapshot.size:
            self.prepare(snapshot, rng=rng)
        return self.graph

    def predict(self, snapshot: Snapshot, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """For every example the nearest label on the graph, ties at random.

        If no label can be reached, it is the majority class.
        """
        graph = self.graph_for(snapshot, rng)
        return nearest_label(graph, snapshot.labels, snapshot.other, rng)


class S2Session(GuessingSession):
    """Algorithm 1 by ask and tell; the guess is the nearest label on the graph."""

    def __init__(self, strategy: S2, start: Start) -> None:
        super().__init__(Random(), start)
        self._off_graph = set(self.state.skipped)
        graph = strategy.graph_for(self.snapshot, self._rng)
        self._nearest = NearestLabels(graph, self.state.labels, self._off_graph, self._rng)

    def _next(self) -> int | None:
        return self._nearest.shortest_path_middle()

    def _guess(self, index: int) -> int:
        label = int(self._nearest.labels[index])
        return super()._guess(index) if label == UNLABELED else label

    def on_change(self, index: int) -> None:
        """Update the graph."""
        if index in self.state.skipped and index not in self._off_graph:
            self._assumed.pop(index, None)
            self._nearest.remove(index, absent=True)
            self._off_graph.add(index)
        super().on_change(index)

    def _assume(self, index: int, label: int | None) -> None:
        before = self._assumed.pop(index, None)
        if before is not None and before != label:
            self._nearest.remove(index)
        if label is not None:
            self._assumed[index] = label
            self._off_graph.discard(index)
            if before != label:
                self._nearest.add(index, label)
