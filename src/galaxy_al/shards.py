"""Tables whose rows lie in shards: in this process, or wherever they were made.

Work is sent to the shards, and only small answers come back. The same functions take an array,
which is a table with a single shard.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from galaxy_al.system.threads import run_in_threads

Array = NDArray[Any]
Part = TypeVar("Part")
Other = TypeVar("Other")
Result = TypeVar("Result")

BLOCK = 1 << 10  # rows that are worked on at once
_SMALL = 1 << 22  # a pool up to this size is shuffled to choose from it
_REMEMBERED = 1 << 26  # bytes of rows that were fetched
_BYTES_PER_OBJECT = 256  # that Python takes for an array and its entry in a dictionary
_MANY = 1 << 13  # rows that are fetched together and not remembered


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, from one index on."""

    start: int
    values: Array

    @property
    def stop(self) -> int:
        """The index after the last row."""
        return self.start + len(self.values)

    def open(self) -> Rows:
        """These rows; what lies in a file is opened by its own `open`."""
        return self


class HasRows(Protocol):
    """A shard of a table: rows, or where to get them."""

    def open(self) -> Rows:
        """The rows."""


class Parts(ABC, Generic[Part]):
    """Objects that lie where they were made, in order; what is done with them is done there."""

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

    @abstractmethod
    def map(self, work: Callable[..., Other], *others: Parts[Any]) -> Parts[Other]:
        """What the work makes of each part, and of the same part of the others; it stays there."""

    @abstractmethod
    def some(self, work: Callable[[Part, Any], Result], given: Mapping[int, Any]) -> list[Result]:
        """What the work finds in some parts, by number, with what is given to each."""

    @abstractmethod
    def reduce(
        self, work: Callable[[Part], Result], combine: Callable[[Result, Result], Result]
    ) -> Result:
        """What the work finds in all parts, combined in any order."""


class LocalParts(Parts[Part]):
    """Parts in this process.

    Examples
    --------
    >>> parts = LocalParts([1, 2, 3]).map(lambda part: 10 * part)
    >>> parts.reduce(lambda part: part + 1, lambda one, other: one + other)
    63
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts)

    def map(self, work: Callable[..., Other], *others: Parts[Any]) -> Parts[Other]:
        """As of `Parts`."""
        lists = [other._parts for other in others if isinstance(other, LocalParts)]
        return LocalParts([work(*parts) for parts in zip(self._parts, *lists)])

    def some(self, work: Callable[[Part, Any], Result], given: Mapping[int, Any]) -> list[Result]:
        """As of `Parts`."""
        return [work(self._parts[number], value) for number, value in given.items()]

    def reduce(
        self, work: Callable[[Part], Result], combine: Callable[[Result, Result], Result]
    ) -> Result:
        """As of `Parts`."""
        return reduce(combine, map(work, self._parts))


class ShardedTable:
    """A table whose rows lie in shards. Rows by index are fetched; the rest stays where it is.

    Parameters
    ----------
    parts
        The shards, in order.
    starts
        The index of the first row of each, and after the last one the number of rows.

    Examples
    --------
    >>> table = sharded(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    >>> table.shape, table[[2, 0]].tolist()
    ((3, 2), [[4.0, 5.0], [0.0, 1.0]])
    """

    ndim = 2

    def __init__(
        self, parts: Parts[Any], starts: Sequence[int], n_columns: int, dtype: np.dtype[Any]
    ) -> None:
        self.parts = parts
        self.starts = np.asarray(starts, dtype=np.int64)
        self.shape = int(self.starts[-1]), n_columns
        self.dtype = np.dtype(dtype)
        bytes_per_row = n_columns * self.dtype.itemsize + _BYTES_PER_OBJECT
        self._remembered = _Remembered(_REMEMBERED // bytes_per_row)

    def __len__(self) -> int:
        return self.shape[0]

    def __copy__(self) -> ShardedTable:
        return self

    def __getitem__(self, rows: int | np.integer[Any] | ArrayLike) -> Array:
        """A row by its index, or the rows of some indices."""
        if isinstance(rows, int | np.integer):
            found: Array = self._fetch(np.array([rows], dtype=np.int64))[0]
            return found
        return self._fetch(np.asarray(rows, dtype=np.int64))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All rows in one array, for what cannot do with less."""
        found = np.empty(self.shape, self.dtype if dtype is None else dtype)
        for number, (low, high) in enumerate(pairwise(self.starts.tolist())):
            found[low:high] = self.shard(number)
        return found

    def shard(self, number: int) -> Array:
        """All rows of a shard."""
        (rows,) = self.parts.some(_all_rows, {number: None})
        return rows

    def map(
        self,
        work: Callable[..., Rows],
        *others: ShardedTable,
        n_columns: int,
        dtype: Any = np.float32,
    ) -> ShardedTable:
        """A table with the same shards, of what the work makes of each."""
        made = self.parts.map(partial(_on_rows, work), *(other.parts for other in others))
        return ShardedTable(made, self.starts.tolist(), n_columns, np.dtype(dtype))

    def _fetch(self, rows: NDArray[np.int64]) -> Array:
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"The table has rows 0 to {len(self) - 1}, not all of {rows}.")
        if len(rows) > _MANY:
            return self._fetch_new(rows)
        known = [self._remembered.get(row) for row in rows.tolist()]
        new = np.array([at for at, values in enumerate(known) if values is None], dtype=np.intp)
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        for at, values in enumerate(known):
            if values is not None:
                found[at] = values
        found[new] = self._fetch_new(rows[new])
        for at in new.tolist():
            self._remembered.put(int(rows[at]), found[at].copy())
        return found

    def _fetch_new(self, rows: NDArray[np.int64]) -> Array:
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        order = rows.argsort(kind="stable")
        bounds = rows[order].searchsorted(self.starts)
        places = {
            number: order[low:high]
            for number, (low, high) in enumerate(pairwise(bounds.tolist()))
            if low < high
        }
        given = {number: rows[at] for number, at in places.items()}
        for at, values in zip(places.values(), self.parts.some(_rows_at, given)):
            found[at] = values
        return found


