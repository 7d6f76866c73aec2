"""Algorithm 2 of the paper: the rank of every example in each class's ranking.

Class k's ranking is the pool sorted by the margin p_k - max p, ties by max p, then by pool index.
Margins are compared as real numbers, not as rounded differences: with max p = 1 in single
precision, p_k = 1e-9 and p_k = 1e-12 still have their order.

No ranking is ever sorted whole. The pool is cut into shards of 65,536 rows. In each shard the rows
are put in the order of a 16-bit code (`sort_keys.py`) that never contradicts the ranking, packed
with the 16-bit row number, so that one fast sort of integers does it. The codes are cut into
buckets; how many rows lie below a bucket is known, and a bucket is put in exact order when a node
or a rank in it is first looked up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.sort_keys import N_CODES, Codes, Floats, Scratch
from galaxy_al.snapshot import row_blocks
from galaxy_al.system.threads import n_threads

Nodes = NDArray[np.integer[Any]]
Number = TypeVar("Number", float, Floats)

# (margin rounded to double, what the rounding lost, max p, pool index): compares like the ranking.
Place = tuple[float, float, float, int]

SHARD = 1 << 16
_BLOCK_CELLS = 1 << 17  # cells worked on at once: the temporaries stay in the cache
_MANY_ROWS = 4096  # fewer are all sampled, looked through one by one, scored at once
_FINE_ROWS, _COARSE_ROWS = 64, 256  # rows in a bucket, where lookups are likely and elsewhere
_MOST_EDGES = 8192


class Ranking:
    """One class's ranking: the rank of a node, the node of a rank.

    Nodes that were removed do not count: the ranks above them are one lower.

    Parameters
    ----------
    edges
        Each bucket's lowest code, ascending from 0.
    rows
        The rows of each shard in the order of their codes.
    firsts
        Where each bucket begins in each shard, and after the last bucket where the shard ends.
    """

    def __init__(
        self,
        proba: Floats,
        target: int,
        codes: Codes,
        edges: NDArray[np.uint32],
        rows: NDArray[np.uint16],
        firsts: NDArray[np.int32],
    ) -> None:
        self._bases = np.arange(0, len(proba), SHARD)
        self._proba = proba
        self._class = target
        self._codes = codes
        self._edges = edges.tolist()
        self._rows, self._firsts = rows, firsts
        self._starts: list[int] = firsts.sum(axis=1, dtype=np.int64).tolist()
        for array in (self._bases, self._rows, self._firsts):
            array.flags.writeable = False
        self._ranks: dict[int, int] = {}
        self._bucket_of: dict[int, int] = {}
        self._ordered: dict[int, Nodes] = {}
        self._removed: list[int] = []

    def __copy__(self) -> Ranking:
        """Copy what `bounds` sees and what is removed; share the rest."""
        other = Ranking.__new__(Ranking)
        mine = {"_removed": self._removed.copy(), "_ranks": self._ranks.copy()}
        other.__dict__.update(self.__dict__ | mine)
        return other

    def __len__(self) -> int:
        return self._starts[-1] - len(self._removed)

    def rank(self, node: int) -> int:
        """How many nodes lie below this one."""
        rank = self._ranks.get(node)
        if rank is None:
            bucket = self._bucket(node)
            rank = self._starts[bucket] + self._position(self._in_order(bucket), node)
            self._ranks[node] = rank
        return self._closed_up(rank)

    def bounds(self, node: int) -> tuple[int, int]:
        """The lowest and the highest rank the node may have, as far as known without sorting."""
        rank = self._ranks.get(node)
        if rank is not None:
            return self._closed_up(rank), self._closed_up(rank)
        bucket = self._bucket(node)
        low, high = self._starts[bucket], self._starts[bucket + 1] - 1
        return self._closed_up(low), self._closed_up(high)

    def node(self, rank: int) -> int:
        """Which node has this rank."""
        removed = self._removed
        if removed:
            rank += bisect_right(range(len(removed)), rank, key=lambda i: removed[i] - i)
        bucket = bisect_right(self._starts, rank) - 1
        node = int(self._in_order(bucket)[rank - self._starts[bucket]])
        self._ranks[node] = rank
        return node

    def place(self, node: int) -> Place:
        """The place of a node, as a tuple that compares like the ranking."""
        row: list[float] = self._proba[node].tolist()
        top = max(row)
        return (*_difference(row[self._class], top), top, node)

    def remove(self, node: int) -> None:
        """Take a node out of the ranking."""
        self.rank(node)
        insort(self._removed, self._ranks[node])

    def restore(self, node: int) -> None:
        """Put a removed node back to its place."""
        self._removed.remove(self._ranks[node])

    def _closed_up(self, rank: int) -> int:
        return rank - bisect_left(self._removed, rank) if self._removed else rank

    def _bucket(self, node: int) -> int:
        bucket = self._bucket_of.get(node)
        if bucket is None:
            code = self._codes.one(self._proba[node].tolist(), self._class)
            bucket = self._bucket_of[node] = bisect_right(self._edges, code) - 1
        return bucket

    def _position(self, nodes: Nodes, node: int) -> int:
        if len(nodes) > _MANY_ROWS:
            return bisect_left(nodes, self.place(node), key=self.place)
        return int((nodes == node).argmax())

    def _in_order(self, bucket: int) -> Nodes:
        if bucket not in self._ordered:
            nodes = self._gather(bucket)
            if len(nodes) > 1:
                nodes.sort()
                nodes = nodes[_order(*_scores(self._proba, nodes, self._class), nodes)]
            self._ordered[bucket] = nodes.astype(np.uint32)
        return self._ordered[bucket]

    def _gather(self, bucket: int) -> NDArray[np.intp]:
        first, last = self._firsts[bucket : bucket + 2]
        if len(first) == 1:
            return self._rows[first[0] : last[0]].astype(np.intp)
        count = last - first
        shift = (self._bases + first - count.cumsum() + count).repeat(count)
        shift += np.arange(len(shift))
        nodes: NDArray[np.intp] = self._rows.take(shift) + self._bases.repeat(count)
        return nodes


class _Builder:
    """Collects the sorted shards of one class's ranking."""

    def __init__(self, proba: Floats, target: int, codes: Codes, edges: NDArray[np.uint32]) -> None:
        self._proba, self._target, self._codes, self._edges = proba, target, codes, edges
        self._packed_edges = edges << np.uint32(16)
        self._rows = np.empty(len(proba), dtype=np.uint16)
        n_shards = -(-len(proba) // SHARD)
        self._firsts = np.empty((len(edges) + 1, n_shards), dtype=np.int32)

    def add_shard(self, start: int, packed: NDArray[np.uint32]) -> None:
        """Add the codes and rows of the shard that starts at a row."""
        packed.sort()
        self._rows[start : start + len(packed)] = packed
        self._firsts[:-1, start // SHARD] = packed.searchsorted(self._packed_edges)
        self._firsts[-1, start // SHARD] = len(packed)

    def ranking(self) -> Ranking:
        """The ranking, when all shards are there."""
        parts = self._codes, self._edges, self._rows, self._firsts
        return Ranking(self._proba, self._target, *parts)


def build_rankings(
    proba: Floats, wanted: dict[int, list[int]], without: Sequence[int] = ()
) -> dict[int, Ranking]:
    """The rankings of some classes, each in buckets that are sorted when they are looked into.

    The shards are worked on in parallel, on as many cores as the machine has or as the
    environment variable ``OMP_NUM_THREADS`` says.

    Parameters
    ----------
    wanted
        For each class the nodes whose ranks will be looked up first, in the order of the ranking:
        the ends of the gaps. Lookups of these, and between the first and the last, are the fastest.
    without
        Nodes that are not ranked, ascending.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    >>> ranking = build_rankings(proba, {0: [1, 0]})[0]
    >>> [ranking.node(rank) for rank in range(3)]
    [1, 2, 0]
    """
    every = max(len(proba) >> 16, 16 if len(proba) > _MANY_ROWS else 1)
    sample, classes = _sample(proba, every), list(wanted)
    codes = Codes(sample, classes)
    builders = []
    for target, of_sample in zip(classes, codes.many(sample)):
        of_wanted = [codes.one(proba[node].tolist(), target) for node in wanted[target]]
        builders.append(_Builder(proba, target, codes, _edges(of_sample, of_wanted, every)))
    absent = np.array(without, dtype=np.intp)

    def sort_shard(bounds: tuple[int, int]) -> None:
        packed = _packed(proba, codes, *bounds)
        first, last = absent.searchsorted(bounds)
        if first < last:
            packed = np.delete(packed, absent[first:last] - bounds[0], axis=1)
        for builder, keys in zip(builders, packed):
            builder.add_shard(bounds[0], keys)

    shards = list(row_blocks(len(proba), SHARD))
    if len(shards) == 1:
        sort_shard(shards[0])
    else:
        # Each thread holds a shard's integers: all together at most a quarter of the table.
        most = max(proba.nbytes // (4 * SHARD * 4 * len(classes)), 2)
        with ThreadPoolExecutor(min(n_threads(), most)) as threads:
            list(threads.map(sort_shard, shards))
    return {target: builder.ranking() for target, builder in zip(classes, builders)}


def _sample(proba: Floats, every: int) -> Floats:
    """A row out of ``every`` so many, at random, so that no pattern in the pool meets the steps."""
    starts = np.arange(0, len(proba) - every + 1, every)
    sample: Floats = proba[starts + np.random.default_rng(0).integers(every, size=len(starts))]
    return sample


def _packed(proba: Floats, codes: Codes, start: int, stop: int) -> NDArray[np.uint32]:
    """The code and the row in the shard of each row, in one integer; one row per class."""
    packed = np.empty((len(codes.classes), stop - start), dtype=np.uint32)
    n_rows = max(_BLOCK_CELLS // proba.shape[1], 64)
    scratch = Scratch(min(n_rows, stop - start), len(codes.classes))
    for low, high in row_blocks(stop - start, n_rows):
        high_bits = codes.many(proba[start + low : start + high], scratch)
        high_bits <<= 16
        np.bitwise_or(high_bits, np.arange(low, high, dtype=np.uint32), out=packed[:, low:high])
    return packed


def _edges(sample: NDArray[np.uint32], wanted: list[int], every: int) -> NDArray[np.uint32]:
    """The buckets' lowest codes: wanted ones alone, even shares of the sample, finer between."""
    sample.sort()
    first, last = sample.searchsorted([min(wanted), max(wanted)])
    between = sample[first : last + 1]
    alone = np.array([0, *wanted, *(code + 1 for code in wanted)], dtype=np.uint32)
    fine = between[:: max(_FINE_ROWS // every, len(between) // _MOST_EDGES, 1)]
    coarse = sample[:: max(_COARSE_ROWS // every, len(sample) // _MOST_EDGES, 1)]
    codes = np.concatenate([alone, fine, coarse])
    codes.sort()
    distinct = codes < N_CODES
    distinct[1:] &= codes[1:] != codes[:-1]
    return codes[distinct]


def sort_key(margin: float, top: float) -> float:
    """A number that grows along a ranking: the margin p_k - max p, or max p where that is 0."""
    return margin if margin < 0 else top


def sort_keys_of(proba: Floats, node: int, classes: Iterable[int]) -> list[float]:
    """A node's key in the rankings of some classes; `place` tells apart the few that share one."""
    row: list[float] = proba[node].tolist()
    top = max(row)
    return [sort_key(row[k] - top, top) for k in classes]


def sort_nodes(
    proba: Floats, nodes: NDArray[np.intp], classes: Iterable[int]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """For each class the order of ascending nodes in its ranking (an argsort) and their keys."""
    block = np.ascontiguousarray(proba[nodes].T)
    top = block.max(axis=0).astype(np.float64)
    for target in classes:
        p = block[target].astype(np.float64)
        order = _order(p, top, nodes)
        yield order, np.where(p < top, p - top, top)[order]


def gap_ends(nodes: Nodes, positive: NDArray[np.bool_]) -> list[int]:
    """Those of some labelled nodes, in the order of a ranking, between which the sign changes.

    The first one if it never does: `build_rankings` needs one.
    """
    before = np.flatnonzero(positive[1:] != positive[:-1])
    ends: list[int] = nodes[np.union1d(before, before + 1)].tolist()
    return ends or nodes[:1].tolist()


def _order(p: Floats, top: Floats, nodes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The order of ascending nodes in a ranking."""
    margin = p - top
    order = margin.argsort(kind="stable")
    ascending = margin[order]
    tied = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(tied):
        lost = _difference(p, top)[1]
        finer = np.stack([lost, top])[:, order]
        if (finer[:, tied] != finer[:, tied + 1]).any():
            order = np.lexsort((nodes, top, lost, margin))
    return order


def _scores(
    proba: Floats, nodes: NDArray[np.intp], target: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p_k and max p of some nodes, in double precision."""
    p, top = np.empty((2, len(nodes)))
    for start, stop in row_blocks(len(nodes), _MANY_ROWS):
        block = np.ascontiguousarray(proba[nodes[start:stop]].T)
        p[start:stop] = block[target]
        block.max(axis=0, out=top[start:stop])
    return p, top


def _difference(p: Number, top: Number) -> tuple[Number, Number]:
    """P - top, rounded, and the error of the rounding, exact (Knuth's two-sum)."""
    rounded = p - top
    back = rounded - p
    return rounded, (p - (rounded - back)) - (top + back)
