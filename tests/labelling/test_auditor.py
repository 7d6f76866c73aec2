"""The audit of a project: what it asks, what it counts, and what it says of odd events."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from galaxy_al.errors import GalaxyError, PoolExhausted
from galaxy_al.labelling.auditor import Plan, read_audit
from galaxy_al.labelling.project import open_log, open_project
from galaxy_al.labelling.service import Service
from support.projects import small_project


@pytest.fixture
def project(tmp_path):
    return small_project(tmp_path)


def answer(service, truth, annotator="ann", **names):
    """Answer the annotator's question rightly, or by another name for some classes."""
    id = service.next(annotator).id
    service.label(annotator, {id: names.get(truth[id], truth[id])})
    return id


def answer_all(service, truth):
    while True:
        try:
            answer(service, truth)
        except PoolExhausted:
            return


def audited(project, n_before=30, n_draws=40, **options):
    """A service that was asked by its strategy first, and by an audit then."""
    service = Service(project[0])
    for _ in range(n_before):
        answer(service, project[1])
    service.wait()
    service.start_audit(Plan(n_draws, **options))
    return service


def sources(project):
    database = open_log(project.folder, read_only=True)
    found = [entry.source for entry in database.entries()]
    database.close()
    return found


def test_the_next_questions_are_the_audits_and_then_the_strategys(project):
    service = audited(project)
    for _ in range(45):
        answer(service, project[1])
    service.close()
    assert sources(project[0]) == ["asked"] * 30 + ["audit"] * 40 + ["asked"] * 5


def test_every_other_question_is_the_strategys_if_the_audit_is_mixed(project):
    service = audited(project, n_draws=10, is_mixed=True)
    for _ in range(22):
        answer(service, project[1])
    service.close()
    assert Counter(sources(project[0])[30:50]) == {"asked": 10, "audit": 10}


def test_a_page_that_looks_ahead_gets_what_was_announced(project):
    service = audited(project, n_draws=12)
    question = service.next("ann", ahead=True)
    for _ in range(15):
        label = project[1][question.id]
        service.label("ann", {question.id: label})
        following = service.next("ann", ahead=True)
        assert following.id == question.ahead[label]
        question = following
    service.close()
    assert Counter(sources(project[0])[30:45])["audit"] == 12


def test_the_truth_is_in_the_intervals_and_a_whole_pool_is_known(project):
    service, truth = audited(project), project[1]
    for _ in range(40):
        answer(service, truth)
    report = service.audit()
    assert (report.n_answered, report.n_drawn, report.n_wanted) == (40, 40, 40)
    labels = service.view().labels
    for name in ("scratch", "dent"):
        left = sum(truth[id] == name for id in truth if id not in labels)
        found = report.classes[name]
        assert found.left.low <= left <= found.left.high
    service.start_audit(Plan(200))
    answer_all(service, truth)
    for name, found in service.audit().classes.items():
        assert (found.left.low, found.left.high) == (0, 0)
        assert found.prevalence.low == pytest.approx(Counter(truth.values())[name] / 200)
    service.close()


def test_a_restart_goes_on_with_the_same_audit_and_its_open_draw(project):
    service = audited(project)
    for _ in range(10):
        answer(service, project[1])
    open_draw = service.next("ann").id
    before = service.audit()
    service.close()
    assert read_audit(project[0].folder) == before
    again = Service(open_project(project[0].folder))
    assert again.audit() == before
    assert again.next("bob").id == open_draw
    again.close()


ACTIONS = ("answer", "undo", "skip", "cannot tell", "find", "leave", "second opinion", "restart")


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_draws_are_from_all_examples_without_an_answer_whatever_happens(tmp_path_factory, data):
    """Naively: what was free at each draw, read off the whole log."""
    project, truth = small_project(tmp_path_factory.mktemp("audit"), size=60)
    service = Service(project)
    for _ in range(8):
        answer(service, truth)
    service.wait()
    service.start_audit(Plan(25, is_mixed=data.draw(st.booleans())))
    for _ in range(30):
        person = data.draw(st.sampled_from(["ann", "bob"]))
        action = data.draw(st.sampled_from(ACTIONS))
        try:
            act(service, truth, person, action, data)
        except PoolExhausted:
            break
        if action == "restart":
            service.close()
            service = Service(open_project(project.folder))
    report = service.audit()
    service.close()
    check_naively(project, report)


