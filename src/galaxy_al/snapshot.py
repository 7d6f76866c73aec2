"""What a strategy may see of the pool at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from galaxy_al.errors import InvalidArgument

UNLABELED = -1

View = Literal["balanced", "pool"]
VIEWS: tuple[View, ...] = get_args(View)

# A row of probabilities may be off by this much: enough for half precision and for tables
# that were rounded to four digits, too little for raw scores or logits.
SUM_TOLERANCE = 1e-3

_ROWS_AT_ONCE = 1 << 16
_MOST = 1e15  # of an embedding: sums of squares stay finite in single precision


@dataclass(frozen=True, init=False, eq=False)
class Snapshot:
    """The pool as the model sees it and the labels known so far, validated once.

    No array is copied that is already an array of the right kind: float32 and float64 tables
    of any memory order, and read-only memory maps, are used where they lie. The snapshot is
    read-only; if you change an array that you passed in, strategies see the change.

    Parameters
    ----------
    proba
        N x K class probabilities: how likely each class is in the pool.
    labels
        N integers, the class of each example, ``-1`` where it is unknown.
        By default nothing is labelled.
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
    labels: NDArray[np.integer[Any]]
    embeddings: NDArray[np.floating[Any]] | None
    head: tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]] | None
    other: int
    skipped: NDArray[np.integer[Any]]
    class_priors: NDArray[np.float64] | None
    view: View

    def __init__(
        self,
        proba: ArrayLike,
        labels: ArrayLike | None = None,
        embeddings: ArrayLike | None = None,
        head: tuple[ArrayLike, ArrayLike] | None = None,
        other: int | None = None,
        skipped: ArrayLike | Set[int] = (),
        class_priors: ArrayLike | None = None,
        view: View = "balanced",
    ) -> None:
        table = _checked_proba(proba)
        size, n_classes = table.shape
        checked = {
            "proba": table,
            "labels": _checked_labels(labels, size, n_classes),
            "embeddings": _checked_embeddings(embeddings, size),
            "head": _checked_head(head, n_classes),
            "other": _checked_other(other, n_classes),
            "skipped": _checked_indices(skipped, size),
            "class_priors": _checked_priors(class_priors, n_classes),
            "view": checked_view(view),
        }
        self.__dict__.update(checked)
        if self.head is not None and self.embeddings is not None:
            width, expected = self.head[0].shape[1], self.embeddings.shape[1]
            if width != expected:
                raise InvalidArgument(
                    f"head must have weights for {expected} features like embeddings, got {width}."
                )
        both = self.skipped[self.labels[self.skipped] != UNLABELED]
        if len(both):
            raise InvalidArgument(
                f"Example {both[0]} is skipped and has a label: it can only be one."
            )

    @property
    def size(self) -> int:
        """The number N of examples in the pool."""
        return int(self.proba.shape[0])

    @property
    def n_classes(self) -> int:
        """The number K of classes."""
        return int(self.proba.shape[1])

    @cached_property
    def balanced(self) -> NDArray[np.floating[Any]]:
        """N x K class probabilities as if all classes were as frequent."""
        if self.class_priors is None:
            return self.proba
        return _frozen(balanced_proba(self.proba, self.class_priors))

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
        for start, stop in row_blocks(self.size, _ROWS_AT_ONCE >> 4):
            largest = np.abs(self.embeddings[start:stop]).max(axis=1)
            usable = largest.astype(np.float64) < _MOST
            if not usable.all():
                bad = start + int(usable.argmin())
                raise InvalidArgument(
                    f"embeddings must be finite and below {_MOST:g}; row {bad} is not."
                )
        if self.embeddings.dtype in (np.float32, np.float64):
            return self.embeddings
        wider = np.float32 if self.embeddings.dtype.itemsize < 4 else np.float64
        return _frozen(self.embeddings.astype(wider))

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
        found = [
            start + np.flatnonzero(self.labels[start:stop] != UNLABELED)
            for start, stop in row_blocks(self.size, _ROWS_AT_ONCE)
        ]
        return np.concatenate(found)

    def askable(self) -> NDArray[np.intp]:
        """The indices that are neither labelled nor skipped, ascending."""
        free = self.labels == UNLABELED
        free[self.skipped] = False
        return np.flatnonzero(free)

    def updated(self, labels: Mapping[int, int], skipped: Set[int]) -> Snapshot:
        """The same pool and model with exactly these labels and these skipped examples."""
        table = np.full(self.size, UNLABELED, dtype=np.int64)
        if labels:
            table[list(labels)] = list(labels.values())
        later = object.__new__(Snapshot)  # what is taken over was checked already
        later.__dict__.update(self.__dict__, labels=_frozen(table))
        later.__dict__["skipped"] = _frozen(np.array(sorted(skipped), dtype=np.intp))
        return later

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
        return Snapshot, tuple(getattr(self, field.name) for field in fields(self))


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
    table = np.empty_like(proba)
    for start, stop in row_blocks(len(proba), _ROWS_AT_ONCE):
        rows = proba[start:stop] * factors.astype(proba.dtype)
        total = rows.sum(axis=1, keepdims=True)
        is_empty = total[:, 0] <= 0
        if is_empty.any():
            rows[is_empty], total[is_empty] = proba[start:stop][is_empty], 1
        np.divide(rows, total, out=table[start:stop])
    return table


def checked_view(view: str) -> View:
    """A view that there is."""
    if view not in VIEWS:
        raise InvalidArgument(f"Unknown view {view!r}. Choose from: {', '.join(VIEWS)}.")
    return view


