"""Searches, directly and over HTTP."""

import io

import numpy as np
import pytest
from PIL import Image

from galaxy_al import GalaxyError
from galaxy_al.server.guard import MOST_BYTES
from galaxy_al.server.search import decode_image, walk


def test_many_labels_at_once_are_found_and_not_asked(server, ann):
    found = ann("GET", "/api/likeliest?label=dent&count=5").json()["examples"]
    labels = {example["id"]: "dent" for example in found}
    assert ann("POST", "/api/label", json={"labels": labels, "source": "found"}).ok
    entries = [one for one in server.service.view().entries if one.example in labels]
    assert len(entries) == 5
    assert {(entry.source, entry.label) for entry in entries} == {("found", "dent")}
    for _ in labels:
        ann("POST", "/api/undo")


@pytest.mark.torch
def test_an_uploaded_image_finds_its_like(image_server):
    ann = image_server.browser("ann")
    for name, path in zip(image_server.project.pool.ids, image_server.project.pool.items.paths):
        if name != "broken.jpg":
            found = ann("POST", "/api/like-image?count=4", data=path.read_bytes()).json()
            assert found["examples"][0]["id"] == name


@pytest.mark.torch
@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", 400), (b"GIF89a", 400), (b"<svg/>", 400), (b"x" * (MOST_BYTES + 1), 413)],
    ids=["nothing", "cut off", "svg", "too large"],
)
def test_an_upload_that_is_no_image_is_refused(image_server, data, code):
    answer = image_server.browser("ann")("POST", "/api/like-image", data=data)
    assert answer.status_code == code
    assert "error" in answer.json()


@pytest.mark.slow
def test_a_bomb_is_not_decoded():
    bomb = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    with pytest.raises(GalaxyError, match=r"cannot be read as an image|at most 80,000,000 pixels"):
        decode_image(bomb.getvalue())


def test_embeddings_are_not_searched_by_text_or_image(ann):
    reason = ann("GET", "/api/like-text?text=dent").json()["error"]
    assert reason.startswith("A pool of embeddings cannot be searched by text")
    assert ann("POST", "/api/like-image", data=b"x").status_code == 400


def test_a_walk_covers_the_pool_and_goes_into_a_cluster():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(size=(500, 3)), rng.normal(size=(20, 3)) + 30])
    clusters = walk(vectors, None, 0, rng)
    assert sum(cluster.size for cluster in clusters) == 520
    far = [cluster for cluster in clusters if cluster.center >= 500]
    assert sum(cluster.size for cluster in far) == 20
    inside = walk(vectors, far[0].center, 20, rng)
    assert all(cluster.center >= 500 for cluster in inside)
    clusters = walk(vectors, None, 0, rng, without=range(500))
    assert sum(cluster.size for cluster in clusters) == 20
    assert walk(vectors, None, 0, rng, without=range(520)) == []


def test_like_this_leaves_out_what_is_labelled(server, ann):
    found = [one["id"] for one in ann("GET", "/api/like?id=7&count=3").json()["examples"]]
    assert len(found) == 3
    assert "7" not in found
    ann("POST", "/api/label", json={"labels": {found[1]: "fine"}, "source": "found"})
    again = [one["id"] for one in ann("GET", "/api/like?id=7&count=3").json()["examples"]]
    assert again[:2] == [found[0], found[2]]
    ann("POST", "/api/undo")
    assert ann("GET", "/api/like?id=nothing").json() == {
        "error": "The pool has no example 'nothing'."
    }
