"""The intervals of an audit, held to enumerations, to the definition and to simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.pools import Simulation, simulation_of

from galaxy_al.audit.betting import Game, is_missed
from galaxy_al.audit.measures import UPPER_OF_COUNTS, UPPER_OF_RECALL

SMALL = st.integers(1, 4)


@st.composite
def begun_audits(draw) -> Simulation:
    """Audits of small pools after some draws and some other labels."""
    n_strata, n_classes = draw(st.integers(1, 3)), draw(st.integers(2, 3))
    contents = [[draw(st.integers(0, 5)) for _ in range(n_classes)] for _ in range(n_strata)]
    contents = [[*row[:-1], row[-1] + 1] for row in contents]
    decided = [draw(st.integers(0, n_classes - 1)) for _ in range(n_strata)]
    raw = np.array([[draw(SMALL) for _ in range(n_classes)] for _ in range(n_strata)], dtype=float)
    confusion = [[draw(st.integers(0, 3)) for _ in range(n_classes)] for _ in range(n_classes)]
    found = simulation_of(contents, decided, raw / raw.sum(axis=1, keepdims=True), confusion)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    for _ in range(draw(st.integers(0, 6))):
        if found.n_free.sum() < 2:
            break
        if rng.random() < 0.3:  # the strategy asks something
            stratum, label = rng.choice(np.argwhere(found.left > 0))
            found.label(int(stratum), int(label))
        else:
            found.draw_at_random(rng)
    return found


def prizes_of_next_draw(before: Simulation, game_of) -> list[tuple[float, Game]]:
    """Each outcome of the next draw: its probability, and the game with it."""
    found = []
    chances = before.chances()
    for stratum, label in np.argwhere(before.left > 0):
        after = before.copy()
        share = before.left[stratum, label] / before.left[stratum].sum()
        after.draw(int(stratum), int(label))
        found.append((float(chances[stratum] * share), game_of(after)))
    return found


def last_prize(game: Game, unknown: float) -> float:
    column = game.outcomes[-1]
    below = 1.0 if game.below is None else game.below[-1, column]
    return float(game.above[-1, column] - unknown * below)


@given(begun_audits())
@settings(max_examples=60, deadline=None)
def test_prizes_are_fair_at_the_truth(before: Simulation) -> None:
    for k in range(before.contents.shape[1]):
        n_all = before.contents[:, k].sum()
        games = [(lambda after, k=k: after.audit().total_game(k), n_all)]
        if n_all + before.labeled.confusion[k].sum():
            games.append((lambda after, k=k: after.audit().recall_game(k), before.true_recall(k)))
        for game_of, truth in games:
            outcomes = prizes_of_next_draw(before, game_of)
            mean = sum(p * last_prize(game, truth) for p, game in outcomes)
            size = sum(p * abs(last_prize(game, truth)) for p, game in outcomes)
            assert abs(mean) <= 1e-9 * (1 + size)


@given(begun_audits())
@settings(max_examples=60, deadline=None)
def test_prizes_of_precision_are_fair_within_the_decided_strata(before: Simulation) -> None:
    for k in range(before.contents.shape[1]):
        decided = before.strata.decided == k
        n_right = before.contents[decided, k].sum()
        chances, mean = before.chances(), 0.0
        for stratum, label in np.argwhere((before.left > 0) & decided[:, None]):
            after = before.copy()
            after.draw(int(stratum), int(label))
            share = before.left[stratum, label] / before.left[stratum].sum()
            game = after.audit().precision_game(k)
            mean += chances[stratum] * share * last_prize(game, n_right)
        assert abs(mean) < 1e-9 * (1 + before.contents.sum())


@given(begun_audits(), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_no_draw_makes_an_interval_wider(begun: Simulation, seed: int) -> None:
    rng, truth = np.random.default_rng(seed), begun.contents[:, 0].sum()
    last = None
    while begun.n_free.sum():
        begun.draw_at_random(rng)
        audit = begun.audit()
        found = audit.total(0)
        if is_missed(audit.total_game(0), truth, 0.05, UPPER_OF_COUNTS):
            return  # what is known for sure may then contradict the bets
        assert last is None or last.low <= found.low <= found.high <= last.high
        last = found


def chance_of_ever_missing(begin: Simulation, n_draws: int, is_missed) -> float:
    """By going through all courses that an audit can take."""
    if begin.rows and is_missed(begin):
        return 1.0
    if not n_draws or not begin.n_free.sum():
        return 0.0
    chances, missed = begin.chances(), 0.0
    for stratum, label in np.argwhere(begin.left > 0):
        share = begin.left[stratum, label] / begin.left[stratum].sum()
        after = begin.copy()
        after.draw(int(stratum), int(label))
        missed += chances[stratum] * share * chance_of_ever_missing(after, n_draws - 1, is_missed)
    return missed


@pytest.mark.parametrize("expected", [[[0.5, 0.5], [0.01, 0.99]], [[0.01, 0.99], [0.9, 0.1]]])
@pytest.mark.parametrize("contents", [[[2, 1], [0, 4]], [[0, 3], [2, 2]], [[1, 1], [1, 3]]])
def test_all_courses_of_a_tiny_audit_miss_the_total_rarely_enough(contents, expected) -> None:
    begin, error = simulation_of(contents, [0, 1], expected), 0.4
    truth = begin.contents[:, 0].sum()

    def is_missed(audit: Simulation) -> bool:
        found = audit.audit().total(0, error)
        return not found.low <= truth <= found.high

    missed = chance_of_ever_missing(begin, 6, is_missed)
    assert missed <= error


def test_of_all_courses_some_miss_the_total_but_not_too_many() -> None:
    begin, error = simulation_of([[10, 8]], [0], [[0.05, 0.95]]), 0.8

    def is_missed(audit: Simulation) -> bool:
        found = audit.audit().total(0, error)
        return not found.low <= 10 <= found.high

    assert 0 < chance_of_ever_missing(begin, 9, is_missed) <= error


def test_a_whole_pool_that_is_drawn_is_known() -> None:
    rng = np.random.default_rng(0)
    found = simulation_of([[5, 5], [2, 30]], [0, 1])
    for _ in range(42):
        found.draw_at_random(rng)
    of_rare = found.audit().of_class(0)
    assert of_rare.left.low == of_rare.left.high == 0
    assert of_rare.found.low == of_rare.found.high == 1
    assert of_rare.precision is not None
    assert of_rare.precision.low == of_rare.precision.high == 0.5


def test_nothing_drawn_says_nothing() -> None:
    found = simulation_of([[5, 5], [2, 30]], [0, 1]).audit().of_class(0)
    assert (found.left.low, found.left.high) == (0, 42)
    assert (found.recall.low, found.recall.high) == (0, 1)


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param([[0.5, 0.5], [0.05, 0.95], [0.002, 0.998]], id="a model that is right"),
        pytest.param(
            [[0.9, 0.1], [0.5, 0.5], [1e-6, 1 - 1e-6]], id="a model that is sure, and wrong"
        ),
    ],
)
def test_intervals_hold_at_every_moment(expected) -> None:
    """At 95% five of 100 may miss the truth at some moment; with 12 the odds are 1 in 200."""
    rng = np.random.default_rng(1)
    missed = dict.fromkeys(("left", "recall", "precision"), 0)
    for _ in range(100):
        found = simulation_of([[50, 50], [20, 380], [15, 2485]], [0, 1, 1], expected)
        for _ in range(150):
            found.draw_at_random(rng)
        audit, recall = found.audit(), found.true_recall(0)
        is_wrong = {
            "left": is_missed(audit.total_game(0), 85, 0.05, UPPER_OF_COUNTS),
            "recall": is_missed(audit.recall_game(0), recall, 0.05, UPPER_OF_RECALL),
            "precision": is_missed(audit.precision_game(0), 50),
        }
        for name in is_wrong:
            missed[name] += is_wrong[name]
    assert max(missed.values()) <= 12
