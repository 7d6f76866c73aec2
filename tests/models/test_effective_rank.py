"""The effective rank against its definition, from the eigenvalues of all covariances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.models.effective_rank import effective_rank


def by_definition(pool):
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(pool.T)))
    return values.sum() ** 2 / np.square(values).sum()


@given(st.integers(2, 60), st.integers(1, 8), st.integers(0, 3))
def test_it_is_that_of_the_covariances(width, n_hidden, seed):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(900, n_hidden)) @ rng.normal(size=(n_hidden, width))
    pool = (hidden + 0.3 * rng.normal(size=hidden.shape)) * np.exp(rng.normal(size=width))
    assert effective_rank(pool, 0) == pytest.approx(by_definition(pool), rel=0.1)


def test_one_example_far_off_does_not_change_it():
    pool = np.random.default_rng(0).normal(size=(900, 30))
    before = effective_rank(pool, 0)
    pool[7] *= 1e6
    assert effective_rank(pool, 0) == pytest.approx(before, rel=0.05)


@pytest.mark.parametrize("unit", [1e-20, 1, 1e20])
def test_units_and_an_offset_do_not_matter(unit):
    pool = np.random.default_rng(0).normal(size=(500, 30))
    changed = pool * unit + 5 * unit
    assert effective_rank(changed, 0) == pytest.approx(effective_rank(pool, 0), rel=1e-3)


@pytest.mark.parametrize(
    ("pool", "rank"),
    [
        (np.zeros((30, 60)), 0),
        (np.ones((1, 3)), 0),
        (np.hstack([np.arange(50.0)[:, None], np.ones((50, 9))]), 1),
    ],
    ids=["all the same", "one example", "constant columns"],
)
def test_columns_that_do_not_vary_do_not_count(pool, rank):
    assert effective_rank(pool, 0) == pytest.approx(rank, abs=0.1)
