"""The kernel head against its definition, minimised by another solver in another form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from galaxy_al.models import kernel, kernel_space, logistic
from galaxy_al.models.kernel import PRECISION, KernelTrainer
from galaxy_al.models.kernel_space import (
    FARTHEST_LINEAR,
    KernelSpace,
    PoolKernel,
    kernel_times,
)


def pool_of(n_classes=3, size=240, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.integers(n_classes, size=size))
    centers = 2 * rng.normal(size=(n_classes, 4))
    return rng.normal(size=(size, 4)) + centers[truth], truth


def gaussian(rows, columns, width):
    return np.array(
        [[np.exp(-(np.abs(x - z) ** 2).sum() / width**2) for z in columns] for x in rows]
    )


def median_distance(embeddings):
    pairs = [np.linalg.norm(x - z) for i, x in enumerate(embeddings) for z in embeddings[:i]]
    return np.median(np.square(pairs)) ** 0.5


def whole_kernel(embeddings, known, width, linear):
    """The kernel of all examples with some: a Gaussian, and a linear one around the middle."""
    typical = median_distance(embeddings)
    around = (embeddings - embeddings.mean(axis=0)) / typical
    return gaussian(embeddings, embeddings[known], width * typical) + linear * np.array(
        [[x @ z for z in around[known]] for x in around]
    )


def by_definition(embeddings, labels, n_classes, width, linear):
    """Minimise over functions in the kernel's space, written as sums over the labelled examples."""
    known, targets = np.array(list(labels)), np.array(list(labels.values()))
    near = whole_kernel(embeddings, known, width, linear)
    gram = near[known]
    seen, codes = np.unique(targets, return_inverse=True)

    def unpacked(v):
        return v[: -len(seen)].reshape(len(known), len(seen)), v[-len(seen) :]

    def objective(v):
        dual, bias = unpacked(v)
        loss = -log_softmax(gram @ dual + bias, axis=1)[np.arange(len(known)), codes].sum()
        slope = softmax(gram @ dual + bias, axis=1) - np.eye(len(seen))[codes]
        value = loss + PRECISION / 2 * np.trace(dual.T @ gram @ dual)
        return value, np.append(gram @ slope + PRECISION * gram @ dual, slope.sum(axis=0))

    start = np.zeros((len(known) + 1) * len(seen))
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-14, "gtol": 1e-7},
    )
    dual, bias = unpacked(found.x)
    posterior = np.zeros((len(embeddings), n_classes))
    posterior[:, seen] = softmax(near @ dual + bias, axis=1)
    return posterior


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_labels", [10, 80])
@pytest.mark.parametrize(("width", "linear"), [(1, 0), (0.7, 2.0)])
def test_it_is_what_the_definition_says(n_classes, n_labels, width, linear, monkeypatch):
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-4)
    embeddings, truth = pool_of(n_classes)
    chosen = np.random.default_rng(1).permutation(len(truth))[:n_labels]
    labels = {int(i): int(truth[i]) for i in chosen}
    trainer = KernelTrainer(n_classes=n_classes, width=width, linear=linear)
    model = trainer.fit(embeddings, labels)
    expected = by_definition(embeddings, labels, n_classes, width, linear)
    np.testing.assert_allclose(model.proba(embeddings), expected, atol=1e-3)


def test_a_class_without_labels_gets_nothing_and_one_alone_tells_nothing():
    embeddings, _ = pool_of()
    two = KernelTrainer(n_classes=3).fit(embeddings, {0: 0, 239: 2, 238: 2}).proba(embeddings)
    assert two[:, 1].max() < 1e-30
    np.testing.assert_allclose(two.sum(axis=1), 1, atol=1e-6)
    for labels in ({}, {7: 2}, {7: 2, 8: 2}):
        model = KernelTrainer(n_classes=3).fit(embeddings, labels)
        assert (model.proba(embeddings) == np.float32(1 / 3)).all()


