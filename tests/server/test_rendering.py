"""Examples and images as the page gets them."""

import io

import pytest
from PIL import Image

from galaxy_al.server.rendering import show


@pytest.mark.torch
@pytest.mark.parametrize(
    "id", ["../secret", "/etc/passwd", "..%2fsecret", "project.toml", "\u0000", "", "1/../1"]
)
def test_only_examples_of_the_pool_can_be_had(image_server, id):
    answer = image_server.browser("ann")("GET", "/api/media", params={"id": id})
    assert answer.status_code in (404, 422)
    assert "error" in answer.json()


@pytest.mark.torch
def test_images_come_whole_small_and_in_a_form_that_pages_show(image_server):
    ann = image_server.browser("ann")
    for name in image_server.project.pool.ids:
        answer = ann("GET", "/api/media", params={"id": name})
        if name == "broken.jpg":
            assert (answer.status_code, answer.content) == (200, b"no image")  # as it is
            small = ann("GET", "/api/media", params={"id": name, "side": 32})
            assert small.status_code == 400
            assert small.json()["error"].startswith("Cannot read ")
            continue
        kind = answer.headers["content-type"]
        assert kind == ("image/jpeg" if name.endswith("tif") else "image/png")
        assert Image.open(io.BytesIO(answer.content)).size == (64, 48)
        small = ann("GET", "/api/media", params={"id": name, "side": 32}).content
        assert Image.open(io.BytesIO(small)).size == (32, 24)


@pytest.mark.torch
def test_the_address_of_an_image_is_another_when_the_file_is(image_server):
    path = image_server.project.pool.items.paths[3]
    before = show(image_server.project, 3).image
    assert before == show(image_server.project, 3).image
    path.write_bytes(path.read_bytes())
    assert show(image_server.project, 3).image != before


@pytest.mark.torch
def test_an_image_that_is_gone_is_an_error_that_says_so(image_server):
    path = image_server.project.pool.items.paths[5]
    kept = path.read_bytes()
    path.unlink()
    ann = image_server.browser("ann")
    for more in ({}, {"side": 32}):
        params = {"id": image_server.project.pool.ids[5], **more}
        answer = ann("GET", "/api/media", params=params)
        assert answer.status_code == 400
        assert "Cannot read" in answer.json()["error"]
    path.write_bytes(kept)


@pytest.mark.torch
def test_what_cannot_be_read_is_never_asked(image_server):
    ann = image_server.browser("ann")
    for _ in range(24):
        example = ann("POST", "/api/next").json()["example"]
        assert example["id"] != "broken.jpg"
        label = "red" if int(example["id"][-6:-4]) % 6 == 0 else "blue"
        ann("POST", "/api/label", json={"labels": {example["id"]: label}})
    assert ann("POST", "/api/next").json() == {"example": None, "ahead": {}, "problem": ""}
    for _ in range(24):
        assert ann("POST", "/api/undo").json()["undone"] is not None
    ann("POST", "/api/leave")
