"""Logistic regression against scikit-learn, and its held-out logits against a naive minimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from galaxy_al.models import logistic
from galaxy_al.models.folds import even_folds
from galaxy_al.models.logistic import LogisticFit

PRECISION = 0.05


def problem(n_classes, size=60, seed=0):
    """Features of a kernel, with a class for each."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(size, 4))
    targets = (
        points @ rng.normal(size=(4, n_classes)) + rng.gumbel(size=(size, n_classes))
    ).argmax(1)
    apart = np.square(points[:, None] - points).sum(axis=-1)
    gram = np.exp(-apart / np.median(apart))
    return np.linalg.cholesky(gram + 1e-6 * np.eye(size)).astype(np.float32), targets


def centered(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def reference(inputs, targets):
    n_classes = len(np.unique(targets))
    strength = (2 if n_classes == 2 else 1) / PRECISION
    fitted = LogisticRegression(C=strength, tol=1e-8, max_iter=20_000).fit(
        inputs.astype(np.float64), targets
    )
    logits = inputs @ fitted.coef_.T + fitted.intercept_
    return np.hstack([0 * logits, logits]) if n_classes == 2 else logits


def without_fold(inputs, targets, n_classes, bias):
    """Minimise the definition with fixed biases."""
    rows = np.arange(len(targets))

    def objective(flat):
        weights = flat.reshape(n_classes, -1)
        logs = log_softmax(inputs @ weights.T + bias, axis=1)
        residuals = np.exp(logs)
        residuals[rows, targets] -= 1
        loss = -logs[rows, targets].sum() + PRECISION / 2 * np.square(weights).sum()
        return loss, (residuals.T @ inputs + PRECISION * weights).ravel()

    start = np.zeros(n_classes * inputs.shape[1])
    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-8}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return lambda left_out: left_out @ found.x.reshape(n_classes, -1).T + bias


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_it_is_the_regression_of_scikit_learn(n_classes, monkeypatch):
    inputs, targets = problem(n_classes)
    exact = centered(reference(inputs, targets))
    fit = LogisticFit(inputs, targets, PRECISION)
    assert np.abs(centered(inputs @ fit.weights.T + fit.bias) - exact).max() < 0.1
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-4)
    fit = LogisticFit(inputs, targets, PRECISION)
    assert np.abs(centered(inputs @ fit.weights.T + fit.bias) - exact).max() < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_held_out_logits_are_those_of_fits_without_the_fold(n_classes, monkeypatch):
    monkeypatch.setattr(logistic, "_FOLD_TOLERANCE", 1e-5)
    inputs, targets = problem(n_classes)
    folds = even_folds(targets, seed=0)
    fit = LogisticFit(inputs, targets, PRECISION)
    found = fit.held_out(folds)
    for fold in np.unique(folds):
        out = folds == fold
        exact = without_fold(
            inputs[~out].astype(np.float64), targets[~out], n_classes, fit.bias.astype(np.float64)
        )(inputs[out])
        np.testing.assert_allclose(centered(found[out]), centered(exact), atol=0.01)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_loose_fits_without_a_fold_come_near(n_classes, monkeypatch):
    inputs, targets = problem(n_classes, size=150)
    folds = even_folds(targets, seed=0)
    loose = LogisticFit(inputs, targets, PRECISION).held_out(folds)
    monkeypatch.setattr(logistic, "_FOLD_TOLERANCE", 1e-5)
    exact = LogisticFit(inputs, targets, PRECISION).held_out(folds)
    assert np.sqrt(np.mean(np.square(centered(loose) - centered(exact)))) < 0.05


def test_a_class_whose_only_label_is_left_out_keeps_finite_logits():
    inputs, _ = problem(2, size=20)
    targets = np.array([0] + [1] * 9 + [2] * 10)
    found = LogisticFit(inputs, targets, PRECISION).held_out(np.arange(20) % 5)
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 50


def test_many_labels_give_what_one_block_would(monkeypatch):
    inputs, targets = problem(3, size=90)
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-4)
    whole = LogisticFit(inputs, targets, PRECISION)
    monkeypatch.setattr(logistic, "_CELLS_AT_ONCE", 90 * 7)
    parts = LogisticFit(inputs, targets, PRECISION)
    np.testing.assert_allclose(parts.weights, whole.weights, atol=5e-3)
