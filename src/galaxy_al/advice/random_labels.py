"""How many rare examples there are, by labels that were drawn at random: exact at every moment.

Whatever else was labelled in between, a label that is drawn evenly from the examples without one is
rare with a known probability if there are t rare examples in all: those of the t that had no label,
divided by the number without. So each t has a likelihood. If t is true, the mean likelihood of some
other numbers, divided by its own, is a fair game, and it ever reaches 1 / error with a probability
of at most the error (Ville's inequality). Numbers against which it did are given up. You may look
after every label and stop at any time.

For draws without anything in between this is the prior-posterior-ratio sequence of Waudby-Smith and
Ramdas (Confidence sequences for sampling without replacement, NeurIPS 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ERROR = 0.05
_STEP = 1.05  # between the numbers that are believed possible, where there are many


@dataclass(frozen=True)
class RandomLabels:
    """Labels drawn at random, in order, each from all examples that had none.

    Parameters
    ----------
    n_free, n_found
        Before each, the examples without a label, and the rare examples with one.
    is_rare
        Whether each turned out to be rare.
    """

    n_free: NDArray[np.int64]
    n_found: NDArray[np.int64]
    is_rare: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.is_rare)

    @classmethod
    def of_history(
        cls, size: int, is_rare: Sequence[bool], is_random: Sequence[bool]
    ) -> RandomLabels:
        """From all labels of a pool in the order in which they were given.

        Parameters
        ----------
        size
            Of the pool, without examples that cannot be read. An example that cannot be told
            counts as one that is not rare.

        Examples
        --------
        >>> RandomLabels.of_history(9, [True, False], [False, True]).n_found
        array([1])
        """
        rare, which = np.asarray(is_rare, dtype=bool), np.flatnonzero(is_random)
        found = np.cumsum(rare) - rare
        return cls(size - which, found[which], rare[which])

    def log_likelihood(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of some total numbers of rare examples; -inf where a label contradicts one."""
        n_left = totals[:, None] - self.n_found
        n_fit = np.where(self.is_rare, n_left, self.n_free - n_left)
        n_fit[(n_left < 0) | (n_left > self.n_free)] = 0  # others that were labelled refute it
        with np.errstate(divide="ignore"):
            logs: NDArray[np.float64] = np.log(n_fit / self.n_free)
        total: NDArray[np.float64] = logs.sum(axis=1)
        return total


def interval_of_left(
    draws: RandomLabels,
    n_free: int,
    n_found: int,
    error: float = ERROR,
    expected: float | None = None,
) -> tuple[int, int]:
    """Between which numbers the rare examples without a label are.

    Parameters
    ----------
    n_free, n_found
        As of `RandomLabels`, now.
    expected
        How many were expected to be left before the first draw. It must not depend on what was
        drawn. If it is right the interval is narrower; it holds in any case.

    Examples
    --------
    >>> draws = RandomLabels.of_history(1000, [False] * 300, [True] * 300)
    >>> interval_of_left(draws, n_free=700, n_found=0, expected=0)
    (0, 8)
    """
    low, high = n_found, n_found + n_free
    if not len(draws):
        return 0, n_free
    believed = _Belief.before(draws, expected)
    least = believed.log_mean_likelihood(draws) + np.log(error)

    def is_kept(total: int) -> bool:
        return bool(draws.log_likelihood(np.array([total]))[0] > least)

    best = _first(lambda total: not _rises(draws, total), low, high)
    if not is_kept(best):  # nothing that is possible now is: the labels contradict each other
        return 0, n_free
    first = _first(is_kept, low, best)
    last = _first(lambda total: not is_kept(total), best, high + 1) - 1
    return first - n_found, last - n_found


@dataclass(frozen=True)
class _Belief:
    """How likely some total numbers are before the first draw.

    Parameters
    ----------
    totals, log_weights
        The numbers and the logarithms of weights that sum to 1.
    """

    totals: NDArray[np.int64]
    log_weights: NDArray[np.float64]

    @classmethod
    def before(cls, draws: RandomLabels, expected: float | None) -> _Belief:
        """Half none, and half around what is expected, with a long tail."""
        n_free, n_found = int(draws.n_free[0]), int(draws.n_found[0])
        edges = _edges(n_free + 1)
        below = np.log1p(edges) if expected is None else -1 / (edges + max(expected, 0) + 1)
        weights = np.diff(below) / (below[-1] - below[0]) / 2
        weights[0] += 1 / 2
        middles = np.sqrt(edges[:-1] * (edges[1:] - 1)).astype(np.int64)
        return cls(n_found + middles, np.log(weights))

    def log_mean_likelihood(self, draws: RandomLabels) -> float:
        return float(np.logaddexp.reduce(self.log_weights + draws.log_likelihood(self.totals)))


def _edges(end: int) -> NDArray[np.float64]:
    """Whole numbers from 0 to an end, in steps that grow."""
    grown = np.ceil(20 * _STEP ** np.arange(np.log(max(end, 20) / 20) / np.log(_STEP) + 1))
    edges = np.append(np.arange(21), grown)
    return np.append(np.unique(edges[edges < end]), float(end))


def _rises(draws: RandomLabels, total: int) -> bool:
    """Whether one more than a total is likelier."""
    now, more = draws.log_likelihood(np.array([total, total + 1]))
    return bool(more > now) or bool(np.isneginf(now) and _is_below(draws, total))


def _is_below(draws: RandomLabels, total: int) -> bool:
    """Whether a total is smaller than the labels allow."""
    return bool((total - draws.n_found - draws.is_rare < 0).any())


def _first(is_true: Callable[[int], bool], low: int, high: int) -> int:
    """The first number at which something is true, which is true from there on; else ``high``."""
    while low < high:
        middle = (low + high) // 2
        if is_true(middle):
            high = middle
        else:
            low = middle + 1
    return low
