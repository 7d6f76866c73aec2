"""Labels that count less than others: what a weight means, and that 1 changes nothing."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from galaxy_al import Learner
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.forest import fit_forest
from galaxy_al.models.heads import make_trainer
from galaxy_al.models.logistic import LogisticFit
from galaxy_al.models.protocols import TrainsWeighted, fit
from galaxy_al.models.words import WordTrainer
from support.projects import blobs

WIDE = np.random.default_rng(1).normal(size=(4, 40)).astype(np.float32)


def pool_of(is_wide, size=200):
    """Vectors that vary in few directions, where trees count, or in many; and labels."""
    vectors, names = blobs(size)
    truth = np.array([["scratch", "dent", "fine"].index(name) for name in names])
    if is_wide:
        rng = np.random.default_rng(2)
        vectors = vectors @ WIDE + rng.normal(size=(size, 40)).astype(np.float32)
    return vectors, {i: int(truth[i]) for i in range(0, size, 3)}


@pytest.mark.parametrize("is_wide", [False, True])
def test_weights_of_one_change_not_a_digit(is_wide):
    pool, labels = pool_of(is_wide)
    plain = AutoTrainer(n_classes=3).fit(pool, labels)
    for weights in ({}, dict.fromkeys(labels, 1.0), {0: 1.0}):
        model = AutoTrainer(n_classes=3).fit_weighted(pool, labels, weights)
        assert np.array_equal(model.proba(pool), plain.proba(pool))
        assert np.array_equal(model.held_out.proba, plain.held_out.proba)


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_wrong_label_counts_the_less_the_smaller_its_weight(is_wide):
    pool, labels = pool_of(is_wide)
    (wrong,) = [i for i, label in labels.items() if label == 2][:1]
    labels[wrong] = 0
    believed = [
        AutoTrainer(n_classes=3).fit_weighted(pool, labels, {wrong: weight}).proba(pool)[wrong, 0]
        for weight in (1.0, 0.5, 0.01)
    ]
    assert believed[0] > believed[1] > believed[2]


def test_a_label_of_weight_two_is_two_labels():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 5)).astype(np.float32)
    targets = (inputs[:, 0] + rng.normal(size=60) > 0).astype(int) + (inputs[:, 1] > 1)
    twice = rng.random(60) < 0.3
    weighted = LogisticFit(inputs, targets, 0.1, np.where(twice, 2.0, 1.0))
    again = np.append(np.arange(60), np.flatnonzero(twice))
    repeated = LogisticFit(inputs[again], targets[again], 0.1)
    logits = [inputs @ fit.weights.T + fit.bias for fit in (weighted, repeated)]
    centered = [table - table.mean(axis=1, keepdims=True) for table in logits]
    assert centered[0] == pytest.approx(centered[1], abs=0.05)


def test_weighted_logistic_regression_is_scikit_learns():
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(80, 4)).astype(np.float32)
    targets = (inputs[:, 0] + rng.normal(size=80) > 0).astype(int)
    weights = rng.uniform(0.1, 1, size=80)
    ours = LogisticFit(inputs, targets, 2.0, weights)
    other = LogisticRegression(C=1.0, tol=1e-10).fit(inputs, targets, sample_weight=weights)
    found = ours.weights[1] - ours.weights[0]
    assert found == pytest.approx(other.coef_[0], abs=0.02)


def test_trees_vote_by_weight():
    rows, targets = np.zeros((4, 1)), np.array([0, 0, 1, 1])
    forest = fit_forest(rows, targets, 2, 0, np.array([1.0, 1.0, 0.25, 0.25]))
    assert np.exp(forest.log_proba(rows[:1]))[0] == pytest.approx([0.8, 0.2], abs=1e-5)


def test_a_trainer_that_knows_no_weights_gets_none():
    class Plain:
        def fit(self, pool, labels):
            return len(labels)

    assert not isinstance(Plain(), TrainsWeighted)
    assert fit(Plain(), None, {0: 1}, {0: 0.5}) == 1


@pytest.mark.parametrize("head", [LogisticRegression(), KNeighborsClassifier(3)])
def test_a_classifier_of_scikit_learn_takes_weights_if_it_can(head):
    pool, labels = pool_of(False)
    plain, half = (
        make_trainer(head, n_classes=3).fit_weighted(pool, labels, weights).snapshot(pool).proba
        for weights in ({}, dict.fromkeys(list(labels)[::2], 0.3))
    )
    assert np.array_equal(plain, half) == isinstance(head, KNeighborsClassifier)


def test_the_words_of_texts_are_weighted_also():
    texts = ["gold rises", "corn falls", "price of corn", "price of gold", "rain", "sun"]
    pool = np.random.default_rng(0).normal(size=(6, 3))
    trainer = WordTrainer(AutoTrainer(n_classes=2), texts)
    labels = {0: 0, 1: 1, 2: 0}
    plain = trainer.fit(pool, labels).proba(pool)
    assert np.array_equal(plain, trainer.fit_weighted(pool, labels, {2: 1.0}).proba(pool))
    assert not np.array_equal(plain, trainer.fit_weighted(pool, labels, {2: 0.1}).proba(pool))


def test_the_learner_passes_weights_on():
    pool, labels = pool_of(True)
    tables = []
    for weights in (None, {}, {0: 0.01, 3: 0.01}):
        learner = Learner(pool, n_classes=3)
        learner.resume(labels, weights=weights)
        tables.append(learner.proba)
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])
