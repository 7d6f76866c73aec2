"""The state of the labels against four plain sets, and what counts as an answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al import Learner, Snapshot
from galaxy_al.strategies import FairCuts, Galaxy
from galaxy_al.strategies.label_state import LabelState

SIZE = 8
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["tell", "skip", "release", "restore", "withdraw", "hold", "random"]),
        st.integers(0, SIZE - 1),
        st.integers(0, 2),
    ),
    max_size=40,
)


class Naive:
    """The same, written down as what it means."""

    def __init__(self):
        self.labels, self.pending, self.skipped, self.random = {}, set(), set(), set()
        self.n_answers = 0

    def do(self, verb, index, label):
        """Whether it can be done, and do it."""
        before = dict(self.labels), set(self.skipped)
        if verb == "tell":
            self.labels[index] = label
            self.pending -= {index}
            self.skipped -= {index}
        elif verb == "skip":
            self.labels.pop(index, None)
            self.pending -= {index}
            self.skipped |= {index}
        elif verb == "release" and index in self.pending:
            self.pending -= {index}
            self.random -= {index}
        elif verb == "restore" and index in self.skipped:
            self.skipped -= {index}
        elif verb == "withdraw" and index in self.labels:
            del self.labels[index]
        elif verb == "hold" and index not in {*self.labels, *self.pending, *self.skipped}:
            self.pending |= {index}
        elif verb == "random":
            self.random |= {index}
        else:
            return False
        self.n_answers += before != (self.labels, self.skipped)
        return True


class Recorder:
    def __init__(self):
        self.changes, self.releases = [], []

    def on_change(self, index):
        self.changes.append(index)

    def on_release(self, index):
        self.releases.append(index)


def do(state, verb, index, label):
    if verb == "tell":
        state.tell(index, label)
    elif verb == "random":
        state.mark_random(index)
    else:
        getattr(state, verb)(index)


def contents(state):
    parts = state.labels.items(), state.pending, state.skipped, state.random
    return [set(part) for part in parts], state.n_answers


@given(MOVES)
def test_it_is_four_sets_and_a_count_and_reports_every_change(moves):
    state, naive, recorder = LabelState(SIZE, 3), Naive(), Recorder()
    labels, pending = state.labels, state.pending  # live: looked up once
    state.listen(recorder)
    changes, releases = [], []
    for verb, index, label in moves:
        before = contents(naive)[0][:3]
        if not naive.do(verb, index, label):
            with pytest.raises(ValueError, match=f"Example {index}"):
                do(state, verb, index, label)
            continue
        do(state, verb, index, label)
        changes += [index] * (contents(naive)[0][:3] != before)
        releases += [index] * (verb == "release")
    assert contents(state) == contents(naive)
    assert labels == naive.labels
    assert pending == naive.pending
    assert [state.is_free(i) for i in range(SIZE)] == [
        i not in {*naive.labels, *naive.pending, *naive.skipped} for i in range(SIZE)
    ]
    assert state.n_busy == len(naive.labels) + len(naive.pending) + len(naive.skipped)
    assert recorder.changes == changes
    assert recorder.releases == releases


@given(MOVES, MOVES)
def test_a_copy_that_catches_up_is_as_the_original(first, then):
    state, naive = LabelState(SIZE, 3), Naive()
    for move in first:
        if naive.do(*move):
            do(state, *move)
    before = state.copy()
    assert contents(before) == contents(state)
    later = LabelState(SIZE, 3, state.labels, state.skipped)  # a round prepared from it
    for move in then:
        if naive.do(*move):
            do(state, *move)
    later.catch_up(before, state)
    assert contents(later) == contents(state) == contents(naive)


def test_what_is_read_cannot_be_written():
    state = LabelState(3, 2, {0: 1})
    with pytest.raises(TypeError):
        state.labels[1] = 0
    for view in (state.pending, state.skipped, state.random):
        assert not hasattr(view, "add")


@pytest.mark.parametrize(
    ("answers", "count"),
    [
        ([("tell", 0)], 1),
        ([("tell", 0), ("tell", 1)], 2),  # a correction
        ([("tell", 0), ("tell", 0)], 1),  # the same again
        ([("tell", 0), ("withdraw",), ("tell", 0)], 3),  # undone and answered again
        ([("skip",), ("restore",)], 2),
        ([("hold",), ("release",)], 0),
    ],
)
def test_answers_are_counted_by_what_changes(answers, count):
    state = LabelState(3, 2)
    for verb, *arguments in answers:
        getattr(state, verb)(1, *arguments)
    assert state.n_answers == count


@pytest.mark.parametrize("strategy", [Galaxy(), FairCuts(discover=1e9)])
def test_sessions_and_their_helpers_share_one_state(strategy):
    snapshot = Snapshot(np.full((30, 2), 0.5))
    session = strategy.start(snapshot, rng=np.random.default_rng(0))
    session.ask()
    (helper,) = session._helpers.values()
    assert helper.state is session.state


def test_the_learner_shares_the_state_of_its_session_and_keeps_counting_over_rounds():
    embeddings = np.random.default_rng(0).normal(size=(30, 2))
    learner = Learner(embeddings, 2, batch_size=4, explore="random")
    first = [learner.ask() for _ in range(4)]
    for index in first:
        learner.tell(index, index % 2)
    learner.tell(first[0], 1 - first[0] % 2)
    assert learner.state is learner._session.state
    assert learner.state.n_answers == 5
    learner.refit()
    assert learner.state.n_answers == 5
    assert set(first) <= learner.state.random
    learner.state.withdraw(first[0])
    assert learner.state.n_answers == 6
    assert first[0] not in learner.state.labels
