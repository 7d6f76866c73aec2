"""Saved models: the same scores after loading, in ONNX Runtime, and on the command line."""

import csv
import hashlib
import json
import resource
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

from galaxy_al import GalaxyError
from galaxy_al.cli.main import cli
from galaxy_al.data import load_pool
from galaxy_al.data.tables import read_table
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.decisions import Decision, likeliest
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.models.networks import onnx
from galaxy_al.models.networks.training import Trainer
from galaxy_al.models.saving import load_model, save_model, save_onnx
from support.quick_networks import QUICK, every_network, items_for, some_labels, trained

CLASSES = ("Kratzer", "凹み", "fine")


def run_onnx(path, items):
    """The probabilities and decisions by ONNX Runtime, and the name of the input."""
    session = onnxruntime.InferenceSession(path)
    (taken,) = session.get_inputs()
    assert [given.name for given in session.get_outputs()] == ["probabilities", "decisions"]
    return *session.run(None, {taken.name: items}), taken.name


def clear_decisions(decision, proba, atol=1e-4):
    """The decisions, and whether each stays the same if the probabilities are a little off."""
    decided = decision.classes(proba)
    shares = np.eye(proba.shape[1]) * 2 * atol
    moved = [decision.classes(proba + sign * row) for row in shares for sign in (-1, 1)]
    return decided, (np.array(moved) == decided).all(axis=0)


@every_network
@pytest.mark.parametrize("known", ["all classes", "two classes", "one class"])
def test_a_loaded_model_and_its_onnx_twin_score_as_the_model_does(network, known, tmp_path):
    items = items_for(network)
    labels = {
        "all classes": some_labels(),
        "two classes": {i: i % 2 * 2 for i in range(10)},
        "one class": {0: 1},
    }[known]
    model = trained(network, items, labels)
    expected = model.proba(items)
    if known != "one class":
        assert np.ptp(expected, axis=0).max() > 0.01
    loaded = load_model(save_model(model, tmp_path / "model", classes=CLASSES))
    assert loaded.classes == CLASSES
    np.testing.assert_array_equal(loaded.model.proba(items), expected)
    np.testing.assert_array_equal(loaded.model.balanced(items), model.balanced(items))
    for given, read in zip(model.last_layer(), loaded.model.last_layer()):
        np.testing.assert_array_equal(given, read)
    assert loaded.decision == likeliest(3)

    path = onnx.save_onnx(model, tmp_path / "new" / "model.onnx")
    for n in (1, 7, len(items)):
        proba, decisions, name = run_onnx(path, items[:n])
        assert name == ("images" if network == "resnet18" else "embeddings")
        np.testing.assert_allclose(proba, expected[:n], atol=1e-4)
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(decisions, proba.argmax(axis=1))
    np.testing.assert_array_equal(model.proba(items), expected)


RULES = {
    "rare from a threshold on": (0.3, 0.2, 0.0),
    "a rare class at once, the other never": (1e-6, 1.0, 0.0),
    "as if all were as frequent": (0.2, 0.2, 0.6),
    "the likeliest": (1.0, 1.0, 1.0),
}


@pytest.mark.parametrize("thresholds", RULES.values(), ids=RULES)
def test_a_network_decides_in_onnx_as_it_does_here(thresholds, tmp_path):
    items = items_for("linear", 300)
    model = trained("linear", items, some_labels())
    decision = Decision("f1", thresholds)
    proba, decisions, _ = run_onnx(save_onnx(model, decision, tmp_path / "model.onnx"), items)
    np.testing.assert_allclose(proba, model.proba(items), atol=1e-5)
    np.testing.assert_array_equal(decisions, decision.classes(proba))
    expected, is_clear = clear_decisions(decision, model.proba(items))
    assert is_clear.mean() > 0.9
    np.testing.assert_array_equal(decisions[is_clear], expected[is_clear])


def test_saving_and_loading_leave_torchs_generator_alone(tmp_path):
    model = trained("mlp", items_for("mlp"), some_labels())
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    save_model(model, tmp_path, classes=CLASSES)
    load_model(tmp_path)
    assert torch.equal(torch.rand(1), expected)


