"""Projects: create, open, export and train, as on the command line."""

import json
import os
import re
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
    opinions = ["n_answers", "answers_disagree", "consensus_probability"]
    proba = ["p_scratch", "p_dent", "p_fine"]
    assert [*rows[0]] == [*about, *opinions, *proba, "suspected_error"]
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


@pytest.mark.parametrize(
    ("options", "strategy", "line"),
    [
        ((), "fair-cuts", "Goal: a classifier for the rare classes."),
        (
            ("--goal", "find-all"),
            "find-all",
            "Goal: find all rare examples, the most likely first.",
        ),
        (
            ("--goal", "find-all", "--strategy", "galaxy"),
            "galaxy",
            "Goal: find all rare examples, the most likely first.",
        ),
    ],
)
def test_the_goal_is_chosen_by_init_and_shown_by_status(embeddings, options, strategy, line):
    init(embeddings, *options)
    project = embeddings / "project"
    assert read_toml(project / "project.toml")["strategy"] == strategy
    assert run("status", project).output.splitlines()[1] == line


@pytest.fixture
def trained(embeddings):
    """A folder with a project, its saved model and the pool."""
    init(embeddings, "--import-labels", embeddings / "known.csv")
    run("train", embeddings / "project")
    return embeddings


def predicted(folder, *options):
    """What `galaxy-al predict` writes: the decisions and the probabilities."""
    table = folder / "predictions.csv"
    model, pool = folder / "project" / "model", folder / "pool.npy"
    run("predict", model, pool, "--output", table, *options)
    rows = read_csv(table)
    proba = [[float(row[f"p_{name}"]) for name in ("scratch", "dent", "fine")] for row in rows]
    return [row["decision"] for row in rows], np.array(proba)


def test_train_prints_and_saves_how_good_its_decisions_will_be(trained):
    model = trained / "project" / "model"
    printed = run("train", trained / "project", "--decide", "recall=0.9", "--onnx").output
    lines = printed.splitlines()
    assert lines[0] == f"Trained on 60 labels: {model}"
    assert lines[1] == "Decides for a recall of at least 0.9."
    header = next(line for line in lines if line.startswith("class"))
    assert " ".join(header.split()) == "class threshold precision recall F1 in the pool"
    for name in ("scratch", "dent", "fine"):
        assert sum(line.startswith(name) for line in lines) == 2  # and in the confusion
    names = ["README.md", "card.json", "model.onnx", "model.safetensors", "precision-recall.png"]
    assert sorted(path.name for path in model.iterdir()) == names
    card = json.loads((model / "card.json").read_text())
    assert card["decision"]["rule"] == "recall=0.9"
    assert list(card["decision"]["thresholds"]) == list(load_model(model).decision.thresholds)
    assert sum(card["labels"].values()) == 60
    assert list(card["estimates"]["classes"]) == ["scratch", "dent", "fine"]
    assert np.sum(card["estimates"]["confusion"]) == pytest.approx(card["pool"]["size"], abs=1)
    assert all(line in (model / "README.md").read_text() for line in lines[1:])


def test_the_python_example_of_a_models_readme_runs(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained / "project")
    text = Path("model/README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    Path("new-vectors.npy").write_bytes((trained / "pool.npy").read_bytes())
    exec(code, {})
    decisions, proba = predicted(trained)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [[str(i), d] for i, d in enumerate(decisions)]
    assert len(lines) == len(proba)


def test_predict_decides_by_the_thresholds_of_the_model_or_by_others(trained):
    thresholds = load_model(trained / "project" / "model").decision.thresholds
    decisions, proba = predicted(trained)

    def is_right(decided, *limits):
        """Whether decisions are those of thresholds; an example just at one may be either."""
        times = proba[:, :2] / limits
        rare = np.array(["scratch", "dent"])[times.argmax(axis=1)]
        expected = np.where(times.max(axis=1) >= 1, rare, "fine")
        is_clear = (np.abs(times - 1) > 1e-5).all(axis=1)
        assert is_clear.sum() >= len(proba) - 4
        return (np.array(decided) == expected)[is_clear].all()

    assert is_right(decisions, *thresholds[:2])
    for options, limits in [
        ("0.01", (0.01, 0.01)),
        ("scratch=0.02,dent=0.9", (0.02, 0.9)),
        ("dent=0.001", (thresholds[0], 0.001)),
    ]:
        found, same = predicted(trained, "--threshold", options)
        assert is_right(found, *limits)
        assert not is_right(decisions, *limits)
        np.testing.assert_array_equal(same, proba)


def test_predict_takes_the_prevalence_of_new_data(trained):
    priors = load_model(trained / "project" / "model").class_priors
    _, proba = predicted(trained)
    wanted = np.array([0.001, 0.02, 0.979])
    expected = proba * wanted / priors
    expected /= expected.sum(axis=1, keepdims=True)
    _, found = predicted(trained, "--prevalence", "scratch=0.001,dent=0.02")
    np.testing.assert_allclose(found, expected, atol=1e-5)
    one = np.array([0.001, priors[1], 1 - 0.001 - priors[1]])
    expected = proba * one / priors
    expected /= expected.sum(axis=1, keepdims=True)
    _, found = predicted(trained, "--prevalence", "scratch=0.001")
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("rule", "follows"), [("recall=0.9", False), ("balanced", False), ("cost=3:1", True)]
)
def test_what_is_found_of_a_class_does_not_depend_on_its_prevalence(trained, rule, follows):
    run("train", trained / "project", "--decide", rule)
    usual, _ = predicted(trained)
    rarer, _ = predicted(trained, "--prevalence", "0.00001")
    assert (rarer != usual) == follows
    given, proba = predicted(trained, "--prevalence", "0.00001", "--threshold", "0.5")
    assert [name != "fine" for name in given] == (proba[:, :2].max(axis=1) >= 0.5).tolist()


