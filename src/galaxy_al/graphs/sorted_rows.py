"""The rows of a part of the pool, sorted for some classes' rankings.

The part is cut into chunks of 65,536 rows. In each chunk the rows are put in the order of a 16-bit
code (`sort_keys.py`) that never contradicts the ranking: so few bits are sorted by counting. The
codes are cut into buckets; how many rows lie below a bucket is known, and a bucket is put in exact
order when it is first looked into.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.places import Nodes, Place, exact_order, place_of, scores_of
from galaxy_al.graphs.sort_keys import Codes, Floats, Scratch
from galaxy_al.shards import Rows, row_blocks
from galaxy_al.system.threads import n_threads

CHUNK = 1 << 16
_BLOCK_CELLS = 1 << 17  # cells worked on at once: the temporaries stay in the cache


class Scored(NamedTuple):
    """Some nodes, and what their places are made of."""

    nodes: NDArray[np.intp]
    p: NDArray[np.float64]
    top: NDArray[np.float64]

    def in_order(self) -> NDArray[np.intp]:
        """The nodes in the order of the ranking."""
        by_node = self.nodes.argsort(kind="stable")
        nodes = self.nodes[by_node]
        return nodes[exact_order(self.p[by_node], self.top[by_node], nodes)]


@dataclass(frozen=True)
class _SortedClass:
    """One class's rows in the order of their codes.

    Parameters
    ----------
    rows
        The rows of each chunk in that order.
    firsts
        Where each bucket begins in each chunk, and after the last bucket where the chunk ends.
    """

    rows: NDArray[np.uint16]
    firsts: NDArray[np.int32]


class SortedRows:
    """A part of the pool, sorted for some classes."""

    def __init__(self, part: Rows, classes: Mapping[int, _SortedClass]) -> None:
        self._part, self._classes = part, classes
        self._bases = np.arange(0, len(part.values), CHUNK)
        self._ordered: dict[tuple[int, int], Nodes] = {}

    def starts(self, target: int) -> NDArray[np.int64]:
        """How many rows of the part lie below each bucket of a class, and how many there are."""
        starts: NDArray[np.int64] = self._classes[target].firsts.sum(axis=1, dtype=np.int64)
        return starts

    def in_order(self, target: int, bucket: int) -> Nodes:
        """The nodes of a bucket in the order of the ranking."""
        if (target, bucket) not in self._ordered:
            rows = self._gather(target, bucket)
            if len(rows) > 1:
                rows.sort()
                rows = rows[exact_order(*scores_of(self._part.values, rows, target), rows)]
            self._ordered[target, bucket] = (rows + self._part.start).astype(
                np.uint32 if self._part.stop <= 1 << 32 else np.int64
            )
        return self._ordered[target, bucket]

    def scored(self, target: int, bucket: int, low: int = 0, high: int | None = None) -> Scored:
        """The nodes of a bucket, or those between two positions in it, with their scores."""
        if high is None:
            rows = self._gather(target, bucket)
        else:
            nodes = self.in_order(target, bucket)[low:high]
            rows = nodes.astype(np.intp) - self._part.start
        return Scored(rows + self._part.start, *scores_of(self._part.values, rows, target))

    def place(self, target: int, node: int) -> Place:
        """The place of a node of this part in a class's ranking."""
        return place_of(self._part.values[node - self._part.start].tolist(), target, node)

    def position(self, target: int, bucket: int, place: Place) -> int:
        """How many nodes of a bucket lie below a place."""
        nodes = self.in_order(target, bucket)
        return bisect_left(nodes, place, key=lambda node: self.place(target, int(node)))

    def _gather(self, target: int, bucket: int) -> NDArray[np.intp]:
        """The rows of a bucket."""
        made = self._classes[target]
        first, last = made.firsts[bucket : bucket + 2]
        if len(first) == 1:
            return made.rows[first[0] : last[0]].astype(np.intp)
        count = last - first
        shift = (self._bases + first - count.cumsum() + count).repeat(count)
        shift += np.arange(len(shift))
        rows: NDArray[np.intp] = made.rows.take(shift) + self._bases.repeat(count)
        return rows


def sort_rows(
    codes: Codes, edges: Mapping[int, NDArray[np.uint16]], absent: NDArray[np.intp], part: Rows
) -> SortedRows:
    """Sort a part of the pool for some classes.

    Chunks are sorted in parallel, on as many cores as the machine has or as the environment
    variable ``OMP_NUM_THREADS`` says.

    Parameters
    ----------
    edges
        Each bucket's lowest code, ascending from 0, for each class.
    absent
        Nodes that are not ranked, ascending.
    """
    proba = part.values
    first, last = absent.searchsorted([part.start, part.stop])
    builders = [_Builder(len(proba), of_class) for of_class in edges.values()]
    missing = absent[first:last] - part.start

    def sort_chunk(bounds: tuple[int, int]) -> None:
        low, high = missing.searchsorted(bounds)
        for builder, of_class in zip(builders, _codes_of(proba, codes, *bounds)):
            builder.add_chunk(bounds[0], of_class, missing[low:high] - bounds[0])

    chunks = list(row_blocks(len(proba), CHUNK))
    if len(chunks) == 1:
        sort_chunk(chunks[0])
    else:
        # Each thread holds a chunk's codes: all together at most a quarter of the table.
        most = max(proba.nbytes // (4 * CHUNK * 2 * len(edges)), 2)
        with ThreadPoolExecutor(min(n_threads(), most)) as threads:
            list(threads.map(sort_chunk, chunks))
    return SortedRows(part, {k: builder.sorted() for k, builder in zip(edges, builders)})


class _Builder:
    """Collects the sorted chunks of one class."""

    def __init__(self, n_rows: int, edges: NDArray[np.uint16]) -> None:
        self._edges = edges
        self._rows = np.empty(n_rows, dtype=np.uint16)
        self._firsts = np.empty((len(edges) + 1, -(-n_rows // CHUNK)), dtype=np.int32)

    def add_chunk(self, start: int, codes: NDArray[np.uint16], missing: NDArray[np.intp]) -> None:
        """Add the chunk that starts at a row, without the rows that are missing."""
        order = codes.argsort(kind="stable")
        if len(missing):
            order = order[~np.isin(order, missing)]
        self._rows[start : start + len(order)] = order
        self._firsts[:-1, start // CHUNK] = codes[order].searchsorted(self._edges)
        self._firsts[-1, start // CHUNK] = len(order)

    def sorted(self) -> _SortedClass:
        """What was collected, when all chunks are there."""
        for array in (self._rows, self._firsts):
            array.flags.writeable = False
        return _SortedClass(self._rows, self._firsts)


def _codes_of(proba: Floats, codes: Codes, start: int, stop: int) -> NDArray[np.uint16]:
    """The codes of the rows of a chunk, one row per class."""
    found = np.empty((len(codes.classes), stop - start), dtype=np.uint16)
    n_rows = max(_BLOCK_CELLS // proba.shape[1], 64)
    scratch = Scratch(proba[start : min(start + n_rows, stop)], codes.classes)
    for low, high in row_blocks(stop - start, n_rows):
        found[:, low:high] = codes.many(proba[start + low : start + high], scratch)
    return found
