"""The trained default head as bytes and an entry on a card, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from galaxy_al.errors import GalaxyError
from galaxy_al.models.auto import AutoModel
from galaxy_al.models.columns import EvenColumns
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
        "slopes": kernel.slopes,
        "weights": weights,
        "bias": bias,
        "middle": kernel.space.middle,
        "scale": kernel.space.scale,
        "priors": model.class_priors,
    }
    if kernel.space.columns is not None:
        arrays |= {f"columns.{name}": array for name, array in vars(kernel.space.columns).items()}
    if kernel.coarse is not None:
        arrays |= {
            "coarse.landmarks": kernel.coarse.landmarks,
            "coarse.axes": kernel.coarse.axes,
            "coarse.slopes": kernel.coarse.slopes,
        }
    if model.trees is not None:
        arrays |= {f"trees.{name}": array for name, array in vars(model.trees).items()}
    about = {
        "shape": {"network": NETWORK, "n_classes": len(bias), "width": kernel.landmarks.shape[1]},
        "sharpness": model.sharpness,
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
    coarse, columns = _coarse(arrays, card), _columns(arrays, width)
    _check(arrays, n_classes, width)
    if trees:
        _check_trees(trees, n_classes, width)
    trees_from = card["trees_from"]
    space = KernelSpace(arrays["middle"], arrays["scale"], columns)
    head = arrays["weights"], arrays["bias"]
    return AutoModel(
        kernel=KernelModel(
            space, arrays["landmarks"], arrays["axes"], arrays["slopes"], head, coarse
        ),
        trees=Forest(**trees) if trees else None,
        trees_from=-np.inf if trees_from is None else float(trees_from),
        sharpness=_sharpness(card),
        class_priors=arrays["priors"],
    )


def _sharpness(card: dict[str, Any]) -> float:
    found = card["sharpness"]
    if not (isinstance(found, int | float) and 0 < found < np.inf):
        raise GalaxyError(f"its sharpness must be a number above 0, got {found!r}")
    return float(found)


def _coarse(arrays: Arrays, card: dict[str, Any]) -> Coarse | None:
    if "coarse.axes" not in arrays:
        return None
    which, axes, slopes = (arrays.pop(f"coarse.{name}") for name in ("landmarks", "axes", "slopes"))
    is_inside = which.dtype.kind == "i" and 0 <= which.min() <= which.max() < len(
        arrays["landmarks"]
    )
    if not is_inside or not (np.isfinite(axes).all() and np.isfinite(slopes).all()):
        raise GalaxyError("its coarse landmarks are not among its landmarks")
    n_axes = arrays["axes"].shape[1]
    if axes.shape != (len(which), n_axes) or slopes.shape != arrays["slopes"].shape:
        raise GalaxyError("its tensors are not those of the head on the card")
    return Coarse(which, axes, slopes, float(card["all_landmarks_from"]))


def _columns(arrays: Arrays, width: int) -> EvenColumns | None:
    if "columns.unit" not in arrays:
        return None
    center, unit = arrays.pop("columns.center"), arrays.pop("columns.unit")
    if center.shape != (width,) or unit.shape != (width,):
        raise GalaxyError("its tensors are not those of the head on the card")
    if not (np.isfinite(center).all() and np.isfinite(unit).all() and (unit > 0).all()):
        raise GalaxyError("its units are not positive numbers")
    return EvenColumns(center, unit)


_TREES = tuple(Forest.__dataclass_fields__)


def _check(arrays: Arrays, n_classes: int, width: int) -> None:
    axes = arrays.get("axes", np.empty((0, 0)))
    size, n_axes = axes.shape if axes.ndim == 2 else (0, 0)
    wanted = {
        "landmarks": (size, width),
        "axes": (size, n_axes),
        "slopes": (width, n_axes),
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
