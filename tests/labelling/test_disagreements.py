"""Several people: disagreements, decisions, what is exported, and what each may see."""

import csv
import json

import pyarrow.parquet
import pytest

from galaxy_al.errors import InvalidArgument
from galaxy_al.labelling.disagreements import disagreements, label_weights, support
from galaxy_al.labelling.exports import EXPORTS
from galaxy_al.labelling.exports.all_answers import write_all_answers
from galaxy_al.labelling.log import IMPORTER, Entry, Log
from galaxy_al.labelling.model import labeled_examples
from galaxy_al.labelling.reliability import report_agreement
from galaxy_al.labelling.service import Service
from support.commands import run
from support.projects import small_project
from support.servers import served

CLASSES = ("scratch", "dent", "fine")


def log_of(*answers):
    """A log of (annotator, example, label) or (annotator, example, label, source)."""
    log = Log([], CLASSES)
    for number, (who, example, name, *source) in enumerate(answers, start=1):
        kind = "label" if name else "cannot tell"
        log.add(Entry(who, kind, example, name, source=(source or ["found"])[0], number=number))
    return log


def test_a_disagreement_has_every_answer_and_the_consensus():
    log = log_of(("ann", "a", "dent"), ("bob", "a", "fine"), ("eve", "a", "fine"))
    log.add(Entry("ann", "label", "b", "fine", number=4))
    (found,) = disagreements(log)
    assert (found.id, found.consensus) == ("a", "fine")
    assert list(found.answers.items()) == [("ann", "dent"), ("bob", "fine"), ("eve", "fine")]
    assert 0.5 < found.probability < 1


def test_the_least_certain_disagreement_comes_first():
    log = log_of(
        ("ann", "a", "dent"), ("bob", "a", "fine"), ("eve", "a", "fine"),
        ("ann", "b", "dent"), ("bob", "b", "fine"),
    )  # fmt: skip
    assert [found.id for found in disagreements(log)] == ["b", "a"]


def test_who_cannot_tell_disagrees_with_a_label_that_still_counts_fully():
    log = log_of(("ann", "a", "dent"), ("bob", "a", None))
    (found,) = disagreements(log)
    assert (dict(found.answers), found.consensus) == ({"ann": "dent", "bob": None}, "dent")
    assert label_weights(log) == {}


def test_a_decision_settles_a_disagreement_and_its_undo_opens_it_again():
    log = log_of(("ann", "a", "dent"), ("bob", "a", "fine"), ("eve", "a", "dent", "review"))
    assert disagreements(log) == []
    assert label_weights(log) == {}
    assert support(log, "a").probability == 1
    assert support(log, "a").is_disputed
    log.add(Entry("eve", "undo", "a", undoes=3, number=4))
    assert len(disagreements(log)) == len(label_weights(log)) == 1


def test_a_skip_an_import_and_a_removed_class_are_not_disagreements():
    log = log_of((IMPORTER, "a", "dent", "import"), ("ann", "a", "fine"), ("bob", "a", "removed"))
    log.add(Entry("eve", "skip", "a", number=4))
    assert disagreements(log) == []
    assert log.current("a").label == "fine"


def test_what_one_person_answered_has_no_probability():
    log = log_of(("ann", "a", "dent"), ("ann", "b", "fine"), ("bob", "b", "fine"))
    assert support(log, "a").probability is None
    assert support(log, "b").probability > 0.5
    assert (support(log, "a").n_answers, support(log, "b").n_answers) == (1, 2)


def disputed_project(tmp_path, **options):
    """A project with 30 labels by ann, of which bob has confirmed nine and disputed one."""
    project, truth = small_project(tmp_path, size=60, **options)
    service, ids = Service(project), project.pool.ids[:30]
    service.label("ann", {id: truth[id] for id in ids}, source="found")
    service.label("bob", {id: truth[id] for id in ids[:9]}, source="found")
    wrong = "dent" if truth[ids[9]] == "fine" else "fine"
    service.label("bob", {ids[9]: wrong}, source="found")
    service.wait()
    return service, truth, ids[9]


