"""What more labels would bring: rare examples, and a better model.

Both were judged on pools that nothing was chosen by; docs/appendix/stopping.md has the figures. The
number of finds can be foreseen, within a wide interval. The rise of average precision cannot:
forecasts from the last rise were better than to expect none on some pools and worse on others. So
only an interval is given, and it contains 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.estimates import Interval

ENOUGH_FOUND = 5  # rare examples, before anything can be foreseen
_FEWEST_RECENT = 50  # questions, for a rate
_SHAPE = 0.7  # of the Gamma distribution of the rate of finds: the lower, the wider
_SLOWER = 0.4  # of the rise in the past: rises become smaller
_UNSURE, _LEAST_UNSURE = 1.0, 0.02
_QUANTILES = (0.025, 0.975)


def forecast_finds(
    planned: NDArray[np.floating], recent: Sequence[bool] | NDArray[np.bool_], n: int, n_found: int
) -> Interval | None:
    """How many of the next questions find a rare example; None if it is too early to tell.

    The mean lies between what the model expects of the questions and the rate of the last ones:
    the model knows when the likely ones are used up, and the rate knows when the model is off.

    Parameters
    ----------
    planned
        The calibrated probability of being rare of what the strategy would ask next, in order. If
        there are fewer than ``n``, the last ones count for all others.
    recent
        Whether each of the last questions of the strategy found a rare example; without those that
        were asked at random.
    n
        How many questions.
    n_found
        How many rare examples have a label.

    Examples
    --------
    >>> print(forecast_finds(np.full(100, 0.1), [False] * 95 + [True] * 5, 100, n_found=40))
    7.10 (0.00 to 34.00)
    """
    from scipy.stats import nbinom  # takes long to import

    count = min(n, len(planned)) if n_found >= ENOUGH_FOUND else 0
    latest = np.asarray(recent, dtype=bool)[-max(n, _FEWEST_RECENT) :]
    if not count or not len(latest):
        return None
    by_model = float(np.sum(planned[:n], dtype=np.float64))
    by_model += (n - count) * float(np.mean(planned[-_FEWEST_RECENT:], dtype=np.float64))
    by_rate = float(latest.mean()) * n
    mean = float(np.sqrt((by_model + 0.5) * (by_rate + 0.5)))  # half a find is never ruled out
    low, high = np.minimum(nbinom.ppf(_QUANTILES, _SHAPE, _SHAPE / (_SHAPE + mean)), n)
    return Interval(float(np.clip(mean - 0.5, 0, n)), float(low), float(high))


def expected_average_precision(rare: NDArray[np.floating]) -> float:
    """The average precision of a ranking, as its own calibrated probabilities expect it.

    Parameters
    ----------
    rare
        The probability of being rare of all examples of a pool; 0 or 1 for those with a label.

    Examples
    --------
    >>> expected_average_precision(np.array([1.0, 1.0, 0.0]))
    1.0
    """
    heights = np.sort(np.asarray(rare, dtype=np.float64))[::-1]
    precision = np.cumsum(heights) / np.arange(1, len(heights) + 1)
    total = heights.sum()
    return float(heights @ precision / total) if total else 0.0


def forecast_rise(history: Sequence[tuple[int, float]], n: int) -> Interval | None:
    """How much more labels raise the average precision; None if it is too early to tell.

    The value is 0: no forecast was better on all pools.

    Parameters
    ----------
    history
        Of each training, the number of labels and the `expected_average_precision`.
    n
        How many more labels.

    Examples
    --------
    >>> print(forecast_rise([(200, 0.5), (300, 0.6)], 100))
    0.00 (-0.10 to 0.18)
    >>> forecast_rise([(300, 0.6)], 100)
    """
    if not history:
        return None
    n_now, now = history[-1]
    earlier = [(labels, value) for labels, value in history if labels <= n_now - 0.8 * n]
    if not earlier:
        return None
    labels, before = earlier[-1]
    middle = _SLOWER * max(now - before, 0.0) * n / (n_now - labels)
    unsure = _LEAST_UNSURE + _UNSURE * float(np.log1p(n / n_now)) * (1 - now)
    return Interval(0.0, max(min(middle - unsure, 0.0), -now), min(middle + unsure, 1.0))