def act(service, truth, person, action, data):
    if action == "undo":
        service.undo(person)
    elif action == "leave":
        service.leave(person)
    elif action in ("find", "second opinion"):
        labels = service.view().labels
        known = [id for id in truth if (id in labels) == (action == "second opinion")]
        id = data.draw(st.sampled_from(known))
        if service._questions.holder(service.project.find(id)) in (None, person):
            service.label(person, {id: truth[id]}, source="found")
    elif action in ("skip", "cannot tell"):
        service.skip(person, service.next(person).id, cannot_tell=action == "cannot tell")
    elif action == "answer":
        answer(service, truth, person)


def standing_at(project, entries, number):
    """The examples that had an answer after an entry."""
    standing = {}
    for entry in entries[:number]:
        if entry.kind == "undo":
            standing.pop(entry.undoes, None)
        elif entry.kind != "skip":
            standing[entry.number] = entry.example
    return {project.find(id) for id in standing.values()}


def check_naively(project, report):
    database = open_log(project.folder, read_only=True)
    entries, draws, record = list(database.entries()), database.draws(), database.audits()[0]
    database.close()
    of = record.unpacked().of
    drawn = standing_at(project, entries, record.after)  # it does not return, even if undone
    for draw in draws:
        out = standing_at(project, entries, draw.after) | drawn
        n_free = Counter(int(of[i]) for i in range(60) if of[i] >= 0 and i not in out)
        index = project.find(draw.example)
        assert index not in out
        assert of[index] == draw.stratum
        assert draw.n_free == tuple(n_free[s] for s in range(len(record.decided)))
        assert sum(draw.chances) == pytest.approx(1)
        drawn.add(index)
    assert report.n_drawn == len(draws)
    for found in report.classes.values():
        assert found.left.low <= found.left.value <= found.left.high


def test_each_free_example_of_a_stratum_has_the_same_chance(project):
    service = audited(project, n_draws=1)
    audit = service._guidance.auditor._audit
    stratum = int(np.bincount(audit.strata.of[audit.strata.of >= 0]).argmax())
    members = np.flatnonzero(audit.strata.of == stratum)
    for free in (members[:3], members[::2]):
        out = set(members.tolist()) - set(free.tolist())
        rng = np.random.default_rng(0)
        counts = Counter(audit._free_example(stratum, out, rng) for _ in range(60 * len(free)))
        assert set(counts) == set(free.tolist())
        assert 20 < min(counts.values()) <= max(counts.values()) < 110
    service.close()


def test_another_persons_label_ends_a_draw_and_an_undone_one_opens_it_again(project):
    service, truth = audited(project), project[1]
    id = service.next("ann").id
    service.leave("ann")
    service.label("bob", {id: truth[id]}, source="found")
    assert service.audit().n_answered == 1
    service.undo("bob")
    assert service.audit().n_answered == 0
    service.close()


def test_a_skipped_draw_holds_back_the_later_ones_until_it_is_answered(project):
    service, truth = audited(project, n_draws=5), project[1]
    skipped = service.next("ann").id
    service.skip("ann", skipped)
    for _ in range(4):
        answer(service, truth)
    assert service.audit().n_answered == 0
    assert "4 examples with an answer wait for one that was drawn earlier." in service.audit().notes
    service.label("ann", {skipped: truth[skipped]}, source="found")
    assert service.audit().n_answered == 5
    service.close()


def test_an_example_that_cannot_be_told_counts_as_none_and_is_mentioned(project):
    service, truth = audited(project, n_draws=10), project[1]
    service.skip("ann", service.next("ann").id, cannot_tell=True)
    for _ in range(9):
        answer(service, truth)
    report = service.audit()
    assert report.n_answered == 10
    assert report.notes == ("1 example could not be labelled and counts as none of the classes.",)
    service.close()