def test_the_service_lists_disagreements_and_takes_decisions(tmp_path):
    service, _, id = disputed_project(tmp_path)
    (found,) = service.disagreements()
    assert (found.id, set(found.answers)) == (id, {"ann", "bob"})
    assert service.agreement().n_disputed == 1
    service.label("eve", {id: "scratch"}, source="review")
    assert service.view().labels[id] == "scratch"
    assert service.disagreements() == []
    assert service.undo("eve") == id
    assert len(service.disagreements()) == 1
    service.close()


def test_a_disputed_label_counts_by_its_probability_when_a_model_is_trained(tmp_path, monkeypatch):
    service, _, id = disputed_project(tmp_path)
    given, prepare = [], service._learner.prepare_round

    def noted(*args, **kwargs):
        given.append(args[3])
        return prepare(*args, **kwargs)

    monkeypatch.setattr(service._learner, "prepare_round", noted)
    service.train()
    service.wait()
    (found,) = service.disagreements()
    assert given == [{service.project.find(id): found.probability}]
    assert 0.3 < found.probability < 0.9
    service.close()


READERS = {
    "csv": lambda path: list(csv.DictReader(path.read_text().splitlines())),
    "jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    "parquet": lambda path: pyarrow.parquet.read_table(path).to_pylist(),
    "label-studio": lambda path: [task["data"] for task in json.loads(path.read_text())],
    "hf": lambda path: pyarrow.parquet.read_table(next(path.rglob("*.parquet"))).to_pylist(),
}


@pytest.mark.parametrize("form", READERS)
def test_every_export_says_what_a_label_rests_on(tmp_path, form):
    service, _, id = disputed_project(tmp_path)
    service.close()
    labeled = labeled_examples(service.project.folder)
    EXPORTS[form].write(labeled, tmp_path / "out")
    rows = READERS[form](tmp_path / "out")
    by_id = {row["id"]: row for row in rows}
    assert str(by_id[id]["n_answers"]) == "2"
    assert str(by_id[id]["answers_disagree"]).lower() == "true"
    assert 0 < float(by_id[id]["consensus_probability"]) < 1
    alone = by_id[service.project.pool.ids[20]]
    assert str(alone["n_answers"]) == "1"
    assert alone["consensus_probability"] in (None, "")


def test_all_answers_are_exported_one_row_per_person_and_example(tmp_path):
    service, _, id = disputed_project(tmp_path)
    service.label("eve", {id: "scratch"}, source="review")
    service.skip("ann", service.project.pool.ids[50])
    service.skip("bob", service.project.pool.ids[51], cannot_tell=True)
    service.close()
    folder = service.project.folder
    done = run("export", folder, "--all-answers", "--output", tmp_path / "answers.jsonl")
    assert done.output == f"42 answers in {tmp_path / 'answers.jsonl'}\n"
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert len({(row["id"], row["annotator"]) for row in rows}) == len(rows) == 42
    assert {row["annotator"]: row["counts"] for row in rows if row["id"] == id} == {
        "ann": False, "bob": False, "eve": True,
    }  # fmt: skip
    assert [row["answer"] for row in rows if row["label"] is None] == ["cannot tell"]
    run("export", folder, "--all-answers")
    assert (folder / "answers.csv").exists()


def test_all_answers_are_only_written_as_a_table(tmp_path):
    with pytest.raises(InvalidArgument, match="as a table: csv, jsonl, parquet, not as coco"):
        write_all_answers(log_of(), tmp_path / "x.json", EXPORTS["coco"])


def test_the_status_says_how_well_people_agree(tmp_path):
    service, _, _ = disputed_project(tmp_path)
    service.close()
    output = run("status", service.project.folder).output
    assert "Agreement: 10 examples labelled by several people, 1 with different labels." in output
    assert "If one person says 'fine', another does in " in output
    assert "ann is right in about " in output
    assert "2 annotators" in output
    assert "Disagreements to decide: 1\n" in output


