"""A project whose embedder is an ONNX file: no torch, from any folder, until it changes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.project import open_project
from galaxy_al.system.files import read_toml
from support.commands import read_csv, run
from support.onnx_models import flat_model, square_model, text_model, write_tokenizer

HEAVY = """
import sys
from pathlib import Path
from galaxy_al.labelling.project import open_project

assert open_project(Path(sys.argv[1])).vectors.any()
print(sorted({"torch", "transformers", "onnxruntime"} & sys.modules.keys()))
"""


def write_photos(folder):
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(30):
        dark = i % 3 == 0
        noise = rng.integers(0, 60, size=(12, 16, 3)) + (0 if dark else 150)
        Image.fromarray(noise.astype(np.uint8)).save(folder / f"{i:02}.png")
    rows = [f"{i:02}.png,{'dark' if i % 3 == 0 else 'light'}" for i in range(18)]
    (folder.parent / "known.csv").write_text("\n".join(["id,label", *rows]) + "\n")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of photos, made in the folder of the model, opened from elsewhere."""
    write_photos(tmp_path / "photos")
    flat_model(tmp_path / "models" / "small.onnx", ["batch", 3, 4, 4])
    monkeypatch.chdir(tmp_path / "models")
    made = run(
        "init", tmp_path / "project", "--images", tmp_path / "photos", "--classes", "dark",
        "--other", "light", "--import-labels", tmp_path / "known.csv", "--embedder", "small.onnx",
    )  # fmt: skip
    assert "stronger" not in made.output
    monkeypatch.chdir(tmp_path)
    return tmp_path / "project"


def heavy_modules(folder):
    done = subprocess.run([sys.executable, "-c", HEAVY, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_photos_are_embedded_trained_and_predicted(project):
    model = project.parent / "models" / "small.onnx"
    assert read_toml(project / "project.toml")["embedder"] == str(model)
    assert open_project(project).vectors.shape == (30, 5)
    run("train", project)
    card = json.loads((project / "model" / "card.json").read_text())
    assert card["embedder"]["name"] == str(model)
    assert card["preprocessing"]["size"] == [4, 4]
    output = project.parent / "out.csv"
    run("predict", project / "model", project.parent / "photos", "--output", output)
    decided = {row["id"]: row["decision"] for row in read_csv(output)}
    assert sum((decided[f"{i:02}.png"] == "dark") == (i % 3 == 0) for i in range(30)) >= 28
    square_model(model, ["batch", 3, 4, 4])
    refused = run("predict", project / "model", project.parent / "photos", fails=True)
    assert "has changed since the model was trained" in str(refused.exception)
    model.unlink()
    refused = run("predict", project / "model", project.parent / "photos", fails=True)
    assert str(refused.exception) == f"There is no ONNX file {model}."


@pytest.mark.slow
def test_torch_is_never_loaded_and_onnxruntime_only_to_embed(project):
    assert heavy_modules(project) == "[]"
    Image.new("RGB", (9, 9)).save(project.parent / "photos" / "new.png")
    assert heavy_modules(project) == "['onnxruntime']"


def test_a_model_that_has_changed_embeds_again(project):
    before = np.array(open_project(project).vectors)
    square_model(project.parent / "models" / "small.onnx", ["batch", 3, 4, 4])
    assert open_project(project).vectors.shape != before.shape


def test_texts_are_embedded(tmp_path):
    (tmp_path / "mails.csv").write_text("text\nhello there\nmy card\ncard declined\nhello\n")
    words, _ = text_model(tmp_path / "model.onnx", ["input_ids"])
    write_tokenizer(tmp_path)
    run(
        "init", tmp_path / "project", "--texts", tmp_path / "mails.csv", "--classes", "spam",
        "--other", "ham", "--embedder", tmp_path / "model.onnx",
    )  # fmt: skip
    vectors = open_project(tmp_path / "project").vectors
    np.testing.assert_allclose(vectors[1], words[[2, 4, 5, 3]].mean(axis=0), rtol=1e-5)


def test_a_model_that_cannot_be_used_leaves_no_project(tmp_path, monkeypatch):
    write_photos(tmp_path / "photos")
    text_model(tmp_path / "model.onnx")
    both = ["--images", tmp_path / "photos", "--classes", "dark", "--other", "light"]
    for name, message in (
        ("model.onnx", "cannot embed images: it takes input_ids (int64, ? x ?)"),
        ("missing.onnx", "There is no ONNX file"),
    ):
        done = run("init", tmp_path / "project", *both, "--embedder", tmp_path / name, fails=True)
        assert isinstance(done.exception, GalaxyError)
        assert message in str(done.exception)
        assert not (tmp_path / "project").exists()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = run(
        "init", tmp_path / "project", *both, "--embedder", tmp_path / "model.onnx", fails=True
    )
    assert "pip install 'galaxy-al[onnx]'" in str(done.exception)
