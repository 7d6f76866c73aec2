"""The cutoff above which the largest values of a column are, also if it lies in shards."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.log_odds import Table
from galaxy_al.shards import Rows, ShardedTable, reduce_rows

_DIGIT = 16  # bits that are looked at in one pass


def cutoff(values: Table | ShardedTable, count: int) -> float:
    """Above this are the largest values, so many; half way to the next, where rounding is harmless.

    Parameters
    ----------
    values
        One column, in single precision if it lies in shards.

    Examples
    --------
    >>> cutoff(np.array([5.0, 1.0, 2.0, 4.0]), 2)
    3.0
    """
    if count >= len(values):
        return -np.inf
    places = len(values) - count - 1, len(values) - count
    if isinstance(values, ShardedTable):
        below, above = (_smallest(values, place) for place in places)
    else:
        below, above = np.partition(values.ravel(), places)[list(places)].tolist()
    return float((below + above) / 2)


def _smallest(values: ShardedTable, place: int) -> float:
    """The value at a place in ascending order: its upper 16 bits first, then the lower ones."""
    upper, before = _digit(values, None, place)
    lower, _ = _digit(values, upper, place - before)
    key = np.array([(upper << _DIGIT) | lower], dtype=np.uint32)
    return float(_values(key)[0])


def _digit(values: ShardedTable, upper: int | None, place: int) -> tuple[int, int]:
    """The digit of the value at a place, and how many values have a lower one."""
    counts = reduce_rows(partial(_count_digits, upper), lambda one, other: one + other, values)
    ends = counts.cumsum()
    digit = int(ends.searchsorted(place, side="right"))
    return digit, int(ends[digit] - counts[digit])


def _count_digits(upper: int | None, rows: Rows) -> NDArray[np.int64]:
    """How often each upper digit occurs; or each lower one, of values with a certain upper one."""
    keys = _keys(rows.values.ravel())
    if upper is None:
        digits = keys >> np.uint32(_DIGIT)
    else:
        digits = keys[keys >> np.uint32(_DIGIT) == upper] & np.uint32((1 << _DIGIT) - 1)
    return np.bincount(digits, minlength=1 << _DIGIT)


def _keys(values: Table) -> NDArray[np.uint32]:
    """Integers in the order of the values: the bits of floats, which descend below 0."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    flips = np.where(bits >> np.uint32(31), np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
    keys: NDArray[np.uint32] = bits ^ flips
    return keys


def _values(keys: NDArray[np.uint32]) -> Table:
    flips = np.where(keys >> np.uint32(31), np.uint32(0x80000000), np.uint32(0xFFFFFFFF))
    values: Table = (keys ^ flips).view(np.float32)
    return values