def test_training_again_leaves_no_onnx_of_the_model_before(trained):
    exported = trained / "project" / "model" / "model.onnx"
    run("train", trained / "project", "--onnx")
    assert exported.exists()
    run("train", trained / "project")
    assert not exported.exists()


def test_predict_names_and_leaves_out_vectors_that_are_not_usual_numbers(trained):
    vectors = np.load(trained / "pool.npy").astype(np.float64)
    vectors[3, 0], vectors[5, 1], vectors[8, 2] = np.nan, np.inf, 1e300
    np.save(trained / "pool.npy", vectors)
    model, table = trained / "project" / "model", trained / "predictions.csv"
    found = run("predict", model, trained / "pool.npy", "--output", table)
    assert "The embedding of '3' is not finite." in found.stderr
    assert "The embedding of '8' has a number beyond 1e+30." in found.stderr
    assert [row["id"] for row in read_csv(table)] == [
        str(i) for i in range(200) if i not in (3, 5, 8)
    ]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.float16])
def test_vectors_of_any_number_can_be_trained_on_and_predicted(embeddings, dtype):
    vectors = np.load(embeddings / "pool.npy")
    np.save(embeddings / "pool.npy", (10 * (vectors - vectors.min())).astype(dtype))
    init(embeddings, "--import-labels", embeddings / "known.csv")
    run("train", embeddings / "project")
    decisions, proba = predicted(embeddings)
    _, names = blobs()
    assert np.mean(np.array(decisions) == names) > 0.9
    assert np.isfinite(proba).all()


def test_a_class_without_labels_is_not_said_to_be_absent(embeddings):
    known = (embeddings / "known.csv").read_text().splitlines()
    (embeddings / "known.csv").write_text("\n".join(line for line in known if "dent" not in line))
    init(embeddings, "--import-labels", embeddings / "known.csv")
    for rule in ("f1", "balanced", "precision=0.5"):
        lines = run("train", embeddings / "project", "--decide", rule).output.splitlines()
        assert "Never decided, for lack of labels: dent." in lines
        rows = [line.split() for line in lines if line.startswith("dent")]
        assert ["dent", "no", "labels", *["unknown"] * 4] in rows
    card = json.loads((embeddings / "project" / "model" / "card.json").read_text())
    assert card["estimates"]["classes"]["dent"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threshold", "scratch=0.1,scratch=0.2"], "give one number, or NAME=NUMBER"),
        (["--threshold", "0"], "A threshold must be above 0 and at most 1, got 0"),
        (["--threshold", "1.5"], "A threshold must be above 0 and at most 1, got 1.5"),
        (["--threshold", "nan"], "A threshold must be above 0 and at most 1, got nan"),
        (["--threshold", "fine=0.5"], "'fine' is not a rare class. Choose from: scratch, dent"),
        (["--threshold", "scratch:0.5"], "give one number, or NAME=NUMBER"),
        (["--prevalence", "0"], "A prevalence must be above 0 and below 1"),
        (["--prevalence", "-0.1"], "A prevalence must be above 0 and below 1"),
        (["--prevalence", "1.2"], "A prevalence must be above 0 and below 1"),
        (["--prevalence", "nan"], "A prevalence must be above 0 and below 1"),
        (["--prevalence", "0.5"], "those of all rare classes together below 1, got 0.5, 0.5"),
        (["--prevalence", "bump=0.1"], "'bump' is not a rare class"),
        (["--prevalence", "scratch="], "give one number, or NAME=NUMBER"),
    ],
)
def test_predict_refuses_options_that_make_no_sense_and_overwrites_nothing(
    trained, options, message, capsys, monkeypatch
):
    output = trained / "predictions.csv"
    output.write_text("what was there")
    arguments = [trained / "project" / "model", trained / "pool.npy", "--output", output]
    command = ["galaxy-al", "predict", *map(str, arguments), *options]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert output.read_text() == "what was there"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("best", "Unknown rule 'best'. Choose from: f1, balanced, precision=P, recall=R"),
        ("precision=0", "precision must be above 0 and at most 1, got '0'"),
        ("recall=1.5", "recall must be above 0 and at most 1, got '1.5'"),
        ("cost=0:1", "cost must be two numbers above 0"),
        ("precision=1", "precision=1 cannot be reached"),
    ],
)
def test_train_refuses_rules_that_make_no_sense_and_keeps_the_model(trained, rule, message):
    model = trained / "project" / "model"
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    with pytest.raises((GalaxyError, ValueError), match=re.escape(message)):
        run("train", trained / "project", "--decide", rule)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


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
        "Give exactly one of --texts, --images, --embeddings, --shards."
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
