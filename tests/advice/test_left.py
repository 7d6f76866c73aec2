"""How many are left: by an audit, by random labels and by a model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.pools import simulation_of

from galaxy_al.advice.left import (
    MIN_LABELS,
    Left,
    all_rare,
    left_by_audit,
    left_by_model,
    left_by_random_labels,
)
from galaxy_al.advice.random_labels import RandomLabels, interval_of_left
from galaxy_al.models.estimates import Interval

CONTENTS = [[6, 3, 41], [2, 1, 297]]


def begun_audit(n_draws: int, seed: int = 0):
    found, rng = simulation_of(CONTENTS, [0, 2]), np.random.default_rng(seed)
    for _ in range(n_draws):
        found.draw_at_random(rng)
    return found


def test_rare_classes_together_are_what_an_audit_of_two_classes_says() -> None:
    found = begun_audit(60)
    merged = simulation_of([[9, 41], [3, 297]], [0, 1])
    merged.left = np.stack([found.left[:, :2].sum(axis=1), found.left[:, 2]], axis=1)
    merged.known = np.stack([found.known[:, :2].sum(axis=1), found.known[:, 2]], axis=1)
    merged.rows = [
        (stratum, int(label == 2), free, chances, np.stack([k[:, :2].sum(axis=1), k[:, 2]], 1))
        for stratum, label, free, chances, k in found.rows
    ]
    for ours, naive in ((all_rare(found.audit()), merged.audit()),):
        assert ours.total(0) == naive.total(0)
        assert ours.recall(0) == naive.recall(0)


def test_an_example_that_cannot_be_told_stays_of_no_class() -> None:
    found = begun_audit(10).audit()
    found.draws.classes[3] = -1
    assert all_rare(found).draws.classes[3] == -1


def test_one_class_is_what_the_audit_says_of_it() -> None:
    audit = begun_audit(60).audit()
    left, said = left_by_audit(audit, k=1), audit.of_class(1).left
    assert (left.low, left.high, left.source) == (said.low, said.high, "audit")
    assert left.value == pytest.approx(said.value)
    assert left.n_random == 60


def test_examples_that_came_later_may_all_be_rare() -> None:
    audit = begun_audit(60).audit()
    before, now = left_by_audit(audit), left_by_audit(audit, n_added=25)
    assert (now.low, now.high) == (before.low, before.high + 25)


def test_an_audit_holds_the_truth_of_all_rare_classes_at_every_moment() -> None:
    """At 95% three of 60 may miss; with 8 the odds are 1 in 100."""
    missed = 0
    for seed in range(60):
        found, rng = simulation_of(CONTENTS, [0, 2]), np.random.default_rng(seed)
        for n in range(1, 121):
            found.draw_at_random(rng)
            if n in (20, 60, 120):
                left = left_by_audit(found.audit())
                if not left.low <= found.left[:, :2].sum() <= left.high:
                    missed += 1
                    break
    assert missed <= 8


def test_random_labels_give_the_exact_interval() -> None:
    draws = RandomLabels.of_history(100, [True, False, False], [False, True, True])
    left = left_by_random_labels(draws, 97, 1)
    assert left is not None
    assert (left.low, left.high) == interval_of_left(draws, 97, 1)
    assert (left.value, left.source, left.n_random) == (0.0, "random labels", 2)


def test_without_random_labels_they_say_nothing() -> None:
    assert left_by_random_labels(RandomLabels.of_history(9, [True], [False]), 8, 1) is None


@given(st.integers(0, 50), st.lists(st.floats(0, 200), min_size=3, max_size=3))
def test_a_model_is_believed_only_with_labels_and_within_what_is_possible(n_found, counts) -> None:
    low, value, high = sorted(counts)
    left = left_by_model(Interval(value, low, high), n_found, n_free=90)
    if n_found < MIN_LABELS:
        assert left is None
        return
    assert left is not None
    assert 0 <= left.low <= left.value <= left.high <= 90
    assert left.low <= max(low - n_found, 0) or left.low == 90
    assert left.high >= min(high - n_found, 90)


def test_recall_follows_from_what_is_left() -> None:
    recall = Left(10.0, 0, 90, "audit").recall(90)
    assert (recall.value, recall.low, recall.high) == (0.9, 0.5, 1.0)
