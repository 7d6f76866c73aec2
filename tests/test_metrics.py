import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from galaxy_al import balanced_accuracy
from galaxy_al.metrics import (
    average_precision,
    confusion,
    per_class_accuracy,
    rare_average_precision,
    rare_f1,
    rare_found,
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
