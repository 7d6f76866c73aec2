"""The service: several annotators, leases, undo, training beside them, and starting again."""

import re
import threading
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from galaxy_al import PoolExhausted
from galaxy_al.errors import GalaxyError, InvalidArgument, NotFound, Taken
from galaxy_al.goals import GOALS
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


def answer(service, truth, annotator):
    """Get an example and label it rightly."""
    id = service.next(annotator).id
    service.label(annotator, {id: truth[id]})
    return id


def ask_ahead(service, annotator):
    """The question of an annotator, and what was announced to follow each answer."""
    question = service.next(annotator, ahead=True)
    return question.id, question.ahead


def answers_to(service, id):
    """The label of each person about an example; None cannot tell, or skips."""
    return {entry.annotator: entry.label for entry in service._log.answers(id)}


def holder(service, id):
    return service._questions.holder(service.project.find(id))


def begun(project, n_labels=15):
    """A service at which some labels were given."""
    service = Service(project[0])
    for _ in range(n_labels):
        answer(service, project[1], "ann")
    service.wait()
    return service


def slow_training(service, monkeypatch):
    """Trainings end only when what this gives is set."""
    go, prepare = threading.Event(), service._learner.prepare_round

    def slow(*args, **kwargs):
        ready = prepare(*args, **kwargs)
        go.wait()
        return ready

    monkeypatch.setattr(service._learner, "prepare_round", slow)
    return go


def test_an_example_stays_ones_own_until_it_is_answered(project):
    service = Service(project[0])
    first = service.next("ann").id
    assert service.next("ann").id == first
    assert service.next("bob").id != first
    service.label("ann", {first: "scratch"})
    assert service.next("ann").id not in (first, service.next("bob").id)
    service.close()


def test_training_starts_by_itself_and_the_strategy_takes_over(project):
    service = Service(project[0])
    assert service.view().is_exploring
    while service.round < 3:
        answer(service, project[1], "ann")
        service.wait()
    assert not service.view().is_exploring
    assert [record.number for record in service.view().rounds] == [1, 2, 3]
    assert service.view().rounds[-1].n_labels >= 20
    service.close()


def test_labels_given_while_training_runs_carry_over(project, monkeypatch):
    service = begun(project)
    go = slow_training(service, monkeypatch)
    service.train()
    assert service.training.is_running
    given_meanwhile = [answer(service, project[1], "ann") for _ in range(5)]
    skipped = service.next("ann").id
    service.skip("ann", skipped, cannot_tell=True)
    withdrawn = service.undo("bob")
    held = service.next("bob").id
    go.set()
    service.wait()
    assert withdrawn is None
    assert set(given_meanwhile) <= service.view().labels.keys()
    assert skipped in service.view().skipped
    assert held in service.view().pending
    assert service.next("bob").id == held
    service.close()


def test_answers_that_came_while_training_ran_start_the_next_one(project, monkeypatch):
    service = begun(project)
    go = slow_training(service, monkeypatch)
    service.train()
    before = service.round
    for _ in range(service.project.settings.batch_size + 1):
        answer(service, project[1], "ann")
    go.set()
    service.wait()
    assert service.round == before + 2
    assert service.n_new == 0
    assert not service.training.is_running
    service.close()


def test_an_undo_can_start_a_training(project):
    service = begun(project, n_labels=30)
    service.train()
    service.wait()
    before = service.round
    for _ in range(service.project.settings.batch_size):
        assert service.undo("ann") is not None
    service.wait()
    assert service.round == before + 1
    service.close()


def test_a_round_has_its_time_at_once(project):
    service = begun(project)
    service.train()
    service.wait()
    assert all(record.created_at for record in service.view().rounds)
    service.close()


def test_a_training_that_fails_is_reported_and_labelling_continues(project, monkeypatch, caplog):
    service = Service(project[0])

    def broken(*args, **kwargs):
        raise MemoryError("no room")

    monkeypatch.setattr(service._learner, "prepare_round", broken)
    service.train()
    service.wait()
    id = re.match(r"no room \(internal error ([0-9a-f]{8}), ", service.training.problem)[1]
    assert f"Internal error {id} in a training" in caplog.text
    assert "MemoryError: no room" in caplog.text  # with its traceback
    answer(service, project[1], "ann")
    service.close()


