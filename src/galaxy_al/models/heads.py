"""What can be trained, by name."""

from __future__ import annotations

from typing import Any, Protocol

from galaxy_al.errors import InvalidArgument
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.protocols import AnyHead, TrainsModels
from galaxy_al.models.sklearn_head import HeadTrainer
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.registry import Registry


class MakeTrainer(Protocol):
    """Makes the trainer of a head."""

    def __call__(self, *, n_classes: int, seed: int, needs: tuple[str, ...]) -> TrainsModels:
        """A new trainer.

        Parameters
        ----------
        needs
            What the strategy needs of a snapshot beside scores: ``"embeddings"``, ``"head"``.
        """


def _auto(*, n_classes: int, seed: int, needs: tuple[str, ...]) -> TrainsModels:
    return AutoTrainer(n_classes=n_classes, seed=seed, keep_head="head" in needs)


def _network(name: Any) -> MakeTrainer:
    def make(*, n_classes: int, seed: int, needs: tuple[str, ...]) -> TrainsModels:
        with needs_extra(f"The head {name!r}", "torch"):
            from galaxy_al.models.networks.training import Trainer

        return Trainer(name, n_classes=n_classes, seed=seed)

    return make


NETWORKS = ("linear", "mlp", "resnet18")
HEADS: Registry[MakeTrainer] = Registry(
    "head",
    "galaxy_al.heads",
    {"auto": _auto, **{name: _network(name) for name in NETWORKS}},
)


def make_trainer(
    head: AnyHead, *, n_classes: int, seed: int = 0, needs: tuple[str, ...] = ()
) -> TrainsModels:
    """The trainer of a head.

    Parameters
    ----------
    head
        A name from `HEADS`; a scikit-learn classifier, or a function that makes one from a seed;
        or a trainer, which is returned as it is.
    needs
        What the strategy needs of a snapshot beside scores: ``"embeddings"``, ``"head"``.

    Examples
    --------
    >>> make_trainer("lineer", n_classes=2)
    Traceback (most recent call last):
    ...
    galaxy_al.system.registry.UnknownName: Unknown head 'lineer'. Choose from: auto, linear, ...
    """
    if isinstance(head, str):
        return HEADS[head](n_classes=n_classes, seed=seed, needs=needs)
    if hasattr(head, "predict_proba"):
        from sklearn.base import clone

        make = lambda seed: clone(head)  # noqa: E731
    elif hasattr(head, "fit"):
        return head
    elif callable(head):
        make = head
    else:
        raise InvalidArgument(f"head must be a name, a classifier or make one, got {head!r}.")
    keep_features = "embeddings" in needs
    return HeadTrainer(make, n_classes=n_classes, seed=seed, keep_features=keep_features)
