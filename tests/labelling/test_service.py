"""The service: several annotators, leases, undo, training beside them, and starting again."""

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from galaxy_al import PoolExhausted
from galaxy_al.errors import Taken
from galaxy_al.labelling.service import Service
from support.projects import small_project

ANNOTATORS = ("ann", "bob", "eve")


@pytest.fixture
def project(tmp_path):
    return small_project(tmp_path)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def code(service, name):
    return service.project.classes.index(name)


def answer(service, truth, annotator):
    """Get an example and label it rightly."""
    index = service.next(annotator)
    service.label(annotator, [(index, code(service, truth[service.project.pool.ids[index]]))])
    return index


def begun(project, n_labels=15):
    """A service at which some labels were given."""
    service = Service(project[0])
    for _ in range(n_labels):
        answer(service, project[1], "ann")
    service.wait()
    return service


def slow_training(service, monkeypatch):
    """Trainings end only when what this gives is set."""
    go, prepare = threading.Event(), service.learner.prepare_round

    def slow(*args, **kwargs):
        ready = prepare(*args, **kwargs)
        go.wait()
        return ready

    monkeypatch.setattr(service.learner, "prepare_round", slow)
    return go


def test_an_example_stays_ones_own_until_it_is_answered(project):
    service = Service(project[0])
    first = service.next("ann")
    assert service.next("ann") == first
    assert service.next("bob") != first
    service.label("ann", [(first, 0)])
    assert service.next("ann") not in (first, service.next("bob"))
    service.close()


def test_training_starts_by_itself_and_the_strategy_takes_over(project):
    service = Service(project[0])
    assert service.learner.is_exploring
    while service.round < 3:
        answer(service, project[1], "ann")
        service.wait()
    assert not service.learner.is_exploring
    assert [record.number for record in service.rounds] == [1, 2, 3]
    assert service.rounds[-1].n_labels >= 20
    service.close()


def test_labels_given_while_training_runs_carry_over(project, monkeypatch):
    service = begun(project)
    go = slow_training(service, monkeypatch)
    service.train()
    assert service.training.is_running
    given_meanwhile = [answer(service, project[1], "ann") for _ in range(5)]
    skipped = service.next("ann")
    service.skip("ann", skipped, for_good=True)
    withdrawn = service.undo("bob")
    held = service.next("bob")
    go.set()
    service.wait()
    assert withdrawn is None
    assert set(given_meanwhile) <= service.learner.state.labels.keys()
    assert skipped in service.learner.state.skipped
    assert held in service.learner.state.pending
    assert service.next("bob") == held
    service.close()


def test_a_training_that_fails_is_told_and_labelling_goes_on(project, monkeypatch):
    service = Service(project[0])

    def broken(*args, **kwargs):
        raise MemoryError("no room")

    monkeypatch.setattr(service.learner, "prepare_round", broken)
    service.train()
    service.wait()
    assert service.training.problem == "no room"
    answer(service, project[1], "ann")
    service.close()


def test_a_lease_that_runs_out_frees_the_example(project):
    clock = Clock()
    service = Service(project[0], lease_seconds=60, clock=clock)
    index = service.next("ann")
    clock.now = 59
    service.heartbeat("ann")
    clock.now = 100
    service.heartbeat("bob")
    assert service.leases.holder(index) == "ann"
    clock.now = 120
    assert service.next("bob") == index
    with pytest.raises(Taken, match="Somebody else is looking at"):
        service.label("ann", [(index, 0)])
    service.close()


def test_who_closes_the_page_gives_back_what_they_had(project):
    service = Service(project[0])
    index = service.next("ann")
    service.leave("ann")
    assert service.next("bob") == index
    service.close()


def test_undo_goes_back_any_number_of_steps(project):
    service = Service(project[0])
    asked = [answer(service, project[1], "ann") for _ in range(12)]
    service.wait()
    for index in reversed(asked):
        assert service.undo("ann") == index
        assert service.next("ann") == index
        assert index not in service.learner.state.labels
    assert service.undo("ann") is None
    assert service.learner.state.labels == {}
    service.close()


def test_an_undo_brings_back_what_stood_before(project):
    service = Service(project[0])
    index = service.next("ann")
    service.label("ann", [(index, 0)])
    service.label("bob", [(index, 1)], source="found")
    assert service.learner.state.labels == {index: 1}
    service.undo("bob")
    assert service.learner.state.labels == {index: 0}
    service.close()


def test_a_skip_is_until_the_next_training_and_cannot_tell_is_for_good(project):
    service = Service(project[0])
    for _ in range(10):
        answer(service, project[1], "ann")
    service.wait()
    first, second = service.next("ann"), service.next("bob")
    service.skip("ann", first)
    service.skip("bob", second, for_good=True)
    assert service.learner.state.skipped == {first, second}
    service.train()
    service.wait()
    assert service.learner.state.skipped == {second}
    service.close()
    again = Service(project[0])
    assert again.learner.state.skipped == {second}
    again.close()


