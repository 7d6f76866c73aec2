"""Calibration against pools whose true probabilities are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_softmax

from galaxy_al.models.calibration import fit_sharpness
from galaxy_al.models.log_odds import rare_log_odds, softmax


def odds_table(log_odds):
    return np.stack([log_odds, np.zeros_like(log_odds)], axis=1)


def test_the_log_odds_of_the_rare_classes_are_against_the_majority_class():
    logits = np.random.default_rng(0).normal(size=(50, 4)) * 5
    proba = np.exp(log_softmax(logits, axis=1))
    rare = proba[:, :3].sum(axis=1)
    np.testing.assert_allclose(rare_log_odds(logits), np.log(rare / proba[:, 3]), atol=1e-9)


def simulated(sharpness, seed, n_labels=2000, size=20_000):
    """A pool whose log odds are ``sharpness`` times those a model says; labels at random."""
    rng = np.random.default_rng(seed)
    said = rng.normal(-1, 2, size=size)
    truth = (rng.random(size) > expit(sharpness * said)).astype(int)
    known = np.sort(rng.permutation(size)[:n_labels])
    return odds_table(said), known, truth


@pytest.mark.parametrize("sharpness", [1.0, 1.3, 1.7])
def test_a_model_that_is_too_cautious_becomes_as_sharp_as_it_should(sharpness):
    logits, known, truth = simulated(sharpness, seed=0)
    assert fit_sharpness(logits[known], truth[known]) == pytest.approx(sharpness, rel=0.1)


@pytest.mark.parametrize("sharpness", [0.5, 0.7])
def test_half_of_a_sharpness_below_one_is_believed(sharpness):
    logits, known, truth = simulated(sharpness, seed=0)
    assert fit_sharpness(logits[known], truth[known]) == pytest.approx(sharpness**0.5, rel=0.1)


def test_the_expected_number_is_right_with_labels_at_random():
    ratios = []
    for seed in range(10):
        logits, known, truth = simulated(1.4, seed)
        calibrated = fit_sharpness(logits[known], truth[known]) * logits
        ratios.append(softmax(calibrated)[:, 0].sum() / np.count_nonzero(truth == 0))
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


@given(st.integers(2, 6), st.integers(0, 100))
def test_few_labels_change_little(n_labels, seed):
    rng = np.random.default_rng(seed)
    targets = np.append([0, 1], rng.integers(2, size=n_labels - 2))
    assert 0.7 < fit_sharpness(odds_table(rng.normal(size=n_labels)), targets) < 1.6


@pytest.mark.parametrize("targets", [[0, 0, 0], [1, 1, 1]])
def test_labels_of_one_side_only_change_nothing(targets):
    logits = odds_table(np.linspace(-3, 3, 3))
    assert fit_sharpness(logits, np.array(targets)) == 1
