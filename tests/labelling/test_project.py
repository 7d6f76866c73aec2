"""Projects: create, open, export and train, as on the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from galaxy_al import GalaxyError
from galaxy_al.cli.main import main
from galaxy_al.labelling.exports import EXPORTS
from galaxy_al.labelling.model import labeled_examples
from galaxy_al.labelling.project import create_project, open_project
from galaxy_al.labelling.service import Service
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.saving import load_model
from galaxy_al.system.files import read_toml
from support.commands import init, read_csv, run
from support.projects import blobs, small_project


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
    proba = AutoTrainer(n_classes=3).fit(vectors, labels).proba(vectors)
    given = [[float(row[f"p_{name}"]) for name in codes] for row in predicted]
    np.testing.assert_allclose(given, proba, atol=1e-5)
    assert np.mean([row["decision"] == name for row, name in zip(predicted, names)]) > 0.9


@pytest.mark.slow
def test_what_was_labelled_is_exported_with_who_when_and_which_round(tmp_path):
    project, truth = small_project(tmp_path)
    service = Service(project)
    for who in ("ann", "bob") * 15:
        example = service.next(who).id
        service.label(who, {example: truth[example]})
        service.wait()
    last = service.next("ann").id
    service.skip("ann", last, cannot_tell=True)
    service.close()
    EXPORTS["jsonl"].write(labeled_examples(project.folder), tmp_path / "labels.jsonl")
    lines = (tmp_path / "labels.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 30
    assert {row["annotator"] for row in rows} == {"ann", "bob"}
    assert all(truth[row["id"]] == row["label"] for row in rows)
    assert [row["created_at"] for row in rows] == sorted(row["created_at"] for row in rows)
    assert max(row["round"] for row in rows) >= 1
    assert all(abs(sum(row[f"p_{name}"] for name in project.classes) - 1) < 1e-6 for row in rows)
    assert "can't tell" in run("status", project.folder).output


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
    no_project = "is not a galaxy-al project. Create one with `galaxy-al init`."
    assert told("status", project) == f"galaxy-al: {project} {no_project}"
    assert told("init", project, *both).endswith(
        "Give exactly one of --texts, --images, --embeddings."
    )
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
    assert told("init", project, "--embeddings", pool, *both).endswith("is already a project.")
    assert told("train", project).endswith(
        "has no labels yet. Training needs labels of two classes."
    )
    assert told("label", project / "nothing").endswith(no_project)
    assert "must be a host name" in told("label", project, "--no-open", "--name", "https://a.org")
    (embeddings / "lock").write_text("mine")
    assert told("label", embeddings).endswith(no_project)
    assert (embeddings / "lock").read_text() == "mine"
    assert told("export", project).endswith("has no labels yet.")
    assert "a folder of its own" in told("init", pool, "--embeddings", pool, *both)
    nowhere = embeddings / "nowhere"
    assert told("init", nowhere, "--embeddings", embeddings / "no.npy", *both).endswith(
        f"There is no {embeddings / 'no.npy'}."
    )
    assert not nowhere.exists()


def test_an_extra_that_is_missing_is_named(tmp_path, monkeypatch):
    (tmp_path / "mails.csv").write_text("text\nhello\n")
    monkeypatch.setitem(sys.modules, "galaxy_al.models.networks.embedders", None)
    both = {"kind": "texts", "classes": ["spam"], "other": "ham"}
    with pytest.raises(GalaxyError, match=r"pip install 'galaxy-al\[texts\]'"):
        create_project(tmp_path / "project", tmp_path / "mails.csv", **both)
    assert not (tmp_path / "project").exists()


def test_a_head_that_cannot_be_used_leaves_no_project(embeddings):
    for more in ([], ["--import-labels", embeddings / "known.csv"]):
        with pytest.raises(GalaxyError, match="resnet18 takes N x H x W x 3 bytes"):
            init(embeddings, "--head", "resnet18", *more)
        assert not (embeddings / "project").exists()


def test_a_file_where_a_folder_should_be_is_named(embeddings):
    pool = embeddings / "pool.npy"
    wanted = f"Cannot make the folder {pool}/x: Not a directory."
    both = ["--embeddings", pool, "--classes", "scratch,dent", "--other", "fine"]
    assert str(run("init", pool / "x", *both, fails=True).exception) == wanted
    init(embeddings, "--import-labels", embeddings / "known.csv")
    done = run(
        "export", embeddings / "project", "--format", "hf", "--output", pool / "x", fails=True
    )
    assert str(done.exception) == wanted.replace("/x", "/x/data")


WITHOUT_TORCH = """
import sys
from galaxy_al.cli.main import main

