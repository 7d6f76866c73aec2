"""Neighbour graphs, and shortest paths by their definition."""

import networkx as nx
import numpy as np
from hypothesis import strategies as st


@st.composite
def graphs(draw, max_size=14):
    """Adjacency matrices, mostly sparse enough to fall apart here and there."""
    size = draw(st.integers(1, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edges = rng.random((size, size)) < draw(st.sampled_from([0.05, 0.12, 0.3]))
    if draw(st.booleans()):
        edges |= np.eye(size, k=1, dtype=bool)  # long paths
    return edges


def hops_to_labels(edges, labels, absent=()):
    """For every node its distance to the nearest label and the labels at that distance."""
    graph = nx.from_numpy_array(edges | edges.T)
    graph.remove_nodes_from(absent)
    found = {}
    for node in graph:
        lengths = nx.single_source_shortest_path_length(graph, node)
        near = min((lengths[i] for i in labels if i in lengths), default=None)
        found[node] = near, {labels[i] for i in labels if lengths.get(i, -1) == near}
    return found


def shortest_paths(edges, labels, absent=()):
    """All shortest paths between nodes of different labels, after cutting."""
    graph = nx.from_numpy_array(edges | edges.T)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    graph.remove_nodes_from(absent)
    cut = [(a, b) for a, b in graph.edges if a in labels and b in labels and labels[a] != labels[b]]
    graph.remove_edges_from(cut)
    paths = []
    for a in labels:
        for b in labels:
            if a < b and labels[a] != labels[b] and nx.has_path(graph, a, b):
                paths.extend(nx.all_shortest_paths(graph, a, b))
    shortest = min(map(len, paths), default=0)
    return [path for path in paths if len(path) == shortest]


def middles(paths):
    return {path[i] for path in paths for i in ((len(path) - 1) // 2, len(path) // 2)}