def test_a_lease_that_runs_out_frees_the_example(project):
    clock = Clock()
    service = Service(project[0], lease_seconds=60, clock=clock)
    index = service.next("ann").id
    clock.now = 59
    service.heartbeat("ann")
    clock.now = 100
    service.heartbeat("bob")
    assert holder(service, index) == "ann"
    clock.now = 120
    assert service.next("bob").id == index
    with pytest.raises(Taken, match="Another annotator is looking at"):
        service.label("ann", {index: "scratch"})
    service.close()


def test_who_closes_the_page_gives_back_what_they_had(project):
    service = Service(project[0])
    index = service.next("ann").id
    service.leave("ann")
    assert service.next("bob").id == index
    service.close()


def test_undo_goes_back_any_number_of_steps(project):
    service = Service(project[0])
    asked = [answer(service, project[1], "ann") for _ in range(12)]
    service.wait()
    for index in reversed(asked):
        assert service.undo("ann") == index
        assert service.next("ann").id == index
        assert index not in service.view().labels
    assert service.undo("ann") is None
    assert service.view().labels == {}
    service.close()


def test_an_undo_brings_back_what_one_answered_before(project):
    service = Service(project[0])
    index = service.next("ann").id
    service.label("ann", {index: "scratch"})
    service.label("ann", {index: "dent"}, source="found")
    assert service.view().labels == {index: "dent"}
    service.undo("ann")
    assert service.view().labels == {index: "scratch"}
    service.close()


def test_an_undo_undoes_only_ones_own_answer(project):
    service = Service(project[0])
    index = service.next("ann").id
    service.label("ann", {index: "scratch"})
    service.label("bob", {index: "dent"}, source="found")
    assert answers_to(service, index) == {"ann": "scratch", "bob": "dent"}
    assert service.undo("bob") == index
    assert answers_to(service, index) == {"ann": "scratch"}
    assert service.undo("bob") is None
    assert service.view().labels == {index: "scratch"}
    service.label("bob", {index: "dent"}, source="found")
    service.undo("ann")
    assert answers_to(service, index) == {"bob": "dent"}
    assert service.view().labels == {index: "dent"}
    service.close()


def test_a_skip_is_until_the_next_training_and_cannot_tell_is_for_good(project):
    service = Service(project[0])
    for _ in range(10):
        answer(service, project[1], "ann")
    service.wait()
    first, second = service.next("ann").id, service.next("bob").id
    service.skip("ann", first)
    service.skip("bob", second, cannot_tell=True)
    assert service.view().skipped == {first, second}
    service.train()
    service.wait()
    assert service.view().skipped == {second}
    service.close()
    again = Service(project[0])
    assert again.view().skipped == {second}
    again.close()


def test_looking_ahead_says_what_comes(project):
    service = Service(project[0])
    for _ in range(30):
        answer(service, project[1], "ann")
        service.wait()
    for _ in range(5):
        index, ahead = ask_ahead(service, "ann")
        truth = project[1][index]
        service.label("ann", {index: truth})
        if not service.training.is_running:
            assert service.next("ann").id == ahead[truth]
        service.wait()
    assert service.next("ann").ahead == {}
    service.close()


def test_with_others_at_work_an_example_is_set_aside(project):
    service = Service(project[0])
    first, other = service.next("ann").id, service.next("bob").id
    ahead = service.next("ann", ahead=True).ahead
    aside = ahead["scratch"]
    assert set(ahead.values()) == {aside}
    assert ahead.keys() == {"scratch", "dent", "fine", None}
    assert service.next("bob", ahead=True).ahead["scratch"] not in (first, other, aside)
    assert service.next("ann", ahead=True).ahead == ahead
    service.label("ann", {first: "scratch"})
    assert service.next("ann").id == aside
    service.leave("ann")
    assert holder(service, aside) is None
    service.close()


def test_everything_can_be_labelled_and_then_nothing_is_left(tmp_path):
    project, truth = small_project(tmp_path, size=60)
    service = Service(project)
    for _ in range(60):
        answer(service, truth, "ann")
    with pytest.raises(PoolExhausted):
        service.next("ann")
    assert service.view().labels == truth
    service.wait()
    service.close()


