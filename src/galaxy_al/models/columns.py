"""Columns of tables: each has a unit of its own, and some have a few extreme values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from galaxy_al.models.log_odds import Table

EXTREME = 3.0  # beyond so many units, only the logarithm of what is left counts
_SPREADS_PER_UNIT = 1.35  # between the quartiles of a normal distribution
_SMALLEST = 1e-150  # a distance of quartiles below this part of the largest distance is none


@dataclass(frozen=True)
class EvenColumns:
    """Puts the columns of a table into comparable units and tames extreme values.

    Parameters
    ----------
    center, unit
        The median of each column, and the distance of its quartiles, as a standard deviation. Where
        the quartiles are the same, it is the standard deviation itself, or 1 for a constant column.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [1.0, 100.0], [2.0, 200.0], [3.0, 300.0], [1000.0, 400.0]])
    >>> EvenColumns.of(rows).even(rows).round(1).tolist()
    [[-1.4, -1.3], [-0.7, -0.7], [0.0, 0.0], [0.7, 0.7], [9.5, 1.3]]
    """

    center: Table
    unit: Table

    @classmethod
    def of(cls, sample: Table) -> EvenColumns:
        """Read the units off a sample."""
        exact = np.asarray(sample, dtype=np.float64)
        low, center, high = np.quantile(exact, [0.25, 0.5, 0.75], axis=0)
        largest = np.maximum(np.abs(exact - center).max(axis=0), np.finfo(float).tiny)
        spread = largest * ((exact - center) / largest).std(axis=0)
        between = (high - low) / _SPREADS_PER_UNIT
        unit = np.where(between > _SMALLEST * largest, between, spread)
        return cls(center, np.where(unit > np.finfo(float).tiny, unit, 1))

    def even(self, rows: Table) -> Table:
        """The rows in these units."""
        units: Table = (rows - self.center) / self.unit
        size = np.abs(units)
        is_extreme = size > EXTREME
        if is_extreme.any():
            tamed = EXTREME + np.log1p(size[is_extreme] - EXTREME)
            units[is_extreme] = np.copysign(tamed, units[is_extreme])
        return units
