"""Calibration against pools whose true probabilities are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_softmax
from scipy.stats import spearmanr

from galaxy_al.models.calibration import FLAT, START, STEEP, Calibration, fit_calibration
from galaxy_al.models.log_odds import rare_log_odds, softmax


def odds_table(log_odds):
    return np.stack([log_odds, np.zeros_like(log_odds)], axis=1)


def test_the_log_odds_of_the_rare_classes_are_against_the_majority_class():
    logits = np.random.default_rng(0).normal(size=(50, 4)) * 5
    proba = np.exp(log_softmax(logits, axis=1))
    rare = proba[:, :3].sum(axis=1)
    np.testing.assert_allclose(rare_log_odds(logits), np.log(rare / proba[:, 3]), atol=1e-9)


@given(st.floats(0.5, 2), st.floats(0.5, 6), st.integers(2, 5), st.integers(0, 100))
@settings(max_examples=50)
def test_it_bends_only_what_lies_below_the_start(sharpness, slope, n_classes, seed):
    logits = np.random.default_rng(seed).normal(size=(60, n_classes)) * 6
    before = rare_log_odds(sharpness * logits)
    after = logits.copy()
    Calibration(sharpness, slope).apply(after)
    bent = [
        odds
        if odds >= START
        else START + slope * (odds - START)
        if odds >= START - STEEP
        else START - slope * STEEP + FLAT * (odds - START + STEEP)
        for odds in before
    ]
    expected = np.array(bent)
    np.testing.assert_allclose(rare_log_odds(after), expected, atol=1e-9)
    shares = softmax(after[:, :-1].copy()), softmax(sharpness * logits[:, :-1])
    np.testing.assert_allclose(*shares, atol=1e-9)  # among the rare classes nothing changes


def test_it_never_changes_the_order_of_two_classes():
    log_odds = np.random.default_rng(0).normal(size=300) * 4
    table = odds_table(log_odds)
    Calibration(0.8, 3.0).apply(table)
    assert spearmanr(table[:, 0] - table[:, 1], log_odds).statistic == pytest.approx(1)


def simulated(sharpness, seed, n_labels=2000, size=20_000):
    """A pool whose log odds are ``sharpness`` times those a model says; labels at random."""
    rng = np.random.default_rng(seed)
    said = rng.normal(-1, 2, size=size)
    truth = (rng.random(size) > expit(sharpness * said)).astype(int)
    known = np.sort(rng.permutation(size)[:n_labels])
    return odds_table(said), known, truth


@pytest.mark.parametrize("sharpness", [0.6, 1.0, 1.7])
def test_it_finds_how_sharp_the_probabilities_should_be(sharpness):
    logits, known, truth = simulated(sharpness, seed=0)
    found = fit_calibration(logits, logits[known], known, truth[known], has_trees=True)
    assert found.sharpness == pytest.approx(sharpness, rel=0.15)
    half = fit_calibration(logits, logits[known], known, truth[known])
    assert half.sharpness == pytest.approx(found.sharpness**0.5)


def test_the_expected_number_is_right_with_labels_at_random():
    ratios = []
    for seed in range(10):
        logits, known, truth = simulated(1.4, seed)
        calibrated = logits.copy()
        found = fit_calibration(logits, logits[known], known, truth[known], has_trees=True)
        found.apply(calibrated)
        ratios.append(softmax(calibrated)[:, 0].sum() / np.count_nonzero(truth == 0))
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


def test_a_tail_with_some_labels_is_not_believed_empty():
    # All that is likely to be rare has a label; of what is not likely, a tenth.
    rng = np.random.default_rng(0)
    log_odds = np.append(rng.normal(-6, 1, size=20_000), np.full(300, 1.0))
    truth = (rng.random(20_300) > expit(log_odds)).astype(int)
    known = np.append(np.arange(0, 20_000, 10), np.arange(20_000, 20_300))
    logits = odds_table(log_odds)
    calibrated = logits.copy()
    fit_calibration(logits, logits[known], known, truth[known]).apply(calibrated)
    expected = np.delete(softmax(calibrated)[:, 0], known).sum()
    n_left = np.count_nonzero(np.delete(truth, known) == 0)
    assert n_left / 4 < expected < n_left * 1.5


def test_a_tail_that_no_label_confirms_is_made_lighter():
    # Half a percent each, of a hundred thousand examples that are never rare.
    rng = np.random.default_rng(0)
    tail, near = rng.normal(-5.3, 0.3, size=100_000), rng.normal(1, 1, size=1000)
    truth = np.ones(101_000, int)
    truth[100_000:] = rng.random(1000) > expit(near)
    logits = odds_table(np.append(tail, near))
    known = np.append(np.arange(0, 100_000, 1000), np.arange(100_000, 101_000, 3))
    n_left = np.count_nonzero(np.delete(truth, known) == 0)
    before = np.delete(softmax(logits)[:, 0], known).sum()
    calibrated = logits.copy()
    fit_calibration(logits, logits[known], known, truth[known]).apply(calibrated)
    after = np.delete(softmax(calibrated)[:, 0], known).sum()
    assert before > 1.8 * n_left
    assert abs(after - n_left) < 0.3 * abs(before - n_left)


@pytest.mark.parametrize("targets", [[0, 0, 0], [1, 1, 1]])
def test_labels_of_one_side_only_change_nothing(targets):
    logits = odds_table(np.linspace(-3, 3, 30))
    found = fit_calibration(logits, logits[:3], np.arange(3), np.array(targets))
    assert found == Calibration()
