"""The only training loop: heads on embeddings and networks on images, always from scratch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.images import Size
from galaxy_al.models.networks.compact import put_back
from galaxy_al.models.networks.devices import PRECISIONS, Precision, half_precision, pick_device
from galaxy_al.models.networks.fast_forms import for_training
from galaxy_al.models.networks.network import (
    LinearHead,
    Model,
    NetworkName,
    Shape,
    as_tensor,
    image_size_of,
    inputs_of,
)
from galaxy_al.models.networks.resnet import load_trunk, read_weights
from galaxy_al.snapshot import UNLABELED


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Parameters
    ----------
    batch_size
        None takes all examples at once.
    steps
        As many epochs as so many steps take, instead of ``epochs``: few labels get more of them.
    stop_below
        Stop when the mean loss of an epoch is below; by default never.
    """

    optimizer: Literal["adam", "lbfgs"]
    epochs: int
    batch_size: int | None
    rate: float = 1e-2
    weight_decay: float = 5e-5
    steps: int | None = None
    stop_below: float | None = None

    def epochs_for(self, n_labels: int) -> int:
        """How often all labels are gone through."""
        if self.steps is None:
            return self.epochs
        return -(-self.steps // -(-n_labels // (self.batch_size or n_labels)))


Labels = Mapping[int, int] | Sequence[int] | NDArray[np.integer[Any]]

# The paper's, for the network; a linear head is a convex problem, solved by L-BFGS.
RECIPES: dict[str, Recipe] = {
    "linear": Recipe("lbfgs", epochs=1, batch_size=None, rate=1.0),
    "mlp": Recipe("adam", epochs=100, batch_size=500),
    "resnet18": Recipe("adam", epochs=500, batch_size=100),
}
_LBFGS_ITERATIONS = 100


class Trainer:
    """Trains a classifier from labels, always from the same initial weights.

    The loss is the cross entropy, each class weighted by 1 / N_k(L), its number of labels. Only
    classes that have labels take part.

    Parameters
    ----------
    network
        ``"linear"`` or ``"mlp"`` for embeddings; ``"resnet18"``, as in the paper, for images.
    n_classes
        The number K of classes.
    recipe
        How to train; by default the network's entry in `RECIPES`.
    hidden
        The width of the MLP's hidden layer.
    image_size
        The height and width that the ResNet's images are scaled to. By default an array of images
        is taken as it is, and files are scaled to 224 x 224.
    weights
        The ResNet's ImageNet weights in torchvision's naming: a file, a URL, or ``"imagenet"`` for
        torchvision's own. See `read_weights`.
    device
        ``"auto"`` takes CUDA, MPS or the CPU, the first that is there.
    precision
        What the ResNet computes in: ``"float32"``, ``"bfloat16"``, or ``"fastest"``, the latter
        where the device has instructions for it. By default only CUDA may take bfloat16.
    seed
        The same seed gives the same network.

    Examples
    --------
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]], dtype=np.float32)
    >>> model = Trainer("linear", n_classes=2).fit(embeddings, {0: 0, 2: 1})
    >>> model.proba(embeddings).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        network: NetworkName = "linear",
        *,
        n_classes: int,
        recipe: Recipe | None = None,
        hidden: int = 128,
        image_size: Size | None = None,
        weights: str | Path | None = None,
        device: str = "auto",
        precision: Precision | None = None,
        seed: int = 0,
    ) -> None:
        if network not in RECIPES:
            raise InvalidArgument(
                f"Unknown network {network!r}. Choose from: {', '.join(RECIPES)}."
            )
        if n_classes < 2:
            raise InvalidArgument(f"n_classes must be at least 2, got {n_classes}.")
        if weights is not None and network != "resnet18":
            raise InvalidArgument(f"weights are for resnet18, not for {network}.")
        if precision is not None and (network != "resnet18" or precision not in PRECISIONS):
            raise InvalidArgument(
                f"precision is for resnet18 and one of {', '.join(PRECISIONS)}, got {precision!r} "
                f"for {network}."
            )
        self.network: NetworkName = network
        self.n_classes, self.hidden, self.image_size = n_classes, hidden, image_size
        self.seed = seed
        self.recipe = recipe or RECIPES[network]
        self.device, self.precision = pick_device(device), precision
        self._weights = read_weights(weights) if weights is not None else None

    def fit(self, pool: Any, labels: Labels) -> Model:
        """Train on the labelled examples of a pool, or of an array of embeddings or images.

        Parameters
        ----------
        labels
            Classes by index; or a class for each example, -1 where it is unknown.
        """
        shape = Shape(self.network, self.n_classes, image_size=self.image_size)
        inputs = inputs_of(pool, shape)
        if self.network == "resnet18":
            shape = replace(shape, image_size=image_size_of(inputs))
        else:
            hidden = self.hidden if self.network == "mlp" else None
            shape = replace(shape, width=inputs.shape[1], hidden=hidden)
        index, targets = _checked_labels(labels, len(inputs), self.n_classes)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = self._make(shape).to(self.device)
            seen = np.unique(targets)
            if len(seen) > 1:
                labeled = as_tensor(_finite(inputs[index], index), self.device)
                self._train(network, shape, labeled, torch.as_tensor(targets).to(self.device))
        counts = np.bincount(targets, minlength=self.n_classes)
        return Model(shape, network, counts, self.device, self.precision)

    def _train(self, network: Any, shape: Shape, inputs: Tensor, targets: Tensor) -> None:
        """Train a network; a ResNet in the form that is fastest for its images."""
        if shape.image_size is None:
            _optimize(network, inputs, targets, self.recipe, "float32")
            return
        fast, windows = for_training(network, shape.image_size)
        _optimize(fast, inputs, targets, self.recipe, self.precision)
        put_back(fast, network, windows)

    def _make(self, shape: Shape) -> Any:
        network = shape.make()
        if self._weights is not None:
            load_trunk(network, self._weights)
        return network


def _checked_labels(
    labels: Labels, size: int, n_classes: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The labelled examples in order, and their classes."""
    if not isinstance(labels, Mapping):
        every = np.asarray(labels)
        if every.shape != (size,) or every.dtype.kind not in "iu":
            raise InvalidArgument(
                f"labels must be classes by index, or a class for each of {size} examples, got "
                f"shape {every.shape} of {every.dtype}."
            )
        labels = dict(zip(np.flatnonzero(every != UNLABELED).tolist(), every[every != UNLABELED]))
    for index, label in labels.items():
        if not (_is_whole(index) and 0 <= index < size):
            raise InvalidArgument(f"labels must be by index, 0 to {size - 1}, got {index!r}.")
        if not (_is_whole(label) and 0 <= label < n_classes):
            raise InvalidArgument(
                f"labels must be classes 0 to {n_classes - 1}, got {label!r} for {index}."
            )
    known = np.array(sorted(labels), dtype=np.intp)
    return known, np.array([labels[i] for i in known.tolist()], dtype=np.int64)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _finite(rows: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    if rows.dtype.kind == "f":
        with np.errstate(over="ignore"):
            is_finite = np.isfinite(rows.astype(np.float32, copy=False)).all(axis=1)
        if not is_finite.all():
            raise InvalidArgument(f"Example {index[np.argmin(is_finite)]} is not finite.")
    return rows


def _optimize(
    network: Any, inputs: Tensor, targets: Tensor, recipe: Recipe, precision: Precision | None
) -> None:
    """The loop. Inputs of a head are scaled to unit size while it trains: rates then suit them."""
    seen, class_indices, counts = torch.unique(targets, return_inverse=True, return_counts=True)
    scale = _scale(inputs)
    inputs = inputs / scale if scale != 1 else inputs
    weight = (1 / counts).to(inputs.device, torch.float32)
    optimizer = _optimizer(network, recipe)
    every_class = len(seen) == network.head.out_features
    order = torch.Generator().manual_seed(torch.initial_seed())
    network.train()

    for _ in range(recipe.epochs_for(len(inputs))):
        losses = []
        for batch, wanted in _batches(inputs, class_indices, recipe.batch_size, order):

            def closure(batch: Tensor = batch, wanted: Tensor = wanted) -> Tensor:
                optimizer.zero_grad()
                with half_precision(inputs.device, precision):
                    logits = network.head(network.embed(batch))
                logits = logits.float() if every_class else logits.float()[:, seen]
                loss = functional.cross_entropy(logits, wanted, weight)
                if recipe.optimizer == "lbfgs":  # which knows of no weight decay of its own
                    loss = loss + recipe.weight_decay / 2 * _squares(network)
                loss.backward()  # type: ignore[no-untyped-call]
                return loss

            losses.append(cast(Tensor, optimizer.step(cast(Any, closure))).detach())
        if recipe.stop_below is not None and torch.stack(losses).mean() < recipe.stop_below:
            break
    if scale != 1:
        first = network.head if isinstance(network, LinearHead) else network.first
        with torch.no_grad():
            first.weight /= scale
    if not all(bool(torch.isfinite(parameter).all()) for parameter in network.parameters()):
        raise GalaxyError(
            "Training diverged: a weight is not finite. Lower the rate, or scale the embeddings."
        )


def _batches(
    inputs: Tensor, class_indices: Tensor, size: int | None, order: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """All examples once in random order, ``size`` at a time; or all at once, not copied."""
    if size is None:
        yield inputs, class_indices
        return
    mixed = torch.randperm(len(inputs), generator=order).to(inputs.device)
    batches = list(torch.split(mixed, size))
    if len(batches) > 1 and len(batches[-1]) == 1:  # batch norm needs two
        batches[-2:] = [torch.cat(batches[-2:])]
    for rows in batches:
        yield inputs[rows], class_indices[rows]


def _squares(network: nn.Module) -> Tensor:
    norms = [torch.linalg.vector_norm(parameter) for parameter in network.parameters()]
    return torch.stack(norms).square().sum()


def _scale(inputs: Tensor) -> float:
    if inputs.ndim > 2:
        return 1.0
    size = float(inputs.double().square().mean().sqrt())
    return size if size > 0 else 1.0


def _optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    if recipe.optimizer == "adam":
        decay = recipe.weight_decay
        return torch.optim.Adam(
            network.parameters(), lr=recipe.rate, weight_decay=decay, fused=True
        )
    return torch.optim.LBFGS(
        network.parameters(),
        lr=recipe.rate,
        max_iter=_LBFGS_ITERATIONS,
        tolerance_grad=1e-4,
        tolerance_change=1e-6,
        line_search_fn="strong_wolfe",
    )