def test_choosing_what_to_label_by_the_looks_does_not_mislead_it():
    # The chance of class 0 is a logistic function of x. Most labels are taken around its middle:
    # how many are of class 0 then says nothing about how frequent it is.
    rng = np.random.default_rng(0)
    x = rng.normal(size=20000)
    truth = (rng.random(20000) > 1 / (1 + np.exp(-3 * (x - 2)))).astype(int)
    near = np.flatnonzero((x > 0.5) & (x < 3.5))
    chosen = np.append(rng.choice(near, 400, replace=False), rng.choice(20000, 50))
    labels = {int(i): int(truth[i]) for i in chosen}
    model = KernelTrainer(n_classes=2).fit(x[:, None], labels)
    share = np.mean(truth == 0)
    assert np.mean([y == 0 for y in labels.values()]) > 3 * share
    assert model.proba(x[:, None])[:, 0].mean() == pytest.approx(share, rel=0.25)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_what_is_kept_between_trainings_changes_nothing(data):
    embeddings, truth = pool_of(seed=data.draw(st.integers(0, 3)))
    kept = KernelTrainer(n_classes=3)
    labels = {}
    for _ in range(4):
        new = data.draw(st.lists(st.integers(0, 239), max_size=25))
        gone = data.draw(st.lists(st.sampled_from(sorted(labels)), max_size=5)) if labels else []
        labels = {i: y for i, y in labels.items() if i not in gone}
        labels |= {i: int(truth[i]) for i in new}
        ours = kept.fit(embeddings, labels).proba(embeddings)
        fresh = KernelTrainer(n_classes=3).fit(embeddings, labels).proba(embeddings)
        assert (ours == fresh).all()  # to the last digit: a run that resumes is the one it was


def test_candidates_are_those_likely_to_be_rare_within_bounds(monkeypatch):
    odds = np.linspace(-8, 4, 1201)
    monkeypatch.setattr(kernel, "_CANDIDATES", 100)
    n_likely = np.count_nonzero(1 / (1 + np.exp(-odds)) >= 0.05)
    for most, expected in ((1.0, n_likely), (0.25, 300), (0.0, 100)):
        monkeypatch.setattr(kernel, "_MOST_CANDIDATES", most)
        assert kernel._n_candidates(odds) == expected
    assert kernel._n_candidates(odds[:20]) == 20


@pytest.mark.parametrize("width", [5, 64, 256])
def test_sums_have_the_same_digits_whatever_was_kept_and_in_which_order(width):
    rng = np.random.default_rng(width)
    pool, weights = rng.normal(size=(3000, width)), rng.normal(size=(450, 3))
    space, some = KernelSpace.of(pool, 0), np.sort(rng.permutation(3000)[:450])
    slopes = rng.normal(size=(width, 3)).astype(np.float32)
    fresh = PoolKernel(pool, space).times(some, weights, slopes)
    kept, order = PoolKernel(pool, space), rng.permutation(450)
    for part in (order[:130], order[:230], order[30:333]):
        kept.times(some[np.sort(part)], weights[: len(part)], slopes)
    assert (kept.times(some, weights, slopes) == fresh).all()


@pytest.mark.parametrize("n_kept", [0, 30])
def test_tables_too_large_to_keep_are_made_again(n_kept, monkeypatch):
    embeddings, truth = pool_of()
    labels = {i: int(truth[i]) for i in range(0, 240, 3)}
    expected = KernelTrainer(n_classes=3).fit(embeddings, labels).proba(embeddings)
    monkeypatch.setattr(kernel_space, "_KEPT_BYTES", n_kept * 4 * 240)
    trainer = KernelTrainer(n_classes=3)
    trainer.fit(embeddings, dict(list(labels.items())[:30]))
    model = trainer.fit(embeddings, labels)
    np.testing.assert_allclose(model.proba(embeddings), expected, atol=1e-4)
    assert not trainer._kernel._kept


