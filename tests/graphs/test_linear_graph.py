"""One linear graph against breadth-first search over explicit edges, at every order."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al.graphs.linear_graph import LinearGraph
from galaxy_al.graphs.ranking import build_rankings, sort_keys_of, sort_nodes
from support.naive_galaxy import midpoints

CLASS = 0

pytestmark = pytest.mark.usefixtures("bucket_sizes")


class Line:
    """A graph over n nodes in the order of their numbers, and what its labels should be."""

    def __init__(self, n, labels):
        share = np.linspace(0.01, 0.99, n)
        self.proba = np.stack([share, 1 - share], axis=1)
        known = np.array(sorted(labels), dtype=int)
        ((order, ascending),) = sort_nodes(self.proba, known, [CLASS])
        nodes = known[order].tolist()
        self.ranking = build_rankings(self.proba, {CLASS: nodes[:1] or [0]})[CLASS]
        positive = [labels[node] == CLASS for node in nodes]
        self.graph = LinearGraph(
            self.ranking, nodes, ascending.tolist(), positive, np.random.default_rng(0)
        )
        self.labels = dict(labels)
        self.removed = set()

    def key(self, node):
        return sort_keys_of(self.proba, node, [CLASS])[0]

    def mark(self, node, label):
        if node in self.removed:
            self.removed.remove(node)
            self.ranking.restore(node)
        self.labels[node] = label
        self.graph.mark(node, self.key(node), label == CLASS)

    def unmark(self, node):
        del self.labels[node]
        self.graph.unmark(node, self.key(node))

    def remove(self, node):
        if node in self.labels:
            self.unmark(node)
        self.removed.add(node)
        self.ranking.remove(node)
        self.graph.close_up(node, self.key(node))

    def check(self):
        left = [i for i in range(len(self.proba)) if i not in self.removed]
        first = None
        for order in range(1, len(left) + 1):
            length, middle = midpoints(left, order, self.labels, CLASS)
            expected = math.inf if length is None else length
            assert self.graph.least_length(order) <= max(expected, 2)
            for most in (2, 3, math.inf):
                found = self.graph.length(order, most)
                assert found == expected or most < found <= expected
            if length is not None:
                first = first or order
                for _ in range(3):
                    assert self.graph.midpoint(order) in middle
        assert self.graph.first_order() == first


# Mostly labelled, so that long runs, cuts behind cuts and few free nodes are common.
labelings = st.lists(st.sampled_from([None, 0, 0, 1, 1]), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=1500)
@given(labelings, st.data())
def test_every_length_and_midpoint_is_the_one_found_by_search_whatever_is_done(labels, data):
    n = len(labels)
    line = Line(n, {i: label for i, label in enumerate(labels) if label is not None})
    line.check()
    moves = st.tuples(
        st.sampled_from(["mark", "mark", "mark", "unmark", "remove"]),
        st.integers(0, n - 1),
        st.integers(0, 1),
    )
    for move, node, label in data.draw(st.lists(moves, max_size=10)):
        if move == "mark":
            line.mark(node, label)
        elif move == "unmark" and node in line.labels:
            line.unmark(node)
        elif move == "remove" and node not in line.removed:
            line.remove(node)
        line.check()


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(2, 60), st.integers(1, 12), st.data())
def test_long_gaps_are_bisected_on_a_shortest_path_at_any_order(n, order, data):
    line = Line(n, {0: 1, n - 1: 0})
    if data.draw(st.booleans()):
        line = Line(n, {0: 0, n - 1: 1})
    length, middle = midpoints(list(range(n)), order, line.labels, CLASS)
    assert line.graph.length(order) == (math.inf if length is None else length)
    if length is not None:
        assert line.graph.midpoint(order) in middle


def test_the_midpoint_is_not_always_the_middle():
    line = Line(7, {0: 1, 6: 0})
    assert line.graph.length(2) == 3
    assert {line.graph.midpoint(2) for _ in range(50)} == {2, 4}


def test_the_papers_example_after_both_ends_of_the_cut_the_second_order_follows():
    line = Line(8, {3: 1, 4: 0})
    assert line.graph.length(1) == math.inf
    assert line.graph.first_order() == 2
    assert {line.graph.midpoint(2) for _ in range(50)} <= {2, 5}


def test_a_node_that_was_removed_from_a_run_and_comes_back_counts_again():
    line = Line(7, {0: 0, 1: 1, 2: 1, 3: 1})
    line.check()
    line.remove(2)
    line.check()
    line.mark(2, 1)
    line.check()


def test_changing_a_label_again_and_again_leaves_nothing_behind():
    line = Line(12, {4: 0, 5: 1, 6: 1})
    for step in range(1000):
        line.mark(5, step % 2)
        line.check() if step % 100 == 0 else line.graph.length(3)
    assert len(line.graph._sides) < 50
    assert len(line.graph._gaps) < 50


def test_of_two_paths_of_length_2_the_one_that_a_lower_order_had_comes_first():
    # The side of the cut (2, 3) is reached at order 2, the middle of the gap (8, 14) at order 3.
    line = Line(20, {2: 1, 3: 0, 8: 0, 14: 1})
    assert line.graph.length(3) == 2
    assert {line.graph.midpoint(3) for _ in range(30)} <= {1, 4}
    # A gap of two hops comes before a side that only order 4 reaches.
    line = Line(20, {0: 1, 1: 0, 2: 0, 3: 0, 10: 0, 13: 1})
    assert {line.graph.midpoint(4) for _ in range(30)} <= {11, 12}
