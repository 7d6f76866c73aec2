"""Trained models as files: safetensors with a card that says what they need, and ONNX."""

from __future__ import annotations

import hashlib
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
from numpy.typing import NDArray
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
    _check_network(model)
    if isinstance(classes, str) or len(set(classes)) != len(classes) or "" in classes:
        raise ValueError(f"classes must be a list of different names, got {classes!r}.")
    if len(classes) != model.n_classes:
        raise ValueError(f"The model has {model.n_classes} classes, got names for {len(classes)}.")
    tensors = {
        name: tensor.contiguous().cpu() for name, tensor in model.network.state_dict().items()
    }
    weights = save(tensors)
    card = {**_card(model, classes, embedder), "sha256": hashlib.sha256(weights).hexdigest()}
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    _make_folder(folder)
    with writing(folder / CARD) as card_path, writing(folder / WEIGHTS) as weights_path:
        card_path.write_text(text, encoding="utf-8")
        weights_path.write_bytes(weights)
    return folder


def load_model(folder: str | Path, *, device: str = "auto") -> SavedModel:
    """A model that `save_model` wrote."""
    from safetensors.torch import load

    folder = Path(folder)
    if not (folder / CARD).exists():
        raise GalaxyError(f"{folder} holds no model: there is no {CARD} in it.")
    with reading(folder / CARD):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        shape, seen = _read_card(card)
    with reading(folder / WEIGHTS):
        weights = (folder / WEIGHTS).read_bytes()
        if hashlib.sha256(weights).hexdigest() != card["sha256"]:
            raise GalaxyError(f"{folder / WEIGHTS} is not what {CARD} was written for.")
        tensors = load(weights)
        _check_shapes(shape, tensors)
        with torch.random.fork_rng(devices=[]):
            network = shape.make()
        network.load_state_dict(tensors)
    target, embedder = pick_device(device), card["embedder"] or {}
    model = Model(shape, network.to(target), seen, target)
    classes, kind = tuple(card["classes"]), card["kind"]
    return SavedModel(model, classes, embedder.get("name"), embedder.get("version"), kind)


def _read_card(card: dict[str, Any]) -> tuple[Shape, NDArray[np.int64]]:
    """The network's shape and the classes that had labels, if the card makes sense."""
    if card["format"] != _FORMAT:
        raise GalaxyError(f"its format is {card['format']!r}, not {_FORMAT}")
    size = card["shape"].pop("image_size")
    shape = Shape(**card["shape"], image_size=tuple(size) if size else None)
    needed = {
        "linear": [shape.width],
        "mlp": [shape.width, shape.hidden],
        "resnet18": [*(shape.image_size or ()), None][:2],
    }
    if shape.network not in needed:
        raise GalaxyError(f"unknown network {shape.network!r}")
    if not all(type(n) is int and n > 0 for n in (shape.n_classes, *needed[shape.network])):
        raise GalaxyError("shape has a number that is none, or not positive")
    classes, seen = card["classes"], card["classes_with_labels"]
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise GalaxyError("classes must be a list of names")
    if len(set(classes)) != shape.n_classes or len(classes) != shape.n_classes:
        raise GalaxyError(f"classes must be {shape.n_classes} different names")
    if seen != sorted({k for k in range(shape.n_classes) if k in seen}):
        raise GalaxyError("classes_with_labels must be some of the classes' numbers, in order")
    return shape, np.array(seen, dtype=np.int64)


def _check_shapes(shape: Shape, tensors: dict[str, Tensor]) -> None:
    """Compare with a network that takes no memory, before one is made that does."""
    with torch.device("meta"):
        wanted = {name: tensor.shape for name, tensor in shape.make().state_dict().items()}
    if wanted != {name: tensor.shape for name, tensor in tensors.items()}:
        raise GalaxyError(f"its tensors are not those of the {shape.network} on the card")


def save_onnx(model: Model, path: str | Path) -> Path:
    """Write a model as ONNX: one input of any number of examples, one output of probabilities.

    The input ``embeddings`` is N x d in single precision; the input ``images`` N x H x W x 3 in
    bytes, which are scaled within.
    """
    path = Path(path)
    _check_network(model)
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


def _check_network(model: object) -> None:
    if not isinstance(model, Model):
        raise ValueError(
            f"Only networks can be saved, what Trainer.fit gives, got a {type(model).__name__}."
        )


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
