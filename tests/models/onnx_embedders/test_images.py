"""Images by ONNX files, against resizing, normalising and multiplying by hand."""

import json

import numpy as np
import pytest
from onnx import helper
from PIL import Image

from galaxy_al import GalaxyError
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.onnx_embedders import OnnxImages
from support.onnx_models import flat_model, save, square_model

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, size=(h, 20, 3), dtype=np.uint8) for h in (15, 30, 20)]


def embedded(name, pictures):
    embedder = load_embedder("images", str(name))
    assert isinstance(embedder, OnnxImages)
    vectors = embedder.embed([embedder.prepare(picture) for picture in pictures])
    assert vectors.shape == (len(pictures), embedder.width)
    assert vectors.dtype == np.float32
    return vectors


def resized(picture, height, width):
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.BILINEAR), dtype=float)


def naive(pictures, height, width, mean=MEAN, std=STD):
    """N x H x W x 3: each picture resized, between 0 and 1, normalised."""
    return np.stack([(resized(p, height, width) / 255 - mean) / std for p in pictures])


def test_a_model_with_the_channels_first(tmp_path, pictures):
    table = flat_model(tmp_path / "model.onnx", ["batch", 3, 6, 8])
    images = naive(pictures, 6, 8).transpose(0, 3, 1, 2)
    expected = images.reshape(3, -1) @ table
    found = embedded(tmp_path / "model.onnx", pictures)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_model_with_the_channels_last(tmp_path, pictures):
    table = flat_model(tmp_path / "model.onnx", ["batch", 6, 8, 3])
    expected = naive(pictures, 6, 8).reshape(3, -1) @ table
    found = embedded(tmp_path / "model.onnx", pictures)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_model_of_bytes_gets_bytes(tmp_path, pictures):
    table = flat_model(tmp_path / "model.onnx", ["batch", 6, 6, 3], "uint8")
    bytes_ = np.stack([resized(picture, 6, 6) for picture in pictures])
    found = embedded(tmp_path / "model.onnx", pictures)
    np.testing.assert_allclose(found, bytes_.reshape(3, -1) @ table, rtol=1e-4)


def test_a_model_in_half_precision(tmp_path, pictures):
    table = flat_model(tmp_path / "model.onnx", ["batch", 6, 6, 3], "float16")
    found = embedded(tmp_path / "model.onnx", pictures)
    np.testing.assert_allclose(found, naive(pictures, 6, 6).reshape(3, -1) @ table, atol=0.05)


@pytest.mark.parametrize("size", [1, 2])
def test_a_model_for_batches_of_one_size_takes_any_number(tmp_path, pictures, size):
    table = flat_model(tmp_path / "model.onnx", [size, 6, 6, 3])
    expected = naive(pictures, 6, 6).reshape(3, -1) @ table
    found = embedded(tmp_path / "model.onnx", pictures)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert len(embedded(tmp_path / "model.onnx", pictures[:1])) == 1


def test_a_model_of_any_size_needs_one(tmp_path, pictures):
    name = square_model(tmp_path / "model.onnx", ["batch", 3, "height", "width"])
    with pytest.raises(GalaxyError, match=r"any size. Give one after its name.*model\.onnx@224"):
        load_embedder("images", name)
    expected = np.square(naive(pictures, 10, 10)).mean(axis=(1, 2))
    np.testing.assert_allclose(embedded(f"{name}@10", pictures), expected, rtol=1e-4)
    for wrong in ("big", "0", "224,mean=a", "mean=1:2", "size=3"):
        with pytest.raises(ValueError, match=r"after the @ give a side in pixels, .* got '"):
            load_embedder("images", f"{name}@{wrong}")


def test_a_side_that_the_model_does_not_take_is_refused(tmp_path):
    flat_model(tmp_path / "model.onnx", ["batch", 3, 6, 8])
    with pytest.raises(ValueError, match="takes images of 6 x 8 pixels, got a side of 8"):
        load_embedder("images", f"{tmp_path / 'model.onnx'}@8")


def test_all_sizes_open_means_channels_first(tmp_path, pictures):
    name = square_model(tmp_path / "model.onnx", ["batch", "channels", "height", "width"])
    expected = np.square(naive(pictures, 4, 4)).mean(axis=(1, 2))
    np.testing.assert_allclose(embedded(f"{name}@4", pictures), expected, rtol=1e-4)