def test_an_annotator_who_always_answers_the_same_is_named(project):
    service, truth = audited(project, n_draws=60), project[1]
    for _ in range(60):
        answer(service, truth, "bob", scratch="fine", dent="fine")
    (note,) = service.audit().notes
    assert note.startswith("bob answered fine 60 times and nothing else, where the model expected")
    service.close()


def test_an_annotator_who_answers_rightly_is_not_named_though_most_are_fine(project):
    service, truth = audited(project, n_draws=60), project[1]
    for _ in range(60):
        answer(service, truth, "bob")
    assert service.audit().notes == ()
    service.close()


def test_a_class_added_in_the_middle_ends_an_audit_with_a_sentence(project):
    service = audited(project)
    for _ in range(5):
        answer(service, project[1])
    service.close()
    opened = open_project(project[0].folder)
    changed = opened.settings.model_copy(update={"classes": ("rust", *opened.classes)})
    again = Service(replace(opened, settings=changed))
    report = again.audit()
    assert "is over: the classes were scratch, dent, fine then. Start another" in report.ended
    assert next(report.lines()) == report.ended
    assert report.n_answered == 5
    id = answer(again, project[1])
    again.start_audit(Plan(10))  # the old one cannot go on: this is another one
    assert again.audit().ended == ""
    assert list(again.audit().classes) == ["rust", "scratch", "dent", "fine"]
    assert again.audit().n_answered == 0
    again.close()
    assert id in project[1]


def grown(project, extra, order=slice(None)):
    """The project with other examples in its file."""
    path = project.folder.parent / "pool.npy"
    rows = np.concatenate([np.load(path)[order], np.zeros((extra, 4), dtype=np.float32)])
    np.save(path, rows)
    return open_project(project.folder)


def test_a_pool_that_has_grown_is_audited_as_it_was_and_says_so(project):
    service, truth = audited(project), project[1]
    answer(service, truth)
    service.close()
    again = Service(grown(project[0], 7))
    for _ in range(20):
        id = again.next("ann").id
        assert id in truth  # none of the new ones
        again.label("ann", {id: truth[id]})
    report = again.audit()
    assert report.notes == (
        "The pool has grown by 7 examples since the audit began. The audit speaks about the 200 "
        "that were there.",
    )
    assert report.n_answered == 21
    again.close()


def test_a_pool_that_has_shrunk_ends_an_audit(project):
    service = audited(project)
    answer(service, project[1])
    service.close()
    again = Service(grown(project[0], 0, slice(150)))
    assert "examples were removed from the pool or reordered" in again.audit().ended
    answer(again, project[1])
    again.close()


def test_none_ends_the_questions_and_nothing_can_be_audited_twice(project):
    service, truth = audited(project, n_draws=20), project[1]
    for _ in range(3):
        answer(service, truth)
    service.start_audit(Plan(0))
    answer(service, truth)
    assert sources(project[0])[-2:] == ["audit", "asked"]
    assert service.audit().n_wanted == 3
    with pytest.raises(GalaxyError, match="labels must be at least 0, got -1"):
        Plan(-1)
    answer_all(service, truth)
    with pytest.raises(GalaxyError, match="Every example has a label: there is nothing to audit"):
        service.start_audit(Plan(10), again=True)
    service.close()


def test_an_audit_before_any_label_is_a_plain_random_sample(project):
    service, truth = audited(project, n_before=0, n_draws=30), project[1]
    for _ in range(30):
        answer(service, truth)
    report = service.audit()
    assert report.n_answered == 30
    assert report.classes["dent"].precision is None
    assert any("decides no example to be dent" in line for line in report.lines())
    service.close()


def test_a_project_without_an_audit_has_no_report(project):
    service = Service(project[0])
    assert service.audit() is None
    service.close()
    assert read_audit(project[0].folder) is None
