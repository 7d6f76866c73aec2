"""S2 against shortest paths by networkx."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from galaxy_al import UNLABELED, Snapshot
from galaxy_al.graphs.neighbor_graph import knn_graph
from galaxy_al.strategies.s2 import S2
from support.naive_neighbors import graphs, hops_to_labels, middles, shortest_paths


def scores(size):
    return np.full((size, 3), 1 / 3)


@pytest.mark.slow
@settings(max_examples=300)
@given(graphs(), st.data())
def test_every_question_is_the_middle_of_a_shortest_path(edges, data):
    size = len(edges)
    truth = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    shown = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    labels = np.where(shown, truth, UNLABELED)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    session = S2(sparse.csr_array(edges)).start(Snapshot(scores(size), labels), rng=rng)
    for _ in range(size - len(session.state.labels)):
        paths = shortest_paths(edges, session.state.labels, session.state.skipped)
        index = session.ask()
        assert index not in session.state.labels
        if paths:
            assert index in middles(paths)
        deed = data.draw(st.sampled_from(["tell", "tell", "tell", "skip", "tell wrongly first"]))
        if deed == "skip":
            session.skip(index)
            continue
        if deed == "tell wrongly first":
            session.tell(index, (truth[index] + 1) % 3)
        session.tell(index, truth[index])


@pytest.mark.slow
@settings(max_examples=100)
@given(graphs(), st.data())
def test_a_question_in_flight_counts_as_answered_by_its_nearest_label(edges, data):
    size = len(edges)
    truth = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    labels = np.array(truth)
    labels[1::2] = UNLABELED
    proba = np.tile([0.2, 0.7, 0.1], (size, 1))  # the guess where no label can be reached
    session = S2(edges).start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    assumed, last = {}, None
    for _ in range(size // 2):
        if last is not None:  # the guess is made when the next question is asked
            allowed = hops_to_labels(edges, {**session.state.labels, **assumed})[last][1] or {1}
            if len(allowed) > 1:
                return  # which of them was guessed cannot be seen from outside
            assumed[last] = allowed.pop()
        last = session.ask()
        paths = shortest_paths(edges, {**session.state.labels, **assumed})
        if paths:
            assert last in middles(paths)


@pytest.mark.slow
def test_where_no_path_is_it_asks_uniformly():
    edges = np.zeros((6, 6))
    edges[0, 1] = edges[2, 3] = edges[4, 5] = 1
    snapshot = Snapshot(scores(6), [0, UNLABELED, 1, UNLABELED, UNLABELED, 1])
    counts = np.zeros(6)
    for seed in range(600):
        counts[S2(edges).start(snapshot, rng=np.random.default_rng(seed)).ask()] += 1
    assert counts[[0, 2, 5]].sum() == 0
    assert ((counts[[1, 3, 4]] - 200) ** 2 / 200).sum() < 18.4  # 2 degrees: 1 in 10,000


def test_the_graph_is_made_once_of_the_first_embeddings():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 80, 3))
    strategy = S2(k=4)
    graph = strategy.graph_for(Snapshot(scores(80), None, first), rng)
    np.testing.assert_array_equal(graph.toarray(), knn_graph(first, 4).toarray())
    assert strategy.graph_for(Snapshot(scores(80), None, second), rng) is graph
    assert strategy.graph_for(Snapshot(scores(50), None, second[:50]), rng).shape == (50, 50)
    strategy.prepare(Snapshot(scores(50), None, second[:50] ** 3), rng=rng)
    np.testing.assert_array_equal(
        strategy.graph.toarray(), knn_graph(second[:50] ** 3, 4).toarray()
    )


def test_a_given_graph_needs_no_embeddings_and_must_fit_the_pool():
    rng = np.random.default_rng(0)
    assert S2(np.ones((4, 4))).start(Snapshot(scores(4)), rng=rng).ask() in range(4)
    with pytest.raises(ValueError, match="graph has 4 nodes, the pool 5"):
        S2(np.ones((4, 4))).start(Snapshot(scores(5)), rng=rng)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        S2(k=0)


@pytest.mark.slow
def test_paths_that_are_equally_short_are_chosen_at_random():
    edges = np.zeros((8, 8))
    for middle in range(2, 8):
        edges[0, middle] = edges[middle, 1] = 1
    snapshot = Snapshot(scores(8), [0, 1] + [UNLABELED] * 6)
    counts = np.zeros(8)
    for seed in range(600):
        counts[S2(edges).start(snapshot, rng=np.random.default_rng(seed)).ask()] += 1
    assert ((counts[2:] - 100) ** 2 / 100).sum() < 25.8  # 5 degrees: 1 in 10,000


def test_prediction_is_the_nearest_label_and_elsewhere_the_big_class():
    path = np.eye(7, k=1)
    path[4, 5] = 0
    snapshot = Snapshot(scores(7), [0] + [UNLABELED] * 3 + [1, UNLABELED, UNLABELED], other=2)
    predicted = S2(path).predict(snapshot, rng=np.random.default_rng(0))
    assert predicted[[0, 1, 3, 4, 5, 6]].tolist() == [0, 0, 1, 1, 2, 2]
    assert predicted[2] in (0, 1)


@pytest.mark.parametrize("graph", [5, "x", np.ones(3), np.ones((2, 3))])
def test_what_is_no_graph_is_refused(graph):
    with pytest.raises(ValueError, match="graph must be a square matrix, got shape"):
        S2(graph)