def test_the_normalisation_can_be_given(tmp_path, pictures):
    name = square_model(tmp_path / "model.onnx", ["batch", 7, 7, 3])
    expected = np.square(naive(pictures, 7, 7, 0.5, np.array([0.1, 0.2, 0.4]))).mean(axis=(1, 2))
    found = embedded(f"{name}@mean=0.5,std=0.1:0.2:0.4", pictures)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    bytes_ = np.stack([resized(picture, 7, 7) for picture in pictures])
    found = embedded(f"{name}@7,mean=0,std=1,scale=1", pictures)
    np.testing.assert_allclose(found, np.square(bytes_).mean(axis=(1, 2)), rtol=1e-4)


def test_the_normalisation_is_read_from_the_model(tmp_path, pictures):
    own = {"image_mean": "[0.1, 0.2, 0.3]", "image_std": "0.5"}
    name = square_model(tmp_path / "own.onnx", ["batch", 7, 7, 3], metadata=own)
    expected = np.square(naive(pictures, 7, 7, np.array([0.1, 0.2, 0.3]), 0.5)).mean(axis=(1, 2))
    np.testing.assert_allclose(embedded(name, pictures), expected, rtol=1e-4)
    standard = {
        "Image.NominalPixelRange": "Normalized_1_1",
        "Image.BitmapPixelFormat": "Bgr8",
    }
    name = square_model(tmp_path / "standard.onnx", ["batch", 7, 7, 3], metadata=standard)
    expected = np.square(naive(pictures, 7, 7, 0.5, 0.5)).mean(axis=(1, 2))[:, ::-1]
    np.testing.assert_allclose(embedded(name, pictures), expected, rtol=1e-4)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["crop", "square", "crop, in the folder above"])
def test_a_preprocessor_config_is_followed_as_transformers_follows_it(tmp_path, pictures, kind):
    from transformers import CLIPImageProcessorPil, ViTImageProcessorPil

    if "crop" in kind:
        size = {"height": 6, "width": 6}
        processor = CLIPImageProcessorPil(size={"shortest_edge": 9}, crop_size=size)
    else:
        processor = ViTImageProcessorPil(size={"height": 6, "width": 6}, image_mean=[0.1] * 3)
    processor.save_pretrained(tmp_path)
    path = tmp_path / ("onnx/model.onnx" if "above" in kind else "model.onnx")
    table = flat_model(path, ["batch", 3, 6, 6])
    pixels = processor(pictures, return_tensors="np")["pixel_values"]
    expected = pixels.reshape(3, -1) @ table
    np.testing.assert_allclose(embedded(path, pictures), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([1], "must be a JSON object, got list"),
        ({"image_std": 0}, "the standard deviation must not be 0, got 0"),
        ({"image_mean": [1, 2]}, r"must be one number or three, got \[1, 2\]"),
        ({"size": "big"}, "a size must be a height and a width in pixels, got 'big'"),
        ({"size": 4, "crop_size": 6}, r"\(6, 6\) cannot be cut out of images resized to 4"),
        ({"resample": 9}, "resample must be from 0 to 5, got 9"),
    ],
)
def test_a_wrong_preprocessor_config_is_one_clear_line(tmp_path, config, message):
    name = square_model(tmp_path / "model.onnx", ["batch", 6, 6, 3])
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    with pytest.raises(GalaxyError, match=message):
        load_embedder("images", name)


def test_a_side_scales_what_a_config_cuts_out(tmp_path, pictures):
    name = square_model(tmp_path / "model.onnx", ["batch", 3, "height", "width"])
    config = {"size": {"shortest_edge": 8}, "crop_size": {"height": 4, "width": 4}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    embedder = load_embedder("images", f"{name}@6")
    assert embedder.preprocessing["resize"] == 12
    assert embedder.prepare(pictures[0]).shape == (6, 6, 3)
    assert embedder.side == 12


def reshaped(path, shape, output="features"):
    """A model that gives the 4 x 4 x 3 values of an image in another shape."""
    nodes = [helper.make_node("Reshape", ["image", "shape"], [output])]
    image, made = ("image", "float32", ["batch", 4, 4, 3]), (output, "float32", [None, *shape[1:]])
    return save(path, nodes, [image], [made], {"shape": np.array(shape, dtype=np.int64)})


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ([-1, 16, 3], (1,)),  # tokens
        ([-1, 2, 2, 12], (1, 2)),
        ([-1, 12, 2, 2], (2, 3)),
        ([-1, 2, 4, 6], (1, 2)),  # as in the image
        ([-1, 48, 1, 1], (2, 3)),
    ],
)
def test_tokens_and_places_are_averaged(tmp_path, pictures, shape, axes):
    name = reshaped(tmp_path / "model.onnx", shape)
    values = naive(pictures, 4, 4).reshape([3, *shape[1:]])
    expected = values.mean(axis=axes)
    np.testing.assert_allclose(embedded(name, pictures), expected, rtol=1e-4, atol=1e-5)


