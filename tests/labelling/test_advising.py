"""The advice in the situations of real projects, and its numbers against a naive count."""

import re

import numpy as np
import pytest

from galaxy_al.errors import PoolExhausted
from galaxy_al.labelling.auditor import Plan
from galaxy_al.labelling.project import open_project
from galaxy_al.labelling.service import Service
from support.projects import sharded_project, small_project


def ask(service, truth, n):
    for _ in range(n):
        try:
            id = service.next("ann").id
        except PoolExhausted:
            return
        service.label("ann", {id: truth[id]})
    service.wait()


def of_class(truth, *names):
    return [id for id, name in truth.items() if name in names]


def give(service, truth, ids):
    service.label("ann", {id: truth[id] for id in ids}, source="found")
    service.wait()


def nothing_labelled(service, truth):
    pass


def nothing_found(service, truth):
    give(service, truth, of_class(truth, "fine")[:11])


def one_found(service, truth):
    give(service, truth, of_class(truth, "fine")[:3] + of_class(truth, "dent")[:1])


def no_majority_label(service, truth):
    give(service, truth, of_class(truth, "dent", "scratch"))


def asked(service, truth):
    ask(service, truth, 60)


def audit_running(service, truth):
    ask(service, truth, 60)
    service.start_audit(Plan(20))
    ask(service, truth, 10)


def audit_over(service, truth):
    ask(service, truth, 60)
    service.start_audit(Plan(20))
    ask(service, truth, 20)


def almost_all(service, truth):
    ask(service, truth, 193)


def everything(service, truth):
    give(service, truth, list(truth))


SITUATIONS = {
    nothing_labelled: "Nothing is labelled yet.",
    nothing_found: "Nothing found yet in 11 labels, and how many are left cannot be estimated yet;",
    one_found: "1 found, and how many are left cannot be estimated yet;",
    no_majority_label: "40 found, about 160 left (80 to 160) as the model estimates it;",
    asked: "as the model estimates it; the last 60 questions found",
    audit_running: "the audit has 10 of 20 labels;",
    audit_over: "by the audit; the last 60 questions found",
    almost_all: "left",
    everything: "All 200 examples have a label, and 40 are rare.",
}


@pytest.mark.parametrize("target", [0.0, 0.9])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.__name__)
def test_the_advice_is_true_and_whole_sentences(tmp_path, situation, target):
    project, truth = small_project(tmp_path, batch_size=1000, target_recall=target)
    service = Service(project)
    situation(service, truth)
    advice, entries = service.advice(), service._log.all_current()
    service.close()
    if not target:
        assert SITUATIONS[situation] in advice.sentence
    n_free = 200 - len(entries)
    n_rare = sum(entry.label != "fine" for entry in entries)
    if entries and n_rare and n_free:
        assert re.search(rf"\b{n_rare} found", advice.sentence)
    for text in (advice.sentence, advice.outlook, advice.accuracy):
        assert text == "" or ((text[0].isupper() or text[0].isdigit()) and text.endswith("."))
        assert not re.search(r"  |\b1 (labels|questions|examples)\b|; *\.|None", text)
    if advice.left is not None and advice.left.source != "model":
        assert advice.left.low <= 40 - n_rare <= advice.left.high
    for found in advice.finds:
        assert found.n <= n_free
        assert found.found is None or found.found.high <= n_free
    assert (advice.stop is None) == (target == 0)
    assert (advice.stop == "complete") == (target > 0 and n_free == 0)


def test_questions_that_are_not_there_are_not_promised(tmp_path):
    project, truth = small_project(tmp_path, batch_size=1000)
    service = Service(project)
    ask(service, truth, 150)
    service.train()
    service.wait()
    advice = service.advice()
    service.close()
    assert [each.n for each in advice.finds] == [50]
    assert "the next 50 questions" in advice.outlook.lower()


def test_a_pool_that_has_grown_adds_all_that_is_new_to_what_may_be_left(tmp_path):
    project, truth = small_project(tmp_path, batch_size=1000)
    service = Service(project)
    audit_over(service, truth)
    before = service.advice()
    service.close()
    path = tmp_path / "pool.npy"
    np.save(path, np.concatenate([np.load(path), np.zeros((7, 4), dtype=np.float32)]))
    again = Service(open_project(project.folder))
    after = again.advice()
    again.close()
    assert before.left.source == "audit"
    # The audit stays what it was; the strategy's random labels no longer count beside it.
    assert after.left.source == "audit"
    assert after.left.high == before.left.high + 7


def test_a_wide_interval_of_an_audit_is_not_shown_as_an_accuracy(tmp_path):
    project, truth = small_project(tmp_path, batch_size=1000)
    service = Service(project)
    ask(service, truth, 40)
    service.start_audit(Plan(200))
    ask(service, truth, 1)
    assert service.advice().accuracy.startswith("Not enough labels in the audit of ")
    ask(service, truth, 200)
    assert re.match(r"\d+%.* by the audit of ", service.advice().accuracy)
    service.close()


def test_a_pool_in_shards_gets_the_same_advice(tmp_path):
    (tmp_path / "shards").mkdir()
    project, truth = sharded_project(tmp_path / "shards", batch_size=1000)
    service = Service(project)
    nothing_found(service, truth)
    sharded = service.advice()
    service.close()
    project, truth = small_project(tmp_path / "array", batch_size=1000)
    service = Service(project)
    nothing_found(service, truth)
    assert service.advice().sentence == sharded.sentence
    service.close()
