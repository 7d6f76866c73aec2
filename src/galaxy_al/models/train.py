"""The only training loop: heads on embeddings and whole networks on images, anew each time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from galaxy_al.errors import GalaxyError
from galaxy_al.models.heads import LOGIT_WITHOUT_LABELS
from galaxy_al.models.resnet import ResNet18, load_trunk, read_weights
from galaxy_al.snapshot import Snapshot, row_blocks

NetworkName = Literal["linear", "mlp", "resnet18"]

# A class without labels gets this probability, and the others what is left.
FLOOR = 1e-6
_ROWS_AT_ONCE = {"linear": 1 << 16, "mlp": 1 << 16, "resnet18": 1 << 8}


class Network(Protocol):
    """A network that ends in a linear layer."""

    head: nn.Linear

    def embed(self, inputs: Tensor) -> Tensor:
        """The inputs of the last layer."""


class LinearHead(nn.Module):
    """Nothing but the last layer."""

    def __init__(self, width: int, n_classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(width, n_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, inputs: Tensor) -> Tensor:
        """The embeddings themselves."""
        return inputs


class MLPHead(nn.Module):
    """One hidden layer before the last."""

    def __init__(self, width: int, hidden: int, n_classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.head = nn.Linear(hidden, n_classes)

    def embed(self, inputs: Tensor) -> Tensor:
        """The hidden layer."""
        return functional.relu(self.first(inputs))


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Parameters
    ----------
    batch_size
        None takes all examples at once.
    stop_below
        Stop when the mean loss of an epoch is below; by default never.
    """

    optimizer: Literal["adam", "lbfgs"]
    epochs: int
    batch_size: int | None
    rate: float = 1e-2
    weight_decay: float = 5e-5
    stop_below: float | None = None


# The paper's, for the network; a linear head is a convex problem, solved by L-BFGS.
RECIPES: dict[str, Recipe] = {
    "linear": Recipe("lbfgs", epochs=1, batch_size=None, rate=1.0),
    "mlp": Recipe("adam", epochs=100, batch_size=500),
    "resnet18": Recipe("adam", epochs=500, batch_size=100),
}
_LBFGS_ITERATIONS = 100


