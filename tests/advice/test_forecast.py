"""What more labels bring, held to naive definitions and to simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.advice.forecast import (
    ENOUGH_FOUND,
    expected_average_precision,
    forecast_finds,
    forecast_rise,
)
from galaxy_al.metrics import average_precision

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=80)


@given(SHARES, st.lists(st.booleans(), min_size=1, max_size=80), st.integers(1, 300))
def test_forecasts_are_possible_numbers_of_finds(planned, recent, n) -> None:
    found = forecast_finds(np.array(planned), recent, n, ENOUGH_FOUND)
    assert found is not None
    assert 0 <= found.low <= found.high <= n
    assert 0 <= found.value <= n


@pytest.mark.parametrize(("planned", "recent", "n_found"), [([], [True], 9), ([0.1], [], 9)])
def test_it_is_too_early_without_questions(planned, recent, n_found) -> None:
    assert forecast_finds(np.array(planned), recent, 50, n_found) is None


def test_it_is_too_early_with_few_finds() -> None:
    assert forecast_finds(np.full(50, 0.1), [True], 50, ENOUGH_FOUND - 1) is None


def test_the_forecast_lies_between_the_model_and_the_rate() -> None:
    found = forecast_finds(np.full(100, 0.4), np.arange(100) % 10 == 0, 100, 20)
    assert found is not None
    assert 10 < found.value < 40


def test_intervals_hold_where_the_rate_stays() -> None:
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        rate = rng.uniform(0, 0.5)
        found = forecast_finds(np.full(100, rate), rng.random(100) < rate, 100, 20)
        assert found is not None
        held += found.low <= rng.binomial(100, rate) <= found.high
    assert held >= 190


def test_with_certain_labels_the_expected_average_precision_is_the_true_one() -> None:
    truth = np.array([True, False, True, True, False])
    ranked = expected_average_precision(truth.astype(float))
    assert ranked == average_precision(truth, truth.astype(float)) == 1.0


@given(SHARES)
def test_the_expected_average_precision_is_the_naive_sum(heights) -> None:
    best_first = sorted(heights, reverse=True)
    naive = sum(p * sum(best_first[: i + 1]) / (i + 1) for i, p in enumerate(best_first))
    total = sum(heights)
    found = expected_average_precision(np.array(heights))
    assert found == pytest.approx(naive / total if total else 0.0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.integers(1, 200))
def test_a_rise_may_always_be_none(values, n) -> None:
    rise = forecast_rise([(100 * (i + 1), value) for i, value in enumerate(values)], n)
    if rise is not None:
        assert -1 <= rise.low <= 0 <= rise.high <= 1


def test_one_training_tells_nothing_of_a_rise() -> None:
    assert forecast_rise([], 100) is None
    assert forecast_rise([(100, 0.5)], 100) is None