def test_looking_ahead_says_what_comes(project):
    service = Service(project[0])
    for _ in range(30):
        answer(service, project[1], "ann")
        service.wait()
    for _ in range(5):
        index = service.next("ann")
        ahead = service.look_ahead("ann")
        truth = code(service, project[1][service.project.pool.ids[index]])
        service.label("ann", [(index, truth)])
        if not service.training.is_running:
            assert service.next("ann") == ahead[truth]
        service.wait()
    assert service.look_ahead("nobody") == {}
    service.close()


def test_with_others_at_work_an_example_is_set_aside(project):
    service = Service(project[0])
    first, other = service.next("ann"), service.next("bob")
    ahead = service.look_ahead("ann")
    aside = ahead[0]
    assert set(ahead.values()) == {aside}
    assert ahead.keys() == {0, 1, 2, None}
    assert service.look_ahead("bob")[0] not in (first, other, aside)
    assert service.look_ahead("ann") == ahead
    service.label("ann", [(first, 0)])
    assert service.next("ann") == aside
    service.leave("ann")
    assert service.leases.holder(aside) is None
    service.close()


def test_everything_can_be_labelled_and_then_nothing_is_left(tmp_path):
    project, truth = small_project(tmp_path, size=60)
    service = Service(project)
    for _ in range(60):
        answer(service, truth, "ann")
    with pytest.raises(PoolExhausted):
        service.next("ann")
    assert {
        project.pool.ids[i]: project.classes[y] for i, y in service.learner.state.labels.items()
    } == truth
    service.wait()
    service.close()


def test_an_answer_that_comes_too_late_replaces_nothing(project):
    clock = Clock()
    service = Service(project[0], lease_seconds=60, clock=clock)
    index = service.next("ann")
    clock.now = 61
    assert service.next("bob") == index
    service.label("bob", [(index, 1)])
    with pytest.raises(Taken, match="Somebody else has answered"):
        service.skip("ann", index, for_good=True)
    with pytest.raises(Taken, match="Somebody else has answered"):
        service.label("ann", [(index, 0)])
    assert service.learner.state.labels == {index: 1}
    service.label("ann", [(index, 0)], source="found")  # on purpose
    assert service.learner.state.labels == {index: 0}
    service.close()


def test_an_answer_that_comes_twice_is_one(project):
    service = Service(project[0])
    index = service.next("ann")
    service.label("ann", [(index, 0)])
    service.label("ann", [(index, 0)])
    assert service.log.count_of("ann") == 1
    assert service.undo("ann") == index
    assert service.learner.state.labels == {}
    service.close()


def test_what_is_said_of_a_skipped_example_while_training_runs_stands(project, monkeypatch):
    service = begun(project)
    index = service.next("ann")
    service.skip("ann", index)
    go = slow_training(service, monkeypatch)
    service.train()
    assert service.undo("ann") == index
    service.skip("ann", index, for_good=True)
    go.set()
    service.wait()
    assert index in service.learner.state.skipped
    service.close()


def test_an_undo_does_not_bring_back_the_skip_of_an_earlier_round(project):
    service = begun(project)
    index = service.next("ann")
    service.skip("ann", index)
    service.train()
    service.wait()
    service.label("ann", [(index, 0)], source="found")
    assert service.undo("ann") == index
    assert service.next("ann") == index
    service.close()


def test_a_round_that_cannot_be_written_is_told_and_training_goes_on(project, monkeypatch):
    service = Service(project[0])
    write = service._database.add_round

    def full(record):
        raise OSError("the disk is full")

    monkeypatch.setattr(service._database, "add_round", full)
    service.train()
    service.wait()
    assert (service.training.is_running, service.training.problem) == (False, "the disk is full")
    assert service.round == 0
    monkeypatch.setattr(service._database, "add_round", write)
    service.train()
    service.wait()
    assert (service.round, service.training.problem) == (1, "")
    service.close()


@pytest.mark.slow
def test_what_was_foretold_is_given_though_a_training_ended_meanwhile(project):
    service = begun(project, n_labels=30)
    for _ in range(10):
        index = service.next("ann")
        ahead = service.look_ahead("ann")
        service.train()
        service.wait()
        service.label("ann", [(index, 0)])
        service.wait()
        assert service.next("ann") == ahead[0]
        assert list(service.learner.state.pending) == [ahead[0]]
    service.close()


def test_what_was_foretold_is_given_though_somebody_came_meanwhile(project):
    service = begun(project, n_labels=30)
    index = service.next("ann")
    ahead = service.look_ahead("ann")
    bob = {service.next("bob"), service.look_ahead("bob")[0]}
    assert bob.isdisjoint(ahead.values())
    service.label("ann", [(index, 1)])
    assert service.next("ann") == ahead[1]
    assert service.look_ahead("ann")[0] not in {*bob, ahead[1]}
    service.close()


def test_what_was_foretold_last_counts(project):
    for seed in range(6):
        service = begun(project, n_labels=20 + seed)
        index = service.next("ann")
        service.look_ahead("ann")
        service.next("bob")
        ahead = service.look_ahead("ann")  # as when the page is loaded again
        service.label("ann", [(index, 2)])
        assert service.next("ann") == ahead[2]
        for who in ("ann", "bob"):
            service.leave(who)
        service.close()