def test_the_card_says_what_the_model_needs(tmp_path):
    model = Trainer("linear", n_classes=3).fit(np.zeros((4, 1280), dtype=np.float32), {0: 0, 1: 1})
    save_model(
        model, tmp_path, classes=CLASSES, embedder=load_embedder("images", "efficientnet-lite0@160")
    )
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["classes"] == list(CLASSES)
    assert card["labels_per_class"] == [1, 1, 0]
    assert card["kind"] == "images"
    assert card["embedder"]["name"] == "efficientnet-lite0@160"
    assert card["preprocessing"]["resize"] == [160, 160]
    assert load_embedder(card["kind"], card["embedder"]["name"]).version == "efficientnet-lite0@160"


def test_what_is_no_model_is_refused(tmp_path):
    model = trained("linear", items_for("linear"), some_labels())
    with pytest.raises(ValueError, match="The model has 3 classes, got names for 2"):
        save_model(model, tmp_path, classes=["a", "b"])
    with pytest.raises(GalaxyError, match=r"is not a saved model: it has no card.json"):
        load_model(tmp_path)
    save_model(model, tmp_path, classes=CLASSES)
    card = (tmp_path / "card.json").read_text(encoding="utf-8")
    (tmp_path / "card.json").write_text(card.replace('"format": 4', '"format": 3'))
    with pytest.raises(GalaxyError, match="its format is 3, not 4: train it again"):
        load_model(tmp_path)
    (tmp_path / "card.json").write_text("{")
    with pytest.raises(GalaxyError, match=r"Cannot read .*card.json"):
        load_model(tmp_path)
    (tmp_path / "card.json").write_text(card)
    (tmp_path / "model.safetensors").write_bytes(b"none")
    with pytest.raises(GalaxyError, match=r"model.safetensors is not what card.json was written"):
        load_model(tmp_path)


POOL = {"class_priors": [0.1, 0.2, 0.7]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ["a", "b"]}, "classes must be 3 different names"),
        ({"classes": ["a", "b", "b"]}, "classes must be 3 different names"),
        ({"classes": "abc"}, "classes must be a list of names"),
        ({"classes": [{}, [], None]}, "classes must be a list of names"),
        ({"labels_per_class": [1, 9]}, "a number of at least 0 for each class"),
        ({"labels_per_class": [1, 9, -1]}, "a number of at least 0 for each class"),
        ({"labels_per_class": [1, 9, 0.5]}, "a number of at least 0 for each class"),
        ({"labels_per_class": [[0], [1], [2]]}, "a number of at least 0 for each class"),
        ({"labels_per_class": 3}, "has no len"),
        (
            {"decision": {"rule": "f1", "thresholds": [0.5, 0]}, "pool": POOL},
            "one share for each class",
        ),
        (
            {"decision": {"rule": "f1", "thresholds": [0.5, 2, 0]}, "pool": POOL},
            "one share for each class",
        ),
        (
            {"decision": {"rule": "f1", "thresholds": [0.5, float("nan"), 0]}, "pool": POOL},
            "one share for each class",
        ),
        (
            {
                "decision": {"rule": "f1", "thresholds": [0.5, 0.5, 0]},
                "pool": {"class_priors": [0.5, 0.5]},
            },
            "one share for each class",
        ),
        (
            {"decision": {"rule": "f1", "thresholds": [0.5, 0.5, 0]}},
            "'pool'",
        ),
        ({"shape": {"network": "vgg"}}, "unknown network 'vgg'"),
        ({"shape": {"width": 300_000_000}}, "tensors are not those of the linear on the card"),
        ({"shape": {"width": None}}, "of its shape must be positive"),
        (
            {"shape": {"network": "resnet18", "image_size": [1.5, 2]}},
            "of its shape must be positive",
        ),
        (
            {"shape": {"network": "resnet18", "image_size": [32]}},
            "of its shape must be positive",
        ),
        ({"shape": {"depth": 3}}, "unexpected keyword argument 'depth'"),
        ({"sha256": "0"}, "is not what card.json was written for"),
    ],
)
def test_a_card_that_makes_no_sense_is_one_clear_line(tmp_path, change, message):
    model = trained("linear", items_for("linear"), some_labels())
    save_model(model, tmp_path, classes=CLASSES)
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    shape = {**card["shape"], **change.pop("shape", {})}
    (tmp_path / "card.json").write_text(json.dumps({**card, "shape": shape, **change}))
    with pytest.raises(GalaxyError, match=message) as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_model_saved_half_over_another_is_noticed(tmp_path, monkeypatch):
    items = items_for("linear")
    save_model(trained("linear", items, some_labels()), tmp_path, classes=CLASSES)
    card = (tmp_path / "card.json").read_bytes()
    other = trained("linear", items, some_labels(seed=1))
    save_model(other, tmp_path, classes=CLASSES[::-1])
    (tmp_path / "card.json").write_bytes(card)  # as if it had been killed in between
    with pytest.raises(GalaxyError, match=r"is not what card.json was written for"):
        load_model(tmp_path)


