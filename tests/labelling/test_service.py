"""The desk: several annotators, leases, undo, training beside them, and starting again."""

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from galaxy_al import PoolExhausted
from galaxy_al.errors import Taken
from galaxy_al.labelling.service import Desk
from support.projects import small_project

ANNOTATORS = ("ann", "bob", "eve")


@pytest.fixture
def project(tmp_path):
    return small_project(tmp_path)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def code(desk, name):
    return desk.project.classes.index(name)


def answer(desk, truth, annotator):
    """Get an example and label it rightly."""
    index = desk.next(annotator)
    desk.label(annotator, [(index, code(desk, truth[desk.project.pool.ids[index]]))])
    return index


def begun(project, n_labels=15):
    """A desk at which some labels were given."""
    desk = Desk(project[0])
    for _ in range(n_labels):
        answer(desk, project[1], "ann")
    desk.wait()
    return desk


def slow_training(desk, monkeypatch):
    """Trainings end only when what this gives is set."""
    go, prepare = threading.Event(), desk.learner.prepare_round

    def slow(*args, **kwargs):
        ready = prepare(*args, **kwargs)
        go.wait()
        return ready

    monkeypatch.setattr(desk.learner, "prepare_round", slow)
    return go


def test_an_example_stays_ones_own_until_it_is_answered(project):
    desk = Desk(project[0])
    first = desk.next("ann")
    assert desk.next("ann") == first
    assert desk.next("bob") != first
    desk.label("ann", [(first, 0)])
    assert desk.next("ann") not in (first, desk.next("bob"))
    desk.close()


def test_training_starts_by_itself_and_the_strategy_takes_over(project):
    desk = Desk(project[0])
    assert desk.learner.is_exploring
    while desk.round < 3:
        answer(desk, project[1], "ann")
        desk.wait()
    assert not desk.learner.is_exploring
    assert [record.number for record in desk.rounds] == [1, 2, 3]
    assert desk.rounds[-1].n_labels >= 20
    desk.close()


def test_labels_given_while_training_runs_carry_over(project, monkeypatch):
    desk = begun(project)
    go = slow_training(desk, monkeypatch)
    desk.train()
    assert desk.training.is_running
    given_meanwhile = [answer(desk, project[1], "ann") for _ in range(5)]
    skipped = desk.next("ann")
    desk.skip("ann", skipped, for_good=True)
    withdrawn = desk.undo("bob")
    held = desk.next("bob")
    go.set()
    desk.wait()
    assert withdrawn is None
    assert set(given_meanwhile) <= desk.learner.labels.keys()
    assert skipped in desk.learner.skipped
    assert held in desk.learner.pending
    assert desk.next("bob") == held
    desk.close()


def test_a_training_that_fails_is_told_and_labelling_goes_on(project, monkeypatch):
    desk = Desk(project[0])

    def broken(*args, **kwargs):
        raise MemoryError("no room")

    monkeypatch.setattr(desk.learner, "prepare_round", broken)
    desk.train()
    desk.wait()
    assert desk.training.problem == "no room"
    answer(desk, project[1], "ann")
    desk.close()


def test_a_lease_that_runs_out_frees_the_example(project):
    clock = Clock()
    desk = Desk(project[0], lease_seconds=60, clock=clock)
    index = desk.next("ann")
    clock.now = 59
    desk.heard_of("ann")
    clock.now = 100
    desk.heard_of("bob")
    assert desk.leases.holder(index) == "ann"
    clock.now = 120
    assert desk.next("bob") == index
    with pytest.raises(Taken, match="Somebody else is looking at"):
        desk.label("ann", [(index, 0)])
    desk.close()


def test_who_closes_the_page_gives_back_what_they_had(project):
    desk = Desk(project[0])
    index = desk.next("ann")
    desk.leave("ann")
    assert desk.next("bob") == index
    desk.close()