def test_after_a_restart_everybody_has_again_what_they_look_at(project):
    service = begun(project, n_labels=30)
    before = {who: service.next(who) for who in ANNOTATORS}
    service.close()
    again = Service(project[0])
    other = again.next("somebody new")
    for who, index in before.items():
        if index != other:
            again.heartbeat(who, index)
            assert again.next(who) == index
    with pytest.raises(Taken, match="no longer to be answered"):
        again.heartbeat("ann", other)
    again.close()


def test_skips_count_towards_the_next_training(project):
    service = begun(project, n_labels=30)
    rounds = service.round
    for _ in range(40):
        service.skip("ann", service.next("ann"), for_good=True)
        service.wait()
    assert service.round >= rounds + 2
    service.close()


def test_what_somebody_else_has_labelled_is_not_given_though_foretold(project):
    service = begun(project, n_labels=30)
    index = service.next("ann")
    ahead = service.look_ahead("ann")
    service.label("bob", [(ahead[1], 1)], source="found")
    service.label("ann", [(index, 1)])
    assert service.next("ann") != ahead[1]
    service.close()


@pytest.mark.slow
def test_training_does_not_change_what_was_foretold(project, monkeypatch):
    service = Service(project[0])
    while service.learner.is_exploring:
        answer(service, project[1], "ann")
        service.wait()
    monkeypatch.setattr(service.learner, "start_round", lambda ready: None)
    for _ in range(20):
        index = service.next("ann")
        ahead = service.look_ahead("ann")
        service.train()
        service.wait()
        truth = code(service, project[1][service.project.pool.ids[index]])
        service.label("ann", [(index, truth)])
        service.wait()
        assert service.next("ann") == ahead[truth]
    service.close()


def test_only_what_was_asked_by_chance_counts_as_drawn(project):
    service = Service(project[0])
    index = service.learner.ask()
    service.learner.state.mark_random(index)
    service.learner._drawn_before.add(index)
    service.learner.state.release(index)
    assert index not in service.learner.state.random
    service.learner._drawn_before.add(index)
    service.label("ann", [(index, 0)], source="found")
    assert not service.log.current(service.project.pool.ids[index]).is_random
    service.close()


actions = st.lists(
    st.tuples(
        st.sampled_from(["next", "next", "label", "label", "skip", "cannot tell", "undo"])
        | st.sampled_from(["leave", "found", "wait", "restart"]),
        st.sampled_from(ANNOTATORS),
        st.integers(0, 59),
    ),
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=actions)
def test_nobody_has_the_same_example_and_the_log_says_it_all(tmp_path_factory, script):
    project, _ = small_project(tmp_path_factory.mktemp("p"), size=60, batch_size=7)
    service, acknowledged, has, ahead, promised = Service(project), [], {}, {}, {}
    for action, who, number in script:
        if action == "next":
            is_told = promised.get(who) is not None
            is_free = promised.get(who) not in {
                *service.learner.state.labels,
                *service.learner.state.skipped,
            }
            try:
                has[who] = service.next(who)
            except PoolExhausted:
                continue
            assert [*has.values()].count(has[who]) == 1
            assert has[who] == promised.pop(who, None) or not (is_told and is_free)
            ahead[who] = service.look_ahead(who) if number % 2 else {}
        elif action == "label" and who in has:
            index = has.pop(who)
            service.label(who, [(index, number % 3)])
            promised[who] = ahead.pop(who, {}).get(number % 3)
            acknowledged.append((who, "label", index, number % 3))
        elif action in ("skip", "cannot tell") and who in has:
            index = has.pop(who)
            service.skip(who, index, for_good=action != "skip")
            promised[who] = ahead.pop(who, {}).get(None)
            acknowledged.append((who, action, index, None))
        elif action == "undo":
            try:
                index = service.undo(who)
            except Taken:
                continue
            if index is not None:
                mine = [at for at, entry in enumerate(acknowledged) if entry[0] == who]
                assert acknowledged.pop(mine[-1])[2] == index
                has.pop(who, None)
                ahead.pop(who, None)
                promised.pop(who, None)
                if service.leases.held_by(who):
                    has[who] = service.leases.held_by(who)[0]
        elif action == "leave":
            service.leave(who)
            has.pop(who, None)
            promised.pop(who, None)
        elif action == "found" and number not in has.values():
            service.label(who, [(number, number % 3)], source="found")
            said = (who, "label", number, number % 3)
            if said != next((one for one in reversed(acknowledged) if one[2] == number), None):
                acknowledged.append(said)
        elif action == "wait":
            service.wait()
        elif action == "restart":
            service.wait()
            service.close()
            service = Service(project)
            has.clear()
            promised.clear()
    service.wait()
    last = {index: (kind, label) for _, kind, index, label in acknowledged}
    labels = {index: label for index, (kind, label) in last.items() if kind == "label"}
    never = {index for index, (kind, _) in last.items() if kind == "cannot tell"}
    assert service.learner.state.labels == labels
    assert never <= service.learner.state.skipped
    assert not np.isin(list(has.values()), list(labels)).any()
    service.close()