class Trainer:
    """Trains a classifier from labels, always from the same beginning.

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
    weights
        A file with the ResNet's ImageNet weights in torchvision's naming.
    device
        ``"auto"`` takes CUDA, MPS or the CPU, the first that is there.
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
        weights: str | Path | None = None,
        device: str = "auto",
        seed: int = 0,
    ) -> None:
        if network not in RECIPES:
            raise ValueError(f"Unknown network {network!r}. Choose from: {', '.join(RECIPES)}.")
        if n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {n_classes}.")
        if weights is not None and network != "resnet18":
            raise ValueError(f"weights are for resnet18, not for {network}.")
        self.network: NetworkName = network
        self.n_classes, self.hidden, self.seed = n_classes, hidden, seed
        self.recipe = recipe or RECIPES[network]
        self.device = _device(device)
        self._weights = read_weights(Path(weights)) if weights is not None else None

    def fit(self, pool: Any, labels: Mapping[int, int]) -> Model:
        """Train on the labelled examples of a pool, or of an array of embeddings or images.

        Parameters
        ----------
        labels
            Classes by index.
        """
        items = np.asarray(getattr(pool, "items", pool))
        _check_items(items, self.network)
        index = np.array(sorted(labels), dtype=np.intp)
        targets = np.array([labels[i] for i in index.tolist()], dtype=np.int64)
        if len(targets) and not (targets.min() >= 0 and targets.max() < self.n_classes):
            raise ValueError(f"labels must be classes 0 to {self.n_classes - 1}.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = self._make(items).to(self.device)
            seen = np.unique(targets)
            if len(seen) > 1:
                inputs = _as_tensor(items[index], self.device)
                _optimise(network, inputs, torch.as_tensor(targets).to(self.device), self.recipe)
        return Model(self.network, network, seen, self.device)

    def _make(self, items: NDArray[Any]) -> Any:
        if self.network == "linear":
            return LinearHead(items.shape[1], self.n_classes)
        if self.network == "mlp":
            return MLPHead(items.shape[1], self.hidden, self.n_classes)
        network = ResNet18(self.n_classes)
        if self._weights is not None:
            load_trunk(network, self._weights)
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class Model:
    """A trained network: scores, embeddings and the last layer of whatever pool it is shown."""

    def __init__(
        self, name: NetworkName, network: Any, seen: NDArray[np.int64], device: torch.device
    ) -> None:
        self.name, self.network, self.seen, self.device = name, network, seen, device

    @property
    def n_classes(self) -> int:
        """The number K of classes."""
        return int(self.network.head.out_features)

    def proba(self, pool: Any) -> NDArray[np.float32]:
        """The class probabilities of all examples, N x K; the pool is read in blocks."""
        return self._run(getattr(pool, "items", pool), None)

    def snapshot(self, pool: Any, labels: NDArray[Any] | None = None) -> Snapshot:
        """What strategies need: scores, the inputs of the last layer, and the last layer."""
        items = getattr(pool, "items", pool)
        if self.name == "linear":
            return Snapshot(self.proba(items), labels, np.asarray(items), self.last_layer())
        embeddings = np.empty((len(items), self.network.head.in_features), dtype=np.float32)
        return Snapshot(self._run(items, embeddings), labels, embeddings, self.last_layer())

    def last_layer(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The weights, K x d, and biases of the last layer; those of unseen classes are far off."""
        weights = self.network.head.weight.detach().cpu().numpy().copy()
        bias = self.network.head.bias.detach().cpu().numpy().copy()
        if len(self.seen) < 2:
            return np.zeros_like(weights), np.zeros_like(bias)
        unseen = np.setdiff1d(np.arange(self.n_classes), self.seen)
        weights[unseen], bias[unseen] = 0, LOGIT_WITHOUT_LABELS
        return weights, bias

    @torch.inference_mode()
    def _run(self, items: Any, embeddings: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """The scores of all examples; the inputs of the last layer go into a table, if given."""
        self.network.eval()
        proba = np.empty((len(items), self.n_classes), dtype=np.float32)
        for low, high in row_blocks(len(items), _ROWS_AT_ONCE[self.name]):
            with _mixed_precision(self.device):
                inputs = _as_tensor(np.asarray(items[low:high]), self.device)
                embedded = self.network.embed(inputs).float()
            self._score(embedded, torch.from_numpy(proba[low:high]))
            if embeddings is not None:
                embeddings[low:high] = embedded.cpu().numpy()
        return proba

    def _score(self, embedded: Tensor, out: Tensor) -> None:
        """The softmax over the classes that had labels; the others get the floor."""
        if len(self.seen) < 2:
            out.fill_(1 / self.n_classes)
            return
        logits = self.network.head(embedded).cpu()
        if len(self.seen) == self.n_classes:
            torch.softmax(logits, dim=1, out=out)
            return
        out.fill_(FLOOR)
        left = 1 - FLOOR * (self.n_classes - len(self.seen))
        seen = torch.as_tensor(self.seen)
        out[:, seen] = left * torch.softmax(logits[:, seen], dim=1)


def _optimise(network: Any, inputs: Tensor, targets: Tensor, recipe: Recipe) -> None:
    """The loop. Inputs of a head are scaled to unit size while it trains: rates then suit them."""
    seen, codes, counts = torch.unique(targets, return_inverse=True, return_counts=True)
    scale = _scale(inputs)
    inputs = inputs / scale if scale != 1 else inputs
    weight = (1 / counts).to(inputs.device, torch.float32)
    optimizer = _optimizer(network, recipe)
    every_class = len(seen) == network.head.out_features
    order = torch.Generator().manual_seed(torch.initial_seed())
    network.train()

    for _ in range(recipe.epochs):
        losses = []
        for batch, wanted in _batches(inputs, codes, recipe.batch_size, order):

            def closure(batch: Tensor = batch, wanted: Tensor = wanted) -> Tensor:
                optimizer.zero_grad()
                with _mixed_precision(inputs.device):
                    logits = network.head(network.embed(batch))
                logits = logits.float() if every_class else logits.float()[:, seen]
                loss = functional.cross_entropy(logits, wanted, weight)
                loss = loss + recipe.weight_decay / 2 * _squares(network)
                loss.backward()  # type: ignore[no-untyped-call]
                return loss

            losses.append(cast(Tensor, optimizer.step(cast(Any, closure))).detach())
        if recipe.stop_below is not None and torch.stack(losses).mean() < recipe.stop_below:
            break
    if not all(bool(torch.isfinite(parameter).all()) for parameter in network.parameters()):
        raise GalaxyError("Training diverged: a weight is not finite. Lower the rate.")
    if scale != 1:
        first = network.head if isinstance(network, LinearHead) else network.first
        with torch.no_grad():
            first.weight /= scale


def _batches(
    inputs: Tensor, codes: Tensor, size: int | None, order: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """All examples once in random order, so many at a time; or all at once, not copied."""
    if size is None:
        yield inputs, codes
        return
    mixed = torch.randperm(len(inputs), generator=order).to(inputs.device)
    for rows in torch.split(mixed, size):
        yield inputs[rows], codes[rows]


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
        return torch.optim.Adam(network.parameters(), lr=recipe.rate)
    return torch.optim.LBFGS(
        network.parameters(),
        lr=recipe.rate,
        max_iter=_LBFGS_ITERATIONS,
        tolerance_grad=1e-4,
        tolerance_change=1e-6,
        line_search_fn="strong_wolfe",
    )


def _mixed_precision(device: torch.device) -> Any:
    return torch.autocast(device.type, enabled=device.type == "cuda")


def _device(name: str) -> torch.device:
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _check_items(items: NDArray[Any], network: NetworkName) -> None:
    is_images = items.ndim == 4 and items.shape[3] == 3 and items.dtype == np.uint8
    is_table = items.ndim == 2 and items.dtype.kind == "f"
    if not (is_images if network == "resnet18" else is_table):
        wanted = "N x H x W x 3 bytes" if network == "resnet18" else "an N x d table of floats"
        raise ValueError(f"{network} takes {wanted}, got shape {items.shape} of {items.dtype}.")


def _as_tensor(items: NDArray[Any], device: torch.device) -> Tensor:
    """Embeddings as they are; images scaled as the paper's, by mean 0.5 and deviation 0.5."""
    if any(stride < 0 for stride in items.strides):
        items = np.ascontiguousarray(items)
    with warnings.catch_warnings():
        # Memory maps and snapshots cannot be written; nobody does.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        tensor = torch.from_numpy(items)
    if items.ndim == 2:
        return tensor.to(device, torch.float32)
    images = tensor.to(device)
    channels_first = images.permute(0, 3, 1, 2).to(torch.float32)
    return channels_first.div_(127.5).sub_(1).contiguous(memory_format=torch.channels_last)
