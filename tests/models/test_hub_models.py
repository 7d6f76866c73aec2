"""Short names of models on the Hub."""

from pathlib import Path

import pytest

from galaxy_al import GalaxyError
from galaxy_al.cli.project import init
from galaxy_al.models import embedders
from galaxy_al.models.embedders import EMBEDDERS, full_name, load_embedder
from galaxy_al.models.hub_models import HUB_MODELS, hub_name, short_names, stronger_model

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("short", "model"), HUB_MODELS.items())
def test_a_short_name_loads_the_model_on_the_hub(short, model, monkeypatch):
    asked = []
    monkeypatch.setattr(
        embedders, "_from_file_or_hub", lambda kind, name, device: asked.append((kind, name))
    )
    load_embedder(model.kind, short)
    load_embedder(model.kind, f"{short}@0123abc")
    assert asked == [(model.kind, model.id), (model.kind, f"{model.id}@0123abc")]


@pytest.mark.torch
def test_a_model_that_cannot_be_downloaded_is_named_as_on_the_hub(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(GalaxyError, match="Cannot load the model 'facebook/dinov2-small'"):
        load_embedder("images", "dinov2")


def test_a_short_name_of_the_wrong_kind_is_refused():
    message = (
        r"dinov2 \(facebook/dinov2-small\) embeds images, got texts\. For texts choose from: "
        r"bge-small, bge-base, mpnet, multilingual-minilm\."
    )
    with pytest.raises(ValueError, match=message):
        load_embedder("texts", "dinov2")
    with pytest.raises(ValueError, match=r"bge-small .* embeds texts, got images"):
        hub_name("images", "bge-small")


def test_short_names_are_not_those_of_built_in_embedders():
    assert not HUB_MODELS.keys() & {*EMBEDDERS}
    assert [*short_names("images"), *short_names("texts")] == [*HUB_MODELS]


def test_a_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    (tmp_path / "dinov2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert full_name("images", "dinov2") == str(tmp_path / "dinov2")


def test_the_docs_and_the_help_name_them_all():
    page = (DOCS / "python.md").read_text()
    for short, model in HUB_MODELS.items():
        row = (
            f"| `{short}` | `{model.id}` | {model.kind} | {model.megabytes} MB | {model.license} |"
        )
        assert row in page
    (option,) = (option for option in init.params if option.name == "embedder")
    assert all(short in option.help for short in HUB_MODELS)


def test_the_hint_is_one_line_with_the_download():
    hint = stronger_model("images")
    assert hint in (DOCS / "index.md").read_text()
    assert f"--embedder dinov2 ({HUB_MODELS['dinov2'].megabytes} MB to download, " in hint
    assert "\n" not in hint
    assert stronger_model("texts") is stronger_model("embeddings") is None
