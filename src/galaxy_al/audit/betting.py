"""Intervals that hold at every moment, by betting.

A game is fair if its prize is 0 on average, whatever happened before. Betting on a fair game does
not make rich: by Ville's inequality a capital of 1 that is never negative ever reaches 40 with a
probability of at most 1/40. For each value that an unknown could have there is a game that is fair
if this is the true value. Values that a player got rich against are given up, and the interval is
what is left. You may look after every draw and stop at any time.

This is the confidence sequence of Waudby-Smith and Ramdas (Estimating means of bounded random
variables by betting, JRSS B 2024), for draws without replacement and with changing chances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Values = NDArray[np.float64]

ERROR = 0.05
# Bets are sized to be best after so many draws. A quarter of the capital goes into each.
_HORIZONS = np.array([30.0, 120.0, 480.0, 1920.0])
_MOST = 0.97  # of the capital that may be lost at once
_TINY = 1e-300
_STEPS = 400  # in which ratios are looked at
_CELLS = 2_000_000  # numbers that are computed at once


@dataclass(frozen=True)
class Game:
    """The prizes of all draws, as functions of an unknown: ``above - unknown * below``.

    Both are estimates, right on average, of two numbers whose quotient is the unknown.

    Parameters
    ----------
    above, below
        A row for each draw, a column for each outcome that it could have had.
    outcomes
        Of each draw, the column of what came out.
    spread
        Of each draw, about how large prizes are: the root of their mean square. It may depend on
        all that was known before the draw.
    """

    above: Values
    below: Values
    outcomes: NDArray[np.intp]
    spread: Values

    def log_capital(self, unknowns: Values, error: float, *, is_too_large: bool) -> Values:
        """The logarithm of what betting against each of some values has made of 1.

        Parameters
        ----------
        error
            The bets are sized to reach 1 / error.
        is_too_large
            Whether to bet that the values are larger than the unknown, or smaller.
        """
        sign = -1 if is_too_large else 1
        gains = sign * (self.above - unknowns[:, None, None] * self.below)
        worst = np.maximum(-gains.min(axis=2), _TINY)
        won = gains[:, np.arange(len(self.outcomes)), self.outcomes]
        grown = [
            np.log1p(np.minimum(size / self.spread, _MOST / worst) * won).sum(axis=1)
            for size in np.sqrt(-2 * np.log(error) / _HORIZONS)
        ]
        capital: Values = logsumexp(grown, axis=0) - np.log(len(_HORIZONS))
        return capital

    def is_given_up(
        self, unknowns: Values, error: float, *, is_too_large: bool
    ) -> NDArray[np.bool_]:
        """Of each of some values, whether betting against it has made 1 / error of 1."""
        capital = self.log_capital(unknowns, error, is_too_large=is_too_large)
        is_over: NDArray[np.bool_] = capital >= -np.log(error)
        return is_over


def interval_of_count(game: Game, low: int, high: int, error: float = ERROR) -> tuple[int, int]:
    """Between which whole numbers the unknown is.

    Parameters
    ----------
    game
        All its ``below`` are 1.
    low, high
        What the unknown is at least and at most, for sure.
    """
    if not len(game.outcomes):
        return low, high

    def is_given_up(value: int, *, is_too_large: bool) -> bool:
        one = np.array([value], dtype=np.float64)
        return bool(game.is_given_up(one, error / 2, is_too_large=is_too_large)[0])

    first, last = low, high
    while first < last:  # the smallest value that is not too small
        middle = (first + last) // 2
        if is_given_up(middle, is_too_large=False):
            first = middle + 1
        else:
            last = middle
    smallest, last = first, high
    while first < last:  # the largest that is not too large
        middle = (first + last + 1) // 2
        if is_given_up(middle, is_too_large=True):
            last = middle - 1
        else:
            first = middle
    return smallest, first


def interval_of_share(game: Game, error: float = ERROR) -> tuple[float, float]:
    """Between which shares, from 0 to 1, the unknown is."""
    if not len(game.outcomes):
        return 0.0, 1.0
    values = np.linspace(0, 1, _STEPS + 1)
    at_once = max(_CELLS // game.above.size, 1)
    kept = np.concatenate([_kept(game, part, error) for part in _parts(values, at_once)])
    if not len(kept):
        return 0.0, 1.0
    # What lies between a value that is kept and one that is not may have to be kept.
    return max(float(kept[0]) - 1 / _STEPS, 0.0), min(float(kept[-1]) + 1 / _STEPS, 1.0)


def _parts(values: Values, size: int) -> list[Values]:
    return np.split(values, np.arange(size, len(values), size))


def _kept(game: Game, values: Values, error: float) -> Values:
    is_out = [game.is_given_up(values, error / 2, is_too_large=side) for side in (False, True)]
    kept: Values = values[~np.logical_or(*is_out)]
    return kept
