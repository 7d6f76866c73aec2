"""Labels whose class or example is gone: kept, reported, and asked again."""

import json
import shutil
from unittest.mock import Mock

import pyarrow.parquet
import pytest

from galaxy_al.labelling.model import labeled_examples, save_trained_model
from galaxy_al.labelling.project import open_project
from galaxy_al.labelling.service import Service
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.saving import load_model
from galaxy_al.server import run as run_module
from support.commands import read_csv, run
from support.projects import OLD_PROJECT, small_project
from support.servers import served

WARNING = (
    "5 labels have the class 'dent', which is not in project.toml. Add it there or answer again."
)


def rename_class(folder, old, new):
    path = folder / "project.toml"
    path.write_text(path.read_text().replace(f'"{old}"', f'"{new}"'))


SINCE_SEVERAL_PEOPLE = ("n_answers", "answers_disagree", "consensus_probability")


@pytest.fixture
def renamed(tmp_path):
    """A project where ann has labelled, and then "dent" was renamed to "bump"."""
    project, truth = small_project(tmp_path)
    service = Service(project)
    by_class = {name: [i for i in truth if truth[i] == name][:5] for name in project.classes}
    for name in project.classes:
        service.label("ann", dict.fromkeys(by_class[name], name))
        service.wait()
    service.close()
    rename_class(project.folder, "dent", "bump")
    return project.folder, by_class


def test_status_label_and_export_report_a_class_that_is_gone(renamed, tmp_path, monkeypatch):
    folder, _ = renamed
    monkeypatch.setattr(run_module, "make_server", lambda app: Mock())
    printed = []
    run_module.serve(folder, port=0, opens_page=False, tell=printed.append)
    assert printed.count(WARNING) == 1
    assert f"{WARNING}\n" in run("status", folder).stderr
    exported = run("export", folder, "--output", tmp_path / "labels.csv")
    assert exported.stderr == f"{WARNING}\n"
    assert exported.stdout == f"15 labels in {tmp_path / 'labels.csv'}\n"


def test_exports_keep_the_labels_of_a_class_that_is_gone(renamed, tmp_path):
    folder, by_class = renamed
    expected = {example: name for name, examples in by_class.items() for example in examples}
    run("export", folder, "--output", tmp_path / "labels.csv")
    rows = read_csv(tmp_path / "labels.csv")
    assert {row["id"]: row["label"] for row in rows} == expected
    assert [name for name in rows[0] if name.startswith("p_")] == ["p_scratch", "p_bump", "p_fine"]
    run("export", folder, "--format", "hf", "--output", tmp_path / "dataset")
    table = pyarrow.parquet.read_table(tmp_path / "dataset" / "data")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    names = features["label"]["names"]
    assert names == ["scratch", "bump", "fine", "dent"]
    assert {row["id"]: names[row["label"]] for row in table.to_pylist()} == expected
    with served(open_project(folder)) as server:
        answer = server.browser("bob")("GET", "/api/export?format=jsonl")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert {row["id"]: row["label"] for row in rows} == expected


def test_coco_has_a_category_for_a_class_that_is_gone(images):
    rename_class(images / "project", "odd", "strange")
    run("export", images / "project", "--format", "coco", "--output", images / "coco.json")
    content = json.loads((images / "coco.json").read_text())
    names = {category["id"]: category["name"] for category in content["categories"]}
    assert list(names.values()) == ["strange", "even", "odd"]
    files = {image["id"]: image["file_name"] for image in content["images"]}
    found = {files[a["image_id"]]: names[a["category_id"]] for a in content["annotations"]}
    assert found == {row["id"]: row["label"] for row in read_csv(images / "known.csv")}


@pytest.mark.slow
def test_an_example_whose_class_is_gone_is_asked_and_answered_again(renamed):
    folder, by_class = renamed
    project = open_project(folder)
    service = Service(project)
    asked = set()
    while len(asked) < len(project.pool) - 10:  # all but the labels of the other two classes
        id = service.next("bob").id
        service.label("bob", {id: "bump"})
        service.wait()
        asked.add(id)
    service.close()
    assert set(by_class["dent"]) <= asked
    assert asked.isdisjoint(by_class["scratch"] + by_class["fine"])
    labels = {entry.example: entry for entry in labeled_examples(folder).entries}
    assert {labels[example].annotator for example in by_class["dent"]} == {"bob"}
    assert run("status", folder).stderr == ""


