"""Graphs of neighbours: building them, and the distance of every node to the nearest label."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.snapshot import UNLABELED, checked_table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Nodes = NDArray[np.integer[Any]]

UNREACHED = np.iinfo(np.int32).max // 4  # hops; two of them and one can still be added
_ABSENT = -1  # nothing reaches a node that is not there


def knn_graph(embeddings: ArrayLike, k: int = 10) -> csr_array:
    """Join each example with its k nearest ones, by Euclidean distance, and them with it.

    Examples
    --------
    >>> knn_graph([[0.0], [1.0], [3.0]], k=1).toarray().astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    from sklearn.neighbors import NearestNeighbors

    table = checked_table(embeddings)
    if k < 1:
        raise InvalidArgument(f"k must be at least 1, got {k}.")
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float32 if table.dtype == np.float16 else np.float64)
    k = min(k, len(table) - 1)
    if not k:
        return checked_graph(np.zeros((1, 1)))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(table)
    return checked_graph(search.kneighbors_graph(mode="connectivity"))


def checked_graph(graph: Any) -> csr_array:
    """A graph without directions, weights and loops, from any adjacency matrix."""
    from scipy.sparse import coo_array, csr_array, issparse

    matrix = graph if issparse(graph) else np.asarray(graph)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidArgument(f"graph must be a square matrix, got shape {matrix.shape}.")
    entries = coo_array(matrix)
    edges = (entries.data != 0) & (entries.row != entries.col)
    ends = entries.row[edges], entries.col[edges]
    both = np.concatenate(ends), np.concatenate(ends[::-1])
    joined = csr_array((np.ones(len(both[0]), dtype=bool), both), shape=matrix.shape)
    joined.sum_duplicates()
    return joined