def test_undo_goes_back_any_number_of_steps(project):
    desk = Desk(project[0])
    asked = [answer(desk, project[1], "ann") for _ in range(12)]
    desk.wait()
    for index in reversed(asked):
        assert desk.undo("ann") == index
        assert desk.next("ann") == index
        assert index not in desk.learner.labels
    assert desk.undo("ann") is None
    assert desk.learner.labels == {}
    desk.close()


def test_an_undo_brings_back_what_stood_before(project):
    desk = Desk(project[0])
    index = desk.next("ann")
    desk.label("ann", [(index, 0)])
    desk.label("bob", [(index, 1)], how="found")
    assert desk.learner.labels == {index: 1}
    desk.undo("bob")
    assert desk.learner.labels == {index: 0}
    desk.close()


def test_a_skip_is_until_the_next_training_and_cannot_tell_is_for_good(project):
    desk = Desk(project[0])
    for _ in range(10):
        answer(desk, project[1], "ann")
    desk.wait()
    first, second = desk.next("ann"), desk.next("bob")
    desk.skip("ann", first)
    desk.skip("bob", second, for_good=True)
    assert desk.learner.skipped == {first, second}
    desk.train()
    desk.wait()
    assert desk.learner.skipped == {second}
    desk.close()
    again = Desk(project[0])
    assert again.learner.skipped == {second}
    again.close()


def test_looking_ahead_says_what_comes(project):
    desk = Desk(project[0])
    for _ in range(30):
        answer(desk, project[1], "ann")
        desk.wait()
    for _ in range(5):
        index = desk.next("ann")
        ahead = desk.look_ahead("ann")
        truth = code(desk, project[1][desk.project.pool.ids[index]])
        desk.label("ann", [(index, truth)])
        if not desk.training.is_running:
            assert desk.next("ann") == ahead[truth]
        desk.wait()
    assert desk.look_ahead("nobody") == {}
    desk.close()


def test_with_others_at_work_an_example_is_set_aside(project):
    desk = Desk(project[0])
    first, other = desk.next("ann"), desk.next("bob")
    ahead = desk.look_ahead("ann")
    aside = ahead[0]
    assert set(ahead.values()) == {aside}
    assert ahead.keys() == {0, 1, 2, None}
    assert desk.look_ahead("bob")[0] not in (first, other, aside)
    assert desk.look_ahead("ann") == ahead
    desk.label("ann", [(first, 0)])
    assert desk.next("ann") == aside
    desk.leave("ann")
    assert desk.leases.holder(aside) is None
    desk.close()


def test_everything_can_be_labelled_and_then_nothing_is_left(tmp_path):
    project, truth = small_project(tmp_path, size=60)
    desk = Desk(project)
    for _ in range(60):
        answer(desk, truth, "ann")
    with pytest.raises(PoolExhausted):
        desk.next("ann")
    assert {
        project.pool.ids[i]: project.classes[y] for i, y in desk.learner.labels.items()
    } == truth
    desk.wait()
    desk.close()


def test_an_answer_that_comes_too_late_replaces_nothing(project):
    clock = Clock()
    desk = Desk(project[0], lease_seconds=60, clock=clock)
    index = desk.next("ann")
    clock.now = 61
    assert desk.next("bob") == index
    desk.label("bob", [(index, 1)])
    with pytest.raises(Taken, match="Somebody else has answered"):
        desk.skip("ann", index, for_good=True)
    with pytest.raises(Taken, match="Somebody else has answered"):
        desk.label("ann", [(index, 0)])
    assert desk.learner.labels == {index: 1}
    desk.label("ann", [(index, 0)], how="found")  # on purpose
    assert desk.learner.labels == {index: 0}
    desk.close()


def test_an_answer_that_comes_twice_is_one(project):
    desk = Desk(project[0])
    index = desk.next("ann")
    desk.label("ann", [(index, 0)])
    desk.label("ann", [(index, 0)])
    assert desk.ledger.count_of("ann") == 1
    assert desk.undo("ann") == index
    assert desk.learner.labels == {}
    desk.close()


