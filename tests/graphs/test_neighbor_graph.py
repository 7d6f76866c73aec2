"""The neighbour graph against brute force, nearest labels and paths against networkx."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from galaxy_al import UNLABELED
from galaxy_al.graphs.neighbor_graph import (
    UNREACHED,
    NearestLabels,
    checked_graph,
    knn_graph,
    nearest_label,
)
from support.naive_neighbors import graphs, hops_to_labels, middles, shortest_paths


@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 99))
def test_each_example_is_joined_with_its_nearest_and_they_with_it(size, k, seed):
    embeddings = np.random.default_rng(seed).normal(size=(size, 3))
    expected = np.zeros((size, size), dtype=bool)
    for i in range(size):
        others = sorted(
            set(range(size)) - {i}, key=lambda j: sum((embeddings[i] - embeddings[j]) ** 2)
        )
        expected[i, others[:k]] = expected[others[:k], i] = True
    graph = knn_graph(embeddings, k)
    np.testing.assert_array_equal(graph.toarray(), expected)
    assert graph.has_canonical_format


def test_copies_are_neighbours_of_each_other_and_not_of_themselves():
    graph = knn_graph(np.zeros((6, 2), dtype=np.float16), k=3)
    assert graph.diagonal().sum() == 0
    assert (graph.sum(axis=1) >= 3).all()


@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_array, sparse.coo_matrix, sparse.csc_matrix]
)
def test_any_adjacency_matrix_is_taken(kind):
    weights = np.array([[5.0, -2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.1, 0.0]])
    expected = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    np.testing.assert_array_equal(checked_graph(kind(weights)).toarray(), expected)


def test_a_matrix_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"graph must be a square matrix, got shape \(3, 4\)"):
        checked_graph(np.ones((3, 4)))
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        knn_graph(np.eye(3), k=0)
    with pytest.raises(ValueError, match="embeddings must be a table of numbers"):
        knn_graph(np.zeros(3))
    with pytest.raises(ValueError, match="embeddings must be finite; row 1 is not"):
        knn_graph([[0.0], [np.nan]])


@pytest.mark.parametrize("labels", [[0, -1], [0, -3, 1], [0.5, 1.0, 1.0], [[0, 1, 1]]])
def test_labels_that_do_not_fit_the_graph_are_refused(labels):
    with pytest.raises(ValueError, match="labels must be 3 classes, or -1 for unknown"):
        nearest_label(np.ones((3, 3)), labels, 0, np.random.default_rng(0))


def test_edges_that_are_given_twice_do_not_cancel():
    twice = sparse.coo_array(([1, -1], ([0, 0], [1, 1])), shape=(2, 2))
    assert checked_graph(twice).toarray().tolist() == [[False, True], [True, False]]


@pytest.mark.slow
@settings(max_examples=300)
@given(graphs(), st.data())
def test_predictions_are_the_nearest_labels(edges, data):
    size = len(edges)
    labels = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    predicted = nearest_label(sparse.csr_array(edges), labels, 7, rng)
    known = {i: int(y) for i, y in enumerate(labels) if y != UNLABELED}
    for node, (hops, nearest) in hops_to_labels(edges, known).items():
        assert predicted[node] == 7 if hops is None else predicted[node] in nearest


def test_labels_that_are_equally_near_are_drawn():
    star = np.zeros((4, 4))
    star[0, 1:] = 1
    predicted = {
        int(nearest_label(star, [-1, 0, 1, 2], 0, np.random.default_rng(seed))[0])
        for seed in range(50)
    }
    assert predicted == {0, 1, 2}


@pytest.mark.slow
@settings(max_examples=300)
@given(graphs(), st.data())
def test_whatever_changes_the_distances_and_the_middles_are_those_of_networkx(edges, data):
    size = len(edges)
    nodes, classes = st.integers(0, size - 1), st.integers(0, 2)
    known, absent = data.draw(st.dictionaries(nodes, classes)), set()
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    nearest = NearestLabels(checked_graph(edges), known, absent, rng)
    for move in data.draw(st.lists(st.sampled_from(["label", "unlabel", "leave"]), max_size=12)):
        node = data.draw(nodes)
        if move == "label" and node not in known:
            known[node] = data.draw(classes)
            absent.discard(node)
            nearest.add(node, known[node])
        elif move == "unlabel" and node in known:
            del known[node]
            nearest.remove(node)
        elif move == "leave" and node not in absent:
            known.pop(node, None)
            absent.add(node)
            nearest.remove(node, absent=True)
        for i, (hops, labels) in hops_to_labels(edges, known, absent).items():
            assert nearest.hops[i] == (UNREACHED if hops is None else hops)
            assert nearest.labels[i] in (labels or {UNLABELED})
        paths = shortest_paths(edges, known, absent)
        middle = nearest.shortest_path_middle()
        assert middle in middles(paths) if paths else middle is None
