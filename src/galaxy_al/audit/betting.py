"""Intervals that hold at every moment, by betting.

A game is fair if its prize is 0 on average, whatever happened before. Betting on a fair game does
not make rich: by Ville's inequality a capital of 1 that is never negative ever reaches 40 with a
probability of at most 1/40. For each value that an unknown could have there is a game that is fair
if this is the true value. Values that a player ever got rich against are given up, and the interval
is what is left. You may look after every draw and stop at any time; no draw makes it wider.

This is the confidence sequence of Waudby-Smith and Ramdas (Estimating means of bounded random
variables by betting, JRSS B 2024), for draws without replacement and with changing chances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

ERROR = 0.05
# Of three parts of the capital, bets are sized to be best after so many draws. The fourth part bets
# as much as it may: that is best against values that the draws so far make very unlikely.
_HORIZONS = np.array([50.0, 150.0, 500.0, 0.0])
_PARTS = np.array([0.25, 0.25, 0.2, 0.3])
_MOST = 0.97  # of the capital that may be lost at once
_TINY, _HUGE = 1e-300, 1e300
_CELLS = 32  # in which shares are looked at, each then in as many as follow
_FINER = 16


@dataclass(frozen=True)
class Game:
    """The prizes of all draws, as functions of an unknown: ``above - unknown * below``.

    Both are estimates, right on average, of two numbers whose quotient is the unknown.

    Parameters
    ----------
    above, below
        A row for each draw, a column for each outcome that it could have had. If ``below`` is None
        it is 1 everywhere: the unknown is a count.
    outcomes
        Of each draw, the column of what came out.
    spread
        Of each draw, about how large prizes are: the root of their mean square. It may depend on
        all that was known before the draw.
    """

    above: Values
    below: Values | None
    outcomes: NDArray[np.intp]
    spread: Values

    def log_capital(self, unknowns: Values, error: float, *, is_too_large: bool) -> Values:
        """The logarithm of what betting against some values has made of 1, after each draw.

        Parameters
        ----------
        error
            The bets are sized to reach 1 / error.
        is_too_large
            Whether to bet that the values are larger than the unknown, or smaller.

        Returns
        -------
        A row for each value, a column for each draw.
        """
        gains = self._gains(unknowns, error, is_too_large=is_too_large)
        grown = np.log(gains).cumsum(axis=2) + np.log(_PARTS)[:, None, None]
        top = grown.max(axis=0)
        capital: Values = top + np.log(np.exp(grown - top).sum(axis=0))
        return capital

    def _gains(self, unknowns: Values, error: float, *, is_too_large: bool) -> Values:
        """What each draw makes of 1: by parts of the capital, values and draws."""
        won, worst = self._prizes(unknowns, -1.0 if is_too_large else 1.0)
        most = _MOST / np.maximum(worst, _TINY)
        with np.errstate(divide="ignore"):
            sizes = np.sqrt(-2 * np.log(error) / _HORIZONS)[:, None] / self.spread
        gains: Values = np.minimum(sizes[:, None], most)
        gains *= won
        gains += 1
        return gains

    def _prizes(self, unknowns: Values, sign: float) -> tuple[Values, Values]:
        """What was won, and the most that could have been lost: a row for each value."""
        values, draws = unknowns[:, None], np.arange(len(self.outcomes))
        above = sign * self.above
        if self.below is None:
            fair = sign * values
            return above[draws, self.outcomes] - fair, fair - above.min(axis=1)
        below = sign * self.below
        won = above[draws, self.outcomes] - values * below[draws, self.outcomes]
        worst = values * below[:, 0] - above[:, 0]
        for column in range(1, above.shape[1]):
            np.maximum(worst, values * below[:, column] - above[:, column], out=worst)
        return won, worst

    def evidence(self, unknowns: Values, error: float, *, is_too_large: bool) -> Values:
        """How much each of some values was ever bet against, 1 and more is too much."""
        gains = self._gains(unknowns, error, is_too_large=is_too_large)
        # Products are faster than sums of logarithms. A capital that is too small to be a number
        # stays nothing: that gives up fewer values.
        with np.errstate(over="ignore", under="ignore"):
            capital = np.tensordot(_PARTS, np.cumprod(gains, axis=2, out=gains), axes=1)
        most: Values = np.log(np.clip(capital.max(axis=1), _TINY, _HUGE)) / -np.log(error)
        return most


def is_missed(game: Game, unknown: float, error: float = ERROR, share_above: float = 0.5) -> bool:
    """Whether an interval at any moment lacks a value: for tests that know the truth."""
    if not len(game.outcomes):
        return False
    return bool(_evidence(game, np.array([unknown], dtype=float), error, share_above)[0] >= 1)


def interval_of_count(
    game: Game, low: int, high: int, error: float = ERROR, share_above: float = 0.5
) -> tuple[int, int]:
    """Between which whole numbers the unknown is.

    The bets against a value win the less the nearer it is to the draws, so the ends are found by
    bisection.

    Parameters
    ----------
    game
        Of a count.
    low, high
        What the unknown is at least and at most, for sure.
    share_above
        The part of the error that the upper end may make.
    """
    if not len(game.outcomes):
        return low, high

    def is_given_up(value: int, *, is_too_large: bool) -> bool:
        one = np.array([value], dtype=np.float64)
        part = error * (share_above if is_too_large else 1 - share_above)
        return bool(game.evidence(one, part, is_too_large=is_too_large)[0] >= 1)

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


def interval_of_share(
    game: Game, error: float = ERROR, share_above: float = 0.5
) -> tuple[float, float]:
    """Between which shares, from 0 to 1, the unknown is; at most 0.002 too wide at each end."""
    if not len(game.outcomes):
        return 0.0, 1.0
    grid = np.linspace(0, 1, _CELLS + 1)
    evidence = _evidence(game, grid, error, share_above)
    if evidence.min() >= 1:  # what is left lies between two values
        grid = np.linspace(0, 1, _CELLS * _FINER + 1)
        evidence = _evidence(game, grid, error, share_above)
    # If nothing is left, which happens rarely enough, the value with the least against it is.
    kept = np.flatnonzero(evidence <= max(evidence.min(), np.nextafter(1.0, 0.0)))
    low, high = grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, len(grid) - 1)]
    below, above = np.linspace(low, grid[kept[0]], _FINER + 1), grid[kept[-1]]
    beyond = np.linspace(above, high, _FINER + 1)
    is_out = _evidence(game, np.concatenate([below, beyond]), error, share_above) >= 1
    # What lies between a value that is kept and one that is not may have to be kept.
    n_below = int(np.argmin(np.append(is_out[: _FINER + 1], False)))
    n_beyond = int(np.argmin(np.append(is_out[:_FINER:-1], False)))
    return float(below[max(n_below - 1, 0)]), float(beyond[min(_FINER + 1 - n_beyond, _FINER)])


def _evidence(game: Game, values: Values, error: float, share_above: float) -> Values:
    sides = ((False, 1 - share_above), (True, share_above))
    found = [game.evidence(values, error * part, is_too_large=side) for side, part in sides]
    most: Values = np.maximum(*found)
    return most