def test_an_answer_that_comes_too_late_is_a_second_opinion(project):
    clock = Clock()
    service = Service(project[0], lease_seconds=60, clock=clock)
    index = service.next("ann").id
    clock.now = 61
    assert service.next("bob").id == index
    service.label("bob", {index: "dent"})
    service.label("ann", {index: "scratch"})
    assert answers_to(service, index) == {"bob": "dent", "ann": "scratch"}
    assert service.view().labels == {index: "dent"}
    service.skip("ann", index, cannot_tell=True)
    assert answers_to(service, index) == {"bob": "dent", "ann": None}
    assert service.view().labels == {index: "dent"}
    assert index not in service.view().skipped
    service.close()


def test_an_answer_that_comes_twice_is_one(project):
    service = Service(project[0])
    index = service.next("ann").id
    service.label("ann", {index: "scratch"})
    service.label("ann", {index: "scratch"})
    assert service._log.count_of("ann") == 1
    assert service.undo("ann") == index
    assert service.view().labels == {}
    service.close()


def test_what_is_said_of_a_skipped_example_while_training_runs_stands(project, monkeypatch):
    service = begun(project)
    index = service.next("ann").id
    service.skip("ann", index)
    go = slow_training(service, monkeypatch)
    service.train()
    assert service.undo("ann") == index
    service.skip("ann", index, cannot_tell=True)
    go.set()
    service.wait()
    assert index in service.view().skipped
    service.close()


def test_an_undo_does_not_bring_back_the_skip_of_an_earlier_round(project):
    service = begun(project)
    index = service.next("ann").id
    service.skip("ann", index)
    service.train()
    service.wait()
    service.label("ann", {index: "scratch"}, source="found")
    assert service.undo("ann") == index
    assert service.next("ann").id == index
    service.close()


def test_a_round_that_cannot_be_written_is_reported_and_training_resumes(project, monkeypatch):
    service = Service(project[0])
    write = service._database.add_round

    def full(record):
        raise GalaxyError("the disk is full")

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
def test_what_was_announced_is_given_though_a_training_ended_meanwhile(project):
    service = begun(project, n_labels=30)
    for _ in range(10):
        index, ahead = ask_ahead(service, "ann")
        service.train()
        service.wait()
        service.label("ann", {index: "scratch"})
        service.wait()
        assert service.next("ann").id == ahead["scratch"]
        assert list(service.view().pending) == [ahead["scratch"]]
    service.close()


def test_what_was_announced_is_given_though_another_annotator_came_meanwhile(project):
    service = begun(project, n_labels=30)
    index, ahead = ask_ahead(service, "ann")
    bob_has, bob_next = ask_ahead(service, "bob")
    bob = {bob_has, bob_next["scratch"]}
    assert bob.isdisjoint(ahead.values())
    service.label("ann", {index: "dent"})
    assert service.next("ann").id == ahead["dent"]
    assert service.next("ann", ahead=True).ahead["scratch"] not in {*bob, ahead["dent"]}
    service.close()


def test_what_was_announced_last_counts(project):
    for seed in range(6):
        service = begun(project, n_labels=20 + seed)
        index = service.next("ann").id
        service.next("ann", ahead=True)
        service.next("bob")
        ahead = service.next("ann", ahead=True).ahead  # as when the page is loaded again
        service.label("ann", {index: "fine"})
        assert service.next("ann").id == ahead["fine"]
        for who in ("ann", "bob"):
            service.leave(who)
        service.close()


def test_after_a_restart_everybody_has_again_what_they_look_at(project):
    service = begun(project, n_labels=30)
    before = {who: service.next(who).id for who in ANNOTATORS}
    service.close()
    again = Service(project[0])
    other = again.next("new").id
    for who, index in before.items():
        if index != other:
            again.heartbeat(who, index)
            assert again.next(who).id == index
    with pytest.raises(Taken, match="can no longer be answered"):
        again.heartbeat("ann", other)
    again.close()


def test_skips_count_towards_the_next_training(project):
    service = begun(project, n_labels=30)
    rounds = service.round
    for _ in range(40):
        service.skip("ann", service.next("ann").id, cannot_tell=True)
        service.wait()
    assert service.round >= rounds + 2
    service.close()


