"""The trained default head as bytes and an entry on a card, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from galaxy_al.errors import GalaxyError
from galaxy_al.models.auto import AutoModel
from galaxy_al.models.calibration import Calibration
from galaxy_al.models.forest import Forest
from galaxy_al.models.kernel import Coarse, KernelModel
from galaxy_al.models.kernel_space import KernelSpace

NETWORK = "auto"

Arrays = dict[str, NDArray[Any]]


def pack(model: AutoModel) -> tuple[bytes, dict[str, Any]]:
    """The arrays, and what a card must say of them."""
    kernel = model.kernel
    weights, bias = kernel.head
    arrays: Arrays = {
        "landmarks": kernel.landmarks,
        "axes": kernel.axes,
        "weights": weights,
        "bias": bias,
        "middle": kernel.space.middle,
        "scale": kernel.space.scale,
        "priors": model.class_priors,
    }
    if kernel.coarse is not None:
        arrays |= {"coarse.landmarks": kernel.coarse.landmarks, "coarse.axes": kernel.coarse.axes}
    if model.trees is not None:
        arrays |= {f"trees.{name}": array for name, array in vars(model.trees).items()}
    about = {
        "shape": {"network": NETWORK, "n_classes": len(bias), "width": kernel.landmarks.shape[1]},
        "calibration": asdict(model.calibration),
        "all_landmarks_from": None if kernel.coarse is None else kernel.coarse.all_from,
        "trees_from": model.trees_from if np.isfinite(model.trees_from) else None,
        "kind": "embeddings",
        "preprocessing": {},
    }
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}), about


def unpack(weights: bytes, card: dict[str, Any]) -> AutoModel:
    """The head again."""
    arrays = load(weights)
    n_classes, width = card["shape"]["n_classes"], card["shape"]["width"]
    trees = {name: arrays.pop(f"trees.{name}") for name in _TREES if f"trees.{name}" in arrays}
    coarse = _coarse(arrays, card)
    _check(arrays, n_classes, width)
    if trees:
        _check_trees(trees, n_classes, width)
    trees_from = card["trees_from"]
    space = KernelSpace(arrays["middle"], arrays["scale"])
    head = arrays["weights"], arrays["bias"]
    return AutoModel(
        kernel=KernelModel(space, arrays["landmarks"], arrays["axes"], head, coarse),
        trees=Forest(**trees) if trees else None,
        trees_from=-np.inf if trees_from is None else float(trees_from),
        calibration=_calibration(card),
        class_priors=arrays["priors"],
    )


def _calibration(card: dict[str, Any]) -> Calibration:
    found = Calibration(**card["calibration"])
    numbers = [found.sharpness] if found.slope is None else [found.sharpness, found.slope]
    if not all(isinstance(value, int | float) and 0 < value < np.inf for value in numbers):
        raise GalaxyError("its calibration must be numbers above 0")
    return found


def _coarse(arrays: Arrays, card: dict[str, Any]) -> Coarse | None:
    if "coarse.axes" not in arrays:
        return None
    which, axes = arrays.pop("coarse.landmarks"), arrays.pop("coarse.axes")
    is_inside = which.dtype.kind == "i" and which.min() >= 0
    if not is_inside or which.max() >= len(arrays["landmarks"]) or not np.isfinite(axes).all():
        raise GalaxyError("its coarse landmarks are not among its landmarks")
    if axes.shape != (len(which), arrays["axes"].shape[1]):
        raise GalaxyError("its tensors are not those of the head on the card")
    return Coarse(which, axes, float(card["all_landmarks_from"]))


_TREES = tuple(Forest.__dataclass_fields__)


def _check(arrays: Arrays, n_classes: int, width: int) -> None:
    axes = arrays.get("axes", np.empty((0, 0)))
    size, n_axes = axes.shape if axes.ndim == 2 else (0, 0)
    wanted = {
        "landmarks": (size, width),
        "axes": (size, n_axes),
        "weights": (n_classes, n_axes),
        "bias": (n_classes,),
        "middle": (width,),
        "scale": (width,),
        "priors": (n_classes,),
    }
    if {name: array.shape for name, array in arrays.items()} != wanted:
        raise GalaxyError("its tensors are not those of the head on the card")
    if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in arrays.values()):
        raise GalaxyError("its tensors are not all finite numbers")
    if not (arrays["scale"] > 0).all():
        raise GalaxyError("its scale is not positive")


def _check_trees(trees: Arrays, n_classes: int, width: int) -> None:
    """Refuse trees with a child, a root or a feature that does not exist, or that never end."""
    size, own = len(trees.get("votes", ())), np.arange(len(trees.get("votes", ())))
    nodes = dict.fromkeys(("feature", "threshold", "left", "right"), (size,))
    wanted = {"roots": trees.get("roots", own).shape, "votes": (size, n_classes), **nodes}
    if {name: array.shape for name, array in trees.items()} != wanted:
        raise GalaxyError("its trees are not complete")
    for name, most in (("roots", size), ("feature", width), ("left", size), ("right", size)):
        array = trees[name]
        if array.dtype.kind != "i" or array.min(initial=0) < 0 or array.max(initial=0) >= most:
            raise GalaxyError("its trees have a node that does not exist")
    is_leaf = trees["left"] == own
    below = np.minimum(trees["left"], trees["right"])
    if (below[~is_leaf] <= own[~is_leaf]).any() or (trees["right"] != own)[is_leaf].any():
        raise GalaxyError("its trees never end")
    if not (np.isfinite(trees["threshold"]).all() and np.isfinite(trees["votes"]).all()):
        raise GalaxyError("its trees are not all finite numbers")
