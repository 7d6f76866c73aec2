"""One step of Newton's method against fits that leave each label out."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from galaxy_al.models.leave_one_out import leave_one_out

PRECISION = 0.05


def problem(n_classes, size=60, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(size, 4))
    targets = (
        points @ rng.normal(size=(4, n_classes)) + rng.gumbel(size=(size, n_classes))
    ).argmax(1)
    apart = np.square(points[:, None] - points).sum(axis=-1)
    gram = np.exp(-apart / np.median(apart))
    return np.linalg.cholesky(gram + 1e-6 * np.eye(size)), targets


def fit(inputs, targets):
    n_classes = len(np.unique(targets))
    solver = LogisticRegression(
        C=(2 if n_classes == 2 else 1) / PRECISION, tol=1e-7, max_iter=5000
    ).fit(inputs, targets)
    weights, bias = solver.coef_, solver.intercept_
    if n_classes == 2:
        weights, bias = np.append(0 * weights, weights, axis=0), np.append(0 * bias, bias)
    return lambda rows: rows @ weights.T + bias


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "most"), [(2, 0.1), (3, 0.15), (4, 0.2)])
def test_it_is_what_a_fit_without_the_label_says(n_classes, most):
    inputs, targets = problem(n_classes)
    logits = fit(inputs, targets)(inputs)
    rows = np.arange(len(inputs))
    exact = np.array([fit(inputs[rows != i], targets[rows != i])(inputs[i]) for i in rows])
    found = log_softmax(leave_one_out(inputs, logits, targets, PRECISION), axis=1)
    wrong = found - log_softmax(exact, axis=1)
    off_before = log_softmax(logits, axis=1) - log_softmax(exact, axis=1)
    assert np.sqrt(np.mean(wrong**2)) < most
    assert np.sqrt(np.mean(wrong**2)) < 0.25 * np.sqrt(np.mean(off_before**2))


def test_a_label_alone_in_its_corner_is_not_predicted_by_itself():
    inputs = np.diag([1.0, 1.0, 1.0, 1.0, 1.0])
    targets = np.array([0, 0, 1, 1, 1])
    logits = np.stack([np.where(targets == k, 3.0, 0.0) for k in (0, 1)], axis=1)
    found = leave_one_out(inputs, logits, targets, 0.01)
    assert np.isfinite(found).all()
    lead = np.where(targets == 0, found[:, 0] - found[:, 1], found[:, 1] - found[:, 0])
    assert (lead < 3).all()