def test_without_shared_examples_the_status_says_nothing_about_agreement(tmp_path):
    project, _ = small_project(tmp_path)
    assert "Agreement" not in run("status", project.folder).output
    assert report_agreement([{"ann": "dent"}, {"bob": "fine"}], CLASSES) is None


def test_who_always_answers_the_same_is_named_in_a_sentence():
    labels = [{"ann": name, "bob": name, "eve": "fine"} for name in ["dent", "fine"] * 15]
    report = report_agreement(labels, CLASSES)
    sentences = {person.name: person.sentence for person in report.people}
    assert sentences["eve"] == (
        "eve always answers 'fine' (30 shared examples): these answers do not tell the classes "
        "apart."
    )
    assert sentences["ann"].startswith("ann is right in about ")


def test_who_mistakes_one_class_for_another_is_told_which():
    labels = [{"ann": "fine", "bob": "fine", "eve": "fine"}] * 30
    labels += [
        {"ann": "dent", "bob": "dent", "eve": "fine" if i % 2 else "dent"} for i in range(30)
    ]
    report = report_agreement(labels, CLASSES)
    (eve,) = [person for person in report.people if person.name == "eve"]
    assert "takes 'dent' for 'fine' in about 4" in eve.sentence


def test_the_api_hides_what_a_person_is_still_to_be_asked(tmp_path):
    project, _ = small_project(tmp_path, size=60, overlap=1.0, overlap_people=3)
    with served(project) as server:
        people = {who: server.browser(who) for who in ("ann", "bob", "eve")}
        ids = project.pool.ids[:4]
        for who, name in (("ann", "dent"), ("bob", "fine")):
            labels = {"labels": dict.fromkeys(ids, name), "source": "found"}
            assert people[who]("POST", "/api/label", json=labels).status_code == 200
        listed = {
            who: people[who]("GET", "/api/disagreements").json()["disagreements"] for who in people
        }
        exported = {who: people[who]("GET", "/api/export?format=jsonl").text for who in people}
        assert [one["id"] for one in listed["ann"]] == [one["id"] for one in listed["bob"]] == ids
        assert listed["ann"][0]["answers"] == {"ann": "dent", "bob": "fine"}
        assert listed["eve"] == []
        assert len(exported["ann"].splitlines()) == 4
        assert exported["eve"] == ""
        people["eve"]("POST", "/api/label", json={"labels": {ids[0]: "fine"}, "source": "found"})
        now = people["eve"]("GET", "/api/disagreements").json()
        assert [one["id"] for one in now["disagreements"]] == ids[:1]
        assert [one["id"] for one in now["examples"]] == ids[:1]
        decision = {"labels": {ids[0]: "dent"}, "source": "review"}
        people["eve"]("POST", "/api/label", json=decision)
        status = people["ann"]("GET", "/api/status").json()
        assert (status["n_disagreements"], status["agreement"]["n_shared"]) == (3, 4)
        assert people["eve"]("GET", "/api/disagreements").json()["disagreements"] == []


def test_no_route_shows_the_answer_of_another_person_to_a_shared_question(tmp_path):
    project, truth = small_project(tmp_path, size=60, batch_size=10, overlap=1.0)
    with served(project) as server:
        ann, bob = server.browser("ann"), server.browser("bob")
        for _ in range(20):
            id = ann("POST", "/api/next").json()["example"]["id"]
            ann("POST", "/api/label", json={"labels": {id: truth[id]}})
        server.service.wait()
        shown = bob("POST", "/api/next?ahead=true").json()
        assert "label" not in json.dumps([shown["example"], list(shown["ahead"].values())])
        wanted = set(server.service._answers.overlap.wanted("bob"))
        assert len(wanted) == 20
        exported = bob("GET", "/api/export?format=jsonl").text
        assert not wanted & {json.loads(line)["id"] for line in exported.splitlines()}
        status = bob("GET", "/api/status").text
        assert '"answers"' not in status
