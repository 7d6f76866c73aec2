"""Overlap: the same examples are asked of several people, blind, and nothing waits for them."""

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from galaxy_al import PoolExhausted
from galaxy_al.labelling.overlap import is_shared
from galaxy_al.labelling.service import Service
from support.projects import small_project

PEOPLE = ("ann", "bob", "eve")


def label_in_turn(service, truth, people, n_questions, ahead=False):
    """Questions in turn, rightly answered: the example of each, by person."""
    asked = defaultdict(list)
    for number in range(n_questions):
        who = people[number % len(people)]
        try:
            id = service.next(who, ahead=ahead).id
        except PoolExhausted:
            continue
        asked[who].append(id)
        service.label(who, {id: truth[id]})
        service.wait()
    return asked


def n_answers(service, id):
    return sum(entry.kind != "skip" for entry in service._log.answers(id))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
def test_the_share_is_what_it_says_and_grows_without_changing(share):
    ids = [f"photos/{number}.jpg" for number in range(20_000)]
    chosen = {id for id in ids if is_shared(id, share)}
    assert len(chosen) / len(ids) == pytest.approx(share, abs=0.01)
    assert chosen <= {id for id in ids if is_shared(id, share + 0.1)}


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("overlap", "people"), [(0.3, 2), (0.3, 3), (1.0, 2)])
def test_the_share_is_asked_of_as_many_people_as_wanted(tmp_path, overlap, people, ahead):
    project, truth = small_project(
        tmp_path, size=60, batch_size=50, overlap=overlap, overlap_people=people
    )
    service = Service(project)
    asked = label_in_turn(service, truth, PEOPLE, 60 * 3, ahead)
    for id in truth:
        wanted = people if is_shared(id, overlap) else 1
        assert n_answers(service, id) == wanted
        assert sum(id in asked[who] for who in PEOPLE) == wanted
    for who in PEOPLE:
        assert len(set(asked[who])) == len(asked[who])  # nobody was asked anything twice
        with pytest.raises(PoolExhausted):
            service.next(who)
    service.close()


def test_what_waits_is_mixed_into_the_questions_of_others(tmp_path):
    project, truth = small_project(tmp_path, batch_size=200, overlap=0.5)
    service = Service(project)
    first = label_in_turn(service, truth, ["ann"], 40)["ann"]
    second = label_in_turn(service, truth, ["bob"], 40)["bob"]
    is_again = [id in first for id in second]
    assert sum(is_again) == pytest.approx(40 * 0.5, abs=8)
    assert is_again != sorted(is_again, reverse=True)
    service.close()


@pytest.mark.parametrize("ahead", [False, True])
def test_with_one_annotator_nothing_waits_and_the_questions_are_the_same(tmp_path, ahead):
    asked = []
    for number, overlap in enumerate([0.0, 0.5]):
        project, truth = small_project(tmp_path / str(number), overlap=overlap)
        service = Service(project)
        asked.append(label_in_turn(service, truth, ["ann"], 70, ahead)["ann"])
        assert len(service.view().labels) == 70
        service.close()
    assert asked[0] == asked[1]


def waiting_for_bob(tmp_path, **options):
    """A service where everything ann has labelled waits for bob, and what bob is asked of it."""
    project, truth = small_project(tmp_path, size=60, batch_size=60, overlap=1.0, **options)
    service = Service(project)
    label_in_turn(service, truth, ["ann"], 60)
    return service, service.next("bob").id


def test_an_undone_second_opinion_is_asked_again_and_the_first_stays(tmp_path):
    service, id = waiting_for_bob(tmp_path)
    first = service.view().labels[id]
    service.label("bob", {id: "dent" if first == "fine" else "fine"})
    assert service.undo("bob") == id
    assert service.next("bob").id == id
    assert service.view().labels[id] == first
    service.close()


def test_who_skips_a_second_opinion_is_not_asked_again_and_the_label_stays(tmp_path):
    service, id = waiting_for_bob(tmp_path)
    service.skip("bob", id)
    assert id in service.view().labels
    asked = label_in_turn(service, dict.fromkeys(service.view().labels, "fine"), ["bob"], 60)
    assert id not in asked["bob"]
    assert service.next("eve").id == id
    service.close()


def test_who_cannot_tell_has_answered_and_the_label_stays(tmp_path):
    service, id = waiting_for_bob(tmp_path)
    service.skip("bob", id, cannot_tell=True)
    assert id in service.view().labels
    assert service._log.disputed() == [id]
    assert service.next("eve").id != id
    service.close()


def test_two_people_do_not_get_the_same_second_opinion_and_a_lease_frees_it(tmp_path):
    service, id = waiting_for_bob(tmp_path)
    assert service.next("eve").id != id
    service.leave("bob")
    service.leave("eve")
    assert service.next("eve").id == id
    service.close()


def test_after_a_restart_the_same_examples_wait(tmp_path):
    service, id = waiting_for_bob(tmp_path)
    service.close()
    again = Service(service.project)
    again.heartbeat("bob", id)
    assert again.next("bob").id == id
    again.close()


def test_what_was_decided_waits_no_longer(tmp_path):
    service, id = waiting_for_bob(tmp_path)
    service.leave("bob")
    service.label("eve", {id: "dent"}, source="review")
    assert service.view().labels[id] == "dent"
    assert service.next("bob").id != id
    service.close()


def test_the_label_of_a_class_that_was_renamed_waits_for_a_new_first_answer(tmp_path):
    service, _ = waiting_for_bob(tmp_path)
    service.close()
    project = service.project
    renamed = project.settings.model_copy(update={"classes": ("ding", "dong", "bell")})
    again = Service(type(project)(project.folder, renamed, project.pool, project.vectors, {}))
    assert again.view().labels == {}
    again.label("bob", {again.next("bob").id: "ding"})
    assert len(again.view().labels) == 1
    again.close()


actions = st.lists(
    st.tuples(
        st.sampled_from(["label", "label", "label", "skip", "cannot tell", "undo", "leave"]),
        st.sampled_from(PEOPLE),
        st.sampled_from(["scratch", "dent", "fine"]),
        st.booleans(),
    ),
    max_size=50,
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=actions)
def test_whatever_happens_no_person_is_asked_what_they_have_answered(tmp_path_factory, script):
    project, _ = small_project(
        tmp_path_factory.mktemp("p"), size=60, batch_size=15, overlap=0.6, overlap_people=3
    )
    service = Service(project)
    for action, who, name, ahead in script:
        if action == "undo":
            service.undo(who)
        elif action == "leave":
            service.leave(who)
        else:
            id = service.next(who, ahead=ahead).id
            assert service._log.answer_of(who, id) is None
            assert is_shared(id, 0.6) or not service._log.answers(id)
            if action == "label":
                service.label(who, {id: name})
            else:
                service.skip(who, id, cannot_tell=action != "skip")
    service.wait()
    service.close()


def test_an_answer_can_be_undone_while_another_person_is_asked_the_same(tmp_path):
    project, _ = small_project(tmp_path, size=60, overlap=1.0)
    service = Service(project)
    first = service.next("ann").id
    service.label("ann", {first: "dent"})
    while (asked := service.next("bob").id) != first:
        service.label("bob", {asked: "fine"})
    assert service.undo("ann") == first
    assert service.next("ann").id != first
    service.label("bob", {first: "scratch"})
    assert service.view().labels[first] == "scratch"
    service.close()
