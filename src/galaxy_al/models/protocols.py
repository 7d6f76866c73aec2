"""What a head, a trainer, a trained model and an embedder must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import Snapshot

Vectors = NDArray[np.float32]


class TrainedModel(Protocol):
    """What a trainer makes."""

    def snapshot(self, pool: Any, labels: NDArray[Any] | None = None) -> Snapshot:
        """The scores of the pool and, for strategies that need them, embeddings and head."""


class TrainsModels(Protocol):
    """A trainer: `galaxy_al.models.networks.training.Trainer`, or one of your own."""

    def fit(self, pool: Any, labels: Mapping[int, int]) -> TrainedModel:
        """Train a new model on the labelled examples."""


@runtime_checkable
class TrainsWeighted(Protocol):
    """A trainer that can let some labels count less than others."""

    def fit_weighted(
        self, pool: Any, labels: Mapping[int, int], weights: Mapping[int, float]
    ) -> TrainedModel:
        """Train on labels of which some count less than 1.

        Parameters
        ----------
        weights
            How much a label counts, by index; those that are not named count fully.
        """


def fit(
    trainer: TrainsModels, pool: Any, labels: Mapping[int, int], weights: Mapping[int, float]
) -> TrainedModel:
    """Train on weighted labels, if the trainer can; otherwise every label counts fully."""
    if weights and isinstance(trainer, TrainsWeighted):
        return trainer.fit_weighted(pool, labels, weights)
    return trainer.fit(pool, labels)


def weights_of(
    known: NDArray[np.intp], weights: Mapping[int, float] | None
) -> NDArray[np.float64] | None:
    """The weights of some labels in their order; None if all count fully.

    Examples
    --------
    >>> weights_of(np.array([3, 5]), {5: 0.5}).tolist()
    [1.0, 0.5]
    """
    if not weights or all(weights.get(i, 1.0) == 1 for i in known.tolist()):
        return None
    return np.array([weights.get(i, 1.0) for i in known.tolist()])


class Head(Protocol):
    """A classifier on embeddings; any of scikit-learn with `predict_proba` will do."""

    classes_: NDArray[Any]

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Any:
        """Learn from labelled embeddings."""

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities of the classes in ``classes_``."""


MakeHead = Callable[[int], Head]
"""Makes a head from a seed."""

AnyHead = str | Head | MakeHead | TrainsModels
"""A name from `HEADS`, a classifier, a function that makes one from a seed, or a trainer."""


class Encoder(Protocol):
    """Turns examples into vectors."""

    def prepare(self, item: Any) -> Any:
        """What the model takes of one example; called by several threads."""

    def embed(self, batch: Sequence[Any]) -> Vectors:
        """The vectors of prepared examples."""


class Embedder(Encoder, Protocol):
    """An encoder, and what there is to know about it.

    Parameters
    ----------
    kind
        The kind of pool that it embeds.
    name
        The name to load it by.
    version
        Differs whenever its vectors would; the cache keeps vectors by it.
    width
        The length of a vector.
    batch_size
        How many examples it prefers to embed at once.
    side
        Images can be as small as this when `prepare` gets them; None is as they are.
    preprocessing
        What is done to an example before the network, for the card of a saved model.
    """

    kind: str
    name: str
    version: str
    width: int
    batch_size: int
    side: int | None
    preprocessing: dict[str, Any]
