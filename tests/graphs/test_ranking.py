"""The lines against sorting with exact fractions."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al.graphs.ranking import build_rankings, sort_keys_of, sort_nodes
from galaxy_al.graphs.sort_keys import Codes
from support.naive_galaxy import ranking
from support.random_pools import tables

SHARD = 1 << 16


@pytest.mark.slow
@pytest.mark.usefixtures("bucket_sizes")
@settings(max_examples=300)
@given(tables(max_size=40), st.data())
def test_ranks_and_nodes_are_those_of_the_sorted_pool(proba, data):
    k = data.draw(st.integers(0, proba.shape[1] - 1))
    first = data.draw(st.integers(0, len(proba) - 1))
    expected = ranking(proba, k)
    line = build_rankings(proba, {k: [first]})[k]
    assert len(line) == len(proba)
    for rank, node in data.draw(st.permutations(list(enumerate(expected)))):
        low, high = line.bounds(node)
        assert low <= rank <= high
        assert line.rank(node) == rank
        assert line.node(rank) == node


@pytest.mark.slow
@settings(max_examples=300)
@given(tables(max_size=40))
def test_places_compare_like_the_line(proba):
    for k in range(proba.shape[1]):
        expected = ranking(proba, k)
        line = build_rankings(proba, {k: [0]})[k]
        assert sorted(range(len(proba)), key=line.place) == expected
        ((order, ascending),) = sort_nodes(proba, np.arange(len(proba)), [k])
        assert order.tolist() == expected
        assert ascending.tolist() == [sort_keys_of(proba, i, [k])[0] for i in expected]
        assert ascending.tolist() == [line.place(i)[0] or line.place(i)[2] for i in expected]
        assert ascending.tolist() == sorted(ascending.tolist())


@pytest.mark.slow
@pytest.mark.usefixtures("bucket_sizes")
@settings(max_examples=200)
@given(tables(max_size=20), st.data())
def test_removed_nodes_do_not_count_and_come_back(proba, data):
    line = build_rankings(proba, {0: [0]})[0]
    expected, gone = ranking(proba, 0), set()
    for node in data.draw(st.lists(st.integers(0, len(proba) - 1), max_size=30)):
        (line.restore if node in gone else line.remove)(node)
        gone ^= {node}
        left = [i for i in expected if i not in gone]
        assert len(line) == len(left)
        for rank, i in enumerate(left):
            low, high = line.bounds(i)
            assert low <= rank <= high
        assert [line.rank(i) for i in left] == list(range(len(left)))
        assert [line.node(rank) for rank in range(len(left))] == left


@pytest.mark.slow
@settings(max_examples=200)
@given(tables(max_size=20), st.data())
def test_a_line_can_be_built_without_some_nodes(proba, data):
    absent = data.draw(st.sets(st.integers(0, len(proba) - 1), max_size=len(proba)))
    line = build_rankings(proba, {0: [0]}, without=sorted(absent))[0]
    left = [i for i in ranking(proba, 0) if i not in absent]
    assert len(line) == len(left)
    assert [line.rank(i) for i in left] == list(range(len(left)))
    assert [line.node(rank) for rank in range(len(left))] == left


@pytest.mark.slow
@settings(max_examples=300)
@given(tables(max_size=60), st.data())
def test_codes_never_contradict_the_order_and_one_is_like_many(proba, data):
    classes = list(range(proba.shape[1]))
    sampled = data.draw(st.integers(1, len(proba)))
    codes = Codes(proba[:sampled], classes)
    table = codes.many(proba)
    for k in classes:
        in_order = table[k][ranking(proba, k)]
        assert (np.diff(in_order.astype(np.int64)) >= 0).all()
        assert [codes.one(row.tolist(), k) for row in proba] == table[k].tolist()


def large_pool(dtype, saturation, n=3 * SHARD + 777, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    raw = np.exp(rng.normal(scale=saturation, size=(n, n_classes)))
    raw[::5] = raw[3]
    return (raw / raw.sum(axis=1, keepdims=True)).astype(dtype)


def as_integer(p):
    """p times 2 to the 1074, which makes every double a whole number."""
    mantissa, exponent = math.frexp(p)
    return int(mantissa * 2**53) << max(exponent + 1021, 0) >> max(-exponent - 1021, 0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("saturation", [0.01, 3, 30])
def test_a_pool_of_several_shards_is_ranked_like_a_sort(dtype, saturation):
    proba = large_pool(dtype, saturation)
    scores = [[as_integer(p) for p in row] for row in proba.tolist()]
    for k, line in build_rankings(proba, {k: [7, 1234] for k in range(3)}).items():
        keys = [(row[k] - max(row), max(row)) for row in scores]
        expected = sorted(range(len(proba)), key=keys.__getitem__)
        for rank in [0, 1, 2, 1000, SHARD, len(proba) // 2, len(proba) - 2, len(proba) - 1]:
            assert line.node(rank) == expected[rank]
            assert line.rank(int(expected[rank])) == rank
        some = np.random.default_rng(1).integers(0, len(proba), 200)
        where = np.argsort(expected)
        assert [line.rank(i) for i in some.tolist()] == where[some].tolist()


def test_the_number_of_threads_changes_nothing(monkeypatch):
    proba = large_pool(np.float32, 3)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        line = build_rankings(proba, {1: [7, 1234]})[1]
        found.append([line.node(rank) for rank in range(0, len(proba), 997)])
    assert found[0] == found[1]


@pytest.mark.parametrize("threads", ["0", "-1", "4,2", "many", ""])
def test_odd_numbers_of_threads_do_not_matter(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    proba = large_pool(np.float32, 3, n=SHARD + 1)
    assert len(build_rankings(proba, {1: [7]})[1]) == SHARD + 1


@pytest.mark.parametrize("kind", ["all equal", "90% one-hot", "every 16th the same"])
def test_crowded_pools_are_ranked_in_order_and_in_good_time(kind):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=300_000).astype(np.float32)
    if kind == "all equal":
        proba[:] = 1 / 3
    elif kind == "90% one-hot":
        proba[rng.random(len(proba)) < 0.9] = [0, 0, 1]
    else:
        proba[::16] = proba[0]
    exact = proba.astype(np.longdouble)
    top = exact.max(axis=1)
    expected = np.lexsort((np.arange(len(proba)), top, exact[:, 0] - top))
    begin = time.perf_counter()
    line = build_rankings(proba, {0: [0, 1]})[0]
    for rank in range(0, 300_000, 1000):
        assert line.node(rank) == expected[rank]
    ranks = np.argsort(expected)
    for node in range(0, 300_000, 1000):
        assert line.rank(node) == ranks[node]
    assert time.perf_counter() - begin < 5


def test_saturated_single_precision_scores_keep_their_order():
    proba = np.array([[1e-12, 1.0], [1e-9, 1.0], [0.0, 1.0], [1e-30, 1.0]], dtype=np.float32)
    line = build_rankings(proba, {0: [0]})[0]
    assert [line.node(rank) for rank in range(4)] == [2, 3, 0, 1]
