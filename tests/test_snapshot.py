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


def test_a_snapshot_out_of_a_pickle_is_frozen_too():
    copy = pickle.loads(pickle.dumps(Snapshot(GOOD, [0, -1, -1], skipped=[1])))
    assert copy.askable().tolist() == [2]
    with pytest.raises(ValueError, match="read-only"):
        copy.proba[0, 0] = 1