def test_what_is_said_of_a_skipped_example_while_training_runs_stands(project, monkeypatch):
    desk = begun(project)
    index = desk.next("ann")
    desk.skip("ann", index)
    go = slow_training(desk, monkeypatch)
    desk.train()
    assert desk.undo("ann") == index
    desk.skip("ann", index, for_good=True)
    go.set()
    desk.wait()
    assert index in desk.learner.skipped
    desk.close()


def test_an_undo_does_not_bring_back_the_skip_of_an_earlier_round(project):
    desk = begun(project)
    index = desk.next("ann")
    desk.skip("ann", index)
    desk.train()
    desk.wait()
    desk.label("ann", [(index, 0)], how="found")
    assert desk.undo("ann") == index
    assert desk.next("ann") == index
    desk.close()


def test_a_round_that_cannot_be_written_is_told_and_training_goes_on(project, monkeypatch):
    desk = Desk(project[0])
    write = desk._store.add_round

    def full(record):
        raise OSError("the disk is full")

    monkeypatch.setattr(desk._store, "add_round", full)
    desk.train()
    desk.wait()
    assert (desk.training.is_running, desk.training.problem) == (False, "the disk is full")
    assert desk.round == 0
    monkeypatch.setattr(desk._store, "add_round", write)
    desk.train()
    desk.wait()
    assert (desk.round, desk.training.problem) == (1, "")
    desk.close()


def test_what_was_foretold_is_given_though_a_training_ended_meanwhile(project):
    desk = begun(project, n_labels=30)
    for _ in range(10):
        index = desk.next("ann")
        ahead = desk.look_ahead("ann")
        desk.train()
        desk.wait()
        desk.label("ann", [(index, 0)])
        desk.wait()
        assert desk.next("ann") == ahead[0]
        assert desk.learner.pending == [ahead[0]]
    desk.close()


def test_what_was_foretold_is_given_though_somebody_came_meanwhile(project):
    desk = begun(project, n_labels=30)
    index = desk.next("ann")
    ahead = desk.look_ahead("ann")
    bob = {desk.next("bob"), desk.look_ahead("bob")[0]}
    assert bob.isdisjoint(ahead.values())
    desk.label("ann", [(index, 1)])
    assert desk.next("ann") == ahead[1]
    assert desk.look_ahead("ann")[0] not in {*bob, ahead[1]}
    desk.close()


def test_what_was_foretold_last_counts(project):
    for seed in range(6):
        desk = begun(project, n_labels=20 + seed)
        index = desk.next("ann")
        desk.look_ahead("ann")
        desk.next("bob")
        ahead = desk.look_ahead("ann")  # as when the page is loaded again
        desk.label("ann", [(index, 2)])
        assert desk.next("ann") == ahead[2]
        for who in ("ann", "bob"):
            desk.leave(who)
        desk.close()


def test_after_a_restart_everybody_has_again_what_they_look_at(project):
    desk = begun(project, n_labels=30)
    before = {who: desk.next(who) for who in ANNOTATORS}
    desk.close()
    again = Desk(project[0])
    other = again.next("somebody new")
    for who, index in before.items():
        if index != other:
            again.heard_of(who, index)
            assert again.next(who) == index
    with pytest.raises(Taken, match="no longer to be answered"):
        again.heard_of("ann", other)
    again.close()


def test_skips_count_towards_the_next_training(project):
    desk = begun(project, n_labels=30)
    rounds = desk.round
    for _ in range(40):
        desk.skip("ann", desk.next("ann"), for_good=True)
        desk.wait()
    assert desk.round >= rounds + 2
    desk.close()


def test_what_somebody_else_has_labelled_is_not_given_though_foretold(project):
    desk = begun(project, n_labels=30)
    index = desk.next("ann")
    ahead = desk.look_ahead("ann")
    desk.label("bob", [(ahead[1], 1)], how="found")
    desk.label("ann", [(index, 1)])
    assert desk.next("ann") != ahead[1]
    desk.close()


