"""What a snapshot accepts: each check returns what it was given, or says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.shards import Rows, ShardedTable, row_blocks

UNLABELED = -1

View = Literal["balanced", "pool"]
VIEWS: tuple[View, ...] = get_args(View)

# A row of probabilities may be off by this much: enough for half precision and for tables
# that were rounded to four digits, too little for raw scores or logits.
SUM_TOLERANCE = 1e-3

ROWS_AT_ONCE = 1 << 16
_MOST = 1e15  # of an embedding: sums of squares stay finite in single precision


def checked_view(view: str) -> View:
    """A view that there is."""
    if view not in VIEWS:
        raise InvalidArgument(f"Unknown view {view!r}. Choose from: {', '.join(VIEWS)}.")
    return view


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


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, read-only."""
    view = array.view()
    view.flags.writeable = False
    return view


def _unmasked(values: ArrayLike, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidArgument(f"{name} must not be a masked array: say what the masked ones are.")
    return np.asarray(values)


def checked_proba(proba: ArrayLike | ShardedTable) -> NDArray[np.floating[Any]]:
    """A table of probabilities; what is in shards is checked by those who read it anyway."""
    if isinstance(proba, ShardedTable):
        _check_proba_shape(proba.shape)
        return cast(NDArray[np.floating[Any]], proba)
    table = _unmasked(proba, "proba")
    if table.dtype.kind not in "fiu":
        raise InvalidArgument(f"proba must be a table of numbers, got {table.dtype}.")
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    _check_proba_shape(table.shape)
    check_proba_rows(Rows(0, table))
    return frozen(table)


def _check_proba_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] < 1 or shape[1] < 2:
        raise InvalidArgument(
            f"proba must be a table of N >= 1 examples by K >= 2 classes, got shape {shape}."
        )


def check_proba_rows(part: Rows) -> None:
    """Refuse rows that are not probabilities."""
    table = part.values
    ones = np.ones(table.shape[1], dtype=table.dtype)
    for start, stop in row_blocks(len(table), ROWS_AT_ONCE):
        rows = table[start:stop]
        # A NaN or an infinity in a row ends up in its sum, and no comparison with it holds.
        with np.errstate(invalid="ignore"):
            sums = rows @ ones
            sums_to_one = np.abs(sums - 1) <= SUM_TOLERANCE
        if not (sums_to_one.all() and rows.min() >= 0):
            bad = int(np.flatnonzero(~sums_to_one | (rows < 0).any(axis=1))[0])
            raise InvalidArgument(
                f"proba must hold probabilities, each row at least 0 and summing to 1; "
                f"row {part.start + start + bad} is {_shown(rows[bad])}, "
                f"summing to {sums[bad]:.6g}."
            )


def _shown(row: NDArray[Any]) -> str:
    return np.array2string(row, threshold=8, precision=6, separator=", ")


def checked_labels(labels: ArrayLike, size: int, n_classes: int) -> NDArray[np.integer[Any]]:
    """A class for each example, or unknown."""
    array = _unmasked(labels, "labels")
    if array.shape != (size,):
        raise InvalidArgument(f"labels must have shape ({size},) like proba, got {array.shape}.")
    if array.dtype.kind not in "iu":
        raise InvalidArgument(f"labels must be integers, got dtype {array.dtype}.")
    for start, stop in row_blocks(size, ROWS_AT_ONCE):
        block = array[start:stop]
        if block.min() < UNLABELED or block.max() >= n_classes:
            bad = int(np.flatnonzero((block < UNLABELED) | (block >= n_classes))[0])
            raise InvalidArgument(
                f"labels must be classes 0 to {n_classes - 1}, or {UNLABELED} for unknown; "
                f"labels[{start + bad}] is {block[bad]}."
            )
    return frozen(array)


def checked_known(known: Mapping[int, int], size: int, n_classes: int) -> dict[int, int]:
    """The classes of some examples, by index."""
    for index, label in known.items():
        if not (0 <= index < size and 0 <= label < n_classes):
            raise InvalidArgument(
                f"labels must map indices 0 to {size - 1} to classes 0 to {n_classes - 1}, "
                f"got {index!r}: {label!r}."
            )
    return dict(sorted(known.items()))


def checked_embeddings(
    embeddings: ArrayLike | ShardedTable | None, size: int
) -> NDArray[np.floating[Any]] | None:
    """A row for each example, or none at all; what is in it is checked by `check_usable`."""
    if embeddings is None:
        return None
    is_sharded = isinstance(embeddings, ShardedTable)
    array = cast(NDArray[Any], embeddings) if is_sharded else np.asarray(embeddings)
    if array.ndim != 2 or array.shape[0] != size or not array.shape[1] or array.dtype.kind != "f":
        raise InvalidArgument(
            f"embeddings must be a table of floats with {size} rows like proba, and a column, "
            f"got shape {array.shape} of {array.dtype}."
        )
    return array if is_sharded else frozen(array)


def check_usable(part: Rows) -> None:
    """Refuse embeddings that cannot be computed with."""
    for start, stop in row_blocks(len(part.values), ROWS_AT_ONCE >> 4):
        largest = np.abs(part.values[start:stop]).max(axis=1)
        usable = largest.astype(np.float64) < _MOST
        if not usable.all():
            bad = part.start + start + int(usable.argmin())
            raise InvalidArgument(
                f"embeddings must be finite and below {_MOST:g}; row {bad} is not."
            )


def checked_head(
    head: tuple[ArrayLike, ArrayLike] | None, n_classes: int
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]] | None:
    """The last layer, for as many classes."""
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
    return frozen(weights), frozen(bias)


def checked_other(other: int | None, n_classes: int) -> int:
    """The majority class."""
    if other is None:
        return n_classes - 1
    if not (isinstance(other, (int, np.integer)) and 0 <= other < n_classes):
        raise InvalidArgument(f"other must be a class 0 to {n_classes - 1}, got {other!r}.")
    return int(other)


def checked_priors(class_priors: ArrayLike | None, n_classes: int) -> NDArray[np.float64] | None:
    """How frequent the classes are."""
    if class_priors is None:
        return None
    array = np.asarray(class_priors, dtype=np.float64)
    if array.shape != (n_classes,) or not (array >= 0).all() or not 0 < array.sum() < np.inf:
        raise InvalidArgument(
            f"class_priors must be {n_classes} numbers of at least 0, not all 0, "
            f"got {class_priors!r}."
        )
    return frozen(array)


def checked_indices(indices: ArrayLike | Set[int], size: int) -> NDArray[np.integer[Any]]:
    """Indices of examples."""
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
    return frozen(array)
