"""Curves over the number of labels: means, errors, smoothing, areas."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid

Values = NDArray[np.float64]
WINDOW = 10  # the paper's moving average


@dataclass(frozen=True)
class Curve:
    """One measure of one strategy on one setting, over its random starts.

    Parameters
    ----------
    n_labels
        After each round.
    runs
        The measure, a row for each random start.
    """

    n_labels: NDArray[np.int64]
    runs: Values

    def mean(self, window: int = 1) -> Values:
        """The mean of the runs, smoothed over a window of rounds."""
        mean: Values = moving_average(self.runs, window).mean(axis=0)
        return mean

    def error(self, window: int = 1) -> Values:
        """The standard error of the mean; NaN for a single run."""
        count = len(self.runs)
        if count < 2:
            return np.full(self.runs.shape[1], np.nan)
        spread: Values = moving_average(self.runs, window).std(axis=0, ddof=1)
        return spread / float(np.sqrt(count))

    def at(self, n_labels: int) -> tuple[float, float] | None:
        """Mean and standard error at this number of labels, if the runs reach it."""
        where = np.flatnonzero(self.n_labels == n_labels)
        return None if not len(where) else (self.mean()[where[0]], self.error()[where[0]])

    def last(self) -> tuple[float, float]:
        """Mean and standard error at the end."""
        return float(self.mean()[-1]), float(self.error()[-1])

    def areas(self) -> Values:
        """The area under the curve of each run, as a share of the largest possible."""
        if len(self.n_labels) == 1:
            return self.runs[:, 0]
        width = self.n_labels[-1] - self.n_labels[0]
        areas: Values = trapezoid(self.runs, self.n_labels, axis=1) / width
        return areas

    def area(self) -> tuple[float, float]:
        """The mean of the areas, and its standard error."""
        areas = self.areas()
        error = areas.std(ddof=1) / np.sqrt(len(areas)) if len(areas) > 1 else np.nan
        return float(areas.mean()), float(error)

    def labels_to_reach(self, level: float, window: int = WINDOW) -> int | None:
        """The number of labels at which the smoothed mean first reaches a level, if it does."""
        there = np.flatnonzero(self.mean(window) >= level)
        return int(self.n_labels[there[0]]) if len(there) else None


def moving_average(runs: Values, window: int) -> Values:
    """The mean of a window around each round, narrower towards both ends.

    A straight line stays one. The two rounds at the ends of a window count half, so that it can
    be even and lie around its round; a window of 1 changes nothing.
    """
    size = runs.shape[1]
    place = np.arange(size)
    half = np.minimum(window // 2, np.minimum(place, size - 1 - place))
    total = np.cumsum(np.pad(runs, ((0, 0), (1, 0))), axis=1)
    begin, end = place - half, place + half
    sums = total[:, end + 1] - total[:, begin] - (runs[:, begin] + runs[:, end]) / 2
    averages: Values = np.where(half, sums / np.maximum(2 * half, 1), runs)
    return averages


def curves_of(
    table: dict[str, list[Any]], measure: str, keys: dict[str, list[str]], rounds: int
) -> dict[str, Curve]:
    """By label, the curves of a measure, from the runs with the most rounds.

    Parameters
    ----------
    table
        Of `Results.table`.
    keys
        By label, the keys of its runs.
    rounds
        The last round that counts.
    """
    runs: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    share = measure == "rare_share"
    values_of = table["rare_found" if share else measure]
    for key, number, n_labels, value in zip(
        table["key"], table["round"], table["n_labels"], values_of
    ):
        if number <= rounds:
            runs[key].append((number, n_labels, value / n_labels if share else value))
    curves = {}
    for label, its_keys in keys.items():
        length = max(len(runs[key]) for key in its_keys)
        if length:
            rows = [sorted(runs[key]) for key in its_keys if len(runs[key]) == length]
            n_labels = np.array([n for _, n, _ in rows[0]])
            values = [[value for _, _, value in row] for row in rows]
            curves[label] = Curve(n_labels, np.array(values, dtype=np.float64))
    return curves
