"""Suspected label errors, against the definition and against labels that were flipped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al.second_look.suspects import FEWEST, find_suspects


@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(2, 5))
@settings(max_examples=50, deadline=None)
def test_suspects_are_those_of_the_definition(seed, n, n_classes):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    labels = rng.integers(0, n_classes, n)
    found = find_suspects(proba, labels)
    counts = [labels.tolist().count(k) for k in range(n_classes)]
    for row, label, error, suggested, is_suspect in zip(
        proba.tolist(), labels.tolist(), found.error, found.suggested, found.is_suspect
    ):
        other = max(range(n_classes), key=lambda k: row[k])
        assert suggested == other
        assert error == pytest.approx(sum(row) - row[label])
        together = row[other] + row[label]
        is_clear = other != label and row[other] / together >= 0.7
        assert is_suspect == (is_clear and counts[label] >= FEWEST)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_most_flipped_labels_are_found_if_the_model_is_right(n_classes):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.03), size=5000)
    truth = np.array([rng.choice(n_classes, p=row) for row in proba])
    is_wrong = rng.random(5000) < 0.1
    labels = np.where(is_wrong, (truth + rng.integers(1, n_classes, 5000)) % n_classes, truth)
    found = find_suspects(proba, labels)
    assert found.is_suspect[is_wrong].mean() > 0.8
    assert found.is_suspect[~is_wrong].mean() < 0.05


def test_a_class_with_few_labels_is_not_suspected():
    proba = np.tile([0.99, 0.01], (100, 1))
    labels = np.zeros(100, dtype=int)
    labels[: FEWEST - 1] = 1  # the model has hardly seen the class
    assert not find_suspects(proba, labels).is_suspect.any()
    labels[FEWEST - 1] = 1
    assert np.flatnonzero(find_suspects(proba, labels).is_suspect).tolist() == list(range(FEWEST))


def test_a_correction_changes_no_other_suspicion():
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.full(3, 0.3), size=200), rng.integers(0, 3, 200)
    before = find_suspects(proba, labels)
    first = int(np.flatnonzero(before.is_suspect)[0])
    labels[first] = before.suggested[first]
    after = find_suspects(proba, labels)
    changed = np.flatnonzero(before.is_suspect != after.is_suspect)
    assert changed.tolist() == [first]


def test_corrections_do_not_make_a_class_unknown():
    proba, labels = np.tile([0.99, 0.01], (100, 1)), np.zeros(100, dtype=int)
    labels[:FEWEST] = 1
    corrected = labels.copy()
    corrected[0] = 0
    found = find_suspects(proba, corrected, labels)
    assert np.flatnonzero(found.is_suspect).tolist() == list(range(1, FEWEST))


def test_probabilities_of_zero_and_one_are_fine():
    proba = np.tile([1.0, 0.0], (20, 1)).astype(np.float32)
    found = find_suspects(proba, np.repeat([0, 1], [15, 5]))
    assert found.error.tolist() == [0.0] * 15 + [1.0] * 5
    assert found.is_suspect.tolist() == [False] * 15 + [True] * 5


def test_without_labels_nothing_is_suspected():
    found = find_suspects(np.empty((0, 2)), np.empty(0, dtype=int))
    assert not len(found.error)
    assert not len(found.is_suspect)
