"""Trained models as files: safetensors with a card that says what they need, and ONNX."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from galaxy_al.errors import GalaxyError
from galaxy_al.files import reading, writing
from galaxy_al.models.devices import pick_device
from galaxy_al.models.embed import Embedder
from galaxy_al.models.model import FLOOR, Model, Shape, scaled_images
from galaxy_al.version import __version__

WEIGHTS, CARD = "model.safetensors", "card.json"
_FORMAT = 1
_IMAGES = {"channels": "RGB", "divide_by": 127.5, "subtract": 1}


@dataclass(frozen=True)
class SavedModel:
    """A model and what its card says.

    Parameters
    ----------
    classes
        The names of the classes, the big one last.
    embedder
        The name of the network that makes its inputs; None if it takes images or vectors as
        they are.
    version
        The embedder's version when the model was trained.
    kind
        Of the pools it takes: ``"images"``, ``"texts"`` or ``"embeddings"``.
    """

    model: Model
    classes: tuple[str, ...]
    embedder: str | None
    version: str | None
    kind: str


def save_model(
    model: Model,
    folder: str | Path,
    *,
    classes: Sequence[str],
    embedder: Embedder | None = None,
) -> Path:
    """Write a model's weights and its card into a folder, which is made if it is not there.

    Parameters
    ----------
    classes
        Names, the big one last.
    embedder
        What made the embeddings that the model was trained on.
    """
    from safetensors.torch import save

    folder = Path(folder)
    if len(classes) != model.n_classes:
        raise ValueError(f"The model has {model.n_classes} classes, got names for {len(classes)}.")
    tensors = {
        name: tensor.contiguous().cpu() for name, tensor in model.network.state_dict().items()
    }
    _make_folder(folder)
    card = json.dumps(_card(model, classes, embedder), indent=2, ensure_ascii=False)
    with writing(folder / CARD) as card_path, writing(folder / WEIGHTS) as weights_path:
        card_path.write_text(card + "\n", encoding="utf-8")
        weights_path.write_bytes(save(tensors))
    return folder


def load_model(folder: str | Path, *, device: str = "auto") -> SavedModel:
    """A model that `save_model` wrote."""
    from safetensors.torch import load_file

    folder = Path(folder)
    if not (folder / CARD).exists():
        raise GalaxyError(f"{folder} holds no model: there is no {CARD} in it.")
    with reading(folder / CARD):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if card["format"] != _FORMAT:
            raise GalaxyError(f"{folder / CARD} has the format {card['format']}, not {_FORMAT}.")
        size = card["shape"].pop("image_size")
        shape = Shape(**card["shape"], image_size=tuple(size) if size else None)
        embedder = card["embedder"] or {}
        rest = tuple(card["classes"]), embedder.get("name"), embedder.get("version"), card["kind"]
        seen = np.array(card["classes_with_labels"], dtype=np.int64)
    target = pick_device(device)
    with reading(folder / WEIGHTS):
        with torch.random.fork_rng(devices=[]):
            network = shape.make()
        network.load_state_dict(load_file(folder / WEIGHTS))
    return SavedModel(Model(shape, network.to(target), seen, target), *rest)


def save_onnx(model: Model, path: str | Path) -> Path:
    """Write a model as ONNX: one input of any number of examples, one output of probabilities.

    The input ``embeddings`` is N x d in single precision; the input ``images`` N x H x W x 3 in
    bytes, which are scaled within.
    """
    path = Path(path)
    shape = model.shape
    if shape.network == "resnet18":
        assert shape.image_size is not None
        name, example = "images", torch.zeros(2, *shape.image_size, 3, dtype=torch.uint8)
    else:
        assert shape.width is not None
        name, example = "embeddings", torch.zeros(2, shape.width)
    scores = _Scores(model).eval().to("cpu")
    _make_folder(path.parent)
    with writing(path) as part:
        _quietly_export(scores, example, name, part)
    model.network.to(model.device)
    return path


class _Scores(nn.Module):
    """A model from its inputs to its probabilities, as one network."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.network, self.is_trained = model.network, len(model.seen) > 1
        self.takes_images = model.shape.network == "resnet18"
        unseen = np.setdiff1d(np.arange(model.n_classes), model.seen)
        self.left = 1 - FLOOR * len(unseen)
        floor, hidden = torch.zeros(model.n_classes), torch.zeros(model.n_classes)
        floor[unseen], hidden[unseen] = FLOOR, -torch.inf
        self.floor = nn.Buffer(floor)
        self.hidden = nn.Buffer(hidden)

    def forward(self, inputs: Tensor) -> Tensor:
        inputs = scaled_images(inputs) if self.takes_images else inputs
        logits = self.network.head(self.network.embed(inputs))
        if not self.is_trained:
            return torch.softmax(logits * 0, dim=1)
        return self.floor + self.left * torch.softmax(logits + self.hidden, dim=1)


def _quietly_export(scores: _Scores, example: Tensor, name: str, path: Path) -> None:
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            torch.onnx.export(
                scores,
                (example,),
                path,
                input_names=[name],
                output_names=["probabilities"],
                dynamic_shapes=({0: torch.export.Dim("examples")},),
                external_data=False,
                dynamo=True,
            )
    except ImportError as error:
        raise GalaxyError("ONNX needs pip install 'galaxy-al[onnx]'.") from error
    finally:
        logger.setLevel(level)


def _card(model: Model, classes: Sequence[str], embedder: Embedder | None) -> dict[str, Any]:
    takes_images = model.shape.network == "resnet18"
    kind = embedder.kind if embedder else "images" if takes_images else "embeddings"
    preprocessing = embedder.preprocessing if embedder else _IMAGES if takes_images else {}
    return {
        "format": _FORMAT,
        "galaxy_al": __version__,
        "classes": list(classes),
        "classes_with_labels": model.seen.tolist(),
        "shape": asdict(model.shape),
        "kind": kind,
        "embedder": {"name": embedder.name, "version": embedder.version} if embedder else None,
        "preprocessing": preprocessing,
    }


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GalaxyError(f"Cannot make the folder {folder}: {error.strerror}.") from error
