"""Short names of well-known models on the Hugging Face Hub, and what they cost to download."""

from __future__ import annotations

from dataclasses import dataclass

from galaxy_al.errors import InvalidArgument


@dataclass(frozen=True)
class HubModel:
    """A model on the Hub.

    Parameters
    ----------
    id
        Its name on the Hub.
    kind
        The kind of pool that it embeds.
    megabytes
        The size of its weights.
    """

    id: str
    kind: str
    megabytes: int
    license: str


HUB_MODELS = {
    "dinov2": HubModel("facebook/dinov2-small", "images", 88, "Apache-2.0"),
    "dinov2-base": HubModel("facebook/dinov2-base", "images", 346, "Apache-2.0"),
    "clip": HubModel("openai/clip-vit-base-patch32", "images", 605, "MIT"),
    "bge-small": HubModel("BAAI/bge-small-en-v1.5", "texts", 133, "MIT"),
    "bge-base": HubModel("BAAI/bge-base-en-v1.5", "texts", 438, "MIT"),
    "mpnet": HubModel("sentence-transformers/all-mpnet-base-v2", "texts", 438, "Apache-2.0"),
    "multilingual-minilm": HubModel(
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "texts", 471, "Apache-2.0"
    ),
}

# Measured: docs/appendix/benchmarks.md, "Embedders".
_EVIDENCE = {
    "images": (
        "dinov2",
        "about 15 times slower",
        "In a test it found 33 of 40 rare images, the default 18",
    )
}


def hub_name(kind: str, name: str) -> str:
    """The name on the Hub that a short name stands for; any other name as it is.

    Examples
    --------
    >>> hub_name("images", "dinov2")
    'facebook/dinov2-small'
    >>> hub_name("images", "clip@3d74acf9")
    'openai/clip-vit-base-patch32@3d74acf9'
    >>> hub_name("texts", "intfloat/e5-small-v2")
    'intfloat/e5-small-v2'
    """
    short, at, commit = name.partition("@")
    model = HUB_MODELS.get(short)
    if model is None:
        return name
    if model.kind != kind:
        others = ", ".join(short_names(kind))
        raise InvalidArgument(
            f"{short} ({model.id}) embeds {model.kind}, got {kind}. For {kind} choose from: "
            f"{others or 'none'}."
        )
    return f"{model.id}{at}{commit}"


def short_names(kind: str) -> list[str]:
    """The short names for a kind of pool."""
    return [name for name, model in HUB_MODELS.items() if model.kind == kind]


def stronger_model(kind: str) -> str | None:
    """One line about a model that needs fewer labels than the default; None if none is known."""
    if kind not in _EVIDENCE:
        return None
    name, speed, evidence = _EVIDENCE[kind]
    option = f"--embedder {name} ({HUB_MODELS[name].megabytes} MB to download, {speed})"
    return f"A stronger model may need fewer labels: {option}. {evidence}."
