"""The probabilities of a pool too large to bring here, as fewer rows that stand for many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from galaxy_al.free_examples import FreeExamples
from galaxy_al.models.cutoffs import cutoff
from galaxy_al.models.log_odds import Table
from galaxy_al.shards import Rows, ShardedTable, map_parts, reduce_rows

_EXACT = 500_000  # rows that stand for themselves: those likeliest to be rare
_STEPS = 64  # into which a factor of two in the odds is cut, for the others
_MOST_LOG = 40  # of the odds, to the base 2


@dataclass(frozen=True)
class FewRows:
    """Rows of probabilities, and how many examples each stands for.

    Parameters
    ----------
    columns
        The same for the probabilities of each rare class by itself: values and counts.
    """

    rows: Table
    counts: NDArray[np.int64]
    columns: Sequence[tuple[Table, NDArray[np.int64]]]


@dataclass(frozen=True)
class _Part:
    """Rows that stand for themselves; sums and counts of the others, by class and odds.

    The last two are sums and counts of each rare class's probabilities by their own odds.
    """

    exact: Table
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    own_sums: NDArray[np.float64]
    own_counts: NDArray[np.int64]


def few_rows(table: ShardedTable, free: FreeExamples) -> FewRows:
    """A table in shards as at most some hundred thousand rows, with exact sums of the columns.

    The rows likeliest to be rare are there as they are. The others are put together where the
    likeliest rare class is the same and its odds differ by at most 1.1%, as their mean. Each class
    by itself is put together by its own odds.

    Parameters
    ----------
    free
        The examples that count.
    """
    odds: ShardedTable = map_parts(_rare_odds, table, n_columns=1)
    exact_from = cutoff(odds, _EXACT)
    found = reduce_rows(partial(_summarize, free, exact_from), _together, table)
    ones = np.ones(len(found.exact), dtype=np.int64)
    means, counts = _means(found.sums, found.counts)
    columns = [
        (np.append(found.exact[:, k].astype(np.float64), own[:, 0]), np.append(ones, n))
        for k, (own, n) in enumerate(
            _means(sums[:, None], n) for sums, n in zip(found.own_sums, found.own_counts)
        )
    ]
    rows = np.concatenate([found.exact.astype(np.float64), means])
    return FewRows(rows, np.append(ones, counts), columns)


def _means(
    sums: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    is_used = counts > 0
    return sums[is_used] / counts[is_used, None], counts[is_used]


def _rare_odds(part: Rows) -> Rows:
    return Rows(part.start, _log_odds(part.values[:, :-1].sum(axis=1))[:, None])


def _log_odds(p: Table) -> NDArray[np.float32]:
    with np.errstate(divide="ignore"):
        logs = np.log2(p / np.maximum(1 - p, 1e-30))
    return np.clip(logs, -_MOST_LOG, _MOST_LOG).astype(np.float32)


def _summarize(free: FreeExamples, exact_from: float, part: Rows) -> _Part:
    rows = part.values[free.between(part.start, part.stop) - part.start]
    is_exact = _log_odds(rows[:, :-1].sum(axis=1)) > exact_from  # not all that tie with it
    others = rows[~is_exact]
    n_classes, n_bins = rows.shape[1], 2 * _MOST_LOG * _STEPS + 1
    columns = others.T.astype(np.float64)
    own = [_bins(column) for column in columns[:-1]]
    size = (n_classes - 1) * n_bins
    which = others[:, :-1].argmax(axis=1) * n_bins + _bins(others[:, :-1].max(axis=1))
    return _Part(
        rows[is_exact],
        np.stack([np.bincount(which, column, minlength=size) for column in columns], axis=1),
        np.bincount(which, minlength=size),
        np.stack([np.bincount(bins, p, minlength=n_bins) for bins, p in zip(own, columns)]),
        np.stack([np.bincount(bins, minlength=n_bins) for bins in own]),
    )


def _bins(p: Table) -> NDArray[np.intp]:
    return np.floor(_STEPS * (_log_odds(p) + _MOST_LOG)).astype(np.intp)


def _together(one: _Part, other: _Part) -> _Part:
    return _Part(
        np.concatenate([one.exact, other.exact]),
        one.sums + other.sums,
        one.counts + other.counts,
        one.own_sums + other.own_sums,
        one.own_counts + other.own_counts,
    )
