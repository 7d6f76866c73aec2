"""The reference itself, against another library's shortest paths."""

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.naive_galaxy import midpoints


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(st.sampled_from([None, None, 0, 1, 2]), min_size=1, max_size=10), st.integers(1, 4))
def test_the_midpoints_are_those_of_all_shortest_paths(labels, order):
    n = len(labels)
    known = {i: label for i, label in enumerate(labels) if label is not None}
    graph = networkx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(
        (i, j)
        for i in range(n)
        for j in range(i + 1, min(i + order, n - 1) + 1)
        if not (i in known and j in known and known[i] != known[j])
    )
    for k in range(3):
        pairs = [(i, j) for i in known for j in known if known[i] == k != known[j]]
        paths = [
            path
            for i, j in pairs
            if networkx.has_path(graph, i, j)
            for path in networkx.all_shortest_paths(graph, i, j)
        ]
        length, middle = midpoints(list(range(n)), order, known, k)
        if not paths:
            assert (length, middle) == (None, set())
            continue
        shortest = min(len(path) - 1 for path in paths)
        assert length == shortest
        assert middle == {
            path[at]
            for path in paths
            if len(path) - 1 == shortest
            for at in (shortest // 2, shortest - shortest // 2)
        }
