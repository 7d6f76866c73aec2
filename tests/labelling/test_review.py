"""The review: what is in it, what leaves it, and what a decision does."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from galaxy_al.labelling.model import labeled_examples
from galaxy_al.labelling.project import create_project, open_log
from galaxy_al.labelling.review import review_project
from galaxy_al.labelling.service import Service
from galaxy_al.labelling.suspects import held_out_of
from support.commands import read_csv, run
from support.projects import small_project

N_LABELS = 90


def reviewed_ids(items, reason):
    return [one.id for item in items if item.reason == reason for one in item.examples]


def retrain(service):
    service.wait()
    service.train()
    service.wait()


@pytest.fixture
def labeled(tmp_path):
    """A service with right labels, its truth, and one fine example that is labelled a dent."""
    project, truth = small_project(tmp_path, batch_size=200)
    service = Service(project)
    for _ in range(N_LABELS):
        id = service.next("ann").id
        service.label("ann", {id: truth[id]})
    wrong = next(id for id in service.view().labels if truth[id] == "fine")
    service.label("ann", {wrong: "dent"}, "found")
    retrain(service)
    yield service, truth, wrong
    service.close()


def test_a_wrong_label_is_suspected_with_a_reason(labeled):
    service, _, wrong = labeled
    item = service.review()[0]
    assert (item.reason, item.suggested) == ("suspect", "fine")
    (example,) = item.examples
    assert (example.id, example.label, example.annotator) == (wrong, "dent", "ann")
    assert example.answers == {"ann": "dent"}
    assert 0.35 < item.error <= 1
    assert item.sentence.startswith("Labelled dent, but the model thinks fine (")
    assert item.sentence.endswith("), without having seen this label.")


def test_a_corrected_label_counts_as_a_new_answer_and_trains(labeled):
    service, _, wrong = labeled
    before = service.n_new
    service.label("bob", {wrong: "fine"}, "review")
    assert service.n_new == before + 1
    assert service.view().labels[wrong] == "fine"
    assert wrong not in reviewed_ids(service.review(), "suspect")
    service.label("bob", {wrong: "fine"}, "review")  # sent again
    assert service.n_new == before + 1
    assert sum(entry.example == wrong for entry in service._database.entries()) == 3


def test_a_label_that_is_kept_is_not_shown_again(labeled):
    service, _, wrong = labeled
    before = service.n_new
    service.label("bob", {wrong: "dent"}, "review")
    assert wrong not in reviewed_ids(service.review(), "suspect")
    assert service.n_new == before  # nothing has changed
    retrain(service)
    assert wrong not in reviewed_ids(service.review(), "suspect")
    service.undo("bob", wrong)
    assert wrong in reviewed_ids(service.review(), "suspect")


@pytest.mark.parametrize(("then", "is_shown"), [(11, True), (9, False)])
def test_a_kept_label_comes_back_when_the_model_finds_it_ten_times_less_likely(
    labeled, then, is_shown
):
    service, _, wrong = labeled
    service.label("bob", {wrong: "dent"}, "review")
    (entry,) = [e for e in service._log.all_current() if e.example == wrong]
    held_out = held_out_of(service._learner.model)
    row = held_out.indices.tolist().index(service.project.find(wrong))
    assert entry.probability == pytest.approx(held_out.proba[row, 1])
    held_out.proba[row, 0] += held_out.proba[row, 1] * (1 - 1 / then)
    held_out.proba[row, 1] /= then
    assert (wrong in reviewed_ids(service.review(), "suspect")) == is_shown
    if is_shown:
        service.label("bob", {wrong: "dent"}, "review")
        assert wrong not in reviewed_ids(service.review(), "suspect")


def test_a_decision_and_what_the_model_said_survive_a_restart(labeled, tmp_path):
    service, _, wrong = labeled
    service.label("bob", {wrong: "dent"}, "review")
    service.wait()
    *_, entry = open_log(tmp_path / "project", read_only=True).entries()
    assert (entry.source, entry.label) == ("review", "dent")
    assert 0 < entry.probability < 0.5
    assert wrong not in reviewed_ids(review_project(tmp_path / "project"), "suspect")


def test_an_example_nobody_can_tell_leaves_the_review(labeled):
    service, _, wrong = labeled
    service.skip("bob", wrong, cannot_tell=True, source="review")
    assert wrong not in reviewed_ids(service.review(), "suspect")
    assert wrong not in service.view().labels


def test_a_random_example_stays_random_when_it_is_corrected(labeled):
    service, _, _ = labeled
    id = next(iter(service.view().random & service.view().labels.keys()))
    other = "dent" if service.view().labels[id] != "dent" else "fine"
    service.label("bob", {id: other}, "review")
    (entry,) = [e for e in service.view().entries if e.example == id]
    assert entry.is_random


def test_disagreements_are_shown_until_someone_decides(labeled):
    service, _, wrong = labeled
    id = next(id for id, name in service.view().labels.items() if name == "scratch")
    service.label("bob", {id: "dent"}, "found")
    (item,) = [item for item in service.review() if item.reason == "disagreement"]
    assert item.sentence == "ann says scratch, bob says dent."
    assert item.examples[0].answers == {"ann": "scratch", "bob": "dent"}
    assert wrong in reviewed_ids(service.review(), "suspect")
    service.label("eve", {id: "scratch"}, "review")
    assert reviewed_ids(service.review(), "disagreement") == []


def test_who_is_still_to_be_asked_does_not_see_the_answer(tmp_path):
    project, truth = small_project(tmp_path, overlap=1.0, batch_size=200)
    service = Service(project)
    some = [next(id for id in truth if truth[id] == name) for name in ("fine", "dent")]
    labels = {id: truth[id] for id in [*truth][:60] + some}
    wrong = some[0]
    service.label("ann", {**labels, wrong: "scratch"})
    retrain(service)
    assert wrong in reviewed_ids(service.review("ann"), "suspect")
    assert wrong not in reviewed_ids(service.review("bob"), "suspect")
    service.label("bob", {wrong: "fine"})
    assert wrong in reviewed_ids(service.review("bob"), "disagreement")
    service.close()


def test_before_two_classes_are_known_there_is_nothing_to_look_at(tmp_path):
    project, truth = small_project(tmp_path)
    service = Service(project)
    assert service.review() == []
    service.label("ann", {"0": truth["0"]})
    service.wait()
    assert service.review() == []
    service.close()


def test_a_head_without_held_out_predictions_suspects_nothing(tmp_path):
    project, truth = small_project(tmp_path, head="linear")
    service = Service(project)
    service.label("ann", dict(list(truth.items())[:40]), "found")
    retrain(service)
    assert held_out_of(service._learner.model) is None
    assert service.review() == []
    service.close()


@pytest.fixture
def doubled(tmp_path):
    """Vectors in many directions, some of them twice, with different labels."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(120, 40)).astype(np.float32)
    vectors[:20, 0] += 6
    vectors[100] = vectors[3]
    vectors[101] = vectors[50] + rng.normal(size=40) * 0.05
    np.save(tmp_path / "pool.npy", vectors)
    names = ["dent" if i < 20 else "fine" for i in range(120)]
    names[101] = "dent"
    rows = [f"{i},{name}" for i, name in enumerate(names)]
    (tmp_path / "known.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    create_project(
        tmp_path / "project",
        tmp_path / "pool.npy",
        kind="embeddings",
        classes=["dent"],
        other="fine",
        labels=tmp_path / "known.csv",
    )
    return tmp_path / "project"


