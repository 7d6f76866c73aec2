"""A trained kernel head as bytes and an entry on a card, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from safetensors.numpy import load, save

from galaxy_al.errors import GalaxyError
from galaxy_al.models.kernel import KernelModel, KernelSpace, Table

NETWORK = "kernel"


def pack(model: KernelModel) -> tuple[bytes, dict[str, Any]]:
    """The arrays, and what a card must say of them."""
    weights, bias = model.head
    arrays = {
        "landmarks": model.landmarks,
        "axes": model.axes,
        "weights": weights,
        "bias": bias,
        "class_priors": model.class_priors,
        "middle": model.space.middle,
        "scale": np.array([model.space.width]),
    }
    shape = {"network": NETWORK, "n_classes": len(bias), "width": model.landmarks.shape[1]}
    about = {"shape": shape, "kind": "embeddings", "preprocessing": {}}
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}), about


def unpack(weights: bytes, card: dict[str, Any]) -> KernelModel:
    """The head again."""
    arrays = load(weights)
    n_classes, width = card["shape"]["n_classes"], card["shape"]["width"]
    _check(arrays, n_classes, width)
    return KernelModel(
        space=KernelSpace(arrays["middle"], float(arrays["scale"][0])),
        landmarks=arrays["landmarks"],
        axes=arrays["axes"],
        head=(arrays["weights"], arrays["bias"]),
        class_priors=arrays["class_priors"],
    )


def _check(arrays: dict[str, Table], n_classes: int, width: int) -> None:
    axes = arrays.get("axes", np.empty((0, 0)))
    size, n_axes = axes.shape if axes.ndim == 2 else (0, 0)
    wanted = {
        "landmarks": (size, width),
        "axes": (size, n_axes),
        "weights": (n_classes, n_axes),
        "bias": (n_classes,),
        "class_priors": (n_classes,),
        "middle": (width,),
        "scale": (1,),
    }
    if {name: array.shape for name, array in arrays.items()} != wanted:
        raise GalaxyError("its tensors are not those of the kernel head on the card")
    if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in arrays.values()):
        raise GalaxyError("its tensors are not all finite numbers")
    if not arrays["scale"][0] > 0:
        raise GalaxyError("its scale is not positive")
