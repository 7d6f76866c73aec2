"""Projects: making, opening, exporting and training them, as on the command line."""

import csv
import json
import os
import sys

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from PIL import Image

from galaxy_al import GalaxyError
from galaxy_al.cli.main import cli, main
from galaxy_al.labelling.exports import export
from galaxy_al.labelling.model import labelled_project
from galaxy_al.labelling.project import ProjectSettings, create_project, open_project
from galaxy_al.labelling.service import Service
from galaxy_al.models.kernel import KernelTrainer
from galaxy_al.models.saving import load_model
from support.projects import blobs, small_project


def run(*arguments, fails=False):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if not fails and result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def embeddings(tmp_path):
    vectors, names = blobs()
    np.save(tmp_path / "pool.npy", vectors)
    rows = [f"{i},{name}" for i, name in enumerate(names[:60])]
    (tmp_path / "known.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    return tmp_path


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos" / "more").mkdir(parents=True)
    rows = ["id,label"]
    for i in range(12):
        name = f"{'more/' if i % 2 else ''}{i:02}.png"
        noise = rng.integers(0, 255, (20 + i, 30, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "photos" / name)
        rows.append(f"{name},{'odd' if i % 3 == 0 else 'even'}")
    (tmp_path / "known.csv").write_text("\n".join(rows[:9]) + "\n")
    run(
        "init", tmp_path / "project", "--images", tmp_path / "photos",
        "--classes", "odd", "--other", "even", "--import-labels", tmp_path / "known.csv",
    )  # fmt: skip
    return tmp_path


def read_csv(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def init(folder, *more):
    return run(
        "init", folder / "project", "--embeddings", folder / "pool.npy",
        "--classes", "scratch, dent", "--other", "fine", *more,
    )  # fmt: skip


def test_init_status_export_train_predict(embeddings):
    made = init(embeddings, "--import-labels", embeddings / "known.csv", "--batch-size", 10)
    project = embeddings / "project"
    assert made.output.endswith(f"Next: galaxy-al label {project}\n")
    status = run("status", project).output
    assert "60 labels (60 imported), 0 annotators\n" in status
    output = embeddings / "labels.csv"
    assert run("export", project, "--output", output).output == f"60 labels in {output}\n"
    rows = read_csv(output)
    about = ["id", "label", "annotator", "created_at", "round", "source", "is_random"]
    assert [*rows[0]] == [*about, "p_scratch", "p_dent", "p_fine"]
    known = read_csv(embeddings / "known.csv")
    assert {row["id"]: row["label"] for row in rows} == {row["id"]: row["label"] for row in known}
    run("train", project)
    table = embeddings / "probabilities.csv"
    run("predict", project / "model", embeddings / "pool.npy", "--output", table)
    predicted = read_csv(table)
    vectors, names = blobs()
    codes = {"scratch": 0, "dent": 1, "fine": 2}
    labels = {int(row["id"]): codes[row["label"]] for row in known}
    proba = KernelTrainer(n_classes=3).fit(vectors, labels).proba(vectors)
    given = [[float(row[f"p_{name}"]) for name in codes] for row in predicted]
    np.testing.assert_allclose(given, proba, atol=1e-5)
    assert np.mean([row["class"] == name for row, name in zip(predicted, names)]) > 0.9


@pytest.mark.slow
def test_what_was_labelled_is_exported_with_who_when_and_which_round(tmp_path):
    project, truth = small_project(tmp_path)
    service = Service(project)
    for who in ("ann", "bob") * 15:
        index = service.next(who)
        example = project.pool.ids[index]
        service.label(who, [(index, project.classes.index(truth[example]))])
        service.wait()
    last = service.next("ann")
    service.skip("ann", last, for_good=True)
    service.close()
    export(labelled_project(project.folder), tmp_path / "labels.jsonl", "jsonl")
    lines = (tmp_path / "labels.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 30
    assert {row["annotator"] for row in rows} == {"ann", "bob"}
    assert all(truth[row["id"]] == row["label"] for row in rows)
    assert [row["created_at"] for row in rows] == sorted(row["created_at"] for row in rows)
    assert max(row["round"] for row in rows) >= 1
    assert all(abs(sum(row[f"p_{name}"] for name in project.classes) - 1) < 1e-6 for row in rows)
    assert "can't tell" in run("status", project.folder).output


def test_coco_has_what_its_readers_want(images):
    output = images / "coco.json"
    run("export", images / "project", "--format", "coco", "--output", output)
    content = json.loads(output.read_text())
    by_id = {image["id"]: image for image in content["images"]}
    names = {category["id"]: category["name"] for category in content["categories"]}
    found = {
        by_id[one["image_id"]]["file_name"]: names[one["category_id"]]
        for one in content["annotations"]
    }
    known = {row["id"]: row["label"] for row in read_csv(images / "known.csv")}
    assert found == known
    for image in by_id.values():
        with Image.open(images / "photos" / image["file_name"]) as file:
            assert file.size == (image["width"], image["height"])


def test_label_studio_gets_tasks_with_annotations_and_predictions(images):
    output = images / "tasks.json"
    run("export", images / "project", "--format", "label-studio", "--output", output)
    tasks = json.loads(output.read_text())
    known = {row["id"]: row["label"] for row in read_csv(images / "known.csv")}
    for task in tasks:
        (result,) = task["annotations"][0]["result"]
        assert result["value"]["choices"] == [known[task["data"]["image"]]]
        assert 0 < task["predictions"][0]["score"] <= 1


def test_a_dataset_of_hugging_face_has_images_and_classes(images):
    folder = images / "dataset"
    run("export", images / "project", "--format", "hf", "--output", folder)
    table = pyarrow.parquet.read_table(folder / "data" / "train-00000-of-00001.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["label"] == {"names": ["odd", "even"], "_type": "ClassLabel"}
    assert features["image"] == {"_type": "Image"}
    rows = table.to_pylist()
    known = {row["id"]: row["label"] for row in read_csv(images / "known.csv")}
    assert {row["id"]: ["odd", "even"][row["label"]] for row in rows} == known
    for row in rows:
        assert row["image"]["bytes"] == (images / "photos" / row["id"]).read_bytes()
    assert "not a random sample" in " ".join((folder / "README.md").read_text().split())


@pytest.mark.parametrize("form", ["parquet", "jsonl", "label-studio", "hf"])
def test_embeddings_can_be_exported_in_every_form_but_coco(tmp_path, form):
    project, _ = small_project(tmp_path, labels=None)
    service = Service(project)
    service.label("ann", [(3, 0), (4, 2)])
    service.wait()
    service.close()
    run("export", project.folder, "--format", form, "--output", tmp_path / "out")
    assert (tmp_path / "out").exists()
    refused = run("export", project.folder, "--format", "coco", "--output", "x", fails=True)
    assert str(refused.exception) == "COCO is for images, and the pool holds embeddings."


def test_a_trained_model_of_images_predicts_images(images):
    run("train", images / "project")
    saved = load_model(images / "project" / "model")
    assert saved.kind == "images"
    assert saved.embedder == "efficientnet-lite0@128"
    output = images / "out.csv"
    run("predict", images / "project" / "model", images / "photos", "--output", output)
    assert len(read_csv(output)) == 12


def test_a_project_can_be_moved_with_its_pool(embeddings, tmp_path_factory):
    init(embeddings, "--import-labels", embeddings / "known.csv")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "moved"
    os.rename(embeddings, elsewhere)
    assert len(open_project(elsewhere / "project").pool) == 200
    assert "60 labels" in run("status", elsewhere / "project").output


def test_what_is_wrong_is_said(embeddings, monkeypatch, capsys):
    def told(*arguments):
        monkeypatch.setattr("sys.argv", ["galaxy-al", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code in (1, 2)
        return capsys.readouterr().err.strip().splitlines()[-1]

    project, pool = embeddings / "project", embeddings / "pool.npy"
    both = ("--classes", "scratch", "--other", "fine")
    assert (
        told("status", project) == f"galaxy-al: {project} is no project: galaxy-al init makes one."
    )
    assert told("init", project, *both).endswith("Give one of --images, --texts and --embeddings.")
    assert told("init", project, "--embeddings", pool, "--classes", "fine", "--other", "fine") == (
        "galaxy-al: Two classes are called 'fine'."
    )
    assert told("init", project, "--embeddings", pool, *both, "--strategy", "galxy").startswith(
        "galaxy-al: Unknown strategy 'galxy'. Choose from: "
    )
    (embeddings / "bad.csv").write_text("id,label\n0,rust\n")
    assert "unknown class 'rust'" in told(
        "init", project, "--embeddings", pool, *both, "--import-labels", embeddings / "bad.csv"
    )
    assert not (project / "project.toml").exists()
    init(embeddings)
    assert told("init", project, "--embeddings", pool, *both).endswith("is a project already.")
    assert told("train", project).endswith("has no labels yet: there is nothing to tell apart.")
    assert told("label", project / "nothing").endswith("galaxy-al init makes one.")
    assert "without more" in told("label", project, "--no-open", "--name", "https://a.org")
    (embeddings / "lock").write_text("mine")
    assert told("label", embeddings).endswith("galaxy-al init makes one.")
    assert (embeddings / "lock").read_text() == "mine"
    assert told("export", project).endswith("has no labels yet.")
    assert "a folder of its own" in told("init", pool, "--embeddings", pool, *both)
    nowhere = embeddings / "nowhere"
    assert told("init", nowhere, "--embeddings", embeddings / "no.npy", *both).endswith(
        f"There is no {embeddings / 'no.npy'}."
    )
    assert not nowhere.exists()


def test_an_export_writes_over_nothing_that_the_project_needs(embeddings):
    init(embeddings, "--import-labels", embeddings / "known.csv")
    project, pool = embeddings / "project", embeddings / "pool.npy"
    needed = (project, pool, project / "project.toml", project / "labels.sqlite")
    before = pool.read_bytes()
    for output in needed:
        for command in ("export", "train"):
            done = CliRunner().invoke(cli, [command, str(project), "--output", str(output)])
            assert "belongs to the project" in str(done.exception)
    assert pool.read_bytes() == before
    assert run("export", project).output == f"60 labels in {project / 'labels.csv'}\n"
    assert run("export", project).exit_code == 0
    run("export", project, "--output", embeddings / "known.parquet")
    assert pyarrow.parquet.read_table(embeddings / "known.parquet").num_rows == 60


def test_an_extra_that_is_missing_is_named(tmp_path, monkeypatch):
    (tmp_path / "mails.csv").write_text("text\nhello\n")
    monkeypatch.setitem(sys.modules, "galaxy_al.models.networks.embedders", None)
    both = {"kind": "texts", "classes": ["spam"], "other": "ham"}
    with pytest.raises(GalaxyError, match=r"pip install -c constraints.txt -e '.\[text\]'"):
        create_project(tmp_path / "project", tmp_path / "mails.csv", **both)
    assert not (tmp_path / "project").exists()


def test_half_a_character_is_refused_by_line_and_never_asked(tmp_path):
    rows = [{"text": "good"}, {"text": "cut \ud83d"}]
    (tmp_path / "mails.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    both = {"kind": "texts", "classes": ["spam"], "other": "ham"}
    with pytest.raises(GalaxyError, match="line 2: 'text' has half a character in it"):
        create_project(tmp_path / "project", tmp_path / "mails.jsonl", **both)
    with pytest.raises(ValueError, match="no valid Unicode"):
        ProjectSettings(path="x", kind="texts", classes=("\udc80", "ham"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("colour = 3", "unknown key 'colour'"),
        ("batch_size = 0", "batch_size must be at least 1, got 0"),
        ('strategy = "x"', "Unknown strategy 'x'"),
        ("kind = [", "Cannot read"),
    ],
)
def test_a_broken_settings_file_is_named(embeddings, line, message):
    init(embeddings)
    path = embeddings / "project" / "project.toml"
    kept = [old for old in path.read_text().splitlines() if old.split()[0] != line.split()[0]]
    path.write_text("\n".join([*kept, line]) + "\n")
    with pytest.raises(GalaxyError, match=message) as told:
        open_project(embeddings / "project")
    assert str(path) in str(told.value)


def test_settings_are_written_and_read_as_they_are(tmp_path):
    names = ('a"b\\c', "日本\n\t", "\x01é", "🐱", "\x7f")
    settings = ProjectSettings(path="../x y", kind="texts", classes=names, seed=-3)
    settings.write(tmp_path / "project.toml")
    assert ProjectSettings.read(tmp_path / "project.toml") == settings


def test_a_label_of_an_example_that_is_gone_does_no_harm(images):
    (images / "photos" / "00.png").unlink()
    project = open_project(images / "project")
    service = Service(project)
    assert len(service.learner.state.labels) == 7
    assert service.undo("import") is not None
    service.close()
    labelled = labelled_project(images / "project")
    assert len(labelled.entries) == 6


def test_embeddings_that_are_not_finite_are_left_out(tmp_path):
    vectors, _ = blobs(60)
    vectors[7, 2] = np.nan
    np.save(tmp_path / "pool.npy", vectors)
    project = create_project(
        tmp_path / "project", tmp_path / "pool.npy", kind="embeddings", classes=["a"], other="b"
    )
    assert list(project.bad) == [7]
    service = Service(project)
    assert {service.next(f"w{i}") for i in range(59)} == set(range(60)) - {7}
    with pytest.raises(GalaxyError, match="The embedding of '7' is not finite"):
        service.label("x", [(7, 0)])
    service.close()


@pytest.mark.slow
def test_texts_make_a_project(tmp_path):
    rows = [f"m{i},{'win a prize' if i % 5 == 0 else 'see you at lunch'} {i}" for i in range(20)]
    (tmp_path / "mails.csv").write_text("\n".join(["name,body", *rows]) + "\n")
    made = run(
        "init", tmp_path / "project", "--texts", tmp_path / "mails.csv", "--column", "body",
        "--id-column", "name", "--classes", "spam", "--other", "ham",
    )  # fmt: skip
    assert "20 texts in" in made.output
    assert open_project(tmp_path / "project").pool.ids[3] == "m3"
