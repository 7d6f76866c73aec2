"""Squared distances against exact arithmetic, also with a large offset and in several blocks."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from galaxy_al.graphs import distances as module
from galaxy_al.graphs.distances import squared_distances


def exact(rows, columns):
    return [[_exact(x, y) for y in columns.tolist()] for x in rows.tolist()]


def _exact(x, y):
    return float(sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, y)))


POINTS = arrays(np.float64, st.tuples(st.integers(1, 6), st.just(3)), elements=st.floats(-9, 9))


@given(rows=POINTS, columns=POINTS, offset=st.sampled_from([0.0, 1e3, 1e6]))
def test_distances_are_right_whatever_the_offset(rows, columns, offset):
    rows, columns = rows + offset, columns + offset
    found = squared_distances(rows, columns)
    np.testing.assert_allclose(found, exact(rows, columns), rtol=1e-9, atol=1e-8)
    assert (found >= 0).all()


def test_a_single_point_loses_no_digits():
    rows = np.array([[1e8, 1e8], [1e8 + 1, 1e8]])
    assert squared_distances(rows, rows[:1]).tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_change_nothing(dtype, monkeypatch):
    points = np.random.default_rng(0).normal(size=(50, 4)).astype(dtype)
    whole = squared_distances(points, points[:7])
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 8)
    np.testing.assert_allclose(squared_distances(points, points[:7]), whole, rtol=1e-12, atol=1e-14)