class Missing:
    def find_spec(name, path, target=None):
        if name == "torch":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Missing)
main()
"""


@pytest.fixture
def command_without_torch(embeddings):
    """Runs galaxy-al where torch is not installed."""

    def run(*arguments):
        command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, arguments)]
        return subprocess.run(command, cwd=embeddings, capture_output=True, text=True, check=False)

    return run


def test_a_head_that_needs_torch_says_so_in_every_command(embeddings, command_without_torch):
    classes = ["--classes", "scratch,dent", "--other", "fine", "--import-labels", "known.csv"]
    make = ["init", "--embeddings", "pool.npy", *classes, "--head", "mlp"]
    done = command_without_torch(*make, "project")
    wanted = "galaxy-al: The head 'mlp' needs torch: pip install 'galaxy-al[torch]'.\n"
    assert (done.returncode, done.stderr) == (1, wanted)
    assert not (embeddings / "project").exists()
    init(embeddings, "--import-labels", embeddings / "known.csv", "--head", "linear")
    for command in ("train", "export"):
        done = command_without_torch(command, "project")
        assert (done.returncode, done.stderr) == (1, wanted.replace("mlp", "linear"))
    run("train", embeddings / "project")
    done = command_without_torch("predict", "project/model", "pool.npy")
    wanted = "galaxy-al: A saved network needs torch: pip install 'galaxy-al[torch]'.\n"
    assert (done.returncode, done.stderr) == (1, wanted)


def test_the_default_head_needs_no_extra(embeddings, command_without_torch):
    init(embeddings, "--import-labels", embeddings / "known.csv")
    assert command_without_torch("train", "project").returncode == 0
    done = command_without_torch("predict", "project/model", "pool.npy")
    assert (done.returncode, done.stderr) == (0, "")
    needed = read_toml(Path(__file__).parents[2] / "pyproject.toml")["project"]["dependencies"]
    assert any(line.startswith("safetensors>=") for line in needed)


def test_half_a_character_is_refused_by_line_and_never_asked(tmp_path):
    rows = [{"text": "good"}, {"text": "cut \ud83d"}]
    (tmp_path / "mails.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    both = {"kind": "texts", "classes": ["spam"], "other": "ham"}
    with pytest.raises(GalaxyError, match="line 2: 'text' has half a character in it"):
        create_project(tmp_path / "project", tmp_path / "mails.jsonl", **both)


def test_a_label_of_an_example_that_is_gone_does_no_harm(images):
    (images / "photos" / "00.png").unlink()
    project = open_project(images / "project")
    service = Service(project)
    assert len(service.view().labels) == 7
    assert service.undo("import") is not None
    service.close()
    labeled = labeled_examples(images / "project")
    assert len(labeled.entries) == 6
    assert labeled.warnings == [
        "Labels of examples that are not in the pool or cannot be read: 1. Left out."
    ]


def test_embeddings_that_are_not_finite_are_left_out(tmp_path):
    vectors, _ = blobs(60)
    vectors[7, 2] = np.nan
    np.save(tmp_path / "pool.npy", vectors)
    project = create_project(
        tmp_path / "project", tmp_path / "pool.npy", kind="embeddings", classes=["a"], other="b"
    )
    assert list(project.bad) == [7]
    service, ids = Service(project), project.pool.ids
    assert {service.next(f"w{i}").id for i in range(59)} == set(ids) - {ids[7]}
    with pytest.raises(GalaxyError, match="The embedding of '7' is not finite"):
        service.label("x", {ids[7]: project.classes[0]})
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