def test_duplicates_with_different_labels_are_one_group(doubled):
    first, second, *_ = review_project(doubled)
    assert [one.id for one in first.examples] == ["100", "3"]
    assert first.sentence == "These embeddings are the same, but their labels differ."
    assert [one.id for one in second.examples] == ["101", "50"]
    assert second.sentence == "These embeddings are nearly the same, but their labels differ."
    assert [one.label for one in second.examples] == ["dent", "fine"]
    ids = [one.id for item in review_project(doubled) for one in item.examples]
    assert len(ids) == len(set(ids))


def test_the_service_finds_duplicates_in_the_background_and_a_label_for_all_settles_them(doubled):
    from galaxy_al.labelling.project import open_project

    service = Service(open_project(doubled))
    service.review()
    service.wait()
    assert set(reviewed_ids(service.review(), "duplicates")) == {"3", "100", "50", "101"}
    service.label("ann", {"3": "dent", "100": "dent"}, "review")
    assert set(reviewed_ids(service.review(), "duplicates")) == {"50", "101"}
    service.label("ann", {"50": "fine", "101": "dent"}, "review")  # both are right
    assert reviewed_ids(service.review(), "duplicates") == []
    retrain(service)
    assert reviewed_ids(service.review(), "duplicates") == []
    service.undo("ann", "101")
    assert set(reviewed_ids(service.review(), "duplicates")) == {"50", "101"}
    service.close()


def test_the_command_lists_what_to_look_at(doubled):
    lines = run("review", doubled).output.splitlines()
    assert lines[0].split() == ["example", "label", "by", "error", "why"]
    assert lines[1].split()[:3] == ["100", "fine", "import"]
    assert "2 groups of duplicates" in lines[-1]
    assert lines[-1].endswith(f"Decide about them under Review: galaxy-al label {doubled}")
    limited = run("review", doubled, "--limit", "1").output
    assert "101" not in limited
    assert "2 groups of duplicates" in limited


def test_the_command_says_when_there_is_nothing(tmp_path):
    small_project(tmp_path)
    found = run("review", tmp_path / "project").output
    assert found == (
        "Nothing to look at again: no label is suspected, no duplicates have different labels, "
        "and all annotators agree.\n"
    )


def test_every_table_has_the_suspected_errors(labeled, tmp_path):
    service, _, wrong = labeled
    errors = {one.examples[0].id: one.error for one in service.review()}
    assert service.labeled().suspected == pytest.approx(errors)
    project = tmp_path / "project"
    expected = labeled_examples(project).suspected
    assert wrong in expected
    run("export", project, "--output", tmp_path / "a.csv")
    rows = {row["id"]: row["suspected_error"] for row in read_csv(tmp_path / "a.csv")}
    found = {id: float(value) for id, value in rows.items() if value}
    assert found == pytest.approx(expected, rel=1e-4)
    run("export", project, "--output", tmp_path / "a.jsonl")
    lines = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    found = {row["id"]: row["suspected_error"] for row in lines}
    assert {id: value for id, value in found.items() if value is not None} == pytest.approx(
        expected
    )
    run("export", project, "--output", tmp_path / "a.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table["suspected_error"].null_count == len(rows) - len(expected)
    run("export", project, "--format", "hf", "--output", tmp_path / "dataset")
    part = tmp_path / "dataset" / "data" / "train-00000-of-00001.parquet"
    assert str(pyarrow.parquet.read_table(part).schema.field("suspected_error").type) == "double"
