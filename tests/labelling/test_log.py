"""The log: what stands is what a naive replay says; what is written stays written."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.database import Database, RoundRecord
from galaxy_al.labelling.log import Entry, Log

said = st.tuples(
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["label", "skip", "cannot tell", "undo"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["dent", "fine"]),
)


def log_of(script):
    """Entries; an undo takes back what its annotator said last, if there is anything."""
    entries = []
    for number, (annotator, kind, example, label) in enumerate(script, start=1):
        if kind == "undo":
            taken = {entry.undoes for entry in entries}
            mine = [
                entry
                for entry in entries
                if entry.annotator == annotator
                and entry.kind != "undo"
                and entry.number not in taken
            ]
            if mine:
                last = mine[-1]
                entries.append(
                    Entry(annotator, "undo", last.example, undoes=last.number, number=number)
                )
        else:
            label = label if kind == "label" else None
            entries.append(Entry(annotator, kind, example, label, number=number))
    return entries


@given(st.lists(said, max_size=40))
def test_what_stands_is_the_last_that_was_not_taken_back(script):
    entries = log_of(script)
    log = Log(entries)
    taken = {entry.undoes for entry in entries if entry.kind == "undo"}
    left = [entry for entry in entries if entry.kind != "undo" and entry.number not in taken]
    last = {entry.example: entry for entry in left}
    assert {example: log.current(example) for example in "abc" if example in last} == last
    assert all(log.current(example) is None for example in "abc" if example not in last)
    assert log.all_current() == sorted(last.values(), key=lambda entry: entry.number)
    for annotator in ("ann", "bob"):
        mine = [entry for entry in left if entry.annotator == annotator]
        assert log.last_of(annotator) == (mine[-1] if mine else None)
        assert log.count_of(annotator) == len(mine)


def test_entries_come_back_as_they_were_written(tmp_path):
    database = Database(tmp_path / "labels.sqlite")
    first, second = database.add(
        [
            Entry("ann", "label", "x'\"<b>.jpg", "dent", round=3, is_random=True, source="found"),
            Entry("bob", "cannot tell", "y"),
        ]
    )
    assert (first.number, second.number) == (1, 2)
    assert first.created_at.endswith("+00:00")
    (third,) = database.add([Entry("ann", "undo", "x'\"<b>.jpg", undoes=1)])
    database.close()
    again = Database(tmp_path / "labels.sqlite")
    assert list(again.entries()) == [first, second, third]


@pytest.mark.parametrize("verb", ["update entries set label = 'fine'", "delete from entries"])
def test_nothing_in_the_log_can_be_changed(tmp_path, verb):
    database = Database(tmp_path / "labels.sqlite")
    database.add([Entry("ann", "label", "a", "dent")])
    other = sqlite3.connect(tmp_path / "labels.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match="what is written stays"):
        other.execute(verb)
    other.close()
    assert next(database.entries()).label == "dent"


def test_several_entries_are_written_all_or_none(tmp_path):
    database = Database(tmp_path / "labels.sqlite")
    with pytest.raises(GalaxyError, match=r"labels\.sqlite: CHECK constraint failed"):
        database.add([Entry("ann", "label", "a", "dent"), Entry("ann", "guess", "b")])
    assert list(database.entries()) == []


def test_rounds_are_kept(tmp_path):
    database = Database(tmp_path / "labels.sqlite")
    database.add_round(RoundRecord(1, 20, 3, 0.8, 0.7, 0.9, 1.5))
    database.add_round(RoundRecord(2, 40, 5, None, None, None, 1.5))
    assert [record.number for record in database.rounds()] == [1, 2]
    assert database.rounds()[1].accuracy is None


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "labels.sqlite").write_text(
        "this is no database, but long enough to be read as one" * 9
    )
    with pytest.raises(GalaxyError, match=r"labels\.sqlite: file is not a database"):
        Database(tmp_path / "labels.sqlite")