def test_what_another_annotator_has_labelled_is_not_given_though_announced(project):
    service = begun(project, n_labels=30)
    index, ahead = ask_ahead(service, "ann")
    service.label("bob", {ahead["dent"]: "dent"}, source="found")
    service.label("ann", {index: "dent"})
    assert service.next("ann").id != ahead["dent"]
    service.close()


@pytest.mark.slow
def test_training_does_not_change_what_was_announced(project, monkeypatch):
    service = Service(project[0])
    while service.view().is_exploring:
        answer(service, project[1], "ann")
        service.wait()
    monkeypatch.setattr(service._learner, "start_round", lambda ready: None)
    for _ in range(20):
        index, ahead = ask_ahead(service, "ann")
        service.train()
        service.wait()
        truth = project[1][index]
        service.label("ann", {index: truth})
        service.wait()
        assert service.next("ann").id == ahead[truth]
    service.close()


def test_only_what_was_asked_at_random_counts_as_random(project):
    service = Service(project[0])
    state = service._learner.state
    asked, found = service.next("ann").id, service.next("bob").id
    for id in (asked, found):
        state.mark_random(project[0].find(id))
    assert service.view().random >= {asked, found}
    service.label("ann", {asked: "fine"})
    service.label("bob", {found: "fine"}, source="found")
    entries = {entry.example: entry.is_random for entry in service.view().entries}
    assert entries == {asked: True, found: False}
    third = service.next("ann").id
    state.mark_random(project[0].find(third))
    service.leave("ann")
    assert third not in service.view().random
    service.close()


def test_a_correction_counts_as_a_new_answer(project):
    service = begun(project, n_labels=30)
    id = answer(service, project[1], "ann")
    service.wait()
    before = service.n_new
    wrong = "dent" if project[1][id] != "dent" else "scratch"
    service.label("ann", {id: wrong})
    assert service.n_new == before + 1
    service.label("ann", {id: wrong})  # the same request again
    assert service.n_new == before + 1
    service.close()


def test_an_undo_and_a_new_answer_count(project):
    service = begun(project, n_labels=30)
    id = answer(service, project[1], "ann")
    service.wait()
    before = service.n_new
    service.undo("ann")
    assert service.n_new == before + 1
    service.label("ann", {id: project[1][id]})
    assert service.n_new == before + 2
    skipped = service.next("ann").id
    service.skip("ann", skipped)
    service.undo("ann")
    assert service.n_new == before + 4
    service.close()


def test_corrections_alone_start_a_training(project):
    service = begun(project, n_labels=30)
    service.train()
    service.wait()
    rounds, ids = service.round, list(service.view().labels)[:20]
    for id in ids:
        service.wait()
        assert service.round == rounds
        service.label("ann", {id: "dent" if project[1][id] == "fine" else "fine"}, source="found")
    service.wait()
    assert service.round == rounds + 1
    service.close()


def test_skips_that_end_with_a_training_are_not_new_answers(project):
    service = begun(project, n_labels=30)
    for _ in range(3):
        service.skip("ann", service.next("ann").id)
    service.train()
    service.wait()
    assert (service.view().skipped, service.n_new) == (frozenset(), 0)
    service.close()


def test_an_unknown_name_is_refused_and_nothing_is_written(project):
    service = Service(project[0])
    with pytest.raises(InvalidArgument, match=r"Unknown class 'odd'\. Choose from: scratch, "):
        service.label("ann", {"1": "dent", "2": "odd"})
    with pytest.raises(NotFound, match="The pool has no example 'nothing'"):
        service.label("ann", {"1": "dent", "nothing": "dent"})
    assert service.view().labels == {}
    assert service.view().entries == ()
    service.close()


def test_a_view_does_not_change_when_the_project_does(project):
    service = begun(project)
    view = service.view()
    n_labels, n_entries = len(view.labels), len(view.entries)
    answer(service, project[1], "ann")
    assert (len(view.labels), len(view.entries)) == (n_labels, n_entries)
    with pytest.raises(FrozenInstanceError):
        view.labels = {}
    service.close()


