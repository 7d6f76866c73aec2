"""The log: what is current is what a naive replay says."""

from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.labelling.log import Entry, Log

answers = st.tuples(
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["label", "skip", "cannot tell", "undo"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["dent", "fine"]),
)


def log_of(script):
    """Entries; an undo undoes the last entry of its annotator, if there is one."""
    entries = []
    for number, (annotator, kind, example, label) in enumerate(script, start=1):
        if kind == "undo":
            undone = {entry.undoes for entry in entries}
            mine = [
                entry
                for entry in entries
                if entry.annotator == annotator
                and entry.kind != "undo"
                and entry.number not in undone
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


@given(st.lists(answers, max_size=40))
def test_the_current_entry_is_the_last_that_was_not_undone(script):
    entries = log_of(script)
    log = Log(entries)
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    left = [entry for entry in entries if entry.kind != "undo" and entry.number not in undone]
    last = {entry.example: entry for entry in left}
    assert {example: log.current(example) for example in "abc" if example in last} == last
    assert all(log.current(example) is None for example in "abc" if example not in last)
    assert log.all_current() == sorted(last.values(), key=lambda entry: entry.number)
    for annotator in ("ann", "bob"):
        mine = [entry for entry in left if entry.annotator == annotator]
        assert log.last_of(annotator) == (mine[-1] if mine else None)
        assert log.count_of(annotator) == len(mine)
