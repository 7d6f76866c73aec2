"""Announcements: every event in every state, against the table in the docstring."""

import pytest

from galaxy_al.labelling.announcements import Announcements

AFTER = {0: 4, 1: 5, None: None}


def in_state(state):
    announcements = Announcements()
    if state != "idle":
        announcements.announce("ann", 7, AFTER)
    if state == "promised":
        announcements.answer("ann", 7, 1)
    return announcements


def state_of(announcements):
    """The state of ann, read from outside only."""
    if announcements.annotator_of(4) or announcements.annotator_of(8):
        return "announced"
    return "promised" if announcements.annotator_of(5) else "idle"


EVENTS = {
    "announce": lambda a: a.announce("ann", 5, {0: 8}),
    "answer": lambda a: a.answer("ann", 7, 1),
    "last answer": lambda a: a.answer("ann", 7, None),
    "other answer": lambda a: a.answer("ann", 6, 1),
    "answer of bob": lambda a: a.answer("bob", 7, 1),
    "drop": lambda a: a.drop("ann"),
    "drop question": lambda a: a.drop("ann", 7),
    "drop promised": lambda a: a.drop("ann", 5),
    "drop other": lambda a: a.drop("ann", 6),
    "collect": lambda a: a.collect("ann"),
}
TABLE = {
    "idle": {"announce": "announced"},
    "announced": {
        "answer": "promised",
        "last answer": "idle",
        "drop": "idle",
        "drop question": "idle",
    },
    "promised": {
        "announce": "announced",
        "drop": "idle",
        "drop promised": "idle",
        "collect": "idle",
    },
}


@pytest.mark.parametrize("state", TABLE)
@pytest.mark.parametrize("event", EVENTS)
def test_every_event_leads_where_the_table_says(state, event):
    announcements = in_state(state)
    assert state_of(announcements) == state
    given = EVENTS[event](announcements)
    assert state_of(announcements) == TABLE[state].get(event, state)
    assert given == (5 if (state, event) == ("promised", "collect") else None)


def test_a_new_announcement_replaces_the_old_one():
    announcements = in_state("announced")
    announcements.announce("ann", 7, {0: 8})
    assert announcements.annotator_of(4) is None
    announcements.answer("ann", 7, 0)
    assert announcements.collect("ann") == 8


def test_annotators_do_not_share_announcements():
    announcements = in_state("announced")
    announcements.announce("bob", 3, {0: 9})
    announcements.drop("bob")
    assert (announcements.annotator_of(4), announcements.annotator_of(9)) == ("ann", None)
