"""What `galaxy-al init` says about the embedder."""

import pytest

from galaxy_al.models.hub_models import stronger_model
from support.commands import run
from support.mean_color import MeanColor


@pytest.fixture
def photos(tmp_path, monkeypatch):
    from PIL import Image

    (tmp_path / "photos").mkdir()
    for i in range(4):
        Image.new("RGB", (8, 8), (60 * i, 0, 0)).save(tmp_path / "photos" / f"{i}.png")
    monkeypatch.setattr("galaxy_al.labelling.project.load_embedder", lambda *_, **__: MeanColor())
    return tmp_path / "photos"


def printed_lines(kind, pool, *more):
    project = pool.parent / "project"
    made = run("init", project, kind, pool, "--classes", "a", "--other", "b", *more)
    return [line for line in made.output.splitlines() if line]  # but those of the progress bar


def test_the_default_for_images_names_a_stronger_model(photos):
    first, last = printed_lines("--images", photos)
    assert first == stronger_model("images")
    assert last.startswith("4 images in ")


def test_an_embedder_that_was_named_is_not_questioned(photos):
    (line,) = printed_lines("--images", photos, "--embedder", "efficientnet-lite0")
    assert line.startswith("4 images in ")


def test_vectors_need_no_embedder(tmp_path):
    import numpy as np

    np.save(tmp_path / "pool.npy", np.eye(4))
    (line,) = printed_lines("--embeddings", tmp_path / "pool.npy")
    assert line.startswith("4 embeddings in ")


def test_a_short_name_of_the_wrong_kind_leaves_no_project(photos):
    done = run(
        "init", photos.parent / "project", "--images", photos, "--classes", "a", "--other", "b",
        "--embedder", "mpnet", fails=True,
    )  # fmt: skip
    assert "embeds texts, got images. For images choose from: dinov2, " in str(done.exception)
    assert not (photos.parent / "project").exists()


def test_the_project_keeps_the_name_on_the_hub(photos):
    printed_lines("--images", photos, "--embedder", "dinov2@0123abc")
    settings = (photos.parent / "project" / "project.toml").read_text()
    assert 'embedder = "facebook/dinov2-small@0123abc"' in settings