class _Remembered:
    """The rows that were fetched last; questions come back to the same ones."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = max(most, 1), Lock()
        self._rows: OrderedDict[int, Array] = OrderedDict()

    def get(self, row: int) -> Array | None:
        with self._lock:
            found = self._rows.get(row)
            if found is not None:
                self._rows.move_to_end(row)
            return found

    def put(self, row: int, values: Array) -> None:
        with self._lock:
            self._rows[row] = values
            if len(self._rows) > self._most:
                self._rows.popitem(last=False)


Table = NDArray[Any] | ShardedTable
"""Rows in one array or in shards."""


def sharded(array: Array, starts: Sequence[int]) -> ShardedTable:
    """An array as a table in shards, in this process.

    Parameters
    ----------
    starts
        Where the shards begin, and after the last one the number of rows.
    """
    shards = [Rows(low, array[low:high]) for low, high in pairwise(starts)]
    return ShardedTable(LocalParts(shards), starts, array.shape[1], array.dtype)


def parts_of(table: Table) -> Parts[Any]:
    """The shards of a table; an array is one."""
    return table.parts if isinstance(table, ShardedTable) else LocalParts([Rows(0, table)])


def map_rows(
    work: Callable[..., Array],
    table: Table,
    *others: Table,
    n_columns: int,
    dtype: Any = np.float32,
) -> Any:
    """What the work makes of the rows of a table, as a table of the same kind.

    Parameters
    ----------
    work
        Gets blocks of exactly 1,024 rows, filled up with zeros, and of the same rows of the others.
        They begin at the same rows however the table is cut into shards: what a matrix product
        makes of a row depends, in its last digits, on where the row is and how many there are.

    Examples
    --------
    >>> map_rows(lambda rows: rows @ np.ones((2, 1)), np.eye(2), n_columns=1).tolist()
    [[1.0], [1.0]]
    """
    in_blocks = partial(_in_blocks, work, n_columns, dtype)
    return map_parts(in_blocks, table, *others, n_columns=n_columns, dtype=dtype)


def map_parts(
    work: Callable[..., Rows], table: Table, *others: Table, n_columns: int, dtype: Any = np.float32
) -> Any:
    """As `map_rows`, for work on whole shards that treats every row alike wherever it is."""
    if not isinstance(table, ShardedTable):
        return work(*(Rows(0, np.asarray(each)) for each in (table, *others))).values
    rest = [other for other in others if isinstance(other, ShardedTable)]
    return table.map(work, *rest, n_columns=n_columns, dtype=dtype)


def reduce_rows(
    work: Callable[[Rows], Result], combine: Callable[[Result, Result], Result], table: Table
) -> Result:
    """What the work finds in each shard of a table, combined in their order.

    Examples
    --------
    >>> table = sharded(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    >>> float(reduce_rows(lambda rows: rows.values.sum(), lambda one, other: one + other, table))
    15.0
    """
    return parts_of(table).reduce(partial(_on_rows, work), combine)


def row_blocks(size: int, rows: int) -> Iterator[tuple[int, int]]:
    """The half-open ranges that cut ``size`` rows into blocks of ``rows``."""
    for start in range(0, size, rows):
        yield start, min(start + rows, size)


def random_rows(size: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Different random indices in random order, ``count`` or all, in memory that stays small."""
    if size <= _SMALL:
        return rng.permutation(size)[:count]
    return rng.choice(size, min(count, size), replace=False)


def _in_blocks(work: Callable[..., Array], n_columns: int, dtype: Any, *tables: Rows) -> Rows:
    first = tables[0]
    made = np.empty((len(first.values), n_columns), dtype)

    def compute(bounds: tuple[int, int]) -> None:
        low, high = bounds
        before = low % BLOCK
        here = slice(low - first.start, high - first.start)
        blocks = [filled_block(rows.values[here], before) for rows in tables]
        made[here] = work(*blocks)[before : before + high - low]

    run_in_threads(compute, _same_blocks(first.start, first.stop))
    return Rows(first.start, made)


def _same_blocks(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Ranges between two rows that end at multiples of the block."""
    while start < stop:
        end = min(start - start % BLOCK + BLOCK, stop)
        yield start, end
        start = end


def filled_block(values: Array, before: int = 0) -> Array:
    """At most 1,024 rows, filled up with zeros before and after them."""
    if len(values) == BLOCK:
        return values
    filled = np.zeros((BLOCK, *values.shape[1:]), values.dtype)
    filled[before : before + len(values)] = values
    return filled


def _on_rows(work: Callable[..., Result], *parts: HasRows) -> Result:
    return work(*(part.open() for part in parts))


def _rows_at(part: HasRows, rows: NDArray[np.int64]) -> Array:
    opened = part.open()
    if isinstance(opened.values.base, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        opened.values.base.madvise(mmap.MADV_RANDOM)  # do not read what lies around
    found: Array = opened.values[rows - opened.start]
    return found


def _all_rows(part: HasRows, _: None) -> Array:
    return part.open().values