@pytest.mark.parametrize("classes", [["a", "a", "c"], "abc", ["a", "", "c"]])
def test_classes_that_cannot_be_told_apart_are_refused(tmp_path, classes):
    model = trained("linear", items_for("linear"), some_labels())
    with pytest.raises(ValueError, match="classes must be a list of different names"):
        save_model(model, tmp_path, classes=classes)


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def photos(tmp_path):
    """Red and green pictures of many sizes, one of them broken."""
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for i in range(12):
        color = (250, 20, 20) if i % 2 else (20, 250, 20)
        Image.new("RGB", (30 + i, 40), color).save(folder / "more" / f"{i:02d}.png")
    (folder / "broken.jpg").write_bytes(b"no picture")
    return folder


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_predict_writes_what_the_model_says_of_new_images(photos, tmp_path, monkeypatch, suffix):
    monkeypatch.setenv("GALAXY_AL_HOME", str(tmp_path / "home"))
    pool = load_pool(photos)
    embedder = load_embedder("images", "efficientnet-lite0@32")
    found = embed(pool, embedder)
    labels = {i: int(pool.ids[i][-5]) % 2 for i in found.good()[:6].tolist()}
    model = Trainer("linear", n_classes=2).fit(found.vectors, labels)
    save_model(model, tmp_path / "model", classes=("green", "red"), embedder=embedder)
    output = tmp_path / f"out.{suffix}"
    result = run("predict", tmp_path / "model", photos, "--output", output)
    assert "Cannot be used: 1 of 13 examples" in result.output
    assert f"12 examples in {output}" in result.output
    table = read_table(output)
    assert list(table.columns) == ["id", "decision", "p_green", "p_red"]
    assert list(table.column("id")) == [pool.ids[i] for i in found.good()]
    wanted = model.proba(found.vectors[found.good()])
    np.testing.assert_allclose(np.array(table.column("p_red"), float), wanted[:, 1], rtol=1e-6)
    colors = ["red" if int(name[-5]) % 2 else "green" for name in table.column("id")]
    assert list(table.column("decision")) == colors


def test_predict_by_a_resnet_leaves_out_what_cannot_be_read(photos, tmp_path):
    trainer = Trainer("resnet18", n_classes=2, image_size=(32, 32), recipe=QUICK["resnet18"])
    good = load_pool(photos / "more")
    model = trainer.fit(good, {i: i % 2 for i in range(12)})
    save_model(model, tmp_path / "model", classes=("green", "red"))
    result = run("predict", tmp_path / "model", photos, "--output", tmp_path / "out.csv")
    assert "broken.jpg as an image" in result.output
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"more/{i:02d}.png" for i in range(12)]
    got = [[float(row["p_green"]), float(row["p_red"])] for row in rows]
    np.testing.assert_allclose(got, model.proba(good), rtol=1e-6)


