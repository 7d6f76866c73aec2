"""Betting, held to the slow definition, to scans of all values and to known truths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from galaxy_al.audit.betting import Game, interval_of_count, interval_of_share, is_missed

HORIZONS, PARTS = (50.0, 150.0, 500.0, 0.0), (0.25, 0.25, 0.2, 0.3)


def slow_capital(game: Game, unknown: float, error: float, *, is_too_large: bool) -> list[float]:
    """The logarithm of the capital after each draw, by the definition."""
    logs, after = [math.log(part) for part in PARTS], []
    for t, outcome in enumerate(game.outcomes):
        prizes = []
        for column in range(game.above.shape[1]):
            below = 1.0 if game.below is None else game.below[t, column]
            prize = game.above[t, column] - unknown * below
            prizes.append(-prize if is_too_large else prize)
        most = 0.97 / max(-min(prizes), 1e-300)
        for j, horizon in enumerate(HORIZONS):
            size = math.inf
            if horizon:
                size = math.sqrt(2 * math.log(1 / error) / horizon) / game.spread[t]
            logs[j] += math.log1p(min(size, most) * prizes[outcome])
        after.append(float(logsumexp(logs)))
    return after


@st.composite
def games(draw, is_count: bool) -> Game:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, columns = draw(st.integers(1, 40)), draw(st.integers(2, 5))
    above = rng.normal(10, 8, size=(n, columns))
    below = None if is_count else above + rng.gamma(2, 3, size=(n, columns))
    return Game(above, below, rng.integers(columns, size=n), rng.gamma(3, 2, size=n) + 0.1)


@pytest.mark.parametrize("is_count", [True, False])
def test_capital_of_all_moments_is_that_of_the_definition(is_count: bool) -> None:
    @given(games(is_count), st.booleans(), st.sampled_from([0.01, 0.04, 0.3]))
    @settings(max_examples=40, deadline=None)
    def check(game: Game, is_too_large: bool, error: float) -> None:
        unknowns = np.array([3.0, 9.5, 17.0]) if is_count else np.array([0.1, 0.5, 0.93])
        found = game.log_capital(unknowns, error, is_too_large=is_too_large)
        for row, unknown in zip(found, unknowns):
            slow = slow_capital(game, float(unknown), error, is_too_large=is_too_large)
            assert np.allclose(row, slow, atol=1e-9)

    check()


@given(games(is_count=True), st.floats(0.2, 0.8))
@settings(max_examples=60, deadline=None)
def test_the_interval_of_a_count_keeps_exactly_what_was_never_given_up(game, share) -> None:
    low, high = interval_of_count(game, 0, 40, 0.3, share)
    kept = [n for n in range(41) if not is_missed(game, n, 0.3, share)]
    if kept:
        assert (low, high) == (kept[0], kept[-1])


@given(games(is_count=False))
@settings(max_examples=15, deadline=None)
def test_the_interval_of_a_share_has_all_that_was_never_given_up(game: Game) -> None:
    low, high = interval_of_share(game, 0.3)
    kept = [value for value in np.linspace(0, 1, 129) if not is_missed(game, value, 0.3)]
    assert 0 <= low <= high <= 1
    if len(kept) > 8:
        assert low <= kept[0]
        assert kept[-1] <= high


def test_a_fair_game_makes_rich_as_rarely_as_the_theorem_says() -> None:
    """A coin of 0.3, without replacement from 2,000: the error is 10%, 300 audits of 150 draws."""
    rng, n_missed = np.random.default_rng(0), 0
    for _ in range(300):
        pool = rng.permutation(np.arange(2000) < 600)[:150]
        before = np.concatenate([[0], np.cumsum(pool)[:-1]])
        n_free = 2000 - np.arange(150)
        above = np.stack([before + n_free, before], axis=1).astype(float)
        game = Game(above, None, 1 - pool.astype(np.intp), n_free * 0.46)
        n_missed += is_missed(game, 600, 0.1)
    assert 0 < n_missed <= 45  # the odds of more are 1 in 500


def test_no_draw_gives_up_nothing() -> None:
    empty = np.zeros((0, 2))
    game = Game(empty, None, np.zeros(0, dtype=np.intp), np.zeros(0))
    assert interval_of_count(game, 2, 9) == (2, 9)
    assert interval_of_share(game) == (0, 1)
    assert not is_missed(game, 5)
