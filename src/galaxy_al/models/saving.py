"""Trained models as files: safetensors with a card that says what they need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models import kernel_saving
from galaxy_al.models.kernel import KernelModel
from galaxy_al.models.protocols import Embedder
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import make_folder, reading, writing
from galaxy_al.version import __version__

if TYPE_CHECKING:
    from galaxy_al.models.networks.network import Model

WEIGHTS, CARD = "model.safetensors", "card.json"
_FORMAT = 2  # 1 had other names for the tensors of the kernel head


@dataclass(frozen=True)
class SavedModel:
    """A model and what its card says.

    Parameters
    ----------
    classes
        The names of the classes, the majority class last.
    embedder
        The name of the network that makes its inputs; None if it takes images or vectors as
        they are.
    version
        The embedder's version when the model was trained.
    kind
        Of the pools it takes: ``"images"``, ``"texts"`` or ``"embeddings"``.
    width
        The length of the vectors it takes; None if it takes images.
    """

    model: Model | KernelModel
    classes: tuple[str, ...]
    embedder: str | None
    version: str | None
    kind: str
    width: int | None


def save_model(
    model: Model | KernelModel,
    folder: str | Path,
    *,
    classes: Sequence[str],
    embedder: Embedder | None = None,
) -> Path:
    """Write a model's weights and its card into a folder, which is made if necessary.

    Parameters
    ----------
    model
        What `KernelTrainer` or `Trainer` made.
    classes
        Names, the majority class last.
    embedder
        What made the embeddings that the model was trained on.
    """
    folder = Path(folder)
    if isinstance(model, KernelModel):
        weights, about = kernel_saving.pack(model)
    else:
        weights, about = _networks().pack(model)
    n_classes = about["shape"]["n_classes"]
    if isinstance(classes, str) or len(set(classes)) != len(classes) or "" in classes:
        raise InvalidArgument(f"classes must be a list of different names, got {classes!r}.")
    if len(classes) != n_classes:
        raise InvalidArgument(f"The model has {n_classes} classes, got names for {len(classes)}.")
    if embedder:
        about |= {"kind": embedder.kind, "preprocessing": embedder.preprocessing}
    card = {
        "format": _FORMAT,
        "galaxy_al": __version__,
        "classes": list(classes),
        **about,
        "embedder": {"name": embedder.name, "version": embedder.version} if embedder else None,
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    make_folder(folder)
    with writing(folder / CARD) as card_path, writing(folder / WEIGHTS) as weights_path:
        card_path.write_text(text, encoding="utf-8")
        weights_path.write_bytes(weights)
    return folder


def load_model(folder: str | Path, *, device: str = "auto") -> SavedModel:
    """A model that `save_model` wrote."""
    folder = Path(folder)
    if not (folder / CARD).exists():
        raise GalaxyError(f"{folder} is not a saved model: it has no {CARD}.")
    with reading(folder / CARD):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        _check_card(card)
    with reading(folder / WEIGHTS):
        weights = (folder / WEIGHTS).read_bytes()
        if hashlib.sha256(weights).hexdigest() != card["sha256"]:
            raise GalaxyError(f"{folder / WEIGHTS} is not what {CARD} was written for.")
    width, embedder = card["shape"].get("width"), card["embedder"] or {}
    unpack = kernel_saving.unpack
    if card["shape"]["network"] != kernel_saving.NETWORK:
        unpack = partial(_networks().unpack, device=device)
    with reading(folder / CARD):
        model = unpack(weights, card)
    classes, kind = tuple(card["classes"]), card["kind"]
    return SavedModel(model, classes, embedder.get("name"), embedder.get("version"), kind, width)


def _networks() -> Any:
    with needs_extra("A saved network", "torch"):
        from galaxy_al.models.networks import network_saving
    return network_saving


def _check_card(card: dict[str, Any]) -> None:
    if card["format"] != _FORMAT:
        raise GalaxyError(f"its format is {card['format']!r}, not {_FORMAT}: train it again")
    classes, n_classes = card["classes"], card["shape"]["n_classes"]
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise GalaxyError("classes must be a list of names")
    if len(set(classes)) != n_classes or len(classes) != n_classes:
        raise GalaxyError(f"classes must be {n_classes} different names")
