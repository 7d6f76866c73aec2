"""DIRECT against its definition written naively, and what it and GALAXY do with wrong labels."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Galaxy, Snapshot
from galaxy_al.strategies.direct import Direct
from support.naive_direct import NaiveDirect, best_thresholds, outward, shrunk, signs
from support.naive_galaxy import ranking
from support.noisy_pools import rare_found, scored_pool
from support.random_pools import pools


def groups(session, budget):
    """Ask a budget, group after group; a group ends where the queue does."""
    asked = 0
    while asked < budget:
        group = [session.ask()]
        while session._queue and asked + len(group) < budget:
            group.append(session.ask())
        asked += len(group)
        yield group


@pytest.mark.slow
@pytest.mark.usefixtures("bucket_sizes")
@settings(max_examples=300)
@given(pools(max_size=30), st.integers(1, 20), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_every_group_is_one_the_definition_allows(pool, budget, annotators, seed):
    proba, truth, labels = pool
    known = {i: int(y) for i, y in enumerate(labels) if y != UNLABELED}
    budget = min(budget, len(truth) - len(known))
    if not budget:
        return
    strategy = Direct(annotators)
    session = strategy.start(
        Snapshot(proba, labels), rng=np.random.default_rng(seed), budget=budget
    )
    naive = NaiveDirect(proba, budget, annotators)
    for group in groups(session, budget):
        naive.check(group, known)
        for index in group:
            session.tell(index, truth[index])
            known[index] = int(truth[index])


@pytest.mark.slow
def test_without_noise_galaxy_finds_as_much_and_with_noise_direct_finds_more():
    found = {
        (type(strategy), flip_rate): np.mean(
            [rare_found(strategy, flip_rate, seed) for seed in range(20)]
        )
        for strategy in (Galaxy(), Direct())
        for flip_rate in (0.0, 0.1)
    }
    assert found[Galaxy, 0.0] >= found[Direct, 0.0]
    assert found[Direct, 0.1] > found[Galaxy, 0.1]


@pytest.mark.parametrize("annotators", [1, 4, 7])
def test_a_group_is_handed_out_before_any_answer_and_no_more(annotators):
    proba, truth = scored_pool(0, size=500)
    labels = np.where(np.arange(500) % 100 == 0, truth, UNLABELED)

    def first_questions(answer):
        session = Direct(annotators).start(
            Snapshot(proba, labels), rng=np.random.default_rng(0), budget=56
        )
        asked = [session.ask() for _ in range(annotators)]
        for index in asked:
            session.tell(index, answer(index))
        return asked, session.ask()

    told_one, told_other = (first_questions(lambda index, y=y: y) for y in (0, 1))
    assert told_one[0] == told_other[0]
    assert told_one[1] != told_other[1]


def test_a_session_does_not_wait_for_answers_that_do_not_come():
    proba, _ = scored_pool(0, size=300)
    session = Direct(3).start(Snapshot(proba), rng=np.random.default_rng(0), budget=20)
    assert sorted(session.ask() for _ in range(300)) == list(range(300))


def test_there_must_be_an_annotator():
    with pytest.raises(ValueError, match="annotators must be a whole number of at least 1, got 0"):
        Direct(annotators=0)


def chi_squared(counts, n_kinds):
    """By how much counts of equally likely kinds differ from being equal."""
    expected = sum(counts.values()) / n_kinds
    seen = sum((count - expected) ** 2 / expected for count in counts.values())
    return seen + (n_kinds - len(counts)) * expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [60, 40])
def test_a_group_is_uniform_in_the_version_space(size):
    # One label at each end: of 60 places there are enough to try at random, of 40 there are not.
    proba = np.linspace([0.99, 0.01], [0.01, 0.99], num=size)
    labels = np.full(size, UNLABELED)
    labels[[4, size - 6]] = 0, 1
    snapshot, counts = Snapshot(proba, labels), Counter()
    for seed in range(3000):
        session = Direct(20).start(snapshot, rng=np.random.default_rng(seed), budget=80)
        counts.update(session.ask() for _ in range(20))
    assert set(counts) == set(range(5, size - 6))
    # 3,000 draws of 20 without replacement vary less than chi squared has it.
    assert chi_squared(counts, size - 11) < 2 * (size - 11)


@pytest.mark.slow
def test_classes_are_widened_in_random_order_and_what_does_not_divide_is_random():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=200)
    first, second = Counter(), Counter()
    for seed in range(600):
        session = Direct().start(Snapshot(proba), rng=np.random.default_rng(seed), budget=8)
        session._plan()
        second[tuple(session._widenings)] += 1
        first[tuple(step.n_left for step in session._reductions)] += 1
    assert chi_squared(second, 6) < 25.8  # 5 degrees of freedom: 1 in 10,000
    assert set(first) == {(2, 1, 1), (1, 2, 1), (1, 1, 2)}
    assert chi_squared(first, 3) < 18.5


@pytest.mark.slow
def test_the_end_to_drop_and_the_best_threshold_are_random_where_they_tie():
    proba = np.linspace([0.9, 0.1], [0.1, 0.9], num=30)
    labels = np.full(30, UNLABELED)
    labels[[10, 13, 16]] = 0, 1, 0
    snapshot, ranked = Snapshot(proba, labels), ranking(proba, 0)[::-1]
    w = signs(ranked, {10: 0, 13: 1, 16: 0}, 0)
    spaces, thresholds = Counter(), Counter()
    for seed in range(2000):
        session = Direct(1).start(snapshot, rng=np.random.default_rng(seed), budget=20)
        session._plan()
        step = session._reductions[0]
        step.low, step.high, step.factor = 17, 21, 5.0  # nothing is labelled there
        session._shrink(step, *session._labeled_in_order(0))
        spaces[step.low, step.high] += 1
        thresholds[session._best_threshold(0)] += 1
    assert set(spaces) == shrunk(w, 17, 21, 5.0) == {(place, place) for place in range(17, 22)}
    assert set(thresholds) == set(best_thresholds(w))
    assert chi_squared(thresholds, len(thresholds)) < 60
    by_coin = {17: 125, 18: 500, 19: 750, 20: 500, 21: 125}  # how often four tosses fall so
    assert sum((spaces[p, p] - n) ** 2 / n for p, n in by_coin.items()) < 23.6


def test_outward_takes_left_and_right_in_turn():
    assert outward([3, 1, 4, 0, 5], 2, {3, 4, 0, 5}, 4) == [3, 4, 0, 5]
