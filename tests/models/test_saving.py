"""Saved models: the same scores after loading, in ONNX Runtime, and on the command line."""

import csv
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
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.models.kernel import KernelTrainer
from galaxy_al.models.networks.onnx import save_onnx
from galaxy_al.models.networks.training import Trainer
from galaxy_al.models.saving import load_model, save_model
from support.quick_networks import QUICK, every_network, items_for, some_labels, trained

CLASSES = ("Kratzer", "凹み", "fine")


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
    for given, read in zip(model.last_layer(), loaded.model.last_layer()):
        np.testing.assert_array_equal(given, read)

    path = save_onnx(model, tmp_path / "new" / "model.onnx")
    session = onnxruntime.InferenceSession(path)
    (taken,), (given,) = session.get_inputs(), session.get_outputs()
    assert (taken.name, given.name) == (
        "images" if network == "resnet18" else "embeddings",
        "probabilities",
    )
    for n in (1, 7, len(items)):
        (proba,) = session.run(None, {taken.name: items[:n]})
        np.testing.assert_allclose(proba, expected[:n], atol=1e-4)
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(model.proba(items), expected)


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
    assert card["classes_with_labels"] == [0, 1]
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
    (tmp_path / "card.json").write_text(card.replace('"format": 2', '"format": 1'))
    with pytest.raises(GalaxyError, match="its format is 1, not 2: train it again"):
        load_model(tmp_path)
    (tmp_path / "card.json").write_text("{")
    with pytest.raises(GalaxyError, match=r"Cannot read .*card.json"):
        load_model(tmp_path)
    (tmp_path / "card.json").write_text(card)
    (tmp_path / "model.safetensors").write_bytes(b"none")
    with pytest.raises(GalaxyError, match=r"model.safetensors is not what card.json was written"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ["a", "b"]}, "classes must be 3 different names"),
        ({"classes": ["a", "b", "b"]}, "classes must be 3 different names"),
        ({"classes": "abc"}, "classes must be a list of names"),
        ({"classes": [{}, [], None]}, "classes must be a list of names"),
        ({"classes_with_labels": [0, 9]}, "some of the classes' numbers"),
        ({"classes_with_labels": [0, -1]}, "some of the classes' numbers"),
        ({"classes_with_labels": [[0], [1]]}, "some of the classes' numbers"),
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
    assert list(table.columns) == ["id", "class", "p_green", "p_red"]
    assert list(table.column("id")) == [pool.ids[i] for i in found.good()]
    wanted = model.proba(found.vectors[found.good()])
    np.testing.assert_allclose(np.array(table.column("p_red"), float), wanted[:, 1], rtol=1e-6)
    colors = ["red" if int(name[-5]) % 2 else "green" for name in table.column("id")]
    assert list(table.column("class")) == colors


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


@pytest.mark.parametrize("labels", [{i: i % 3 for i in range(30)}, {0: 0, 1: 2}, {0: 1}, {}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loaded_kernel_head_scores_as_the_head_does(labels, dtype, tmp_path):
    rng = np.random.default_rng(0)
    pool, new = rng.normal(size=(60, 5)).astype(dtype), rng.normal(size=(20, 5)).astype(dtype)
    model = KernelTrainer(n_classes=3).fit(pool, labels)
    loaded = load_model(save_model(model, tmp_path / "model", classes=CLASSES))
    assert (loaded.classes, loaded.kind, loaded.width) == (CLASSES, "embeddings", 5)
    # Not to the last digit: the arrays lie in another order in memory.
    np.testing.assert_allclose(loaded.model.proba(new), model.proba(new), atol=1e-5)
    np.testing.assert_array_equal(loaded.model.class_priors, model.class_priors)


def test_a_kernel_head_that_was_tampered_with_is_refused(tmp_path):
    model = KernelTrainer(n_classes=2).fit(np.eye(4), {0: 0, 1: 1})
    save_model(model, tmp_path, classes=["rare", "other"])
    card = json.loads((tmp_path / "card.json").read_text())
    card["shape"]["width"] = 5
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(GalaxyError, match="its tensors are not those of the kernel head"):
        load_model(tmp_path)


def test_only_networks_become_onnx(tmp_path):
    model = KernelTrainer(n_classes=2).fit(np.eye(4), {0: 0, 1: 1})
    with pytest.raises(
        ValueError, match="Expected a network trained by Trainer, got an object of type KernelModel"
    ):
        save_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
