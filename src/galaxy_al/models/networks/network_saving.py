"""A trained network as bytes and an entry on a card, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from galaxy_al.errors import GalaxyError
from galaxy_al.models.networks.devices import pick_device
from galaxy_al.models.networks.network import Model, Shape, check_network

_IMAGES = {"channels": "RGB", "divide_by": 127.5, "subtract": 1}


def pack(model: Model) -> tuple[bytes, dict[str, Any]]:
    """The weights, and what a card must say of them."""
    check_network(model)
    tensors = {
        name: tensor.contiguous().cpu() for name, tensor in model.network.state_dict().items()
    }
    takes_images = model.shape.network == "resnet18"
    about = {
        "shape": asdict(model.shape),
        "labels_per_class": model.counts.tolist(),
        "kind": "images" if takes_images else "embeddings",
        "preprocessing": _IMAGES if takes_images else {},
    }
    return save(tensors), about


def unpack(weights: bytes, card: dict[str, Any], device: str) -> Model:
    """The network again."""
    shape, counts = _shape(card)
    tensors = load(weights)
    _check_shapes(shape, tensors)
    with torch.random.fork_rng(devices=[]):
        network = shape.make()
    network.load_state_dict(tensors)
    target = pick_device(device)
    return Model(shape, network.to(target), counts, target)


def _shape(card: dict[str, Any]) -> tuple[Shape, NDArray[np.int64]]:
    """The network's shape and how many labels each class had, if the card makes sense."""
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
        raise GalaxyError("the numbers of its shape must be positive")
    counts = card["labels_per_class"]
    if len(counts) != shape.n_classes or not all(type(n) is int and n >= 0 for n in counts):
        raise GalaxyError("labels_per_class must be a number of at least 0 for each class")
    return shape, np.array(counts, dtype=np.int64)


def _check_shapes(shape: Shape, tensors: dict[str, Tensor]) -> None:
    """Compare with a network that takes no memory, before one is made that does."""
    with torch.device("meta"):
        wanted = {name: tensor.shape for name, tensor in shape.make().state_dict().items()}
    if wanted != {name: tensor.shape for name, tensor in tensors.items()}:
        raise GalaxyError(f"its tensors are not those of the {shape.network} on the card")
