"""Intervals by random labels, held to enumerations, other formulas and simulations."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from galaxy_al.advice.random_labels import RandomLabels, interval_of_left


def draws_of(size: int, n_rare: int, n_draws: int) -> RandomLabels:
    """The rare ones come first."""
    return RandomLabels.of_history(size, [i < n_rare for i in range(n_draws)], [True] * n_draws)


@given(st.integers(1, 40), st.data())
@settings(max_examples=60, deadline=None)
def test_the_likelihood_of_draws_alone_is_hypergeometric(size: int, data) -> None:
    n_draws = data.draw(st.integers(1, size))
    n_rare = data.draw(st.integers(0, n_draws))
    totals = np.arange(size + 1)
    found = np.exp(draws_of(size, n_rare, n_draws).log_likelihood(totals))
    naive = hypergeom.pmf(n_rare, size, totals, n_draws)
    np.testing.assert_allclose(found / found.sum(), naive / naive.sum(), atol=1e-9)


def test_a_strategy_that_asks_in_between_changes_what_is_left_and_not_the_total() -> None:
    # Of 10, the strategy asks two rare ones, then one of the other 8 is drawn and is not rare.
    draws = RandomLabels.of_history(10, [True, True, False], [False, False, True])
    likelihood = np.exp(draws.log_likelihood(np.arange(11)))
    np.testing.assert_allclose(likelihood, [0, 0, *((8 - left) / 8 for left in range(9))])


@given(st.integers(2, 60), st.data())
@settings(max_examples=100, deadline=None)
def test_the_interval_is_what_no_likelihood_gives_up(size: int, data) -> None:
    """The naive definition, number by number."""
    from galaxy_al.advice.random_labels import _Belief

    n = data.draw(st.integers(1, size))
    rare = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    random = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    expected = data.draw(st.none() | st.floats(0, 30))
    draws, n_found = RandomLabels.of_history(size, rare, random), sum(rare)
    low, high = interval_of_left(draws, size - n, n_found, 0.2, expected)
    if not any(random):
        assert (low, high) == (0, size - n)
        return
    totals = np.arange(n_found, n_found + size - n + 1)
    least = _Belief.before(draws, expected).log_mean_likelihood(draws) + np.log(0.2)
    kept = totals[draws.log_likelihood(totals) > least] - n_found
    if len(kept):
        assert (low, high) == (kept[0], kept[-1])
    else:
        assert (low, high) == (0, size - n)


def chance_of_ever_missing(size: int, n_rare: int, n_draws: int, error: float) -> float:
    """By going through all courses of draws."""

    @lru_cache(None)
    def missed_from(course: tuple[bool, ...]) -> float:
        n, found = len(course), sum(course)
        draws = RandomLabels.of_history(size, course, [True] * n)
        low, high = interval_of_left(draws, size - n, found, error)
        if not low <= n_rare - found <= high:
            return 1.0
        if n == n_draws:
            return 0.0
        chance = (n_rare - found) / (size - n)
        missed = chance and chance * missed_from((*course, True))
        return missed + (chance < 1 and (1 - chance) * missed_from((*course, False)))

    return missed_from(())


@pytest.mark.parametrize("n_rare", [0, 1, 3, 6])
def test_all_courses_of_a_tiny_pool_miss_rarely_enough(n_rare: int) -> None:
    assert chance_of_ever_missing(12, n_rare, 8, error=0.3) <= 0.3


def test_some_courses_do_miss() -> None:
    assert chance_of_ever_missing(12, 4, 8, error=0.6) > 0


@pytest.mark.parametrize("expected", [None, 1.0, 50.0])
@pytest.mark.parametrize("n_rare", [4, 40])
def test_intervals_hold_at_every_moment_whatever_was_expected(n_rare, expected) -> None:
    """At 95% six of 120 may miss at some moment; with 13 the odds are 1 in 250."""
    rng, size, missed = np.random.default_rng(0), 400, 0
    for _ in range(120):
        rare = rng.permutation(np.arange(size) < n_rare)
        whole = RandomLabels.of_history(size, rare, [True] * size)
        for n in (10, 30, 60, 100, 150):
            draws = RandomLabels(whole.n_free[:n], whole.n_found[:n], whole.is_rare[:n])
            found = int(rare[:n].sum())
            low, high = interval_of_left(draws, size - n, found, expected=expected)
            if not low <= n_rare - found <= high:
                missed += 1
                break
    assert missed <= 13


def test_intervals_hold_while_a_strategy_asks_the_likeliest() -> None:
    """Half of the questions are asked by a strategy that knows most of the rare ones."""
    rng, size, missed = np.random.default_rng(1), 400, 0
    for _ in range(100):
        rare = np.arange(size) < 30
        free, history = list(rng.permutation(size)), []
        for step in range(120):
            is_random = step % 2 == 0
            known = [i for i in free if i < 20]
            index = int(rng.choice(free)) if is_random or not known else known[0]
            free.remove(index)
            history.append((bool(rare[index]), is_random))
            if step % 20 == 19:
                draws = RandomLabels.of_history(size, *zip(*history))
                n_found = sum(one for one, _ in history)
                low, high = interval_of_left(draws, len(free), n_found)
                if not low <= 30 - n_found <= high:
                    missed += 1
                    break
    assert missed <= 11


def test_a_whole_pool_that_is_drawn_is_known() -> None:
    assert interval_of_left(draws_of(50, 8, 50), 0, 8) == (0, 0)


def test_a_large_pool_costs_no_more_than_a_small_one() -> None:
    low, high = interval_of_left(draws_of(10**9, 0, 3000), 10**9 - 3000, 0, expected=0)
    assert low == 0
    assert 0.99 * 10**6 < high < 1.3 * 10**6
