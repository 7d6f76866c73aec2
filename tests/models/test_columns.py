"""Evened columns against their definition, column by column and value by value."""

import statistics

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from galaxy_al.models.columns import EXTREME, EvenColumns

values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


def by_definition(column):
    low, middle, high = (float(np.quantile(column, q)) for q in (0.25, 0.5, 0.75))
    farthest = max(abs(value - middle) for value in column)
    unit = (high - low) / 1.35
    if unit <= 1e-150 * farthest:
        unit = statistics.pstdev(column)  # by exact fractions
    if unit < np.finfo(float).tiny:
        unit = 1.0
    found = []
    for value in column:
        units = (value - middle) / unit
        if abs(units) > EXTREME:
            units = np.sign(units) * (EXTREME + np.log(1 + abs(units) - EXTREME))
        found.append(units)
    return found


@given(values)
@example([0.0, 0.0, 0.0, 1e6, 5e-324])
@example([0.0, 0.0, 0.0, 0.0, 2.689029757500965e-306])
@example([0.0, 1e-300, 2e-300, 3e-300, 1e6])
def test_it_is_what_the_definition_says(column):
    rows = np.array(column)[:, None]
    found = EvenColumns.of(rows).even(rows)[:, 0]
    np.testing.assert_allclose(found, by_definition(column), rtol=1e-6, atol=1e-6)


@given(values, st.integers(-20, 20), st.integers(-5, 5))
def test_units_do_not_matter(column, exponent, offset):
    rows = np.round(np.array(column), 3)[:, None]
    changed = rows * 2.0**exponent + offset * 2.0**exponent
    before, after = (EvenColumns.of(table).even(table) for table in (rows, changed))
    np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-3)


def test_the_order_of_values_stays():
    rows = np.sort(np.random.default_rng(0).standard_cauchy(size=(500, 3)), axis=0)
    assert (np.diff(EvenColumns.of(rows).even(rows), axis=0) > 0).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_constant_columns_and_extreme_precision_stay_finite(dtype):
    rows = np.array([[1, 0, -6e4], [1, 0, 6e4], [1, 1, 0]], dtype=dtype)
    assert np.isfinite(EvenColumns.of(rows).even(rows)).all()
