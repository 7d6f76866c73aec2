"""How many random labels prove that few are left, held to the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from galaxy_al.advice.proof import allowed_left, n_to_prove, plan_proof
from galaxy_al.errors import InvalidArgument


@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from([0.01, 0.05, 0.3]))
def test_it_is_the_smallest_sample_that_misses_more_than_the_limit_rarely(n_free, limit, error):
    n = n_to_prove(n_free, limit, error)
    if limit >= n_free:
        assert n == 0
        return
    assert hypergeom.pmf(0, n_free, limit + 1, n) <= error * (1 + 1e-9)
    assert hypergeom.pmf(0, n_free, limit + 1, n - 1) > error * (1 - 1e-9)


def test_it_is_the_rule_of_three_in_a_large_pool() -> None:
    assert n_to_prove(10**9, 10**6 - 1) == pytest.approx(-np.log(0.05) / 1e-3, abs=2)


@given(st.integers(1, 10**7), st.integers(0, 10**4))
def test_a_plan_is_cheap_unless_a_limit_is_wanted(n_free, n_labels) -> None:
    plan = plan_proof(n_free, n_labels)
    assert plan.is_cheap
    assert plan.n_labels <= max(n_labels, 150)


@given(st.integers(0, 10**5), st.integers(1, 99))
def test_what_may_be_left_keeps_the_target(n_found, percent) -> None:
    limit = allowed_left(n_found, percent / 100)
    assert 100 * n_found >= percent * (n_found + limit)
    assert 100 * n_found < percent * (n_found + limit + 1)


@pytest.mark.parametrize("wrong", [(-1, 0, 0.05), (1, -1, 0.05), (1, 0, 0), (1, 0, 1)])
def test_wrong_numbers_are_refused(wrong) -> None:
    with pytest.raises(InvalidArgument, match="must be"):
        n_to_prove(*wrong)
