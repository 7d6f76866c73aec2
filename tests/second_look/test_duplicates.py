"""Near duplicates, against the naive definition, a graph library and planted copies."""

import time
import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from galaxy_al.second_look.duplicates import groups_of, near_pairs, typical_distance


def naive_pairs(vectors, labels, distance):
    n = len(vectors)
    apart = [[np.linalg.norm(vectors[i] - vectors[j]) for j in range(n)] for i in range(n)]
    return [
        (i, j)
        for i in range(n)
        for j in range(i + 1, n)
        if labels[i] != labels[j] and apart[i][j] <= distance
    ]


@given(st.data(), st.integers(1, 30), st.integers(1, 4), st.sampled_from([0.0, 1.0, 1.5, 3.0]))
@settings(max_examples=60, deadline=None)
def test_pairs_are_those_of_the_definition(data, n, width, distance):
    whole = arrays(np.int64, (n, width), elements=st.integers(-3, 3))
    offset = data.draw(st.sampled_from([0.0, 1e4]))
    vectors = data.draw(whole) + offset
    labels = data.draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    found = near_pairs(vectors, labels, distance)
    assert sorted(found) == naive_pairs(vectors, labels, distance)


def test_pairs_across_blocks_are_found():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3000, 8))
    vectors[2900] = vectors[3] + 1e-3
    vectors[1500] = vectors[1400]
    labels = np.zeros(3000, dtype=int)
    labels[[3, 1500]] = 1
    assert near_pairs(vectors, labels, 0.01) == [(3, 2900), (1400, 1500)]


def test_half_precision_is_enough_to_find_equal_vectors():
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float16)
    vectors[40] = vectors[2]
    labels = np.arange(50) % 2
    labels[40], labels[2] = 1, 0
    assert near_pairs(vectors, labels, 0.0) == [(2, 40)]


@pytest.mark.slow
def test_ten_thousand_labels_take_seconds_and_little_memory():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(10_000, 256)).astype(np.float32)
    vectors[9_000] = vectors[1_000] * 1.0001
    labels = rng.integers(0, 2, 10_000)
    labels[9_000], labels[1_000] = 0, 1
    begin = time.perf_counter()
    assert near_pairs(vectors, labels, 1.0) == [(1_000, 9_000)]
    assert time.perf_counter() - begin < 10  # 1.8 s on one busy core
    tracemalloc.start()
    near_pairs(vectors, labels, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6  # all distances would be 400 MB


def test_the_typical_distance_is_the_median_to_the_nearest():
    points = np.random.default_rng(0).normal(size=(101, 3)) + 100
    apart = np.linalg.norm(points[:, None] - points, axis=2) + np.diag(np.full(101, np.inf))
    assert typical_distance(points) == pytest.approx(np.median(apart.min(axis=1)))
    assert typical_distance(points[:1]) == 0.0


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda p: p[0] < p[1])))
def test_groups_are_connected_components(pairs):
    graph = nx.Graph(pairs)
    assert groups_of(pairs) == sorted(sorted(part) for part in nx.connected_components(graph))


def test_groups_of_names():
    assert groups_of([("b", "c"), ("a", "c")]) == [["a", "b", "c"]]
