"""Duplicates among labelled images: copies of a file, and copies that were scaled."""

import shutil

import numpy as np
import pytest
from PIL import Image

from galaxy_al.labelling.duplicates import Duplicates
from galaxy_al.labelling.project import create_project
from support.mean_color import MeanColor


@pytest.fixture
def project(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(12):
        coarse = Image.fromarray(rng.integers(0, 255, (6, 6, 3), dtype=np.uint8))
        coarse.resize((48, 48), Image.Resampling.BICUBIC).save(photos / f"{i:02}.png")
    shutil.copy(photos / "03.png", photos / "copy.png")
    Image.open(photos / "05.png").resize((32, 32)).save(photos / "small.jpg", quality=60)
    monkeypatch.setattr("galaxy_al.labelling.project.load_embedder", lambda *_, **__: MeanColor())
    return create_project(
        tmp_path / "project", photos, kind="images", classes=["dent"], other="fine"
    )


def test_copies_are_found_and_exact_ones_are_told_apart(project):
    labels = dict.fromkeys(range(len(project.pool)), 1)
    labels[project.find("copy.png")] = labels[project.find("small.jpg")] = 0
    found = {(pair.one, pair.other): pair.is_exact for pair in Duplicates(project).find(labels)}
    assert found == {("03.png", "copy.png"): True, ("05.png", "small.jpg"): False}


def test_copies_with_the_same_label_are_not_shown(project):
    assert Duplicates(project).find(dict.fromkeys(range(len(project.pool)), 1)) == []
    assert Duplicates(project).find({}) == []


def test_a_file_that_is_gone_is_not_a_copy_of_anything(project):
    labels = dict.fromkeys(range(len(project.pool)), 1)
    labels[project.find("copy.png")] = 0
    (project.pool.items.paths[project.find("copy.png")]).unlink()
    assert [pair.is_exact for pair in Duplicates(project).find(labels)] in ([], [False])
