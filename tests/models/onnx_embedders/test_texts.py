"""Texts by ONNX files, against a tokenizer and tables of numbers."""

import json
import re

import numpy as np
import pytest
from onnx import helper

from galaxy_al import GalaxyError
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.onnx_embedders import OnnxTexts
from support.onnx_models import save, square_model, text_model, write_tokenizer

TEXTS = ["Hello", "my card was declined", "hello there stranger", "", "card " * 40]


def embedded(name, texts=TEXTS):
    embedder = load_embedder("texts", str(name))
    assert isinstance(embedder, OnnxTexts)
    vectors = embedder.embed([embedder.prepare(text) for text in texts])
    assert vectors.shape == (len(texts), embedder.width)
    assert vectors.dtype == np.float32
    return vectors


def numbers(text, limit=256):
    """The numbers of a text's words, with [CLS] and [SEP]."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "my", "card", "was", "declined", "hello", "there"]
    ids = [words.index(w) if w in words else 1 for w in text.lower().split()]
    return [2, *ids[: limit - 2], 3]


@pytest.mark.parametrize(
    "inputs",
    [
        ["input_ids"],
        ["attention_mask", "input_ids"],
        ["input_ids", "attention_mask", "token_type_ids"],
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_vectors_are_the_means_of_the_tokens(tmp_path, inputs, dtype):
    words, kinds = text_model(tmp_path / "model.onnx", inputs, dtype=dtype)
    write_tokenizer(tmp_path)
    first = kinds[0] if "token_type_ids" in inputs else 0
    expected = [(words[numbers(text)] + first).mean(axis=0) for text in TEXTS]
    found = embedded(tmp_path / "model.onnx")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_sentence_embedding_is_taken_as_it_is(tmp_path):
    words, _ = text_model(tmp_path / "model.onnx", ["input_ids"], sentence=True)
    write_tokenizer(tmp_path)
    expected = [words[numbers(text)].max(axis=0) for text in TEXTS[1:2]]
    np.testing.assert_allclose(embedded(tmp_path / "model.onnx", TEXTS[1:2]), expected, rtol=1e-5)


def test_the_pooling_of_sentence_transformers_is_followed(tmp_path):
    words, _ = text_model(tmp_path / "onnx" / "model.onnx", ["input_ids"])
    write_tokenizer(tmp_path)  # above the folder `onnx`, as on the Hub
    (tmp_path / "1_Pooling").mkdir()
    config = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    found = embedded(tmp_path / "onnx" / "model.onnx")
    np.testing.assert_allclose(found, [words[2]] * len(TEXTS), rtol=1e-5)


@pytest.mark.parametrize(
    ("config", "given", "limit"),
    [
        ({}, "", 256),
        ({"model_max_length": 10}, "", 10),
        ({"model_max_length": 1e30}, "", 256),
        ({"model_max_length": 10}, "@7", 7),
    ],
)
def test_long_texts_are_cut_off(tmp_path, config, given, limit):
    words, _ = text_model(tmp_path / "model.onnx", ["input_ids"])
    write_tokenizer(tmp_path, **config)
    long = "declined " + "hello " * 300
    expected = words[numbers(long, limit)].mean(axis=0)
    found = embedded(f"{tmp_path / 'model.onnx'}{given}", [long])
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
    embedder = load_embedder("texts", f"{tmp_path / 'model.onnx'}{given}")
    assert embedder.preprocessing["max_tokens"] == limit


@pytest.mark.parametrize("shape", [[1, "tokens"], ["batch", 12], [2, 12]])
def test_a_model_of_one_shape_takes_any_texts(tmp_path, shape):
    words, _ = text_model(tmp_path / "model.onnx", ["input_ids", "attention_mask"], shape=shape)
    write_tokenizer(tmp_path)
    limit = 256 if shape[1] == "tokens" else 12
    expected = [words[numbers(text, limit)].mean(axis=0) for text in TEXTS]
    found = embedded(tmp_path / "model.onnx")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    if limit == 12:
        with pytest.raises(ValueError, match="takes 12 tokens, got a limit of 20"):
            load_embedder("texts", f"{tmp_path / 'model.onnx'}@20")


def test_a_text_that_was_cut_off_in_the_middle_of_a_character_is_embedded(tmp_path):
    text_model(tmp_path / "model.onnx")
    write_tokenizer(tmp_path)
    assert np.isfinite(embedded(tmp_path / "model.onnx", ["bad \ud83d"])).all()


def test_what_is_missing_or_wrong_is_one_clear_line(tmp_path):
    text_model(tmp_path / "model.onnx")
    name = str(tmp_path / "model.onnx")
    with pytest.raises(GalaxyError, match=r"model\.onnx needs its tokenizer\.json beside it"):
        load_embedder("texts", name)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(GalaxyError, match=r"Cannot read .*tokenizer\.json: "):
        load_embedder("texts", name)
    write_tokenizer(tmp_path)
    with pytest.raises(ValueError, match="after the @ give a number of tokens, got 'long'"):
        load_embedder("texts", f"{name}@long")
    image = square_model(tmp_path / "image.onnx", ["batch", 3, 6, 6])
    message = "cannot embed texts: it takes image (float, ? x 3 x 6 x 6). It must take input_ids"
    with pytest.raises(GalaxyError, match=re.escape(message)):
        load_embedder("texts", image)
    nodes = [helper.make_node("Add", ["input_ids", "position_ids"], ["out"])]
    ports = [(name, "int64", ["n", "t"]) for name in ("input_ids", "position_ids", "out")]
    other = save(tmp_path / "other.onnx", nodes, ports[:2], ports[2:])
    with pytest.raises(GalaxyError, match=r"it takes input_ids \(int64, \? x \?\), position_ids"):
        load_embedder("texts", other)


def test_the_version_follows_the_tokenizer_and_the_limit(tmp_path):
    text_model(tmp_path / "model.onnx")
    tokenizer, name = write_tokenizer(tmp_path), str(tmp_path / "model.onnx")
    first = load_embedder("texts", name).version
    assert load_embedder("texts", name).version == first
    assert load_embedder("texts", f"{name}@9").version != first
    tokenizer.add_tokens(["more"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert load_embedder("texts", name).version != first
