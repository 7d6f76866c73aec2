"""Looking ahead says what will be asked, and changes nothing; for every strategy."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.strategies import Galaxy, make_strategy
from galaxy_al.strategies.copying import fork
from support.every_strategy import every_strategy, last_layer, some_pool

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "tell", "tell", "skip", "release", "withdraw", "look"]),
        st.integers(0, 1 << 16),
    ),
    max_size=30,
)


def started(strategy, pool, seed):
    proba, _, labels = pool
    snapshot = Snapshot(proba, labels, *last_layer(proba))
    return strategy.start(snapshot, rng=np.random.default_rng(seed), budget=7)


def act(session, truth, action, number):
    """Do something if it can be done, and say what was asked."""
    choices = sorted(session.state.labels if action == "withdraw" else session.state.pending)
    if action == "ask" and len(session.state.labels) + len(session.state.skipped) < 35:
        return session.ask()
    if action in ("tell", "skip", "release", "withdraw") and choices:
        index = choices[number % len(choices)]
        session.tell(index, truth[index]) if action == "tell" else getattr(session.state, action)(
            index
        )
    return None


def told_and_asked(session, index, answer):
    session.skip(index) if answer is None else session.tell(index, answer)
    return session.ask()


def ahead_holds(session, truth, number):
    """Look ahead at a pending example, and do one of what was looked at."""
    if not session.state.pending:
        return
    index = list(session.state.pending)[number % len(session.state.pending)]
    ahead = session.look_ahead(index)
    answer = [*ahead][number % len(ahead)]
    assert told_and_asked(session, index, answer) == ahead[answer]
    return index, answer


def check(strategy, script, seed):
    """One session looks ahead all the time, its twin never does: they ask the same."""
    pool = some_pool(size=50, seed=seed)
    session, twin = (started(strategy(), pool, seed) for _ in range(2))
    for action, number in script:
        if action != "look":
            assert act(session, pool[1], action, number) == act(twin, pool[1], action, number)
        elif session.state.pending:
            done = ahead_holds(session, pool[1], number)
            told_and_asked(twin, *done)
    assert [session.ask() for _ in range(3)] == [twin.ask() for _ in range(3)]
    assert session.state.labels == twin.state.labels
    assert session.state.skipped == twin.state.skipped
    assert session.state.random == twin.state.random


@pytest.mark.slow
@every_strategy
@settings(max_examples=25)
@given(script=ACTIONS, seed=st.integers(0, 20))
def test_what_is_looked_ahead_is_what_is_asked_and_looking_changes_nothing(name, script, seed):
    check(lambda: make_strategy(name), script, seed)


@pytest.mark.slow
@settings(max_examples=50)
@given(ACTIONS, st.integers(0, 20))
def test_it_holds_for_galaxy_in_turn(script, seed):
    check(lambda: Galaxy(across="rotate"), script, seed)


def test_when_nothing_is_left_the_look_ahead_says_so():
    session = make_strategy("galaxy").start(
        Snapshot([[0.9, 0.1], [0.2, 0.8]], labels=[0, -1]), rng=np.random.default_rng(0)
    )
    assert session.look_ahead(session.ask()) == {0: None, 1: None, None: None}


def test_the_look_ahead_is_about_the_pool():
    session = make_strategy("random").start(Snapshot(np.eye(2)), rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="An index must be a whole number 0 to 1, got 2"):
        session.look_ahead(2)


class Node:
    def __init__(self):
        self.me, self.numbers, self.parts = self, [1, 2], {"a": deque([[1], [2]])}
        self.array, self.fixed = np.zeros(3), np.zeros(3)
        self.fixed.flags.writeable = False
        self.same = self.numbers


def test_a_fork_keeps_what_belongs_together_and_shares_what_cannot_change():
    first = Node()
    second = fork(first)
    assert second.me is second
    assert second.same is second.numbers
    assert second.fixed is first.fixed
    second.numbers.append(3)
    second.parts["a"][0].append(3)
    second.array[0] = 1
    assert first.numbers == [1, 2]
    assert first.parts == {"a": deque([[1], [2]])}
    assert first.array.sum() == 0