def row_blocks(size: int, rows: int) -> Iterator[tuple[int, int]]:
    """The half-open ranges that cut ``size`` rows into blocks of ``rows``."""
    for start in range(0, size, rows):
        yield start, min(start + rows, size)


def checked_table(embeddings: ArrayLike) -> NDArray[np.floating[Any]]:
    """Embeddings as a table of finite floats."""
    array = np.asarray(embeddings)
    if array.ndim != 2 or not len(array) or array.dtype.kind not in "fiu":
        raise InvalidArgument(
            f"embeddings must be a table of numbers with N >= 1 rows, "
            f"got shape {array.shape} of {array.dtype}."
        )
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InvalidArgument(f"embeddings must be finite; row {bad[0]} is not.")
    return array


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _unmasked(values: ArrayLike, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidArgument(f"{name} must not be a masked array: say what the masked ones are.")
    return np.asarray(values)


def _checked_proba(proba: ArrayLike) -> NDArray[np.floating[Any]]:
    table = _unmasked(proba, "proba")
    if table.dtype.kind not in "fiu":
        raise InvalidArgument(f"proba must be a table of numbers, got {table.dtype}.")
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise InvalidArgument(
            f"proba must be a table of N >= 1 examples by K >= 2 classes, got shape {table.shape}."
        )
    ones = np.ones(table.shape[1], dtype=table.dtype)
    for start, stop in row_blocks(table.shape[0], _ROWS_AT_ONCE):
        rows = table[start:stop]
        # A NaN or an infinity in a row ends up in its sum, and no comparison with it holds.
        with np.errstate(invalid="ignore"):
            sums = rows @ ones
            sums_to_one = np.abs(sums - 1) <= SUM_TOLERANCE
        if not (sums_to_one.all() and rows.min() >= 0):
            bad = int(np.flatnonzero(~sums_to_one | (rows < 0).any(axis=1))[0])
            raise InvalidArgument(
                f"proba must hold probabilities, each row at least 0 and summing to 1; "
                f"row {start + bad} is {_shown(rows[bad])}, summing to {sums[bad]:.6g}."
            )
    return _frozen(table)


def _shown(row: NDArray[Any]) -> str:
    return np.array2string(row, threshold=8, precision=6, separator=", ")


def _checked_labels(
    labels: ArrayLike | None, size: int, n_classes: int
) -> NDArray[np.integer[Any]]:
    if labels is None:
        return _frozen(np.full(size, UNLABELED, dtype=np.int64))
    array = _unmasked(labels, "labels")
    if array.shape != (size,):
        raise InvalidArgument(f"labels must have shape ({size},) like proba, got {array.shape}.")
    if array.dtype.kind not in "iu":
        raise InvalidArgument(f"labels must be integers, got dtype {array.dtype}.")
    for start, stop in row_blocks(size, _ROWS_AT_ONCE):
        block = array[start:stop]
        if block.min() < UNLABELED or block.max() >= n_classes:
            bad = int(np.flatnonzero((block < UNLABELED) | (block >= n_classes))[0])
            raise InvalidArgument(
                f"labels must be classes 0 to {n_classes - 1}, or {UNLABELED} for unknown; "
                f"labels[{start + bad}] is {block[bad]}."
            )
    return _frozen(array)


def _checked_embeddings(
    embeddings: ArrayLike | None, size: int
) -> NDArray[np.floating[Any]] | None:
    if embeddings is None:
        return None
    array = np.asarray(embeddings)
    if array.ndim != 2 or array.shape[0] != size or not array.shape[1] or array.dtype.kind != "f":
        raise InvalidArgument(
            f"embeddings must be a table of floats with {size} rows like proba, and a column, "
            f"got shape {array.shape} of {array.dtype}."
        )
    return _frozen(array)


def _checked_head(
    head: tuple[ArrayLike, ArrayLike] | None, n_classes: int
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]] | None:
    if head is None:
        return None
    weights, bias = (np.asarray(part, dtype=np.float64) for part in head)
    if weights.ndim != 2 or weights.shape[0] != n_classes or bias.shape != (n_classes,):
        raise InvalidArgument(
            f"head must be (W, c) of shapes ({n_classes}, d) and ({n_classes},), "
            f"got {weights.shape} and {bias.shape}."
        )
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        raise InvalidArgument("head must be finite.")
    return _frozen(weights), _frozen(bias)


def _checked_other(other: int | None, n_classes: int) -> int:
    if other is None:
        return n_classes - 1
    if not (isinstance(other, (int, np.integer)) and 0 <= other < n_classes):
        raise InvalidArgument(f"other must be a class 0 to {n_classes - 1}, got {other!r}.")
    return int(other)


def _checked_priors(class_priors: ArrayLike | None, n_classes: int) -> NDArray[np.float64] | None:
    if class_priors is None:
        return None
    array = np.asarray(class_priors, dtype=np.float64)
    if array.shape != (n_classes,) or not (array >= 0).all() or not 0 < array.sum() < np.inf:
        raise InvalidArgument(
            f"class_priors must be {n_classes} numbers of at least 0, not all 0, "
            f"got {class_priors!r}."
        )
    return _frozen(array)


def _checked_indices(indices: ArrayLike | Set[int], size: int) -> NDArray[np.integer[Any]]:
    array = np.asarray(sorted(indices) if isinstance(indices, Set) else indices)
    if array.size == 0:
        array = array.astype(np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidArgument(
            f"skipped must be a list of indices, got {array.dtype} {array.shape}."
        )
    if array.size and not (array.min() >= 0 and array.max() < size):
        raise InvalidArgument(
            f"skipped must hold indices 0 to {size - 1}, got {array.min()} to {array.max()}."
        )
    return _frozen(array)