def test_other_examples_are_scored_like_the_pool():
    embeddings, truth = pool_of()
    model = KernelTrainer(n_classes=3).fit(embeddings, {i: int(truth[i]) for i in range(0, 240, 5)})
    again = model.proba(embeddings.copy()[::-1])[::-1]
    np.testing.assert_allclose(again, model.proba(embeddings), atol=1e-5)


def test_with_too_many_labels_each_class_keeps_as_many_landmarks(monkeypatch):
    embeddings, truth = pool_of(size=900)
    labels = {i: int(truth[i]) for i in range(900) if truth[i] or i % 20 == 0}
    exact = KernelTrainer(n_classes=3).fit(embeddings, labels)
    monkeypatch.setattr(kernel, "MOST_LANDMARKS", 150)
    fewer = KernelTrainer(n_classes=3).fit(embeddings, labels)
    nodes = [np.flatnonzero((embeddings == row).all(axis=1))[0] for row in fewer.landmarks]
    n_first = sum(truth[i] == 0 for i in labels)
    counts = np.bincount(truth[nodes], minlength=3)
    assert len(set(nodes)) == 150
    assert counts[0] == n_first
    assert abs(counts[1] - counts[2]) <= 1
    same = exact.proba(embeddings).argmax(axis=1) == fewer.proba(embeddings).argmax(axis=1)
    assert same.mean() > 0.97


def test_the_last_layer_and_its_inputs_give_the_scores_and_the_distances_of_all_features():
    embeddings, truth = pool_of()
    labels = {i: int(truth[i]) for i in range(0, 240, 5)}
    model = KernelTrainer(n_classes=3).fit(embeddings, labels)
    weights, bias = model.head
    logits = model.features(embeddings) @ weights.T + bias
    np.testing.assert_allclose(softmax(logits, axis=1), model.proba(embeddings), atol=1e-6)
    # In the kernel's space weights w have the norm sum_ij w_i w_j k(i, j): ask for two of them.
    known = np.array(list(labels))
    gram = gaussian(embeddings[known], embeddings[known], median_distance(embeddings))
    dual = np.linalg.solve(gram + 1e-6 * np.eye(len(gram)), logits[known] - bias)
    for one, two in ((0, 1), (1, 2), (0, 2)):
        apart = dual[:, one] - dual[:, two]
        expected = np.sqrt(apart @ gram @ apart)
        assert np.linalg.norm(weights[one] - weights[two]) == pytest.approx(expected, rel=2e-2)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.astype(np.float16),
        lambda table: table.astype(np.float32),
        lambda table: np.asfortranarray(table),
        lambda table: table * 1e-12,
        lambda table: table * 1e12,
    ],
    ids=["half", "single", "columns first", "tiny", "huge"],
)
def test_scale_and_precision_hardly_matter(change):
    embeddings, truth = pool_of()
    labels = {i: int(truth[i]) for i in range(0, 240, 5)}
    expected = KernelTrainer(n_classes=3).fit(embeddings, labels).proba(embeddings)
    changed = change(embeddings)
    np.testing.assert_allclose(
        KernelTrainer(n_classes=3).fit(changed, labels).proba(changed), expected, atol=2e-2
    )


def test_an_offset_does_no_harm():
    embeddings, truth = pool_of()
    labels = {i: int(truth[i]) for i in range(0, 240, 5)}
    expected = KernelTrainer(n_classes=3).fit(embeddings, labels).proba(embeddings)
    moved = embeddings + 1e6
    np.testing.assert_allclose(
        KernelTrainer(n_classes=3).fit(moved, labels).proba(moved), expected, atol=1e-3
    )


@pytest.mark.parametrize(
    "embeddings",
    [
        np.zeros((30, 3)),
        np.repeat(np.eye(3), 10, axis=0),
        np.vstack([np.zeros((28, 3)), np.eye(3)[:2]]),
        np.vstack([np.random.default_rng(0).normal(size=(29, 3)), [[1e14, 0, 0]]]),
        np.ones((1, 3)),
    ],
    ids=["all the same", "three points", "mostly copies", "one far off", "one example"],
)
def test_strange_pools_are_scored(embeddings):
    labels = {i: i % 2 for i in range(0, len(embeddings), 3)}
    proba = KernelTrainer(n_classes=2).fit(embeddings, labels).proba(embeddings)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("size", [1, 100, 511, 512, 1300])