def test_of_several_outputs_a_known_name_is_taken_and_else_the_first(tmp_path, pictures):
    nodes = [
        helper.make_node("Neg", ["image"], ["first"]),
        helper.make_node("Identity", ["image"], ["pooler_output"]),
    ]
    shape = ["batch", 4, 4, 3]
    image = [("image", "float32", shape)]
    both = [("first", "float32", shape), ("pooler_output", "float32", shape)]
    save(tmp_path / "known.onnx", nodes, image, both)
    save(tmp_path / "first.onnx", nodes[:1], image, both[:1])
    expected = naive(pictures, 4, 4).mean(axis=(1, 2))
    for name, sign in (("known", 1), ("first", -1)):
        found = embedded(tmp_path / f"{name}.onnx", pictures)
        np.testing.assert_allclose(found, sign * expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "got"),
    [
        ([("x", "float32", ["n", 10])], r"x \(float, \? x 10\)"),
        ([("x", "float32", ["n", 1, 8, 8])], r"x \(float, \? x 1 x 8 x 8\)"),
        ([("x", "int64", ["n", 3, 8, 8])], r"x \(int64, \? x 3 x 8 x 8\)"),
        ([("x", "float32", ["n", 3, 8, 8]), ("y", "float32", ["n", 2])], r"x \(.*\), y \(.*\)"),
    ],
)
def test_a_model_that_takes_no_image_is_refused(tmp_path, inputs, got):
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name, _, _ in inputs]
    outputs = [(f"{name}_out", kind, shape) for name, kind, shape in inputs]
    name = save(tmp_path / "model.onnx", nodes, inputs, outputs)
    message = rf"model\.onnx cannot embed images: it takes {got}\. It must take one image"
    with pytest.raises(GalaxyError, match=message):
        load_embedder("images", name)


def test_files_that_are_not_models_are_one_clear_line(tmp_path):
    with pytest.raises(GalaxyError, match=r"There is no ONNX file .*missing\.onnx\.$"):
        load_embedder("images", str(tmp_path / "missing.onnx"))
    for content in (b"", b"not a model", b"\x08\x08" * 40):
        (tmp_path / "broken.onnx").write_bytes(content)
        with pytest.raises(GalaxyError, match=r"Cannot read .*broken\.onnx: ") as refused:
            load_embedder("images", str(tmp_path / "broken.onnx"))
        assert "\n" not in str(refused.value)


def test_an_output_that_is_not_a_vector_is_refused(tmp_path):
    nodes = [helper.make_node("ReduceMean", ["image"], ["mean"], keepdims=0)]
    image, mean = ("image", "float32", ["batch", 4, 4, 3]), ("mean", "float32", [])
    name = save(tmp_path / "mean.onnx", nodes, [image], [mean])
    with pytest.raises(GalaxyError, match=r"the output mean is scalar \(float32\) for 1 example"):
        load_embedder("images", name)
    nodes = [helper.make_node("Reshape", ["image", "shape"], ["out"])]
    shape = {"shape": np.array([-1, 7], dtype=np.int64)}
    name = save(tmp_path / "bad.onnx", nodes, [image], [("out", "float32", [None, 7])], shape)
    with pytest.raises(GalaxyError, match=r"bad\.onnx fails with image 1 x 4 x 4 x 3: "):
        load_embedder("images", name)


def test_the_version_follows_the_content_and_the_preparation(tmp_path):
    name = square_model(tmp_path / "model.onnx", ["batch", 3, "height", "width"])

    def version(name):
        return load_embedder("images", name).version

    first = version(f"{name}@8")
    assert version(f"{name}@8") == first
    versions = {first, version(f"{name}@9"), version(f"{name}@8,mean=0.5")}
    moved = square_model(tmp_path / "elsewhere" / "other.onnx", ["batch", 3, "height", "width"])
    assert version(f"{moved}@8") == first
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_std": 0.5}))
    versions.add(version(f"{name}@8"))
    (tmp_path / "model.onnx.data").write_bytes(b"weights")
    versions.add(version(f"{name}@8"))
    square_model(tmp_path / "model.onnx", ["batch", 3, "height", "width"], metadata={"by": "me"})
    versions.add(version(f"{name}@8"))
    assert len(versions) == 6


def test_the_name_is_the_place_from_any_folder(tmp_path, monkeypatch):
    square_model(tmp_path / "model.onnx", ["batch", 3, "height", "width"])
    monkeypatch.chdir(tmp_path)
    assert load_embedder("images", "model.onnx@8").name == f"{tmp_path / 'model.onnx'}@8"
