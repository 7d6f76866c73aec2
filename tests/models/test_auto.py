"""The default head: its parts put together, its two views, and strange pools."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import Learner
from galaxy_al.metrics import average_precision, balanced_accuracy, calibration_error
from galaxy_al.models import auto
from galaxy_al.models.auto import FEW_DIRECTIONS, AutoTrainer
from galaxy_al.models.effective_rank import effective_rank
from galaxy_al.models.forest import fit_forest
from galaxy_al.models.kernel import KernelTrainer
from galaxy_al.models.log_odds import log_softmax


def pool_of(width, n_classes=3, size=600, seed=0, apart=2.0):
    rng = np.random.default_rng(seed)
    shares = [0.05] * (n_classes - 1) + [1 - 0.05 * (n_classes - 1)]
    truth = np.sort(rng.choice(n_classes, size=size, p=shares))
    centers = apart * rng.normal(size=(n_classes, width)) / np.sqrt(width) * 2
    return rng.normal(size=(size, width)) + centers[truth], truth


def labels_of(truth, count, seed=0):
    chosen = np.random.default_rng(seed).permutation(len(truth))[:count]
    return {int(i): int(truth[i]) for i in chosen}


def uncalibrated(pool, labels, n_classes):
    """Log probabilities before calibration, by the definition."""
    if effective_rank(pool, 0) > FEW_DIRECTIONS:
        trainer = KernelTrainer(n_classes=n_classes, width=0.75, linear=1)
        return log_softmax(trainer.fit(pool, labels).logits(pool))
    trainer = KernelTrainer(n_classes=n_classes, width=0.6, linear=1, per_column=True)
    kernel = trainer.fit(pool, labels)
    known = sorted(labels)
    targets = np.array([labels[i] for i in known])
    trees = fit_forest(pool[known], targets, n_classes, 0)
    return (log_softmax(kernel.logits(pool)) + trees.log_proba(pool)) / 2


@pytest.mark.parametrize("width", [4, 60])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_the_calibrated_average_of_kernel_and_trees(width, n_classes):
    pool, truth = pool_of(width, n_classes)
    labels = labels_of(truth, 200)
    model = AutoTrainer(n_classes=n_classes).fit(pool, labels)
    assert (model.trees is None) == (width == 60)
    logits = uncalibrated(pool, labels, n_classes).astype(np.float64)
    expected = np.exp(log_softmax(model.sharpness * logits))
    np.testing.assert_allclose(model.proba(pool), expected, atol=1e-4)
    known = np.array(sorted(labels))
    with_truth = expected.copy()
    with_truth[known] = np.eye(n_classes)[truth[known]]
    np.testing.assert_allclose(model.class_priors, with_truth.mean(axis=0), atol=1e-4)
    balanced = expected / model.class_priors
    balanced /= balanced.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.balanced(pool), balanced, atol=1e-4)
    snapshot = model.snapshot(pool)
    np.testing.assert_allclose(snapshot.proba, expected, atol=1e-4)
    np.testing.assert_allclose(snapshot.balanced, balanced, atol=1e-4)


def test_columns_that_vary_together_are_few_however_many_they_are():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [100, 500])
    hidden = rng.normal(size=(600, 5)) + 2 * truth[:, None]
    pool = hidden @ rng.normal(size=(5, 200)) + 0.01 * rng.normal(size=(600, 200))
    assert AutoTrainer(n_classes=2).fit(pool, labels_of(truth, 100)).trees is not None
    noise = rng.normal(size=(600, 200))
    assert AutoTrainer(n_classes=2).fit(noise, labels_of(truth, 100)).trees is None


@pytest.mark.parametrize("width", [4, 60])
def test_other_examples_are_scored_like_the_pool(width):
    pool, truth = pool_of(width)
    model = AutoTrainer(n_classes=3).fit(pool, labels_of(truth, 150))
    np.testing.assert_allclose(model.proba(pool.copy()), model.proba(pool), atol=1e-5)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.data())
def test_what_is_kept_between_trainings_changes_nothing(data):
    pool, truth = pool_of(data.draw(st.sampled_from([3, 60])), size=200)
    kept, labels = AutoTrainer(n_classes=3), {}
    for _ in range(3):
        new = data.draw(st.lists(st.integers(0, 199), max_size=25))
        gone = data.draw(st.lists(st.sampled_from(sorted(labels)), max_size=5)) if labels else []
        labels = {i: y for i, y in labels.items() if i not in gone}
        labels |= {i: int(truth[i]) for i in new}
        ours = kept.fit(pool, labels).proba(pool)
        fresh = AutoTrainer(n_classes=3).fit(pool, labels).proba(pool)
        assert (ours == fresh).all()


@pytest.mark.parametrize("width", [4, 60])
def test_classes_without_labels_get_nothing_and_one_alone_tells_nothing(width):
    pool, _ = pool_of(width)
    model = AutoTrainer(n_classes=3).fit(pool, {0: 0, 599: 2, 598: 2})
    assert model.proba(pool)[:, 1].max() < 1e-15
    assert model.class_priors[1] == 0
    assert (model.balanced(pool)[:, 1] == 0).all()
    for labels in ({}, {7: 2}, {7: 2, 8: 2}):
        model = AutoTrainer(n_classes=3).fit(pool, labels)
        assert (model.proba(pool) == np.float32(1 / 3)).all()
        assert (model.snapshot(pool).balanced == np.float32(1 / 3)).all()


@pytest.mark.parametrize("width", [4, 60])
def test_the_two_views_serve_what_they_are_for(width):
    pool, truth = pool_of(width, n_classes=2, size=4000, apart=1.0)
    labels = labels_of(truth, 500)
    model = AutoTrainer(n_classes=2).fit(pool, labels)
    rest = np.setdiff1d(np.arange(4000), list(labels))
    proba, balanced = model.proba(pool)[rest], model.balanced(pool)[rest]
    is_rare = truth[rest] == 0
    assert calibration_error(is_rare, proba[:, 0]) < 0.5 * calibration_error(
        is_rare, balanced[:, 0]
    )
    assert calibration_error(is_rare, proba[:, 0]) < 0.03
    by_proba, by_balanced = (view.argmax(axis=1) for view in (proba, balanced))
    assert balanced_accuracy(truth[rest], by_balanced) > balanced_accuracy(truth[rest], by_proba)
    assert np.count_nonzero(by_balanced == 0) > np.count_nonzero(by_proba == 0)


def test_in_large_pools_trees_look_at_the_likeliest_only(monkeypatch):
    pool, truth = pool_of(5, n_classes=2, size=3000)
    labels = labels_of(truth, 300)
    whole = AutoTrainer(n_classes=2).fit(pool, labels)
    monkeypatch.setattr(auto, "_CANDIDATES", 600)
    part = AutoTrainer(n_classes=2).fit(pool, labels)
    assert np.isfinite(part.trees_from)
    np.testing.assert_allclose(part.proba(pool.copy()), part.proba(pool), atol=1e-5)
    precisions = [average_precision(truth == 0, model.proba(pool)[:, 0]) for model in (whole, part)]
    assert abs(precisions[0] - precisions[1]) < 0.003


def test_the_head_that_strategies_get_belongs_to_the_balanced_view():
    pool, truth = pool_of(60)
    model = AutoTrainer(n_classes=3, keep_head=True).fit(pool, labels_of(truth, 150))
    snapshot = model.snapshot(pool)
    weights, bias = snapshot.head
    logits = snapshot.embeddings @ weights.T + bias
    agree = logits.argmax(axis=1) == snapshot.balanced.argmax(axis=1)
    assert agree.all()


def test_held_out_labels_are_harder_than_seen_ones():
    pool, truth = pool_of(60, n_classes=2, size=2000, apart=0.5)
    model = AutoTrainer(n_classes=2).fit(pool, labels_of(truth, 300))
    held_out = model.held_out
    rows = np.arange(len(held_out.indices))
    seen = model.proba(pool)[held_out.indices][rows, held_out.targets]
    unseen = held_out.proba[rows, held_out.targets]
    assert np.log(unseen).mean() < np.log(seen).mean() - 0.05


@pytest.mark.parametrize(
    "pool",
    [
        np.zeros((30, 3)),
        np.zeros((30, 60)),
        np.repeat(np.eye(3), 10, axis=0),
        np.hstack([np.random.default_rng(0).normal(size=(30, 2)), np.ones((30, 1))]),
        np.random.default_rng(0).normal(size=(30, 1)),
        np.vstack([np.random.default_rng(0).normal(size=(29, 3)), [[1e14, 0, 0]]]),
        np.ones((1, 3)),
    ],
    ids=[
        "all the same",
        "all the same, many columns",
        "copies only",
        "a constant column",
        "one column",
        "one far off",
        "one example",
    ],
)
@pytest.mark.parametrize("every", [3, 29])
def test_strange_pools_are_scored(pool, every):
    labels = {i: (i // every) % 2 for i in range(0, len(pool), every)}
    model = AutoTrainer(n_classes=2).fit(pool, labels)
    for view in (model.proba(pool), model.balanced(pool)):
        assert np.isfinite(view).all()
        np.testing.assert_allclose(view.sum(axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_a_million_examples_of_one_column():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(1_000_000, 1)).astype(np.float32)
    truth = (pool[:, 0] < 3).astype(int)
    chosen = [*rng.permutation(1_000_000)[:100], *np.flatnonzero(truth == 0)[:20]]
    model = AutoTrainer(n_classes=2).fit(pool, {int(i): int(truth[i]) for i in chosen})
    proba = model.proba(pool)[:, 0]
    assert average_precision(truth == 0, proba) > 0.9


def test_auto_is_this_head():
    pool, truth = pool_of(60)
    learner = Learner(pool, 3, strategy="random", batch_size=60)
    for _ in range(60):
        index = learner.ask()
        learner.tell(index, int(truth[index]))
    learner.refit()
    expected = AutoTrainer(n_classes=3).fit(pool, learner.state.labels).proba(pool)
    np.testing.assert_array_equal(learner.proba, expected)