def test_training_does_not_change_what_was_foretold(project, monkeypatch):
    desk = Desk(project[0])
    while desk.learner.is_exploring:
        answer(desk, project[1], "ann")
        desk.wait()
    monkeypatch.setattr(desk.learner, "go_on", lambda ready: None)
    for _ in range(20):
        index = desk.next("ann")
        ahead = desk.look_ahead("ann")
        desk.train()
        desk.wait()
        truth = code(desk, project[1][desk.project.pool.ids[index]])
        desk.label("ann", [(index, truth)])
        desk.wait()
        assert desk.next("ann") == ahead[truth]
    desk.close()


def test_only_what_was_asked_by_chance_counts_as_drawn(project):
    desk = Desk(project[0])
    index = desk.learner.ask()
    desk.learner._session._drawn.add(index)
    desk.learner._drawn_before.add(index)
    desk.learner.release(index)
    assert index not in desk.learner.drawn
    desk.learner._drawn_before.add(index)
    desk.label("ann", [(index, 0)], how="found")
    assert not desk.ledger.standing(desk.project.pool.ids[index]).drawn
    desk.close()


actions = st.lists(
    st.tuples(
        st.sampled_from(["next", "next", "label", "label", "skip", "cannot tell", "undo"])
        | st.sampled_from(["leave", "found", "wait", "restart"]),
        st.sampled_from(ANNOTATORS),
        st.integers(0, 59),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=actions)
def test_nobody_has_the_same_example_and_the_log_says_it_all(tmp_path_factory, script):
    project, _ = small_project(tmp_path_factory.mktemp("p"), size=60, batch_size=7)
    desk, acknowledged, has, ahead, promised = Desk(project), [], {}, {}, {}
    for action, who, number in script:
        if action == "next":
            is_told = promised.get(who) is not None
            is_free = promised.get(who) not in {*desk.learner.labels, *desk.learner.skipped}
            try:
                has[who] = desk.next(who)
            except PoolExhausted:
                continue
            assert [*has.values()].count(has[who]) == 1
            assert has[who] == promised.pop(who, None) or not (is_told and is_free)
            ahead[who] = desk.look_ahead(who) if number % 2 else {}
        elif action == "label" and who in has:
            index = has.pop(who)
            desk.label(who, [(index, number % 3)])
            promised[who] = ahead.pop(who, {}).get(number % 3)
            acknowledged.append((who, "label", index, number % 3))
        elif action in ("skip", "cannot tell") and who in has:
            index = has.pop(who)
            desk.skip(who, index, for_good=action != "skip")
            promised[who] = ahead.pop(who, {}).get(None)
            acknowledged.append((who, action, index, None))
        elif action == "undo":
            try:
                index = desk.undo(who)
            except Taken:
                continue
            if index is not None:
                mine = [at for at, entry in enumerate(acknowledged) if entry[0] == who]
                assert acknowledged.pop(mine[-1])[2] == index
                has.pop(who, None)
                ahead.pop(who, None)
                promised.pop(who, None)
                if desk.leases.held_by(who):
                    has[who] = desk.leases.held_by(who)[0]
        elif action == "leave":
            desk.leave(who)
            has.pop(who, None)
            promised.pop(who, None)
        elif action == "found" and number not in has.values():
            desk.label(who, [(number, number % 3)], how="found")
            said = (who, "label", number, number % 3)
            if said != next((one for one in reversed(acknowledged) if one[2] == number), None):
                acknowledged.append(said)
        elif action == "wait":
            desk.wait()
        elif action == "restart":
            desk.wait()
            desk.close()
            desk = Desk(project)
            has.clear()
            promised.clear()
    desk.wait()
    last = {index: (kind, label) for _, kind, index, label in acknowledged}
    labels = {index: label for index, (kind, label) in last.items() if kind == "label"}
    never = {index for index, (kind, _) in last.items() if kind == "cannot tell"}
    assert desk.learner.labels == labels
    assert never <= desk.learner.skipped
    assert not np.isin(list(has.values()), list(labels)).any()
    desk.close()
