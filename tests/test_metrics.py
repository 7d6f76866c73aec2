import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from galaxy_al import balanced_accuracy
from galaxy_al.metrics import (
    average_precision,
    brier_score,
    calibration_error,
    confusion,
    log_loss,
    per_class_accuracy,
    rare_average_precision,
    rare_f1,
    rare_found,
    rare_precision,
    rare_recall,
    reliability,
)

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.filterwarnings("ignore:A single label was found")
@given(pairs)
def test_balanced_accuracy_is_the_mean_of_per_class_accuracies(pairs):
    truth, predicted = map(np.array, zip(*pairs, strict=True))
    by_hand = [np.mean(predicted[truth == k] == k) for k in set(truth.tolist())]
    assert balanced_accuracy(truth, predicted) == pytest.approx(np.mean(by_hand))
    assert balanced_accuracy(truth, predicted) == pytest.approx(
        balanced_accuracy_score(truth, predicted)
    )


def test_rare_classes_are_not_pooled():
    # Classes 0 and 1 are rare: all of 0 right, none of 1, all of the majority class 2.
    assert balanced_accuracy([0, 1, 2, 2, 2], [0, 0, 2, 2, 2]) == pytest.approx(2 / 3)


def test_an_absent_class_has_no_accuracy():
    assert np.isnan(per_class_accuracy([0, 2], [0, 2], n_classes=3)[1])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=40))
def test_average_precision_is_that_of_scikit_learn_whatever_is_tied(pairs):
    wanted = np.array([is_wanted for is_wanted, _ in pairs])
    score = np.array([height / 7 for _, height in pairs], dtype=np.float32)
    if wanted.any():
        expected = average_precision_score(wanted, score)
        assert average_precision(wanted, score) == pytest.approx(expected)


def test_average_precision_of_the_rare_is_the_mean_of_theirs():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 50)
    proba = rng.dirichlet(np.ones(3), 50)
    expected = [average_precision_score(truth == k, proba[:, k]) for k in (0, 1)]
    assert rare_average_precision(truth, proba, majority=2) == pytest.approx(np.mean(expected))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="one shape"):
        balanced_accuracy([0, 1], [0])
    for wrong in ([], [0.5, 1], [-1, 0], [[0, 1]]):
        with pytest.raises(ValueError, match="truth must be a list of at least one class"):
            balanced_accuracy(wrong, [0, 1])
    with pytest.raises(ValueError, match="No example is of a rare class"):
        rare_average_precision([1, 1], [[0.5, 0.5], [0.5, 0.5]], majority=1)


@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 99))
def test_confusion_and_f1_are_those_of_scikit_learn(n_classes, size, seed):
    from sklearn.metrics import confusion_matrix, f1_score

    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, n_classes, size=(2, size))
    expected = confusion_matrix(truth, predicted, labels=range(n_classes))
    np.testing.assert_array_equal(confusion(truth, predicted, n_classes), expected)
    rare = [k for k in set(truth.tolist()) if k != 0]
    if rare:
        by_class = f1_score(truth, predicted, labels=rare, average="macro", zero_division=0)
        assert rare_f1(truth, predicted, majority=0) == pytest.approx(by_class)
    labeled = rng.permutation(size)[: size // 2]
    assert rare_found(truth, labeled, majority=0) == sum(truth[i] != 0 for i in labeled)


@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 99))
def test_precision_and_recall_of_all_rare_classes_together_are_those_of_scikit_learn(
    n_classes, size, seed
):
    from sklearn.metrics import precision_score, recall_score

    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, n_classes, size=(2, size))
    majority = n_classes - 1
    rare = list(range(majority))
    together = {"labels": rare, "average": "micro"}
    expected = precision_score(truth, predicted, **together, zero_division=1)
    assert rare_precision(truth, predicted, majority) == pytest.approx(expected)
    if (truth != majority).any():
        expected = recall_score(truth, predicted, **together, zero_division=0)
        assert rare_recall(truth, predicted, majority) == pytest.approx(expected)
    else:
        with pytest.raises(ValueError, match="No example is of a rare class"):
            rare_recall(truth, predicted, majority)


@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 99))
def test_log_loss_and_the_brier_score_are_those_of_scikit_learn(n_classes, size, seed):
    from sklearn.metrics import brier_score_loss
    from sklearn.metrics import log_loss as log_loss_of_scikit_learn

    rng = np.random.default_rng(seed)
    truth, proba = rng.integers(0, n_classes, size), rng.dirichlet(np.ones(n_classes), size)
    expected = log_loss_of_scikit_learn(truth, proba, labels=range(n_classes))
    assert log_loss(truth, proba) == pytest.approx(expected)
    by_hand = np.square(proba - np.eye(n_classes)[truth]).sum(axis=1).mean()
    assert brier_score(truth, proba) == pytest.approx(by_hand)
    # With two classes scikit-learn counts one of them, and both are as much off.
    is_first, first = (truth == 0).astype(int), proba[:, 0]
    expected = 2 * brier_score_loss(is_first, first, pos_label=1)
    assert brier_score(is_first, np.stack([1 - first, first], axis=1)) == pytest.approx(expected)


def test_a_class_that_was_ruled_out_and_came_true_costs_much_but_not_without_end():
    assert log_loss([0], [[0.0, 1.0]]) == pytest.approx(-np.log(1e-15))
    assert brier_score([0], [[0.0, 1.0]]) == 2
    half = np.array([[0.25, 0.75]], dtype=np.float32)
    assert log_loss([0], half) == pytest.approx(np.log(4))
    assert brier_score([0], half) == pytest.approx(2 * 0.75**2)


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 99))
def test_the_calibration_error_is_the_mean_gap_of_bins_of_equal_mass(size, n_bins, seed):
    rng = np.random.default_rng(seed)
    probability = rng.random(size)
    wanted = rng.random(size) < probability**2
    bins = reliability(wanted, probability, n_bins)
    sizes = [count for _, _, count in bins]
    assert len(bins) == min(size, n_bins)
    assert sum(sizes) == size
    assert max(sizes) - min(sizes) <= 1
    said, true, _ = map(np.array, zip(*bins, strict=True))
    assert (np.diff(said) >= 0).all()
    assert said @ sizes == pytest.approx(probability.sum())
    assert true @ sizes == pytest.approx(wanted.sum())
    expected = np.abs(said - true) @ sizes / size
    assert calibration_error(wanted, probability, n_bins) == pytest.approx(expected)


def test_probabilities_that_come_true_have_no_calibration_error():
    rng = np.random.default_rng(0)
    probability = rng.random(200_000)
    wanted = rng.random(200_000) < probability
    assert calibration_error(wanted, probability) < 0.005
    assert calibration_error(wanted, np.sqrt(probability)) == pytest.approx(2 / 3 - 1 / 2, abs=0.01)
