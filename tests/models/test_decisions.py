"""Thresholds against all thresholds tried one by one, and Bayes' rule for other prevalences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.decisions import (
    Decision,
    Rule,
    ThresholdCurve,
    choose_thresholds,
    shifted,
)

probabilities = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=1, max_size=40)


def table_of(rare):
    rare = np.array(rare)
    return np.stack([rare, 1 - rare], axis=1)


def expected_measures(p, threshold):
    alarms = p >= threshold
    right = p[alarms].sum()
    precision = right / alarms.sum()
    recall = right / p.sum()
    return precision, recall, 2 * right / (alarms.sum() + p.sum())


def assert_splits_at(threshold, p, lowest):
    """Those from ``lowest`` on are decided, and rounding cannot change that."""
    below = p[p < lowest]
    expected = (lowest + below.max()) / 2 if len(below) else lowest
    assert threshold == pytest.approx(expected)


@given(probabilities)
@settings(max_examples=100)
def test_the_best_f1_is_the_best_of_all_thresholds(rare):
    p = np.array(rare)
    if not p.sum():
        return
    decision = choose_thresholds("f1", table_of(p), [0.5, 0.5])
    best = max(expected_measures(p, t)[2] for t in set(rare))
    assert expected_measures(p, decision.thresholds[0])[2] == pytest.approx(best)


@given(probabilities, st.sampled_from([0.3, 0.7, 0.9]))
@settings(max_examples=100)
def test_a_precision_is_reached_with_the_most_recall(rare, wanted):
    p = np.array(rare)
    if not p.sum():
        return
    reached = [t for t in set(rare) if expected_measures(p, t)[0] >= wanted - 1e-9]
    if not reached:
        with pytest.raises(GalaxyError, match=rf"for class 0: the best is {p.max():.3f}"):
            choose_thresholds(f"precision={wanted}", table_of(p), [0.5, 0.5])
        return
    decision = choose_thresholds(f"precision={wanted}", table_of(p), [0.5, 0.5])
    assert_splits_at(decision.thresholds[0], p, min(reached))


@given(probabilities, st.sampled_from([0.3, 0.7, 0.95]))
@settings(max_examples=100)
def test_a_recall_is_reached_with_the_highest_threshold(rare, wanted):
    p = np.array(rare)
    if not p.sum():
        return
    decision = choose_thresholds(f"recall={wanted}", table_of(p), [0.5, 0.5])
    reached = [t for t in set(rare) if expected_measures(p, t)[1] >= wanted - 1e-9]
    assert_splits_at(decision.thresholds[0], p, max(reached))


@pytest.mark.parametrize("ratio", [0.5, 1, 10, 100])
def test_a_cost_decides_as_the_expected_cost_does(ratio):
    p = np.linspace(0, 1, 1001)
    decided = choose_thresholds(f"cost={ratio}:1", table_of(p), [0.5, 0.5]).classes(table_of(p))
    cost_of_alarm, cost_of_none = 1 - p, ratio * p
    clear = np.abs(cost_of_alarm - cost_of_none) > 1e-6
    np.testing.assert_array_equal((decided == 0)[clear], (cost_of_alarm < cost_of_none)[clear])


def test_balanced_decides_for_the_class_that_is_likeliest_for_its_frequency():
    rng = np.random.default_rng(0)
    proba, priors = rng.dirichlet([0.2, 0.3, 4], size=500), np.array([0.02, 0.08, 0.9])
    decided = choose_thresholds("balanced", proba, priors).classes(proba)
    np.testing.assert_array_equal(decided, (proba / priors).argmax(axis=1))


def test_of_several_classes_the_one_that_exceeds_its_threshold_most_wins():
    decision = Decision("f1", (0.1, 0.4, 0.0))
    proba = np.array([[0.2, 0.45, 0.35], [0.05, 0.45, 0.5], [0.09, 0.3, 0.61], [0.1, 0.0, 0.9]])
    assert decision.classes(proba).tolist() == [0, 1, 2, 0]


def test_a_class_without_labels_is_never_decided():
    proba = np.array([[0.0, 0.6, 0.4], [0.0, 0.1, 0.9]])
    decision = choose_thresholds("f1", proba, [0.0, 0.3, 0.7])
    assert 0 not in decision.classes(proba)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f2", "Unknown rule 'f2'. Choose from: f1, balanced, precision=P"),
        ("f1=3", "Unknown rule"),
        ("precision=1.2", "precision must be above 0 and at most 1, got '1.2'"),
        ("recall=", "recall must be above 0 and at most 1, got ''"),
        ("recall=nan", "recall must be above 0"),
        ("cost=0:1", "cost must be two numbers above 0"),
        ("cost=1:0", "cost must be two numbers above 0"),
        ("cost=a:b", "cost must be two numbers above 0"),
    ],
)
def test_a_rule_that_makes_no_sense_is_one_clear_line(text, message):
    with pytest.raises(InvalidArgument, match=message):
        Rule.parse(text)


@given(st.floats(0.01, 0.6), st.floats(0.01, 0.6), st.integers(0, 50))
@settings(max_examples=50)
def test_another_prevalence_is_bayes_rule(before, after, seed):
    # Two Gaussians: the probability follows from the densities and the prevalence.
    x = np.random.default_rng(seed).normal(size=20)
    densities = np.stack([np.exp(-((x - 1) ** 2) / 2), np.exp(-((x + 1) ** 2) / 2)], axis=1)

    def posterior(prevalence):
        joint = densities * [prevalence, 1 - prevalence]
        return joint / joint.sum(axis=1, keepdims=True)

    found = shifted(posterior(before), np.array([before, 1 - before]), {0: after})
    np.testing.assert_allclose(found, posterior(after), atol=1e-12)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.0, 1.5])
def test_a_prevalence_is_a_share(share):
    with pytest.raises(InvalidArgument, match="A prevalence must be above 0 and below 1"):
        shifted(np.array([[0.5, 0.5]]), np.array([0.1, 0.9]), {0: share})


def test_prevalences_leave_something_for_the_majority_class():
    with pytest.raises(InvalidArgument, match=r"together below 1, got 0\.6, 0\.5"):
        shifted(np.full((1, 3), 1 / 3), np.array([0.1, 0.1, 0.8]), {0: 0.6, 1: 0.5})


def test_the_curve_counts_ties_together():
    curve = ThresholdCurve.of(np.array([0.5, 0.5, 1.0, 0.0]))
    assert curve.thresholds.tolist() == [1.0, 0.5, 0.0]
    assert curve.precision.tolist() == [1.0, 2 / 3, 0.5]
    assert curve.recall.tolist() == [0.5, 1.0, 1.0]