def test_sums_of_kernels_are_those_of_the_definition(size):
    rng = np.random.default_rng(size)
    pool, weights = rng.normal(size=(size, 6)), rng.normal(size=(min(size, 70), 3))
    space = KernelSpace.of(pool, 0)
    some = rng.permutation(size)[: len(weights)]
    placed = (pool - space.middle) / space.scale
    placed[::7] *= 20  # far off: the linear kernel counts them as nearer
    lengths = np.linalg.norm(placed, axis=1, keepdims=True)
    bounded = placed * np.minimum(1, FARTHEST_LINEAR / np.maximum(lengths, 1e-9))
    gram = gaussian(placed, placed[some], 1) + 0.3 * bounded @ bounded[some].T
    pool = placed * space.scale + space.middle
    kernel = PoolKernel(pool, space, linear=0.3)
    np.testing.assert_allclose(kernel.between(np.arange(size), some), gram, atol=1e-6)
    slopes = kernel.slopes(some, weights)
    streamed = kernel_times(space, pool, pool[some], weights, slopes)
    np.testing.assert_allclose(streamed, gram @ weights, atol=1e-3)
    np.testing.assert_allclose(kernel.times(some, weights, slopes), gram @ weights, atol=1e-3)


def test_columns_can_be_scaled_one_by_one():
    pool, truth = pool_of()
    stretched = pool * [1, 100, 1e-3, 1]
    labels = {i: int(truth[i]) for i in range(0, 240, 5)}
    expected = KernelTrainer(n_classes=3, per_column=True).fit(pool, labels).proba(pool)
    found = KernelTrainer(n_classes=3, per_column=True).fit(stretched, labels).proba(stretched)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    plain = KernelTrainer(n_classes=3).fit(stretched, labels).proba(stretched)
    assert np.abs(plain - expected).max() > 0.05


def large_pool_model(monkeypatch, coarse):
    pool, truth = pool_of(n_classes=2, size=3000)
    rng = np.random.default_rng(0)
    labels = {int(i): int(truth[i]) for i in rng.permutation(3000)[:400]}
    monkeypatch.setattr(kernel_space, "_KEPT_BYTES", 0)
    monkeypatch.setattr(kernel, "MOST_COARSE", coarse)
    monkeypatch.setattr(kernel, "_CANDIDATES", 500)
    monkeypatch.setattr(kernel, "_MOST_CANDIDATES", 0.0)
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-4)
    return pool, KernelTrainer(n_classes=2).fit(pool, labels)


def test_in_a_large_pool_all_landmarks_count_for_the_candidates(monkeypatch):
    pool, whole = large_pool_model(monkeypatch, coarse=400)
    _, model = large_pool_model(monkeypatch, coarse=200)
    assert whole.coarse is None
    exact, found = whole.logits(pool), model.logits(pool)
    odds = found[:, 0] - found[:, 1]
    top = np.argsort(-odds)[:450]
    np.testing.assert_allclose(found[top], exact[top], atol=1e-3)
    np.testing.assert_allclose(found, exact, atol=0.5)  # the others come near
    assert np.abs(found - exact).max() > 1e-3
    np.testing.assert_allclose(model.logits(pool.copy()), found, atol=1e-4)


def test_the_coarse_function_is_the_nearest_one_in_its_span(monkeypatch):
    _, model = large_pool_model(monkeypatch, coarse=200)
    points = (model.landmarks - model.space.middle) / model.space.scale
    some = model.coarse.landmarks
    gram = gaussian(points, points, 1)
    apart = model.axes.astype(np.float64).copy()
    apart[some] -= model.coarse.axes
    # What is left over is orthogonal to every landmark of the span.
    assert np.abs(gram[some] @ apart).max() < 1e-3
