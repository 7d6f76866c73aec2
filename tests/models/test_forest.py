"""Trees as arrays against the library that grew them."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from galaxy_al.models.forest import (
    LEAST,
    N_GROVES,
    N_TREES,
    fit_forest,
    held_out_log_proba,
)


def table(n_classes=3, size=300, width=5, seed=0):
    rng = np.random.default_rng(seed)
    targets = rng.integers(n_classes, size=size)
    return rng.normal(size=(size, width)) + rng.normal(size=(n_classes, width))[targets], targets


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_votes_are_those_of_scikit_learn(n_classes):
    rows, targets = table(n_classes)
    new = table(n_classes, size=500, seed=1)[0]
    forest = fit_forest(rows, targets, n_classes, seed=3)
    groves = [
        ExtraTreesClassifier(N_TREES // N_GROVES, random_state=3 * N_GROVES + number)
        for number in range(N_GROVES)
    ]
    votes = [
        grove.fit(rows.astype(np.float32), targets).predict_proba(new.astype(np.float32))
        for grove in groves
    ]
    expected = np.maximum(np.mean(votes, axis=0), LEAST)
    np.testing.assert_allclose(np.exp(forest.log_proba(new)), expected, atol=1e-6)
    assert len(forest.roots) == N_TREES


def test_a_class_without_labels_gets_nothing():
    rows, targets = table(2)
    logs = fit_forest(rows, targets * 2, 3, seed=0).log_proba(rows)
    assert np.exp(logs[:, 1]).max() < 1e-30


def test_columns_that_say_nothing_give_the_shares_of_the_labels():
    rows = np.zeros((8, 2))
    targets = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(
        np.exp(fit_forest(rows, targets, 2, seed=0).log_proba(rows)), [[0.25, 0.75]] * 8, atol=1e-6
    )


def test_held_out_labels_do_not_vote_for_themselves():
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(200, 3)), rng.integers(2, size=200)  # pure noise
    own = fit_forest(rows, targets, 2, seed=0).log_proba(rows).argmax(axis=1)
    assert np.mean(own == targets) == 1
    without = held_out_log_proba(rows, targets, 2, seed=0).argmax(axis=1)
    assert 0.35 < np.mean(without == targets) < 0.65
