"""DIRECT against its definition written naively, and what it and GALAXY do with wrong labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Galaxy, Snapshot
from galaxy_al.annotators import noisy_annotator
from galaxy_al.strategies.direct import Direct
from naive_direct import NaiveDirect
from test_galaxy import pools


def groups(session, budget):
    """Ask a budget, group after group; a group ends where the queue does."""
    asked = 0
    while asked < budget:
        group = [session.ask()]
        while session._queue and asked + len(group) < budget:
            group.append(session.ask())
        asked += len(group)
        yield group


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


def overlapping_pool(seed, size=10_000, n_rare=100):
    """Scores of a fair model of two classes, of which the first is rare."""
    rng = np.random.default_rng(seed)
    truth = (np.arange(size) >= n_rare).astype(int)
    logits = rng.normal(size=(size, 2)) + 4 * np.eye(2)[truth] + [0, 2]
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True), truth


def rare_found(strategy, flip_rate, seed, budget=100):
    proba, truth = overlapping_pool(seed)
    rng = np.random.default_rng(seed)
    annotator = noisy_annotator(truth, flip_rate, rng)
    labels = np.full(len(truth), UNLABELED)
    first = [*rng.choice(100, 2, replace=False), *rng.choice(np.arange(100, 10_000), 20)]
    labels[first] = [annotator(index) for index in first]
    session = strategy.start(Snapshot(proba, labels), rng=rng, budget=budget)
    asked = []
    for _ in range(budget):
        asked.append(session.ask())
        session.tell(asked[-1], annotator(asked[-1]))
    return np.count_nonzero(truth[asked] == 0)


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
    proba, truth = overlapping_pool(0, 500)
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


def test_nobody_waits_for_answers_that_do_not_come():
    proba, _ = overlapping_pool(0, 300)
    session = Direct(3).start(Snapshot(proba), rng=np.random.default_rng(0), budget=20)
    assert sorted(session.ask() for _ in range(300)) == list(range(300))


def test_there_must_be_an_annotator():
    with pytest.raises(ValueError, match="annotators must be at least 1, got 0"):
        Direct(annotators=0)
