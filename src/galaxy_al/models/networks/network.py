"""A trained network: the scores, embeddings and last layer of any pool."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from galaxy_al.errors import InvalidArgument
from galaxy_al.models.images import ResizedImages, Size
from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS
from galaxy_al.models.networks.devices import Precision, half_precision
from galaxy_al.models.networks.fast_forms import for_scoring
from galaxy_al.models.networks.resnet import ResNet18
from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import Snapshot, reweighted

NetworkName = Literal["linear", "mlp", "resnet18"]
NETWORKS: tuple[NetworkName, ...] = get_args(NetworkName)

# A class without labels gets this probability, and the others what is left.
FLOOR = 1e-6
_ROWS_AT_ONCE = {"linear": 1 << 16, "mlp": 1 << 16, "resnet18": 1 << 8}
_SIZE_OF_FILES = (224, 224)


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
class Shape:
    """The architecture of a network.

    Parameters
    ----------
    width
        The length of the embeddings it takes.
    hidden
        The width of the MLP's hidden layer.
    image_size
        The height and width of the images it takes.
    """

    network: NetworkName
    n_classes: int
    width: int | None = None
    hidden: int | None = None
    image_size: Size | None = None

    def make(self) -> Any:
        """A new network; its weights come from torch's generator."""
        if self.network == "resnet18":
            network = ResNet18(self.n_classes)
            return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        assert self.width is not None
        if self.network == "linear":
            return LinearHead(self.width, self.n_classes)
        assert self.hidden is not None
        return MLPHead(self.width, self.hidden, self.n_classes)