def test_a_new_answer_can_be_undone(renamed):
    folder, by_class = renamed
    project = open_project(folder)
    service = Service(project)
    id = by_class["dent"][0]
    service.label("bob", {id: "bump"})
    service.wait()
    assert service.undo("bob") == id
    service.close()
    assert f"{WARNING}\n" in run("status", folder).stderr


def test_a_class_that_is_gone_is_not_trained_on_and_comes_back(renamed, tmp_path):
    folder, _ = renamed
    assert save_trained_model(folder, tmp_path / "model").report.counts == (5, 0, 5)
    assert load_model(tmp_path / "model").classes == ("scratch", "bump", "fine")
    rename_class(folder, "bump", "dent")
    assert save_trained_model(folder, tmp_path / "model").report.counts == (5, 5, 5)
    assert run("status", folder).stderr == ""


@pytest.fixture
def old(tmp_path):
    """A copy of a project that commit 21ab5eb made."""
    return shutil.copytree(OLD_PROJECT, tmp_path / "old") / "project"


def test_an_old_project_is_exported_with_the_same_labels_and_left_as_it_is(old):
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    assert "27 labels (1 imported), 2 annotators\n" in run("status", old).stdout
    run("export", old, "--output", old.parent / "new.csv")
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before
    columns = {"at": "created_at", "how": "source", "drawn": "is_random"}
    expected = [
        {columns.get(name, name): value for name, value in row.items()}
        for row in read_csv(old.parent / "labels.csv")
    ]
    found = read_csv(old.parent / "new.csv")
    for row in found:
        added = [row.pop(name) for name in SINCE_SEVERAL_PEOPLE]
        assert added == ["1", "False", ""]
        assert 0.3 < float(row.pop("suspected_error") or 1) <= 1
    assert list(found[0]) == list(expected[0])
    project = open_project(old)
    places = [project.find(row["id"]) for row in found]
    labels = {i: project.classes.index(row["label"]) for i, row in zip(places, found)}
    # Its file had balanced probabilities; those in the pool are by the head of today.
    trainer = AutoTrainer(n_classes=3, seed=project.settings.seed)
    proba = trainer.fit(project.vectors, labels).proba(project.vectors)[places]
    for k, name in enumerate(("p_scratch", "p_dent", "p_fine")):
        assert [float(row.pop(name)) for row in found] == pytest.approx(proba[:, k], abs=1e-6)
        for row in expected:
            del row[name]
    assert found == expected


def test_an_old_project_can_be_labelled(old):
    labels = {row["id"]: row["label"] for row in read_csv(old.parent / "labels.csv")}
    project = open_project(old)
    service = Service(project)
    asked = {name: service.next(name).id for name in ("ann", "bob", "eve")}
    for name, id in asked.items():
        service.label(name, {id: "scratch"})
        service.wait()
        labels[id] = "scratch"
    service.close()
    found = {entry.example: entry.label for entry in labeled_examples(old).entries}
    assert found == labels
    assert sorted(path.name for path in old.iterdir()) == ["labels.sqlite", "project.toml"]


@pytest.mark.parametrize(
    ("head", "names", "wanted"),
    [
        ("linear", ("dent", "fine"), "accuracy not estimated for this head"),
        ("auto", ("fine", "fine"), "labels of one class only"),
    ],
)
def test_status_says_why_a_round_has_no_accuracy(tmp_path, head, names, wanted):
    project, _ = small_project(tmp_path, head=head)
    service = Service(project)
    service.label("ann", {"0": names[0], "1": names[1]}, "found")
    service.train()
    service.wait()
    service.close()
    assert run("status", project.folder).output.endswith(f"Round 1: 2 labels, {wanted}\n")


def test_the_head_of_a_project_is_what_is_trained(tmp_path, old):
    run("train", old)
    assert load_model(old / "model").model.class_priors.any()
    path = old / "project.toml"
    path.write_text(path.read_text() + 'head = "linear"\n')
    run("train", old)
    saved = load_model(old / "model").model
    assert saved.shape.network == "linear"
    project = open_project(old)
    labeled = labeled_examples(old)
    assert labeled.proba == pytest.approx(saved.proba(project.vectors[labeled.indices]), abs=1e-6)
