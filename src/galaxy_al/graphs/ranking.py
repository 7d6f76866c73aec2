"""Algorithm 2 of the paper: the rank of every example in each class's ranking.

Class k's ranking is the pool sorted by the margin p_k - max p, ties by max p, then by pool index.
Margins are compared as real numbers, not as rounded differences: with max p = 1 in single
precision, p_k = 1e-9 and p_k = 1e-12 still have their order.

No ranking is ever sorted whole. The pool is cut into buckets by a code of few bits that never
contradicts the ranking. How many rows lie below a bucket is known, and a bucket is put in exact
order when a node or a rank in it is first looked up. The rows may lie in shards, and stay there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from galaxy_al.checks import check_proba_rows
from galaxy_al.graphs.buckets import Buckets
from galaxy_al.graphs.places import MANY_ROWS, Nodes, Place, exact_order, place_of
from galaxy_al.graphs.sort_keys import N_CODES, Codes, Floats
from galaxy_al.graphs.sorted_rows import SortedRows, sort_rows
from galaxy_al.shards import HasRows, ShardedTable, parts_of

_FINE_ROWS, _COARSE_ROWS = 64, 256  # rows in a bucket, where lookups are likely and elsewhere
_MOST_EDGES = 8192
_TOGETHER = 16


class Ranking:
    """One class's ranking: the rank of a node, the node of a rank.

    Nodes that were removed do not count: the ranks above them are one lower.

    Parameters
    ----------
    edges
        Each bucket's lowest code, ascending from 0.
    """

    def __init__(
        self,
        proba: Floats,
        target: int,
        codes: Codes,
        edges: NDArray[np.uint16],
        buckets: Buckets,
    ) -> None:
        self._proba, self._class = proba, target
        self._codes, self._edges = codes, edges.tolist()
        self._buckets, self._starts = buckets, buckets.starts
        self._ranks: dict[int, int] = {}
        self._bucket_of: dict[int, int] = {}
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
            rank = self._starts[bucket] + self._buckets.position(bucket, self.place(node))
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
        bucket = self._buckets.of_rank(rank)
        node = self._buckets.node(bucket, rank - self._starts[bucket])
        self._ranks[node] = rank
        return node

    def place(self, node: int) -> Place:
        """The place of a node, as a tuple that compares like the ranking."""
        return place_of(self._proba[node].tolist(), self._class, node)

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


def build_rankings(
    proba: Floats, wanted: dict[int, list[int]], without: Sequence[int] = ()
) -> dict[int, Ranking]:
    """The rankings of some classes, each in buckets that are sorted when they are looked into.

    Parameters
    ----------
    proba
        The scores, in an array or in shards.
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
    every = max(len(proba) >> 16, 16 if len(proba) > MANY_ROWS else 1)
    sample, classes = _sample(proba, every), list(wanted)
    codes, edges = Codes(sample, classes), {}
    for target, of_sample in zip(classes, codes.many(sample)):
        rows = proba[np.array(wanted[target])].tolist()
        edges[target] = _edges(of_sample, [codes.one(row, target) for row in rows], every)
    absent = np.array(without, dtype=np.intp)
    is_checked = not isinstance(proba, ShardedTable)
    parts = parts_of(proba).map(partial(_sorted, codes, edges, absent, is_checked))
    starts = parts.reduce(partial(_starts, classes), _added)
    return {
        target: Ranking(proba, target, codes, edges[target], Buckets(parts, target, below.tolist()))
        for target, below in zip(classes, starts)
    }


def _sorted(
    codes: Codes,
    edges: dict[int, NDArray[np.uint16]],
    absent: NDArray[np.intp],
    is_checked: bool,
    part: HasRows,
) -> SortedRows:
    rows = part.open()
    if not is_checked:
        check_proba_rows(rows)
    return sort_rows(codes, edges, absent, rows)


def _starts(classes: list[int], part: SortedRows) -> list[NDArray[np.int64]]:
    return [part.starts(target) for target in classes]


def _added(one: list[NDArray[np.int64]], other: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    return [mine + others for mine, others in zip(one, other)]


def _sample(proba: Floats, every: int) -> Floats:
    """A row out of ``every`` so many, at random, so that no pattern in the pool meets the steps.

    In a large pool some adjacent rows are taken together: a file is read in pages.
    """
    together = _TOGETHER if every > _TOGETHER else 1
    step = every * together
    starts = np.arange(0, len(proba) - step + 1, step)
    starts += np.random.default_rng(0).integers(step - together + 1, size=len(starts))
    sample: Floats = proba[(starts[:, None] + np.arange(together)).ravel()]
    return sample


def _edges(sample: NDArray[np.int32], wanted: list[int], every: int) -> NDArray[np.uint16]:
    """The buckets' lowest codes: wanted ones alone, even shares of the sample, finer between."""
    sample.sort()
    first, last = sample.searchsorted([min(wanted), max(wanted)])
    between = sample[first : last + 1]
    alone = np.array([0, *wanted, *(code + 1 for code in wanted)], dtype=np.int32)
    fine = between[:: max(_FINE_ROWS // every, len(between) // _MOST_EDGES, 1)]
    coarse = sample[:: max(_COARSE_ROWS // every, len(sample) // _MOST_EDGES, 1)]
    codes = np.concatenate([alone, fine, coarse])
    codes.sort()
    distinct = codes < N_CODES
    distinct[1:] &= codes[1:] != codes[:-1]
    return codes[distinct].astype(np.uint16)


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
        order = exact_order(p, top, nodes)
        yield order, np.where(p < top, p - top, top)[order]


def gap_ends(nodes: Nodes, positive: NDArray[np.bool_]) -> list[int]:
    """Those of some labelled nodes, in the order of a ranking, between which the sign changes.

    The first one if it never does: `build_rankings` needs one.
    """
    before = np.flatnonzero(positive[1:] != positive[:-1])
    ends: list[int] = nodes[np.union1d(before, before + 1)].tolist()
    return ends or nodes[:1].tolist()
