"""Suspected label errors, against the likelihood that they maximize and against known flips."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from galaxy_al.second_look.suspects import FEWEST, SUSPECTED_FROM, find_suspects


def flipped_labels(n=2000, n_classes=3, rate=0.1, seed=0):
    """Probabilities that are right, labels of which some were flipped, and which."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.15), size=n)
    truth = np.array([rng.choice(n_classes, p=row) for row in proba])
    is_wrong = rng.random(n) < rate
    labels = np.where(is_wrong, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    return proba, labels, is_wrong


@given(
    st.lists(st.floats(0.001, 0.999), min_size=FEWEST, max_size=40),
)
@settings(max_examples=40, deadline=None)
def test_the_share_of_errors_is_the_likeliest_one(given_proba):
    p = np.array(given_proba)
    proba, labels = np.column_stack([p, 1 - p]), np.zeros(len(p), dtype=int)
    error = find_suspects(proba, labels).error
    found = (error.sum() + 1) / (len(p) + 10)
    shares = np.linspace(0.001, 0.999, 999)
    likelihood = np.log((1 - shares) * p[:, None] + shares * (1 - p[:, None])).sum(axis=0)
    best = shares[(likelihood + beta(2, 10).logpdf(shares)).argmax()]
    assert found == pytest.approx(best, abs=0.003)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.2])
def test_with_two_classes_and_a_right_model_the_chances_of_errors_are_right(rate):
    proba, labels, is_wrong = flipped_labels(n=20_000, n_classes=2, rate=rate)
    error = find_suspects(proba, labels).error
    for low, high in ((0, 0.1), (0.1, 0.35), (0.35, 0.7), (0.7, 1.01)):
        inside = (low <= error) & (error < high)
        spread = 4 * np.sqrt(0.25 / inside.sum()) + 0.03
        assert is_wrong[inside].mean() == pytest.approx(error[inside].mean(), abs=spread)


def test_most_flipped_labels_are_found():
    proba, labels, is_wrong = flipped_labels()
    found = find_suspects(proba, labels)
    assert found.is_suspect[is_wrong].mean() > 0.75
    assert found.is_suspect[~is_wrong].mean() < 0.12


def test_labels_that_the_model_agrees_with_are_not_suspected():
    proba = np.repeat([[0.97, 0.03], [0.03, 0.97]], 100, axis=0)
    found = find_suspects(proba, np.repeat([0, 1], 100))
    assert not found.is_suspect.any()
    assert found.error.max() < 0.05


def test_one_wrong_label_among_many_right_ones_is_suspected():
    proba = np.repeat([[0.995, 0.005], [0.005, 0.995]], 100, axis=0)
    labels = np.repeat([0, 1], 100)
    labels[5] = 1
    found = find_suspects(proba, labels)
    assert np.flatnonzero(found.is_suspect).tolist() == [5]
    assert found.suggested[5] == 0


def test_the_less_likely_a_label_the_more_suspicious_it_is():
    proba, labels, _ = flipped_labels(n=300)
    error = find_suspects(proba, labels).error
    order = proba[np.arange(300), labels].argsort()
    assert (np.diff(error[order]) <= 1e-12).all()
    assert ((error >= 0) & (error <= 1)).all()


def test_the_order_of_the_labels_does_not_matter():
    proba, labels, _ = flipped_labels(n=300)
    order = np.random.default_rng(1).permutation(300)
    found, again = find_suspects(proba, labels), find_suspects(proba[order], labels[order])
    np.testing.assert_allclose(again.error, found.error[order], atol=1e-9)


def test_a_class_with_few_labels_is_not_suspected():
    proba = np.tile([0.99, 0.01], (100, 1))
    labels = np.zeros(100, dtype=int)
    labels[: FEWEST - 1] = 1  # the model has hardly seen the class
    assert not find_suspects(proba, labels).is_suspect.any()
    labels[FEWEST - 1] = 1
    assert find_suspects(proba, labels).is_suspect[:FEWEST].all()


def test_a_label_is_suspected_only_if_the_model_suggests_another_class():
    proba = np.tile([0.4, 0.3, 0.3], (50, 1))  # it hardly knows anything
    found = find_suspects(proba, np.zeros(50, dtype=int))
    assert (found.error > SUSPECTED_FROM).all()
    assert not found.is_suspect.any()


def test_probabilities_of_zero_and_one_are_fine():
    proba = np.tile([1.0, 0.0], (20, 1))
    labels = np.repeat([0, 1], [15, 5])
    found = find_suspects(proba, labels)
    assert found.error.tolist() == [0.0] * 15 + [1.0] * 5
    assert np.isfinite(find_suspects(proba, np.ones(20, dtype=int)).error).all()


def test_without_labels_nothing_is_suspected():
    found = find_suspects(np.empty((0, 2)), np.empty(0, dtype=int))
    assert not len(found.error)
    assert not len(found.is_suspect)
