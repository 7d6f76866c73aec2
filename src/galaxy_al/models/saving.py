"""Trained models as files: safetensors with a card that says what they need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models import auto_saving
from galaxy_al.models.auto import AutoModel
from galaxy_al.models.decisions import Decision, likeliest
from galaxy_al.models.onnx_export import save_auto_onnx
from galaxy_al.models.protocols import Embedder
from galaxy_al.models.report import ModelReport
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import make_folder, reading, writing
from galaxy_al.version import __version__

if TYPE_CHECKING:
    from galaxy_al.models.networks.network import Model

WEIGHTS, CARD, README = "model.safetensors", "card.json", "README.md"
_FORMAT = 4  # before, the default head had no slopes


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
    decision
        How probabilities become classes.
    class_priors
        How frequent each class is in the pool it was trained with; None if that is not known.
    """

    model: Model | AutoModel
    classes: tuple[str, ...]
    embedder: str | None
    version: str | None
    kind: str
    width: int | None
    decision: Decision
    class_priors: NDArray[np.float64] | None = None


def save_model(
    model: Model | AutoModel,
    folder: str | Path,
    *,
    classes: Sequence[str],
    embedder: Embedder | None = None,
    report: ModelReport | None = None,
) -> Path:
    """Write a model's weights and its card into a folder, which is made if necessary.

    Parameters
    ----------
    model
        What `AutoTrainer` or `Trainer` made.
    classes
        Names, the majority class last.
    embedder
        What made the embeddings that the model was trained on.
    report
        How it decides, and how good that is. Without it, it decides for the likeliest class.
    """
    folder = Path(folder)
    if isinstance(model, AutoModel):
        weights, about = auto_saving.pack(model)
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
        **(report.card() if report else {}),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    make_folder(folder)
    with writing(folder / CARD) as card_path, writing(folder / WEIGHTS) as weights_path:
        card_path.write_text(text, encoding="utf-8")
        weights_path.write_bytes(weights)
    if report is not None:
        with writing(folder / README) as readme_path:
            readme_path.write_text(report.readme(about["kind"]), encoding="utf-8")
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
    unpack = auto_saving.unpack
    if card["shape"]["network"] != auto_saving.NETWORK:
        unpack = partial(_networks().unpack, device=device)
    with reading(folder / CARD):
        model = unpack(weights, card)
        decision, class_priors = _read_decision(card)
    return SavedModel(
        model=model,
        classes=tuple(card["classes"]),
        embedder=embedder.get("name"),
        version=embedder.get("version"),
        kind=card["kind"],
        width=width,
        decision=decision,
        class_priors=class_priors,
    )


def _read_decision(card: dict[str, Any]) -> tuple[Decision, NDArray[np.float64] | None]:
    n_classes = card["shape"]["n_classes"]
    if "decision" not in card:
        return likeliest(n_classes), None
    thresholds = tuple(float(value) for value in card["decision"]["thresholds"])
    class_priors = np.array(card["pool"]["class_priors"], dtype=np.float64)
    is_usable = all(0 <= value <= 1 for value in (*thresholds, *class_priors))
    if len(thresholds) != n_classes or class_priors.shape != (n_classes,) or not is_usable:
        raise GalaxyError("its thresholds and class_priors must be one share for each class")
    return Decision(str(card["decision"]["rule"]), thresholds), class_priors


def save_onnx(model: Model | AutoModel, decision: Decision, path: str | Path) -> Path:
    """Write a model as ONNX: from vectors or images to probabilities and decisions."""
    if isinstance(model, AutoModel):
        return save_auto_onnx(model, decision, path)
    with needs_extra("A saved network", "torch"):
        from galaxy_al.models.networks import onnx
    return onnx.save_onnx(model, path, decision)


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
