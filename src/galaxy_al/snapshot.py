"""What a strategy may see of the pool at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from galaxy_al.checks import (
    ROWS_AT_ONCE,
    SUM_TOLERANCE,
    UNLABELED,
    VIEWS,
    View,
    check_usable,
    checked_embeddings,
    checked_head,
    checked_indices,
    checked_known,
    checked_labels,
    checked_other,
    checked_priors,
    checked_proba,
    checked_table,
    checked_view,
    frozen,
)
from galaxy_al.errors import InvalidArgument
from galaxy_al.free_examples import FreeExamples
from galaxy_al.shards import Rows, ShardedTable, reduce_rows, row_blocks

__all__ = [
    "SUM_TOLERANCE",
    "UNLABELED",
    "VIEWS",
    "Snapshot",
    "View",
    "balanced_proba",
    "checked_table",
    "checked_view",
    "reweighted",
]


@dataclass(frozen=True, init=False, eq=False)
class Snapshot:
    """The pool as the model sees it and the labels known so far, validated once.

    No array is copied that is already an array of the right kind: float32 and float64 tables
    of any memory order, read-only memory maps, and tables in shards are used where they lie. The
    snapshot is read-only; if you change an array that you passed in, strategies see the change.

    Parameters
    ----------
    proba
        N x K class probabilities: how likely each class is in the pool.
    labels
        N integers, the class of each example, ``-1`` where it is unknown; or the classes of those
        that are known, by index. By default nothing is labelled.
    embeddings
        N x d inputs of the model's last layer, for strategies that need them.
    head
        The last layer ``(W, c)``, K x d weights and K biases, for strategies that need it. With
        ``class_priors`` it is the one that counts all classes the same.
    other
        The majority class; by default the last one.
    skipped
        Indices that cannot be labelled and must not be asked.
    class_priors
        How frequent each class is in the pool, by the model; `balanced` divides by it. By default
        ``proba`` already counts all classes the same.
    view
        Which probabilities a strategy asks by: ``"balanced"``, as if all classes were as frequent,
        or ``"pool"``, as they are.

    Examples
    --------
    >>> snapshot = Snapshot([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], labels=[0, -1, -1])
    >>> snapshot.size, snapshot.n_classes
    (3, 2)
    >>> snapshot.askable().tolist()
    [1, 2]
    """

    proba: NDArray[np.floating[Any]]
    embeddings: NDArray[np.floating[Any]] | None
    head: tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]] | None
    other: int
    skipped: NDArray[np.integer[Any]]
    class_priors: NDArray[np.float64] | None
    view: View

    def __init__(
        self,
        proba: ArrayLike | ShardedTable,
        labels: ArrayLike | Mapping[int, int] | None = None,
        embeddings: ArrayLike | ShardedTable | None = None,
        head: tuple[ArrayLike, ArrayLike] | None = None,
        other: int | None = None,
        skipped: ArrayLike | Set[int] = (),
        class_priors: ArrayLike | None = None,
        view: View = "balanced",
    ) -> None:
        table = checked_proba(proba)
        size, n_classes = table.shape
        if labels is None or isinstance(labels, Mapping):
            self.__dict__["_known"] = checked_known(labels or {}, size, n_classes)
        else:
            self.__dict__["labels"] = checked_labels(labels, size, n_classes)
        checked = {
            "proba": table,
            "embeddings": checked_embeddings(embeddings, size),
            "head": checked_head(head, n_classes),
            "other": checked_other(other, n_classes),
            "skipped": checked_indices(skipped, size),
            "class_priors": checked_priors(class_priors, n_classes),
            "view": checked_view(view),
        }
        self.__dict__.update(checked)
        if self.head is not None and self.embeddings is not None:
            width, expected = self.head[0].shape[1], self.embeddings.shape[1]
            if width != expected:
                raise InvalidArgument(
                    f"head must have weights for {expected} features like embeddings, got {width}."
                )
        known = self.known if len(self.skipped) else {}
        for index in self.skipped.tolist():
            if index in known:
                raise InvalidArgument(
                    f"Example {index} is skipped and has a label: it can only be one."
                )

    @property
    def size(self) -> int:
        """The number N of examples in the pool."""
        return int(self.proba.shape[0])

    @property
    def n_classes(self) -> int:
        """The number K of classes."""
        return int(self.proba.shape[1])

    @property
    def is_sharded(self) -> bool:
        """Whether the pool lies in shards."""
        return isinstance(self.proba, ShardedTable)

    @property
    def known(self) -> Mapping[int, int]:
        """The class of each labelled example, by ascending index."""
        if "_known" in self.__dict__:
            known: dict[int, int] = self.__dict__["_known"]
            return known
        indices = self.labeled()
        return dict(zip(indices.tolist(), self.labels[indices].tolist()))

    @cached_property
    def labels(self) -> NDArray[np.integer[Any]]:
        """The class of each example, ``-1`` where it is unknown."""
        table = np.full(self.size, UNLABELED, dtype=np.int64)
        if known := self.known:
            table[list(known)] = list(known.values())
        return frozen(table)

    @property
    def free(self) -> FreeExamples:
        """The examples that are neither labelled nor skipped."""
        return FreeExamples(self.size, [*self.known, *self.skipped.tolist()])

    @cached_property
    def balanced(self) -> NDArray[np.floating[Any]]:
        """N x K class probabilities as if all classes were as frequent."""
        if self.class_priors is None:
            return self.proba
        balanced = balanced_proba(self.proba, self.class_priors)
        return balanced if self.is_sharded else frozen(balanced)

    @property
    def scores(self) -> NDArray[np.floating[Any]]:
        """N x K class probabilities in the snapshot's view: what strategies ask by."""
        return self.balanced if self.view == "balanced" else self.proba

    @cached_property
    def required_embeddings(self) -> NDArray[np.floating[Any]]:
        """The embeddings, checked: present, finite, in a precision to compute in.

        They are checked only here, by the strategies that read them anyway.
        """
        if self.embeddings is None:
            raise InvalidArgument(
                "The snapshot has no embeddings: pass Snapshot(..., embeddings=h)."
            )
        reduce_rows(check_usable, lambda one, _: one, self.embeddings)
        if self.is_sharded or self.embeddings.dtype in (np.float32, np.float64):
            return self.embeddings
        wider = np.float32 if self.embeddings.dtype.itemsize < 4 else np.float64
        return frozen(self.embeddings.astype(wider))

    @property
    def required_head(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """The last layer in the snapshot's view, checked to be present."""
        if self.head is None:
            raise InvalidArgument("The snapshot has no head: pass Snapshot(..., head=(W, c)).")
        weights, bias = self.head
        if self.view == "pool" and self.class_priors is not None:
            bias = bias + np.log(np.where(self.class_priors > 0, self.class_priors, 1))
        return weights, bias

    def labeled(self) -> NDArray[np.intp]:
        """The indices whose label is known, ascending."""
        if "_known" in self.__dict__:
            return np.array(list(self.known), dtype=np.intp)
        found = [
            start + np.flatnonzero(self.labels[start:stop] != UNLABELED)
            for start, stop in row_blocks(self.size, ROWS_AT_ONCE)
        ]
        return np.concatenate(found)

    def askable(self) -> NDArray[np.intp]:
        """The indices that are neither labelled nor skipped, ascending."""
        return self.free.between(0, self.size)

    def updated(self, labels: Mapping[int, int], skipped: Set[int]) -> Snapshot:
        """The same pool and model with exactly these labels and these skipped examples."""
        later = object.__new__(Snapshot)  # what is taken over was checked already
        later.__dict__.update(self.__dict__, _known=dict(sorted(labels.items())))
        later.__dict__["skipped"] = frozen(np.array(sorted(skipped), dtype=np.intp))
        later.__dict__.pop("labels", None)
        return later

    def with_embeddings(self, embeddings: ArrayLike | ShardedTable) -> Snapshot:
        """The same pool and labels with other embeddings, and without a last layer."""
        other = object.__new__(Snapshot)
        checked = checked_embeddings(embeddings, self.size)
        other.__dict__.update(self.__dict__, embeddings=checked, head=None)
        other.__dict__.pop("required_embeddings", None)
        return other

    def in_view(self, view: View) -> Snapshot:
        """The same pool, model and labels in another view.

        Examples
        --------
        >>> snapshot = Snapshot([[0.1, 0.9]], class_priors=[0.1, 0.9])
        >>> snapshot.scores.tolist(), snapshot.in_view("pool").scores.tolist()
        ([[0.5, 0.5]], [[0.1, 0.9]])
        """
        if checked_view(view) == self.view:
            return self
        other = object.__new__(Snapshot)
        other.__dict__.update(self.__dict__, view=view)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come writable out of a pickle: build the snapshot again.
        labels = self.known if "_known" in self.__dict__ else self.labels
        last = self.other, self.skipped, self.class_priors, self.view
        return Snapshot, (self.proba, labels, self.embeddings, self.head, *last)


def balanced_proba(
    proba: NDArray[np.floating[Any]], class_priors: NDArray[np.float64]
) -> NDArray[np.floating[Any]]:
    """Class probabilities as if all classes were as frequent: divided by how frequent they are.

    Examples
    --------
    >>> balanced_proba(np.array([[0.1, 0.9]]), np.array([0.1, 0.9])).tolist()
    [[0.5, 0.5]]
    """
    factors = np.zeros_like(class_priors)
    np.divide(class_priors.max(), class_priors, out=factors, where=class_priors > 0)
    return reweighted(proba, factors)


def reweighted(
    proba: NDArray[np.floating[Any]], factors: NDArray[np.float64]
) -> NDArray[np.floating[Any]]:
    """Each class's probability times a factor, divided by their sum; the same if that is 0."""
    if isinstance(proba, ShardedTable):
        work = partial(_reweighted, factors)
        made: Any = proba.map(work, n_columns=len(factors), dtype=proba.dtype)
        return made
    return _reweighted(factors, Rows(0, proba)).values


def _reweighted(factors: NDArray[np.float64], part: Rows) -> Rows:
    proba = part.values
    table = np.empty_like(proba)
    for start, stop in row_blocks(len(proba), ROWS_AT_ONCE):
        rows = proba[start:stop] * factors.astype(proba.dtype)
        total = rows.sum(axis=1, keepdims=True)
        is_empty = total[:, 0] <= 0
        if is_empty.any():
            rows[is_empty], total[is_empty] = proba[start:stop][is_empty], 1
        np.divide(rows, total, out=table[start:stop])
    return Rows(part.start, table)