class Model:
    """A trained network.

    Parameters
    ----------
    counts
        How many labels each class had. The network was trained to count all classes the same; its
        probabilities are multiplied by these.
    precision
        What a ResNet computes in; by default see `half_precision`.
    """

    def __init__(
        self,
        shape: Shape,
        network: Any,
        counts: NDArray[np.int64],
        device: torch.device,
        precision: Precision | None = None,
    ) -> None:
        self.shape, self.network, self.counts, self.device = shape, network, counts, device
        self.precision = precision
        self.seen = np.flatnonzero(counts)

    @property
    def class_priors(self) -> NDArray[np.float64] | None:
        """The share of each class in the labels; None while only one has any."""
        if len(self.seen) < 2:
            return None
        priors: NDArray[np.float64] = self.counts / self.counts.sum()
        return np.maximum(priors, FLOOR)

    @property
    def n_classes(self) -> int:
        """The number K of classes."""
        return self.shape.n_classes

    def proba(self, pool: Any) -> NDArray[np.float32]:
        """The class probabilities of all examples, N x K; the pool is read in blocks."""
        return self._in_pool(self.balanced(pool))

    def balanced(self, pool: Any) -> NDArray[np.float32]:
        """The class probabilities of all examples, as if all classes were as frequent."""
        return self._run(inputs_of(pool, self.shape), None)

    def snapshot(self, pool: Any, labels: NDArray[Any] | None = None) -> Snapshot:
        """What strategies need: scores, the inputs of the last layer, and the last layer."""
        inputs = inputs_of(pool, self.shape)
        embeddings, found = inputs, None
        if self.shape.network != "linear":
            found = np.empty((len(inputs), self.network.head.in_features), dtype=np.float32)
            embeddings = found
        proba = self._in_pool(self._run(inputs, found))
        return Snapshot(
            proba, labels, embeddings, self.last_layer(), class_priors=self.class_priors
        )

    def _in_pool(self, balanced: NDArray[np.float32]) -> NDArray[Any]:
        priors = self.class_priors
        return balanced if priors is None else reweighted(balanced, priors)

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
    def _run(self, inputs: Any, embeddings: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """The scores of all examples; the inputs of the last layer go into a table, if given."""
        network = self._fastest()
        proba = np.empty((len(inputs), self.n_classes), dtype=np.float32)
        for low, high in row_blocks(len(inputs), _ROWS_AT_ONCE[self.shape.network]):
            with half_precision(self.device, self.precision):
                block = as_tensor(inputs[low:high], self.device)
                embedded = network.embed(block).float()
            self._score(embedded, torch.from_numpy(proba[low:high]))
            _check_finite(proba[low:high], low)
            if embeddings is not None:
                embeddings[low:high] = embedded.cpu().numpy()
        return proba

    def _fastest(self) -> Any:
        if self.shape.image_size is None:
            return self.network.eval()
        return for_scoring(self.network, self.shape.image_size)

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


def _check_finite(proba: NDArray[np.float32], first: int) -> None:
    if not np.isfinite(proba.sum()):  # one pass, and a second one only if it fails
        row = first + int(np.argmin(np.isfinite(proba).all(axis=1)))
        raise InvalidArgument(f"Example {row} cannot be scored: its features are not finite.")


def inputs_of(pool: Any, shape: Shape) -> Any:
    """The examples of a pool or an array as the network takes them; they can be sliced."""
    items, kind = getattr(pool, "items", pool), getattr(pool, "kind", None)
    if shape.network != "resnet18":
        if kind not in (None, "embeddings"):
            raise InvalidArgument(
                f"{shape.network} takes embeddings, got {kind}: embed them first."
            )
        table = np.asarray(items)
        if table.ndim != 2 or table.dtype.kind not in "fiu":
            raise _wrong_items(shape.network, "an N x d table of numbers", table)
        if shape.width not in (None, table.shape[1]):
            raise InvalidArgument(
                f"The network takes {shape.width} features, got {table.shape[1]}."
            )
        return table
    if isinstance(items, np.ndarray):
        if (
            items.ndim != 4
            or items.shape[3] != 3
            or not all(items.shape[1:3])
            or items.dtype != np.uint8
        ):
            raise _wrong_items(shape.network, "N x H x W x 3 bytes", items)
        if shape.image_size in (None, items.shape[1:3]):
            return items
    elif kind not in (None, "images"):
        raise InvalidArgument(f"resnet18 takes images, got {kind}.")
    return ResizedImages(items, shape.image_size or _SIZE_OF_FILES)


def image_size_of(inputs: Any) -> Size:
    """The height and width of images that `inputs_of` gave."""
    height, width = inputs.shape[1:3] if isinstance(inputs, np.ndarray) else inputs.size
    return int(height), int(width)


def _wrong_items(network: str, wanted: str, items: NDArray[Any]) -> InvalidArgument:
    return InvalidArgument(f"{network} takes {wanted}, got shape {items.shape} of {items.dtype}.")


def as_tensor(items: NDArray[Any], device: torch.device) -> Tensor:
    """Embeddings as they are; images scaled as the paper's, by mean 0.5 and deviation 0.5."""
    if items.ndim == 2 and items.dtype.str not in ("<f2", "<f4", "<f8"):
        items = items.astype(np.float32)
    if any(stride < 0 for stride in items.strides):
        items = np.ascontiguousarray(items)
    with warnings.catch_warnings():
        # Memory maps and snapshots are read-only; torch does not write to them here.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        tensor = torch.from_numpy(items).to(device)
    return scaled_images(tensor) if tensor.ndim == 4 else tensor.to(torch.float32)


def scaled_images(images: Tensor) -> Tensor:
    """N x H x W x 3 bytes as N x 3 x H x W numbers from -1 to 1."""
    channels_first = images.permute(0, 3, 1, 2).to(torch.float32)
    return channels_first.div_(127.5).sub_(1).contiguous(memory_format=torch.channels_last)


def check_network(model: object) -> None:
    """Refuse a model that `Trainer` did not make."""
    if not isinstance(model, Model):
        raise InvalidArgument(
            f"Expected a network trained by Trainer, got an object of type {type(model).__name__}."
        )