def test_the_label_of_a_class_that_was_removed_locks_no_annotator_out(project):
    service = begun(project, n_labels=1)
    (id,) = service.view().labels
    service.close()
    renamed = project[0].settings.model_copy(update={"classes": ("ding", "dong", "bell")})
    again = Service(replace(project[0], settings=renamed))
    again.label("bob", {id: "ding"})
    assert again.view().labels == {id: "ding"}
    again.close()


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
def test_no_two_annotators_have_the_same_example_and_the_log_says_it_all(tmp_path_factory, script):
    project, _ = small_project(tmp_path_factory.mktemp("p"), size=60, batch_size=7)
    names = project.classes
    service, acknowledged, has, ahead, promised = Service(project), [], {}, {}, {}
    for action, who, number in script:
        if action == "next":
            is_told = promised.get(who) is not None
            view = service.view()
            is_free = promised.get(who) not in {*view.labels, *view.skipped}
            try:
                question = service.next(who, ahead=bool(number % 2))
            except PoolExhausted:
                continue
            has[who], ahead[who] = question.id, question.ahead
            assert [*has.values()].count(has[who]) == 1
            assert has[who] == promised.pop(who, None) or not (is_told and is_free)
        elif action == "label" and who in has:
            index = has.pop(who)
            service.label(who, {index: names[number % 3]})
            promised[who] = ahead.pop(who, {}).get(names[number % 3])
            acknowledged.append((who, "label", index, names[number % 3]))
        elif action in ("skip", "cannot tell") and who in has:
            index = has.pop(who)
            service.skip(who, index, cannot_tell=action != "skip")
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
                if holder(service, index) == who:
                    has[who] = index
        elif action == "leave":
            service.leave(who)
            has.pop(who, None)
            promised.pop(who, None)
        elif action == "found" and project.pool.ids[number] not in has.values():
            id = project.pool.ids[number]
            announced = {id for other, ids in ahead.items() if other != who for id in ids.values()}
            if holder(service, id) not in (None, who):
                assert id in announced  # the page of another annotator has it already
                continue
            service.label(who, {id: names[number % 3]}, source="found")
            said = (who, "label", id, names[number % 3])
            mine = [one for one in acknowledged if (one[0], one[2]) == (who, id)]
            if said not in mine[-1:]:
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
    last = {(index, who): (kind, label) for who, kind, index, label in acknowledged}
    assert last == {
        (index, entry.annotator): (entry.kind, entry.label)
        for index in project.pool.ids
        for entry in service._log.answers(index)
    }
    labels = service.view().labels
    given = {index: {last[one][1] for one in last if one[0] == index} - {None} for index, _ in last}
    assert labels.keys() == {index for index, names in given.items() if names}
    assert all(label in given[index] for index, label in labels.items())
    unclear = {index for (index, _), (kind, _) in last.items() if kind == "cannot tell"}
    assert unclear - labels.keys() <= service.view().skipped
    assert labels.keys().isdisjoint(has.values())
    service.close()


def test_a_project_that_finds_all_is_trained_after_every_few_answers(tmp_path):
    project, truth = small_project(tmp_path, goal="find-all")
    service = Service(project)
    while service.view().is_exploring:
        answer(service, truth, "ann")
        service.wait()
    for _ in range(30):
        view = service.view()
        trained_on = view.rounds[-1].n_labels
        assert view.current_batch == GOALS["find-all"].next_batch(trained_on, 20)
        before = service.round
        for left in reversed(range(view.current_batch)):
            assert service.round == before
            answer(service, truth, "ann")
            service.wait()
            assert (service.round == before + 1) == (left == 0)
    assert service.view().strategy == "find-all"
    service.close()


def test_a_skip_outlasts_the_many_trainings_of_find_all(tmp_path):
    project, truth = small_project(tmp_path, goal="find-all", batch_size=6)
    service = Service(project)
    while service.view().is_exploring:
        answer(service, truth, "ann")
        service.wait()
    skipped = service.next("ann").id
    service.skip("ann", skipped)
    service.wait()
    n_answers = 1
    while skipped in service.view().skipped:
        assert answer(service, truth, "ann") != skipped
        service.wait()
        n_answers += 1
        assert n_answers < 20
    assert n_answers > 6
    assert service.round > 4  # it was trained meanwhile
    service.skip("ann", skipped, cannot_tell=True)
    assert skipped in service.view().skipped
    service.close()
