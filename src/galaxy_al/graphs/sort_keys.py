"""16-bit codes that grow along a class's ranking and never contradict its order.

An example that the model gives to another class is coded by its margin, one that it gives to the
class itself (margin 0) above all those by max p. Both lie between 0 and 1 (add 1 to the margin),
and pools crowd at the ends: so they are first turned into integers that behave like the logit,
made of the bits of floats, which grow like the logarithm. What a sample of the pool spans then
fills the 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int32]

N_CODES = 1 << 16
_HALF_CODES = N_CODES // 2
_HALF = np.float32(0.5).view(np.int32)
_FLOAT, _INT = Struct("f"), Struct("i")


@dataclass(frozen=True)
class _Fit:
    """The floor and the shift that bring the integers seen in a sample into 15 bits."""

    floor: int
    shift: int

    @classmethod
    def to(cls, seen: Ints) -> _Fit:
        if not len(seen):
            return cls(0, 0)
        low, high = int(seen.min()), int(seen.max())
        return cls(low, max((high - low).bit_length() - 15, 0))


class Codes:
    """The codes of some classes on one pool, with the finest steps that hold a sample of it."""

    def __init__(self, sample: Floats, classes: Sequence[int]) -> None:
        margins, own, tops = _logits(sample, classes, Scratch(sample, classes))
        fits = [_Fit.to(row[~mine]) for row, mine in zip(margins, own)]
        self.classes = classes
        self._floors = np.array([[fit.floor] for fit in fits], dtype=np.int32)
        self._shifts = np.array([[fit.shift] for fit in fits], dtype=np.int32)
        self._by_margin = dict(zip(classes, fits))
        self._by_top = _Fit.to(tops)

    def many(self, rows: Floats, scratch: Scratch | None = None) -> NDArray[np.int32]:
        """The codes of n rows of the table, a row a class; they lie in the scratch memory."""
        scratch = scratch or Scratch(rows, self.classes)
        codes, own, above = _logits(rows, self.classes, scratch)
        codes -= self._floors
        codes >>= self._shifts
        np.minimum(codes, _HALF_CODES - 1, out=codes)
        np.maximum(codes, 0, out=codes)
        above -= np.int32(self._by_top.floor)
        above >>= np.int32(self._by_top.shift)
        np.minimum(above, _HALF_CODES, out=above)
        np.maximum(above, 1, out=above)
        for of_class, mine in zip(codes, own):
            np.add(of_class, above, out=of_class, where=mine)
        return codes

    def one(self, row: list[float], target: int) -> int:
        """The same for one example and class: `many` costs too much for a single one."""
        p, top = row[target], max(row)
        fit = self._by_margin[target]
        code = (_logit(p + (1 - top), top - p) - fit.floor) >> fit.shift
        code = min(max(code, 0), _HALF_CODES - 1)
        if p < top:
            return code
        above = (_logit(top, 1 - top) - self._by_top.floor) >> self._by_top.shift
        return code + min(max(above, 1), _HALF_CODES)


class Scratch:
    """Memory to make codes in, used again and again: fresh pages cost more than the arithmetic.

    Parameters
    ----------
    rows
        As many rows as there will be at most.
    """

    def __init__(self, rows: Floats, classes: Sequence[int]) -> None:
        n_rows, n_classes = rows.shape
        self.columns = np.empty((n_classes, n_rows), rows.dtype)
        self.top, self.below_one = np.empty((2, n_rows), rows.dtype)
        self.tops, self.rests_of_tops = np.empty((2, n_rows), np.float32)
        self.values, self.rests = np.empty((2, len(classes), n_rows), np.float32)
        self.own = np.empty((len(classes), n_rows), bool)


def _logits(
    rows: Floats, classes: Sequence[int], scratch: Scratch
) -> tuple[Ints, NDArray[np.bool_], Ints]:
    """Integers that grow with the margins, which rows are predicted as the class, and max p."""
    n = len(rows)
    columns, values, rests = (
        part[:, :n] for part in (scratch.columns, scratch.values, scratch.rests)
    )
    top, below_one, own = scratch.top[:n], scratch.below_one[:n], scratch.own[:, :n]
    np.copyto(columns, rows.T)
    columns.max(axis=0, out=top)
    np.subtract(1, top, out=below_one)
    for at, k in enumerate(classes):
        np.add(columns[k], below_one, out=values[at], casting="same_kind")
        np.subtract(top, columns[k], out=rests[at], casting="same_kind")
        np.equal(columns[k], top, out=own[at])
    tops, rests_of_tops = scratch.tops[:n], scratch.rests_of_tops[:n]
    np.copyto(tops, top, casting="same_kind")
    # Rows may sum to a little more than 1.
    np.copyto(rests_of_tops, np.maximum(below_one, 0, out=below_one), casting="same_kind")
    return _logit_bits(values, rests), own, _logit_bits(tops, rests_of_tops)


def _logit_bits(values: NDArray[np.float32], rests: NDArray[np.float32]) -> Ints:
    """Integers that grow with values = 1 - rests, in fine steps near 0 and near 1; in their place.

    Each of the two counts only up to a half, and there it was rounded only once: so the integers
    never contradict the order of the real numbers. A value below 0 counts as 0.
    """
    low, high = values.view(np.int32), rests.view(np.int32)
    np.maximum(low, 0, out=low)
    np.minimum(low, _HALF, out=low)
    np.minimum(high, _HALF, out=high)
    low -= high
    return low


def _logit(value: float, rest: float) -> int:
    return min(_bits(max(value, 0.0)), int(_HALF)) - min(_bits(max(rest, 0.0)), int(_HALF))


def _bits(value: float) -> int:
    bits: int = _INT.unpack(_FLOAT.pack(value))[0]
    return bits