def test_predict_refuses_what_does_not_fit(photos, tmp_path):
    model = trained("linear", items_for("linear"), some_labels())
    save_model(model, tmp_path / "model", classes=CLASSES)
    np.save(tmp_path / "new.npy", items_for("linear", 9, seed=1))
    np.save(tmp_path / "wide.npy", np.zeros((3, 6)))

    def message(*arguments):
        with pytest.raises((GalaxyError, ValueError)) as caught:
            run("predict", tmp_path / "model", *arguments)
        return str(caught.value)

    assert "takes embeddings, but the pool contains images" in message(
        photos, "--output", tmp_path / "o.csv"
    )
    assert "takes 5 features, got 6" in message(
        tmp_path / "wide.npy", "--output", tmp_path / "o.csv"
    )
    assert "o.txt must end in .csv, .jsonl, .parquet" in message(
        tmp_path / "new.npy", "--output", tmp_path / "o.txt"
    )
    assert "There is no folder" in message(
        tmp_path / "new.npy", "--output", tmp_path / "no" / "o.csv"
    )
    before = (tmp_path / "new.npy").read_bytes()
    (tmp_path / "p.csv").write_text("id,text\n1,a\n")
    assert "p.csv is the pool itself and must not be overwritten" in message(
        tmp_path / "p.csv", "--output", tmp_path / "p.csv"
    )
    assert (tmp_path / "new.npy").read_bytes() == before
    assert not list(tmp_path.glob("o.*"))
    run("predict", tmp_path / "model", tmp_path / "new.npy", "--output", tmp_path / "o.csv")
    assert len(read_table(tmp_path / "o.csv")) == 9


FULL_DISK = """
import resource, sys
import numpy as np
from galaxy_al.cli.main import main
from galaxy_al.models.saving import save_model, load_model
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
folder = sys.argv[1]
try:
    save_model(load_model(folder + "/model").model, folder + "/model", classes=["x", "y", "z"])
except Exception as error:
    print(type(error).__name__, error, file=sys.stderr)
sys.argv = ["galaxy-al", "predict", folder + "/model", folder + "/new.npy"]
sys.argv += ["--output", folder + "/out.csv"]
main()
"""


def test_a_disk_that_is_full_in_the_middle_loses_nothing_that_was_there(tmp_path):
    items = np.random.default_rng(0).normal(size=(1000, 600)).astype(np.float32)
    model = trained("linear", items, some_labels())
    save_model(model, tmp_path / "model", classes=CLASSES)
    np.save(tmp_path / "new.npy", items)
    (tmp_path / "out.csv").write_text("what was there")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    arguments = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    saving, predicting = result.stderr.splitlines()
    assert saving.startswith(f"GalaxyError Cannot write {tmp_path / 'model'}")
    assert predicting == f"galaxy-al: Cannot write {tmp_path / 'out.csv'}: File too large"
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


FEW, MANY = 5, 60  # columns: with trees and without
every_width = pytest.mark.parametrize("width", [FEW, MANY])
LABELS = {
    "all classes": {i: i % 3 for i in range(30)},
    "a few rare": {i: min(i % 8, 2) for i in range(48)},
    "two labels": {0: 0, 1: 2},
    "no majority": {i: i % 2 for i in range(20)},
    "one class": {0: 1},
    "none": {},
}
every_label_set = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def auto_model(width, labels, n_classes=3, dtype=np.float32, size=60):
    """The default head, its pool, and new examples."""
    rng = np.random.default_rng(0)
    pool, new = (rng.normal(size=(n, width)).astype(dtype) for n in (size, 200))
    for i, label in labels.items():
        pool[i, label] += 2
    return AutoTrainer(n_classes=n_classes).fit(pool, labels), pool, new


@every_width
@every_label_set
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loaded_default_head_scores_as_the_head_does(labels, width, dtype, tmp_path):
    model, pool, new = auto_model(width, labels, dtype=dtype)
    has_trees = width == FEW and len(set(labels.values())) > 1
    assert (model.trees is not None) == has_trees
    saved = load_model(save_model(model, tmp_path / "model", classes=CLASSES))
    loaded = saved.model
    assert (saved.classes, saved.kind, saved.width) == (CLASSES, "embeddings", width)
    assert saved.decision == likeliest(3)
    # Not to the last digit: the arrays lie in another order in memory.
    np.testing.assert_allclose(loaded.proba(new), model.proba(new), atol=1e-5)
    np.testing.assert_allclose(loaded.balanced(new), model.balanced(new), atol=1e-5)
    np.testing.assert_allclose(loaded.proba(pool), model.proba(pool), atol=1e-5)
    np.testing.assert_array_equal(loaded.class_priors, model.class_priors)
    assert loaded.sharpness == model.sharpness


def test_a_loaded_default_head_asks_its_trees_only_about_candidates(tmp_path, monkeypatch):
    monkeypatch.setattr("galaxy_al.models.auto._CANDIDATES", 10)
    model, _, new = auto_model(FEW, LABELS["all classes"])
    assert np.isfinite(model.trees_from)
    loaded = load_model(save_model(model, tmp_path, classes=CLASSES)).model
    assert loaded.trees_from == model.trees_from
    np.testing.assert_allclose(loaded.proba(new), model.proba(new), atol=1e-5)


