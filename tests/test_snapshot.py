import dataclasses
import pickle

import numpy as np
import pytest

from galaxy_al import Snapshot

GOOD = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_tables_are_used_where_they_lie_and_cannot_be_written(dtype, order):
    proba = np.asarray(GOOD, dtype=dtype, order=order)
    labels = np.array([0, -1, 1], dtype=np.int8)
    snapshot = Snapshot(proba, labels)
    assert np.shares_memory(snapshot.proba, proba)
    assert np.shares_memory(snapshot.labels, labels)
    with pytest.raises(ValueError, match="read-only"):
        snapshot.proba[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.proba = proba


def test_a_read_only_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "proba.npy", GOOD)
    table = np.load(tmp_path / "proba.npy", mmap_mode="r")
    assert np.shares_memory(Snapshot(table).proba, table)


def test_lists_integers_and_half_precision_are_accepted():
    assert Snapshot([[1, 0], [0, 1]]).proba.dtype == np.float64
    assert Snapshot(GOOD.astype(np.float16)).proba.dtype == np.float64


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        (np.zeros((0, 2)), r"got shape \(0, 2\)"),
        (np.ones((3, 1)), r"got shape \(3, 1\)"),
        (np.ones(3), r"got shape \(3,\)"),
        ([[0.5, 0.5], [np.nan, 0.5]], r"row 1 is \[nan, 0.5\]"),
        ([[0.5, 0.5], [0.5, 0.5], [1.5, -0.5]], r"row 2 is \[ 1.5, -0.5\]"),
        ([[0.5, 0.6], [0.5, 0.5]], r"row 0 is \[0.5, 0.6\], summing to 1.1"),
        ([[np.inf, 0.5]], "row 0"),
        ([[np.inf, -np.inf]], "row 0"),
        ([["0.5", "0.5"]], "table of numbers"),
        ([[0.5 + 0j, 0.5]], "table of numbers"),
        (np.ma.masked_less(GOOD, 0.2), "must not be a masked array"),
    ],
)
def test_a_bad_table_is_refused_with_its_shape_or_first_bad_row(proba, message):
    with pytest.raises(ValueError, match=message):
        Snapshot(proba)


def test_the_first_bad_row_is_named_in_a_large_table_too():
    proba = np.full((200_000, 2), 0.5)
    proba[150_001] = [2, -1]
    proba[150_777] = np.nan
    with pytest.raises(ValueError, match="row 150001 is"):
        Snapshot(proba)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], r"shape \(3,\) like proba, got \(2,\)"),
        ([0.0, 1.0, 1.0], "integers, got dtype float64"),
        ([0, 2, 1], r"classes 0 to 1.*labels\[1\] is 2"),
        ([0, 1, -2], r"labels\[2\] is -2"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        Snapshot(GOOD, labels)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"embeddings": np.zeros((2, 4))}, "3 rows like proba"),
        ({"embeddings": [["a"], ["b"], ["c"]]}, "table of floats"),
        ({"head": (np.zeros((3, 4)), np.zeros(2))}, r"\(2, d\)"),
        ({"other": 2}, "class 0 to 1, got 2"),
        ({"skipped": [3]}, "indices 0 to 2"),
        ({"skipped": [0.5]}, "list of indices"),
        ({"skipped": [0], "labels": [1, -1, -1]}, "Example 0 is skipped and has a label"),
        ({"other": 0.5}, r"class 0 to 1, got 0\.5"),
        ({"labels": np.ma.masked_equal([0, 1, 1], 1)}, "must not be a masked array"),
        ({"class_priors": [1.0]}, r"class_priors must be 2 numbers of at least 0, .* got \[1.0\]"),
        ({"class_priors": [[0.5, 0.5]]}, "class_priors must be 2 numbers"),
        ({"class_priors": [0.5, -0.5]}, "numbers of at least 0"),
        ({"class_priors": [0, 0]}, "not all 0"),
        ({"class_priors": [0.5, np.nan]}, "class_priors must be 2 numbers"),
        ({"class_priors": [0.5, np.inf]}, "class_priors must be 2 numbers"),
    ],
)
def test_other_bad_fields_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Snapshot(GOOD, **fields)


def test_the_big_class_is_the_last_unless_said_otherwise():
    assert Snapshot(GOOD).other == 1
    assert Snapshot(GOOD, other=0).other == 0


def test_labeled_and_askable_leave_out_what_they_should():
    snapshot = Snapshot(GOOD, [0, -1, -1], skipped=[2])
    assert snapshot.labeled().tolist() == [0]
    assert snapshot.askable().tolist() == [1]
    later = snapshot.updated({1: 1}, {0})
    assert later.labels.tolist() == [-1, 1, -1]
    assert later.askable().tolist() == [2]


def test_what_is_skipped_may_be_a_set():
    assert Snapshot(GOOD, skipped={2, 0}).askable().tolist() == [1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_balanced_probabilities_are_divided_by_the_class_priors(dtype):
    rng = np.random.default_rng(0)
    proba, priors = rng.dirichlet([1, 2, 9], 500).astype(dtype), np.array([0.05, 0.15, 0.8])
    snapshot = Snapshot(proba, class_priors=priors)
    by_hand = proba / priors
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(snapshot.balanced, by_hand, rtol=1e-5)
    assert snapshot.balanced.dtype == dtype
    assert np.shares_memory(snapshot.proba, proba)  # which stays as it was
    with pytest.raises(ValueError, match="read-only"):
        snapshot.balanced[0, 0] = 1
    counts = Snapshot(proba, class_priors=[5, 15, 80])  # only how they compare matters
    np.testing.assert_allclose(counts.balanced, snapshot.balanced, rtol=1e-5)


def test_without_class_priors_the_probabilities_are_balanced_already():
    snapshot = Snapshot(GOOD)
    assert snapshot.class_priors is None
    assert snapshot.balanced is snapshot.proba
    equal = Snapshot(GOOD, class_priors=[0.5, 0.5])
    np.testing.assert_allclose(equal.balanced, GOOD)


def test_a_class_that_never_occurs_has_no_balanced_probability_and_no_row_is_lost():
    proba = [[0.2, 0.0, 0.8], [0.2, 0.3, 0.5], [0.0, 1.0, 0.0]]
    balanced = Snapshot(proba, class_priors=[0.1, 0, 0.9]).balanced
    np.testing.assert_allclose(balanced[0], np.array([2, 0, 8 / 9]) / (2 + 8 / 9))
    np.testing.assert_allclose(balanced[1], np.array([2, 0, 5 / 9]) / (2 + 5 / 9))
    np.testing.assert_array_equal(balanced[2], proba[2])  # nothing else is possible


def test_new_labels_change_neither_view():
    snapshot = Snapshot(GOOD, class_priors=[0.1, 0.9])
    later = snapshot.updated({1: 1}, {0})
    np.testing.assert_array_equal(later.class_priors, [0.1, 0.9])
    np.testing.assert_array_equal(later.balanced, snapshot.balanced)
    copy = pickle.loads(pickle.dumps(later))
    np.testing.assert_array_equal(copy.balanced, snapshot.balanced)


def test_a_snapshot_out_of_a_pickle_is_frozen_too():
    copy = pickle.loads(pickle.dumps(Snapshot(GOOD, [0, -1, -1], skipped=[1])))
    assert copy.askable().tolist() == [2]
    with pytest.raises(ValueError, match="read-only"):
        copy.proba[0, 0] = 1
