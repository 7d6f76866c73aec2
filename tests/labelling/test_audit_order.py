"""What counts as a random draw does not depend on how it was answered, undone or corrected."""

import numpy as np
import pytest

from galaxy_al.labelling.auditor import Plan
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.service import Service
from support.projects import small_project


@pytest.fixture
def service(tmp_path):
    project, truth = small_project(tmp_path, batch_size=1000)
    service = Service(project)
    service.truth = truth
    yield service
    service.close()


def ask_at_random(service, annotator="ann"):
    """A question that the learner takes for a random one."""
    id = service.next(annotator).id
    service._learner.state.mark_random(service.project.find(id))
    return id


def draws_of(service):
    return service._guidance.auditor.facts().result.draws


def test_a_random_question_that_is_undone_and_answered_again_is_one_draw(service):
    service.start_audit(Plan(0))
    for _ in range(3):
        service.label("ann", {ask_at_random(service): "fine"})
        service.undo("ann")
    assert len(draws_of(service)) == 0
    service.label("ann", {service.next("ann").id: "dent"})
    draws = draws_of(service)
    assert (len(draws), draws.classes.tolist(), draws.n_free.sum()) == (1, [1], 200)


def test_an_example_that_could_not_be_labelled_before_an_audit_is_a_draw_of_it(service):
    service.skip("ann", ask_at_random(service), cannot_tell=True)
    service.label("ann", {ask_at_random(service): "fine"})
    service.start_audit(Plan(1))
    draws = draws_of(service)
    assert draws.classes.tolist() == [-1, 2]
    assert draws.n_free.sum(axis=1).tolist() == [200, 199]


def test_a_label_that_was_corrected_after_the_audit_began_counts_as_corrected(service):
    ids = [ask_at_random(service)]
    service.label("ann", {ids[0]: "fine"})
    service.start_audit(Plan(1))
    service.label("bob", {ids[0]: "dent"}, source="review")
    assert draws_of(service).classes.tolist() == [1]


def test_a_random_question_that_was_skipped_is_not_random_when_it_is_asked_again(service):
    id = ask_at_random(service)
    service.skip("ann", id)
    service.label("ann", {id: "dent"})
    (entry,) = service._log.history()
    assert not entry.is_random


@pytest.mark.parametrize("source", ["found", "review"])
def test_a_correction_of_any_kind_keeps_how_and_when_the_example_was_asked(source):
    log = Log([Entry("ann", "label", "a", "fine", is_random=True, number=1)])
    log.add(Entry("ann", "label", "b", "fine", number=2))
    log.add(Entry("ann", "label", "a", "dent", source=source, number=3))
    first, second = log.history()
    assert (first.label, first.is_random, first.number, first.source) == ("dent", True, 1, "asked")
    assert second.example == "b"


def test_a_label_of_a_class_that_was_removed_is_not_an_answer():
    log = Log([Entry("ann", "label", "a", "rust", number=1)], ["dent", "fine"])
    assert log.history() == []
    log.add(Entry("bob", "label", "a", "dent", is_random=True, number=2))
    assert [(entry.number, entry.is_random) for entry in log.history()] == [(2, True)]


def test_labels_before_an_audit_are_known_to_its_decisions_and_not_drawn(service):
    """Naively: count the labelled examples by what is decided and what they are."""
    for _ in range(30):
        id = ask_at_random(service)
        service.label("ann", {id: service.truth[id]})
    service.wait()
    service.start_audit(Plan(5))
    audit = service._guidance.auditor._audit
    strata = audit.record.unpacked()
    confusion = np.zeros((3, 3), dtype=np.int64)
    for entry in service._log.history():
        k = service.project.classes.index(entry.label)
        confusion[k, strata.decided[strata.of[service.project.find(entry.example)]]] += 1
    decisions = audit.facts().result._of_decisions
    assert decisions.labeled.confusion.tolist() == confusion.tolist()
    assert decisions.labeled.n_cannot_tell.tolist() == [0, 0, 0]
    assert len(decisions.draws) == 0
    assert len(audit.facts().result.draws) == 30