def test_a_default_head_that_was_tampered_with_is_refused(tmp_path):
    model = AutoTrainer(n_classes=2).fit(np.eye(4), {0: 0, 1: 1})
    save_model(model, tmp_path, classes=["rare", "other"])
    card = json.loads((tmp_path / "card.json").read_text())
    card["shape"]["width"] = 5
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(GalaxyError, match="its tensors are not those of the head on the card"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sharpness": 0}, "its sharpness must be a number above 0, got 0"),
        ({"sharpness": np.nan}, "its sharpness must be a number above 0, got nan"),
        ({"sharpness": "1"}, "its sharpness must be a number above 0, got '1'"),
        ({"trees_from": "low"}, "could not convert string to float"),
    ],
)
def test_a_card_of_a_default_head_that_makes_no_sense_is_one_clear_line(change, message, tmp_path):
    model, _, _ = auto_model(FEW, LABELS["all classes"])
    save_model(model, tmp_path, classes=CLASSES)
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    (tmp_path / "card.json").write_text(json.dumps(card | change))
    with pytest.raises(GalaxyError, match=message) as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


TAMPERED = {
    "landmarks that are missing": (
        lambda a: {name: array for name, array in a.items() if name != "landmarks"},
        "its tensors are not those of the head",
    ),
    "axes of one dimension": (
        lambda a: a | {"axes": a["axes"].ravel()},
        "its tensors are not those of the head",
    ),
    "a bias that is not a number": (
        lambda a: a | {"bias": changed(a["bias"], 0, np.nan)},
        "its tensors are not all finite numbers",
    ),
    "weights that are whole numbers": (
        lambda a: a | {"weights": a["weights"].astype(np.int32)},
        "its tensors are not all finite numbers",
    ),
    "a scale of 0": (lambda a: a | {"scale": 0 * a["scale"]}, "its scale is not positive"),
    "trees without votes": (
        lambda a: {name: array for name, array in a.items() if name != "trees.votes"},
        "its trees are not complete",
    ),
    "trees without roots": (
        lambda a: {name: array for name, array in a.items() if name != "trees.roots"},
        "its trees are not complete",
    ),
    "votes for a class more": (
        lambda a: a | {"trees.votes": np.pad(a["trees.votes"], ((0, 0), (0, 1)))},
        "its trees are not complete",
    ),
    "a child that does not exist": (
        lambda a: a | {"trees.right": changed(a["trees.right"], 0, len(a["trees.right"]))},
        "its trees have a node that does not exist",
    ),
    "a root that does not exist": (
        lambda a: a | {"trees.roots": changed(a["trees.roots"], 0, -1)},
        "its trees have a node that does not exist",
    ),
    "a feature that does not exist": (
        lambda a: a | {"trees.feature": changed(a["trees.feature"], 0, FEW)},
        "its trees have a node that does not exist",
    ),
    "a node above its parent": (
        lambda a: a | {"trees.left": changed(a["trees.left"], 2, 1)},
        "its trees never end",
    ),
    "a leaf with one child": (
        lambda a: (
            a
            | {
                "trees.left": changed(a["trees.left"], 0, 0),
                "trees.right": changed(a["trees.right"], 0, 1),
            }
        ),
        "its trees never end",
    ),
    "a threshold that is not a number": (
        lambda a: a | {"trees.threshold": changed(a["trees.threshold"], 0, np.nan)},
        "its trees are not all finite numbers",
    ),
    "votes that are infinite": (
        lambda a: a | {"trees.votes": changed(a["trees.votes"], 0, np.inf)},
        "its trees are not all finite numbers",
    ),
}


