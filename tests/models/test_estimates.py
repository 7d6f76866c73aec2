"""Estimated precision and recall against the truth, and how often the intervals hold it."""

import numpy as np
import pytest
from scipy.special import expit

from galaxy_al.models.auto import AutoTrainer, HeldOut
from galaxy_al.models.decisions import choose_thresholds
from galaxy_al.models.estimates import estimate_decisions, held_out_table


def table_of(rare):
    return np.stack([rare, 1 - rare], axis=1)


def true_measures(decided, truth):
    alarms, wanted = decided == 0, truth == 0
    right = np.count_nonzero(alarms & wanted)
    return {
        "precision": right / max(alarms.sum(), 1),
        "recall": right / wanted.sum(),
        "f1": 2 * right / (alarms.sum() + wanted.sum()),
        "count": wanted.sum(),
    }


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
def test_labels_correct_probabilities_that_are_all_off(shift):
    rng = np.random.default_rng(0)
    log_odds = rng.normal(-3, 3, size=30_000)
    truth = (rng.random(30_000) > expit(log_odds + shift)).astype(int)
    table = table_of(expit(log_odds))
    known = np.sort(rng.permutation(30_000)[:6000])
    held_out = HeldOut(known, truth[known], table[known])
    decision = choose_thresholds("f1", table, [0.1, 0.9])
    found = estimate_decisions(table, held_out, decision).classes[0]
    for name, value in true_measures(decision.classes(table), truth).items():
        assert getattr(found, name).value == pytest.approx(value, rel=0.1), name
        assert getattr(found, name).low <= value <= getattr(found, name).high, name


@pytest.mark.slow
@pytest.mark.parametrize("by", ["random", "near the cut"])
def test_the_intervals_hold_the_truth_as_often_as_they_say(by):
    """At least 90 of 100 times, for approximate ones of 95%."""
    inside = dict.fromkeys(("precision", "recall", "f1", "count"), 0)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        truth = (rng.random(4000) > 0.05).astype(int)
        pool = rng.normal(size=(4000, 60)) + 0.45 * (truth == 0)[:, None]
        chosen = rng.permutation(4000)[:150]
        if by == "near the cut":
            first = AutoTrainer(n_classes=2).fit(pool, {int(i): int(truth[i]) for i in chosen})
            near = np.argsort(np.abs(first.proba(pool)[:, 0] - 0.3))[:150]
            chosen = np.union1d(chosen, near)
        model = AutoTrainer(n_classes=2).fit(pool, {int(i): int(truth[i]) for i in chosen})
        table = held_out_table(model.proba(pool), model.held_out)
        decision = choose_thresholds("f1", table, model.class_priors)
        found = estimate_decisions(table, model.held_out, decision).classes[0]
        for name, value in true_measures(decision.classes(table), truth).items():
            inside[name] += getattr(found, name).low <= value <= getattr(found, name).high
    assert min(inside.values()) >= 27, inside


def test_the_confusion_adds_up_to_the_pool():
    rng = np.random.default_rng(0)
    table = rng.dirichlet([0.2, 0.3, 3], size=1000)
    known = np.arange(50)
    held_out = HeldOut(known, table[known].argmax(axis=1), table[known])
    decision = choose_thresholds("f1", table, table.mean(axis=0))
    confusion = estimate_decisions(table, held_out, decision).confusion
    assert confusion.sum() == pytest.approx(1000)
    by_class = table[50:].sum(axis=0) + np.bincount(held_out.targets, minlength=3)
    np.testing.assert_allclose(confusion.sum(axis=1), by_class)
    decided = decision.classes(table)
    np.testing.assert_allclose(confusion.sum(axis=0), np.bincount(decided, minlength=3))
    decided = decision.classes(table)
    np.testing.assert_allclose(confusion.sum(axis=0), np.bincount(decided, minlength=3))


def test_without_labels_on_a_side_the_interval_is_wide():
    table = table_of(np.repeat([0.9, 0.02], [100, 900]))
    held_out = HeldOut(np.array([0, 500]), np.array([0, 1]), table[[0, 500]])
    decision = choose_thresholds("precision=0.8", table, [0.1, 0.9])
    found = estimate_decisions(table, held_out, decision).classes[0]
    assert found.precision.high - found.precision.low > 0.3
