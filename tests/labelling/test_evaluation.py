"""Cross-validated balanced accuracy: what it should be, and whether its interval can be trusted."""

import numpy as np
import pytest

from galaxy_al.labelling.evaluation import accuracy_interval, cross_validate
from galaxy_al.metrics import balanced_accuracy
from galaxy_al.models.auto import AutoTrainer


def pool_of(seed, size=3000, apart=2.0, n_columns=4):
    rng = np.random.default_rng(seed)
    truth = (rng.random(size) > 0.1).astype(int)
    step = apart * 0.7 * 2 / np.sqrt(n_columns)
    return (rng.normal(size=(size, n_columns)) + step * (truth == 0)[:, None]), truth


def test_the_interval_is_that_of_jeffreys_prior():
    from scipy.stats import beta

    found = accuracy_interval([(30, 40), (1, 1)])
    exact = beta(30.5, 10.5)
    alone = accuracy_interval([(30, 40)])
    assert alone.accuracy == 0.75
    assert alone.low == pytest.approx(exact.ppf(0.025), abs=0.01)
    assert alone.high == pytest.approx(exact.ppf(0.975), abs=0.01)
    assert found.high - found.low > alone.high - alone.low


def test_a_class_without_labels_can_be_anything():
    found = accuracy_interval([(100, 100), (0, 0)])
    assert found.accuracy == 0.75
    assert found.low < 0.55
    assert found.high > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("n_columns", [4, 60])  # with trees and without
def test_with_labels_at_random_the_interval_holds_the_truth_as_often_as_it_says(n_columns):
    """At least 90 of 100 times, for one of 95%: the trees of the folds have fewer labels."""
    n_inside = 0
    for seed in range(60):
        pool, truth = pool_of(seed, n_columns=n_columns)
        sampled = np.random.default_rng(seed).permutation(len(pool))[:200].tolist()
        labels = {i: int(truth[i]) for i in sampled}
        model = AutoTrainer(n_classes=2).fit(pool, labels)
        found = cross_validate(model, sampled)
        true = balanced_accuracy(truth, model.balanced(pool).argmax(axis=1))
        n_inside += found.low <= true <= found.high
    assert n_inside >= 54


def test_the_majority_class_is_evaluated_on_its_random_labels():
    pool, truth = pool_of(0)
    rng = np.random.default_rng(0)
    sampled = rng.permutation(len(pool))[:100].tolist()
    model = AutoTrainer(n_classes=2).fit(pool, {i: int(truth[i]) for i in sampled})
    unsure = np.argsort(np.abs(model.balanced(pool)[:, 0] - 0.5))[:300].tolist()
    labels = {i: int(truth[i]) for i in {*sampled, *unsure}}
    model = AutoTrainer(n_classes=2).fit(pool, labels)
    fair = cross_validate(model, sampled)
    unfair = cross_validate(model, ())
    assert fair.accuracy > unfair.accuracy + 0.05


def test_one_class_alone_cannot_be_evaluated():
    pool, _ = pool_of(0)
    model = AutoTrainer(n_classes=2).fit(pool, {0: 1, 1: 1})
    assert cross_validate(model, ()) is None


def test_all_correct_is_within_the_interval():
    assert accuracy_interval([(5, 5), (7, 7)]).high == 1
    assert accuracy_interval([(0, 5), (0, 7)]).low == 0
