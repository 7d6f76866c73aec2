"""The log: every person's answer is kept, and what counts is what the written rules say."""

from hypothesis import given
from hypothesis import strategies as st

from galaxy_al.labelling.log import IMPORTER, Entry, Log

CLASSES = ("dent", "fine")

answers = st.tuples(
    st.sampled_from(["ann", "bob", IMPORTER]),
    st.sampled_from(["label", "label", "skip", "cannot tell", "undo"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([*CLASSES, "removed"]),
    st.sampled_from(["asked", "found", "review"]),
)


def log_of(script):
    """Entries; an undo undoes the last entry of its annotator, if there is one."""
    entries = []
    for number, (annotator, kind, example, label, source) in enumerate(script, start=1):
        if kind == "undo":
            mine = [entry for entry in left_of(entries) if entry.annotator == annotator]
            if mine:
                last = mine[-1]
                entries.append(
                    Entry(annotator, "undo", last.example, undoes=last.number, number=number)
                )
        else:
            label = label if kind == "label" else None
            entries.append(Entry(annotator, kind, example, label, source=source, number=number))
    return entries


def left_of(entries):
    """The entries that were not undone."""
    undone = {entry.undoes for entry in entries if entry.kind == "undo"}
    return [entry for entry in entries if entry.kind != "undo" and entry.number not in undone]


def naive_answers(left, example):
    """The last entry of each person; an import only if no person has answered."""
    people = {entry.annotator for entry in left if entry.example == example}
    mine = [[e for e in left if (e.annotator, e.example) == (who, example)][-1] for who in people]
    if any(entry.kind != "skip" for entry in mine if entry.annotator != IMPORTER):
        mine = [entry for entry in mine if entry.annotator != IMPORTER]
    return sorted(mine, key=lambda entry: entry.number)


def ranks(entry):
    """The order in which kinds of answers count."""
    if entry.kind == "label":
        return 0 if entry.label in CLASSES else 2
    return 1 if entry.kind == "cannot tell" else 3


def may_count(left, example):
    """The entries of which one counts for an example, by the written rules."""
    of_all = naive_answers(left, example)
    if decided := [e for e in of_all if e.source == "review" and ranks(e) < 2]:
        return decided[-1:]
    own = naive_answers([entry for entry in left if entry.source != "review"], example)
    if labels := [entry for entry in own if ranks(entry) == 0]:
        return [next(e for e in labels if e.label == name) for name in {e.label for e in labels}]
    best = min(map(ranks, of_all))
    return [entry for entry in of_all if ranks(entry) == best][-1:]


@given(st.lists(answers, max_size=40))
def test_what_counts_is_what_the_rules_say(script):
    entries = log_of(script)
    log, left = Log(entries, CLASSES), left_of(entries)
    for example in "abc":
        about = [entry for entry in left if entry.example == example]
        assert log.answers(example) == naive_answers(left, example)
        if len({entry.annotator for entry in about}) == 1:
            assert log.current(example) == about[-1]
        elif about:
            assert log.current(example) in may_count(left, example)
        else:
            assert log.current(example) is None
    current = [log.current(example) for example in "abc"]
    assert log.all_current() == sorted(filter(None, current), key=lambda entry: entry.number)


@given(st.lists(answers, max_size=40))
def test_the_entries_of_each_annotator_are_counted_and_the_last_can_be_undone(script):
    entries = log_of(script)
    log, left = Log(entries, CLASSES), left_of(entries)
    for annotator in ("ann", "bob"):
        mine = [entry for entry in left if entry.annotator == annotator]
        assert log.last_of(annotator) == (mine[-1] if mine else None)
        assert log.count_of(annotator) == len(mine)


@given(st.lists(answers.map(lambda one: ("ann", *one[1:])), max_size=40))
def test_with_one_annotator_the_last_entry_counts_as_it_always_did(script):
    entries = log_of(script)
    log = Log(entries, CLASSES)
    last = {entry.example: entry for entry in left_of(entries)}
    assert {e.example: e for e in log.all_current()} == last


@given(st.lists(answers, max_size=40))
def test_a_log_that_grew_says_the_same_as_one_that_is_read(script):
    grown = Log([], CLASSES)
    for entry in log_of(script):
        grown.add(entry)
        grown.all_current()
    assert grown.all_current() == Log(log_of(script), CLASSES).all_current()


def label(annotator, name, number, **options):
    return Entry(annotator, "label", "a", name, number=number, **options)


def test_a_second_opinion_overwrites_nothing():
    log = Log([label("ann", "dent", 1), label("bob", "fine", 2)])
    assert [entry.label for entry in log.answers("a")] == ["dent", "fine"]
    assert log.current("a").label == "dent"


def test_ones_own_later_answer_replaces_the_earlier_one():
    log = Log([label("ann", "dent", 1), label("bob", "fine", 2), label("ann", "fine", 3)])
    assert [entry.number for entry in log.answers("a")] == [2, 3]
    assert log.current("a").number == 2


def test_a_decision_counts_until_a_later_decision_or_its_own_author_changes_it():
    log = Log([label("ann", "dent", 1), label("bob", "dent", 2)])
    log.add(label("eve", "fine", 3, source="review"))
    log.add(label("dan", "dent", 4))
    assert log.current("a").number == 3
    log.add(label("ann", "scratch", 5, source="review"))
    assert log.current("a").number == 5
    log.add(label("ann", "dent", 6))
    assert log.current("a").number == 3
    log.add(label("eve", "dent", 7, source="found"))
    assert log.current("a").label == "dent"


def test_a_decision_is_not_an_opinion():
    log = Log([label("ann", "dent", 1), label("bob", "fine", 2)])
    log.add(label("ann", "fine", 3, source="review"))
    assert log.shared_labels() == {"a": {"ann": "dent", "bob": "fine"}}
    assert [entry.label for entry in log.answers("a")] == ["fine", "fine"]


def test_an_import_is_replaced_by_any_person_who_answers():
    imported = label(IMPORTER, "dent", 1, source="import")
    assert Log([imported, label("ann", "fine", 2)]).current("a").number == 2
    assert Log([imported, Entry("ann", "cannot tell", "a", number=2)]).current("a").number == 2
    assert Log([imported, Entry("ann", "skip", "a", number=2)]).current("a").number == 1


def test_a_label_outweighs_an_answer_that_says_nothing_about_the_class():
    for kind in ("cannot tell", "skip"):
        for order in ((1, 2), (2, 1)):
            entries = [label("ann", "dent", order[0]), Entry("bob", kind, "a", number=order[1])]
            log = Log(sorted(entries, key=lambda entry: entry.number))
            assert log.current("a").label == "dent"
            assert {entry.kind for entry in log.answers("a")} == {"label", kind}
    both = Log([Entry("ann", "cannot tell", "a", number=1), Entry("bob", "skip", "a", number=2)])
    assert both.current("a").kind == "cannot tell"


def test_the_label_of_a_removed_class_counts_only_alone():
    log = Log([label("ann", "removed", 1)], CLASSES)
    assert log.current("a").number == 1
    log.add(label("bob", "fine", 2))
    assert log.current("a").number == 2


def test_the_same_answer_again_is_a_repetition_whatever_others_answered_meanwhile():
    log = Log([label("ann", "dent", 1), label("bob", "fine", 2)])
    assert log.repeats(label("ann", "dent", 0), 0)
    assert not log.repeats(label("eve", "dent", 0), 0)
    assert not log.repeats(label("ann", "fine", 0), 0)


def test_a_decision_for_ones_own_answer_is_not_a_repetition():
    log = Log([label("ann", "dent", 1), label("bob", "fine", 2)])
    decision = label("ann", "dent", 3, source="review")
    assert not log.repeats(decision, 0)
    log.add(decision)
    assert log.repeats(decision, 0)
    assert log.repeats(label("ann", "dent", 0), 0)
    log.add(label("bob", "fine", 4, source="review"))
    assert not log.repeats(decision, 0)
