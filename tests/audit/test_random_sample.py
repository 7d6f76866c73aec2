"""Random labels as draws, held to enumerations and to simulations with a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.pools import simulation_of

from galaxy_al.audit.betting import is_missed
from galaxy_al.audit.draws import CANNOT_TELL
from galaxy_al.audit.measures import UPPER_OF_COUNTS
from galaxy_al.audit.random_sample import (
    Accuracy,
    Answer,
    accuracy_of,
    continued,
    random_audit,
    strata_of_decisions,
)
from galaxy_al.audit.sampling import Strata
from galaxy_al.models.estimates import Interval

RECALLS = (0.8, 0.97)


def pool_of(size: int, n_rare: int, rng: np.random.Generator):
    """The truth, and what a model decides: 80% of the rare class and 97% of the other rightly."""
    truth = np.where(rng.permutation(size) < n_rare, 0, 1)
    is_right = rng.random(size) < np.take(RECALLS, truth)
    return truth, np.where(is_right, truth, 1 - truth)


def asked(truth, n_random, n_chosen, rng) -> list[Answer]:
    """Random questions among others that prefer the rare class."""
    order = rng.permutation(np.repeat([True, False], [n_random, n_chosen]))
    is_free, answers = np.ones(len(truth), dtype=bool), []
    for is_random in order.tolist():
        free = np.flatnonzero(is_free)
        if not is_random and (rare := free[truth[free] == 0]).size:
            free = rare
        index = int(rng.choice(free))
        is_free[index] = False
        answers.append(Answer(index, int(truth[index]), is_random))
    return answers


def strata_of(decided) -> Strata:
    return strata_of_decisions(decided, np.where(decided[:, None] == [0, 1], 0.8, 0.2))


def recall_of(truth, decided, k: int) -> float:
    return float((decided[truth == k] == k).mean())


def test_a_random_question_is_a_fair_draw_whatever_was_chosen_before() -> None:
    rng = np.random.default_rng(0)
    truth, decided = pool_of(60, 12, rng)
    answers = asked(truth, 3, 20, rng)
    free = np.setdiff1d(np.arange(60), [answer.example for answer in answers])
    unknowns = {"total_game": truth.tolist().count(0), "recall_game": recall_of(truth, decided, 0)}
    for name, unknown in unknowns.items():
        prizes = []
        for index in free:
            one = Answer(int(index), int(truth[index]), is_random=True)
            game = getattr(random_audit([*answers, one], strata_of(decided)), name)(0)
            column = game.outcomes[-1]
            below = 1.0 if game.below is None else game.below[-1, column]
            prizes.append(game.above[-1, column] - unknown * below)
        assert abs(np.mean(prizes)) < 1e-9 * (1 + np.abs(prizes).max())


def test_how_many_there_are_does_not_depend_on_strata_that_were_made_later() -> None:
    rng = np.random.default_rng(1)
    truth, decided = pool_of(2000, 300, rng)
    answers = asked(truth, 60, 40, rng)
    found = [random_audit(answers, strata_of(part)) for part in (decided, truth, 1 - truth)]
    ends = {(audit.total(0).low, audit.total(0).high) for audit in found}
    assert len(ends) == 1


@pytest.mark.parametrize("n_random", [20, 100])
def test_random_labels_among_chosen_ones_bound_the_balanced_accuracy(n_random: int) -> None:
    rng, n_missed, n_left_missed = np.random.default_rng(2), 0, 0
    for _ in range(60):
        truth, decided = pool_of(3000, 400, rng)
        audit = random_audit(asked(truth, n_random, 100, rng), strata_of(decided))
        accuracy = np.mean([recall_of(truth, decided, k) for k in (0, 1)])
        found = audit.balanced_accuracy()
        n_missed += not found.low <= accuracy <= found.high
        n_left_missed += is_missed(audit.total_game(0), 400, 0.05, UPPER_OF_COUNTS)
    assert max(n_missed, n_left_missed) <= 8  # at 5% the odds of more are 1 in 500


def test_an_audit_continues_random_labels() -> None:
    """Its draws and theirs together miss as rarely, and leave less open than either."""
    rng, n_missed = np.random.default_rng(3), 0
    widths: list[list[float]] = [[], [], []]
    for _ in range(40):
        truth, decided = pool_of(2500, 300, rng)
        strata = strata_of(decided)
        answers = asked(truth, 60, 60, rng)
        before = random_audit(answers, strata)
        rest = np.setdiff1d(np.arange(len(truth)), [answer.example for answer in answers])
        pairs = np.bincount(decided[rest] * 2 + truth[rest], minlength=4).reshape(2, 2)
        designed = simulation_of(pairs, [0, 1], strata.expected)
        for _ in range(100):
            designed.draw_at_random(rng)
        since = designed.audit()
        both = continued(before, since)
        n_missed += is_missed(both.total_game(0), 300, 0.05, UPPER_OF_COUNTS)
        for width, audit in zip(widths, (before, since, both)):
            total = audit.total(0)
            width.append(total.high - total.low)
    assert n_missed <= 6
    assert np.mean(widths[2]) < min(np.mean(widths[0]), np.mean(widths[1]))


def test_an_example_that_cannot_be_told_is_a_draw_of_no_class() -> None:
    strata = Strata(np.zeros(10, dtype=np.intp), np.array([1]), np.array([[0.5, 0.5]]))
    audit = random_audit([Answer(3, CANNOT_TELL, True), Answer(4, 0, True)], strata)
    assert audit.known.tolist() == [[1, 0]]
    assert audit.n_free.tolist() == [8]
    assert audit.total(0).high <= 9


def test_few_random_labels_say_how_many_more_are_needed() -> None:
    rng = np.random.default_rng(4)
    truth, decided = pool_of(4000, 2000, rng)
    few = accuracy_of(random_audit(asked(truth, 20, 0, rng), strata_of(decided)), rng)
    many = accuracy_of(random_audit(asked(truth, 900, 0, rng), strata_of(decided)), rng)
    assert few.n_more is None or few.n_more > 30
    assert many.n_more == 0
    assert many.interval.low <= 0.885 <= many.interval.high


@pytest.mark.parametrize(
    ("n_more", "text"),
    [
        (0, "88% (80% to 95%)"),
        (12, "not enough random labels yet (80% to 95%): about 12 more give ±10"),
        (None, "not enough random labels yet (80% to 95%): more than 300 more give ±10"),
    ],
)
def test_an_accuracy_says_what_it_is(n_more: int | None, text: str) -> None:
    assert str(Accuracy(Interval(0.88, 0.8, 0.95), n_more)) == text


def test_no_random_label_says_nothing() -> None:
    rng = np.random.default_rng(5)
    _, decided = pool_of(300, 30, rng)
    found = accuracy_of(random_audit([], strata_of(decided)), rng)
    assert (found.interval.low, found.interval.high) == (0, 1)
    assert found.n_more != 0