@pytest.mark.parametrize(("change", "message"), TAMPERED.values(), ids=TAMPERED)
def test_a_default_head_with_changed_arrays_is_refused(change, message, tmp_path):
    from safetensors.numpy import load, save

    model, _, _ = auto_model(FEW, LABELS["all classes"])
    save_model(model, tmp_path, classes=CLASSES)
    weights, card = tmp_path / "model.safetensors", tmp_path / "card.json"
    arrays = change(load(weights.read_bytes()))
    weights.write_bytes(save(arrays))
    about = json.loads(card.read_text(encoding="utf-8"))
    about["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
    card.write_text(json.dumps(about))
    with pytest.raises(GalaxyError, match=message) as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


@every_width
@every_label_set
@pytest.mark.parametrize("thresholds", RULES.values(), ids=RULES)
def test_the_onnx_twin_of_a_default_head_scores_and_decides_as_it_does(
    labels, width, thresholds, tmp_path
):
    model, pool, new = auto_model(width, labels)
    decision = Decision("f1", thresholds)
    path = save_onnx(model, decision, tmp_path / "new" / "model.onnx")
    for items in (new, new[:1], pool):
        proba, decisions, name = run_onnx(path, items)
        assert name == "embeddings"
        np.testing.assert_allclose(proba, model.proba(items), atol=1e-4)
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(decisions, decision.classes(proba))
        expected, is_clear = clear_decisions(decision, model.proba(items))
        np.testing.assert_array_equal(decisions[is_clear], expected[is_clear])
    if len(set(labels.values())) > 1:
        assert np.ptp(model.proba(new), axis=0).max() > 0.1
        assert is_clear.mean() > 0.9


@every_width
def test_the_onnx_twin_of_a_default_head_for_two_classes_decides_as_it_does(width, tmp_path):
    model, _, new = auto_model(width, {i: int(i % 5 > 0) for i in range(40)}, n_classes=2)
    for thresholds in ((0.3, 0.0), (0.2, 0.8), (1.0, 1.0)):
        decision = Decision("f1", thresholds)
        path = save_onnx(model, decision, tmp_path / "model.onnx")
        proba, decisions, _ = run_onnx(path, new)
        np.testing.assert_allclose(proba, model.proba(new), atol=1e-4)
        expected, is_clear = clear_decisions(decision, model.proba(new))
        assert len(set(expected[is_clear].tolist())) == 2
        np.testing.assert_array_equal(decisions[is_clear], expected[is_clear])


def test_the_onnx_twin_asks_its_trees_only_about_candidates(tmp_path, monkeypatch):
    monkeypatch.setattr("galaxy_al.models.auto._CANDIDATES", 10)
    model, _, new = auto_model(FEW, LABELS["a few rare"])
    proba, _, _ = run_onnx(save_onnx(model, likeliest(3), tmp_path / "model.onnx"), new)
    logits = model.kernel.logits(new)
    is_candidate = np.exp(logits[:, :2]).sum(axis=1) >= np.exp(logits[:, 2] + model.trees_from)
    assert 0 < is_candidate.sum() < len(new)
    np.testing.assert_allclose(proba, model.proba(new), atol=1e-4)


@every_width
def test_a_head_that_looks_through_its_pool_first_is_the_same_saved_and_as_onnx(
    width, tmp_path, monkeypatch
):
    labels = {i: min(i % 8, 2) for i in range(200)}
    exact, _, new = auto_model(width, labels, size=600)
    monkeypatch.setattr("galaxy_al.models.kernel_space._KEPT_BYTES", 0)
    monkeypatch.setattr("galaxy_al.models.kernel.MOST_COARSE", 60)
    monkeypatch.setattr("galaxy_al.models.kernel._CANDIDATES", 100)
    monkeypatch.setattr("galaxy_al.models.kernel._MOST_CANDIDATES", 0.0)
    model, _, _ = auto_model(width, labels, size=600)
    assert model.kernel.coarse is not None
    expected = model.proba(new)
    assert np.abs(model.kernel.logits(new) - exact.kernel.logits(new)).max() > 0.1
    loaded = load_model(save_model(model, tmp_path, classes=CLASSES)).model
    np.testing.assert_allclose(loaded.proba(new), expected, atol=1e-5)
    proba, _, _ = run_onnx(save_onnx(model, likeliest(3), tmp_path / "model.onnx"), new)
    np.testing.assert_allclose(proba, expected, atol=1e-4)


def test_what_is_no_network_is_refused_where_one_is_expected(tmp_path):
    model = AutoTrainer(n_classes=2).fit(np.eye(4), {0: 0, 1: 1})
    with pytest.raises(
        ValueError, match="Expected a network trained by Trainer, got an object of type AutoModel"
    ):
        onnx.save_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