def nearest_label(
    graph: Any, labels: ArrayLike, prior: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Predict for every node the label of the labelled node that is the fewest hops away.

    Parameters
    ----------
    graph
        An adjacency matrix; whatever is not 0 is an edge, in both directions.
    labels
        Of all nodes, ``-1`` where unknown.
    prior
        The class for nodes that no labelled one can be reached from.
    rng
        Decides between labels that are equally near.

    Examples
    --------
    >>> path = np.diag(np.ones(4), 1)
    >>> nearest_label(path, [0, -1, -1, -1, 1], 1, np.random.default_rng(0))[[0, 1, 3, 4]]
    array([0, 0, 1, 1])
    """
    array, matrix = np.asarray(labels), checked_graph(graph)
    if array.shape != matrix.shape[:1] or array.dtype.kind not in "iu" or array.min() < UNLABELED:
        raise InvalidArgument(
            f"labels must be {matrix.shape[0]} classes, or {UNLABELED} for unknown, "
            f"got {array.dtype} of shape {array.shape}."
        )
    labeled = np.flatnonzero(array != UNLABELED).tolist()
    known = {node: int(array[node]) for node in labeled}
    nearest = NearestLabels(matrix, known, (), rng)
    return np.where(nearest.labels == UNLABELED, prior, nearest.labels).astype(np.int64)


class NearestLabels:
    """For every node of a graph the hops to the nearest label, and the label.

    Every node is in the territory of its nearest label. `path_lengths` has for every node the
    shortest path that crosses from there into another label's territory. The least of these is the
    shortest path between any two nodes of different labels: along such a path the territory
    changes at some edge, and the ways on to the two nearest labels are no longer than the path.

    Edges between nodes of different labels are cut. No label is nearer by such an edge, so
    cutting them changes no distance; they only do not count as paths.
    """

    def __init__(
        self,
        graph: csr_array,
        known: Mapping[int, int],
        absent: Collection[int],
        rng: np.random.Generator,
    ) -> None:
        size = graph.shape[0]
        self._starts, self._ends = graph.indptr, graph.indices
        self._slots = np.empty(size, dtype=np.int64)
        self._rng = rng
        self.labels = np.full(size, UNLABELED, dtype=np.int32)
        self.hops = np.full(size, UNREACHED, dtype=np.int32)
        self.hops[list(absent)] = _ABSENT
        sources = np.array(list(known), dtype=np.int64)
        self.labels[sources], self.hops[sources] = list(known.values()), 0
        self._spread(sources)
        self.path_lengths = np.full(size, UNREACHED, dtype=np.int32)
        self._measure_paths(np.arange(size))

    def add(self, node: int, label: int) -> None:
        """Label a node that has no label."""
        self.labels[node], self.hops[node] = label, 0
        self._update_around(self._spread(np.array([node])))

    def remove(self, node: int, absent: bool = False) -> None:
        """Take a node's label away, or the node itself."""
        behind = self._behind(node)
        self.labels[behind], self.hops[behind] = UNLABELED, UNREACHED
        self.hops[node] = _ABSENT if absent else UNREACHED
        around = self._edges(behind)[1]
        border = around[self.labels[around] != UNLABELED]
        self._spread(border[self._distinct(border)])
        self._update_around(behind)

    def shortest_path_middle(self) -> int | None:
        """The middle of a shortest path between different labels, ties at random; or None."""
        shortest = self.path_lengths.min(initial=UNREACHED)
        if shortest >= UNREACHED:
            return None
        near = int(self._rng.choice(np.flatnonzero(self.path_lengths == shortest)))
        around = self._neighbors(near)
        across = around[self._lengths(np.full(len(around), near), around) == shortest]
        far = int(self._rng.choice(across))
        # Of the two halves the longer one holds the middle.
        node = near if self.hops[near] >= self.hops[far] else far
        for _ in range(int(self.hops[node]) - int(shortest) // 2):
            node = self._nearer(node)
        return node

    def _nearer(self, node: int) -> int:
        """A neighbour one hop nearer to the same label."""
        around = self._neighbors(node)
        same = self.labels[around] == self.labels[node]
        return int(self._rng.choice(around[same & (self.hops[around] == self.hops[node] - 1)]))

    def _neighbors(self, node: int) -> Nodes:
        around: Nodes = self._ends[self._starts[node] : self._starts[node + 1]]
        return around

    def _behind(self, node: int) -> Nodes:
        """The node, and all that may be nearest to their label by a way through it."""
        behind, frontier = [np.array([node])], np.array([node])
        while len(frontier):
            origin, end = self._edges(frontier)
            onward = self.hops[end] == self.hops[origin] + 1
            end = end[onward & (self.labels[end] == self.labels[origin])]
            frontier = end[self._distinct(end)]
            behind.append(frontier)
        return np.concatenate(behind)

    def _spread(self, sources: Nodes) -> Nodes:
        """Let the labels of some nodes reach all that are farther from any other; these, and they.

        Goes hop by hop; sources join when it is their turn. Of several that reach a node at once
        the last one in a random order wins.
        """
        turns = self.hops[sources]
        hops, last = int(turns.min(initial=0)), int(turns.max(initial=-1))
        reached, frontier = [sources], sources[:0]
        while len(frontier) or hops <= last:
            frontier = self._rng.permutation(np.append(frontier, sources[turns == hops]))
            hops += 1
            origin, end = self._edges(frontier)
            farther = np.flatnonzero(self.hops[end] > hops)
            origin, end = origin[farther], end[farther]
            once = self._distinct(end)
            frontier = end[once]
            self.hops[frontier] = hops
            self.labels[frontier] = self.labels[origin[once]]
            reached.append(frontier)
        return np.concatenate(reached)

    def _update_around(self, changed: Nodes) -> None:
        touched = np.append(changed, self._edges(changed)[1])
        self._measure_paths(touched[self._distinct(touched)])

    def _measure_paths(self, nodes: Nodes) -> None:
        nodes = nodes[self._starts[nodes + 1] > self._starts[nodes]]
        if len(nodes):
            origin, end = self._edges(nodes)
            first = np.flatnonzero(np.diff(origin, prepend=-1))
            self.path_lengths[nodes] = np.minimum.reduceat(self._lengths(origin, end), first)

    def _lengths(self, origin: Nodes, end: Nodes) -> NDArray[np.int32]:
        """The shortest path between different labels over each edge."""
        lengths = self.hops[origin] + self.hops[end] + 1
        of_origin, of_end = self.labels[origin], self.labels[end]
        no_path = (of_origin == of_end) | (of_origin == UNLABELED) | (of_end == UNLABELED)
        no_path |= lengths == 1  # a cut edge
        lengths[no_path] = UNREACHED
        return lengths

    def _edges(self, nodes: Nodes) -> tuple[Nodes, Nodes]:
        """Both ends of all edges that leave some nodes, node after node."""
        starts = self._starts[nodes]
        counts = self._starts[nodes + 1] - starts
        before = counts.cumsum() - counts
        edges = np.arange(counts.sum()) + np.repeat(starts - before, counts)
        return np.repeat(nodes, counts), self._ends[edges]

    def _distinct(self, nodes: Nodes) -> Nodes:
        """Positions at which each node appears exactly once; the slots save a sort."""
        positions = np.arange(len(nodes))
        self._slots[nodes] = positions
        return np.flatnonzero(self._slots[nodes] == positions)
