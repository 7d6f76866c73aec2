"""The examples nearest to a point, against sorted distances; the index against the exact search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.graphs.distances import squared_distances_to
from galaxy_al.server import search
from galaxy_al.server.nearest import Nearest, VectorIndex, nearest
from galaxy_al.server.search import walk
from galaxy_al.shards import sharded
from galaxy_al.system.floats import at_least_single


def test_half_precision_is_made_single_exactly():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    found = at_least_single(finite)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.view(np.uint32), finite.astype(np.float32).view(np.uint32))
    table = finite[:63480].reshape(-1, 10)
    np.testing.assert_array_equal(at_least_single(table[:, ::2]), table[:, ::2].astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_precisions_stay(dtype):
    values = np.array([1.5], dtype=dtype)
    assert at_least_single(values) is values


@given(
    seed=st.integers(0, 1000),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    offset=st.sampled_from([0, 100]),
    cuts=st.sets(st.integers(1, 199), max_size=4),
    count=st.integers(1, 30),
)
def test_the_nearest_are_those_with_the_smallest_distance(seed, dtype, offset, cuts, count):
    rng = np.random.default_rng(seed)
    vectors = (rng.integers(-4, 5, size=(200, 3)) + offset).astype(dtype)
    query = rng.normal(size=3) + offset
    apart = ((vectors.astype(float) - query) ** 2).sum(axis=1)
    left_out = set(rng.integers(0, 200, 20).tolist())
    naive = sorted(set(range(200)) - left_out, key=lambda i: (apart[i], i))[:count]
    found = nearest(sharded(vectors, [0, *sorted(cuts), 200]), query, count, left_out)
    np.testing.assert_allclose(apart[found], apart[naive], rtol=1e-9)
    assert not left_out & set(found)
    assert found == nearest(vectors, query, count, left_out)


def test_distances_to_a_point():
    rng = np.random.default_rng(0)
    rows, point = rng.normal(size=(10_000, 7)), rng.normal(size=7)
    expected = [sum((a - b) ** 2 for a, b in zip(row, point)) for row in rows.tolist()]
    np.testing.assert_allclose(squared_distances_to(rows, point), expected)


def clustered(size, width, seed=0):
    """Vectors in 200 clusters of two dimensions, as embeddings often are."""
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(200, 2, width))
    which = rng.integers(200, size=size)
    inside = np.einsum("ni,niw->nw", rng.normal(size=(size, 2)), flat[which])
    return (3 * rng.normal(size=(200, width))[which] + inside).astype(np.float16)


@pytest.mark.parametrize("width", [12, 96])
def test_the_index_finds_most_of_the_nearest(width):
    pytest.importorskip("faiss")
    vectors = clustered(20_000, width)
    table = sharded(vectors, [0, 3000, 3001, 20_000])
    index = VectorIndex.of(table)
    rng, hits = np.random.default_rng(1), 0
    for row in rng.integers(0, 20_000, 50).tolist():
        point = vectors[row].astype(float)
        left_out = nearest(table, point, 3)
        expected = nearest(table, point, 20, left_out)
        found = index.nearest(point, 20, left_out)
        assert len(found) == 20
        assert not set(left_out) & set(found)
        apart = ((vectors[found].astype(float) - point) ** 2).sum(axis=1)
        assert (np.diff(apart) >= 0).all()
        hits += len(set(found) & set(expected))
    assert hits / (50 * 20) > 0.95


def test_a_slow_search_starts_an_index_that_later_searches_use():
    pytest.importorskip("faiss")
    vectors = clustered(5000, 8)
    find = Nearest(vectors, patience=0.0)
    point = vectors[17].astype(float)
    exact = find(point, 5)
    find.wait()
    assert find._index is not None
    assert find(point, 5)[0] == exact[0] == 17


def test_a_quick_search_needs_no_index():
    find = Nearest(clustered(500, 8))
    find(np.zeros(8), 5)
    find.wait()
    assert find._index is None


def test_a_walk_in_a_large_pool_looks_at_a_sample(monkeypatch):
    monkeypatch.setattr(search, "_LOOKED_AT", 5000)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20_000, 3))
    vectors[::4] += 30
    clusters = walk(vectors, 4, 5000, np.random.default_rng(1))
    assert all(cluster.center % 4 == 0 for cluster in clusters)
    assert sum(cluster.size for cluster in clusters) == pytest.approx(5000, rel=0.01)
