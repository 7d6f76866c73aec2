"""Picking the examples of lowest score, block by block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.checks import check_proba_rows
from galaxy_al.errors import InvalidArgument
from galaxy_al.free_examples import FreeExamples
from galaxy_al.shards import Rows, Table, reduce_rows, row_blocks
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.label_state import is_whole

Score = Callable[[NDArray[np.floating[Any]]], NDArray[Any]]
Scored = tuple[NDArray[np.intp], NDArray[Any]]

ROWS_AT_ONCE = 1 << 12  # rows of embeddings per block: the temporaries stay small
_SCORES_AT_ONCE = 1 << 14


def lowest(snapshot: Snapshot, budget: int, score: Score) -> NDArray[np.intp]:
    """The ``budget`` askable indices of lowest score, ties by index.

    Parameters
    ----------
    score
        Turns rows of the score table into one number each, some thousand rows at a time.
    """
    check = check_proba_rows if snapshot.is_sharded else None
    return lowest_among(snapshot.scores, snapshot.free, budget, score, check)


def lowest_among(
    table: Table,
    free: FreeExamples,
    count: int,
    score: Score,
    check: Callable[[Rows], None] | None = None,
) -> NDArray[np.intp]:
    """The ``count`` indices of lowest score among some rows of a table, ties by index.

    Parameters
    ----------
    check
        Raises an error if something is wrong with a part of the table.
    """
    found: Scored = reduce_rows(
        partial(_lowest_of, free, count, score, check), partial(_lowest_of_both, count), table
    )
    return found[0]


def _lowest_of(
    free: FreeExamples,
    budget: int,
    score: Score,
    check: Callable[[Rows], None] | None,
    part: Rows,
) -> Scored:
    """The indices of lowest score in a part of the table, and the scores."""
    if check is not None:
        check(part)
    indices = free.between(part.start, part.stop)
    blocks = row_blocks(len(indices), _SCORES_AT_ONCE)
    rows = (part.values[indices[low:high] - part.start] for low, high in blocks)
    scores = np.concatenate([np.empty(0), *map(score, rows)])
    first = smallest(scores, budget)
    return indices[first], scores[first]


def _lowest_of_both(budget: int, one: Scored, other: Scored) -> Scored:
    """Of two parts in the order of the pool."""
    indices, scores = (np.concatenate(both) for both in zip(one, other))
    order = np.lexsort((indices, scores))[:budget]
    return indices[order], scores[order]


def smallest(scores: NDArray[Any], count: int) -> NDArray[np.intp]:
    """The positions of the ``count`` smallest scores, the smallest first, ties by position."""
    if count >= len(scores):
        return np.argsort(scores, kind="stable")
    within = np.flatnonzero(scores <= np.partition(scores, count)[count])
    return within[np.argsort(scores[within], kind="stable")[:count]]


def random_numbers(indices: NDArray[np.intp], key: int) -> NDArray[np.uint64]:
    """A random number for each example, the same wherever it is computed (SplitMix64).

    Examples
    --------
    >>> all(random_numbers(np.array([3, 5]), key=1) == random_numbers(np.arange(9), key=1)[[3, 5]])
    True
    """
    mixed = indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def check_count(name: str, value: object) -> None:
    """Refuse an argument that is not a whole number of at least 1."""
    if not (is_whole(value) and value >= 1):
        raise InvalidArgument(f"{name} must be a whole number of at least 1, got {value!r}.")
