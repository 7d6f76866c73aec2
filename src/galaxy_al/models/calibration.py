"""Probabilities that mean what they say, from labels that were not sampled at random.

First the logits are multiplied by one number, the sharpness, with which they best predict labels
that the model was trained without. These labels are around the cut, where the classes are harder to
tell apart than elsewhere, so half of it (of its logarithm) is believed. Averaged with trees, logits
are far too cautious everywhere, and all of it is believed.

A model trained on labels around the cut has hardly seen what lies far below it. There its
probabilities are small but belong to almost the whole pool, so an error in them decides how many
rare examples it expects. Two estimates of that number are at hand, and both are off:

- The sum of the model's own probabilities. It is too high where the classes are well separated:
  the prior on the weights keeps the log odds from falling as far as they should.
- The share of the rare labels that the model, trained without them, puts below the cut. It is too
  low: labels were chosen where earlier models expected rare examples.

A geometric mean of them is used. Averaged with trees, the model's own sum is right and used alone.

The log odds fall steeply just below the cut, until the probabilities add up to that number. Farther
below they fall half as fast as the model says: a few examples of every class look like none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.log_odds import Table, log_softmax, rare_log_odds
from galaxy_al.snapshot import row_blocks
from galaxy_al.system.threads import run_in_threads

START = float(np.log(0.05 / 0.95))  # below these log odds, labels are few
STEEP, FLAT = 1.0, 0.5  # how far the steep part goes, and the slope of the rest
_STEEPEST, _FLATTEST = 6.0, 0.2
_BELIEVED = 0.5  # of the logarithm of the sharpness
_WEIGHT_OF_MODEL = 0.6  # in the geometric mean; the rest is the labels'
_SPREAD = 0.25  # of the logarithm of the sharpness, before any label is seen
_MOST_LOG = 1.0
_BINS = 2000
_LOWEST = -60.0  # log odds below this count as this
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Calibration:
    """What is done to logits.

    Parameters
    ----------
    sharpness
        What all logits are multiplied by.
    slope
        How many times as fast the log odds of the rare classes then fall just below `START`; None
        leaves them as they are.

    Examples
    --------
    >>> logits = np.array([[0.0, 0.0], [-10.0, 0.0]])
    >>> Calibration(slope=3.0).apply(logits)
    >>> logits.round(1).tolist()
    [[0.0, 0.0], [-9.0, 0.0]]
    """

    sharpness: float = 1.0
    slope: float | None = None

    def apply(self, logits: Table) -> None:
        """Calibrate a table of logits in place."""
        logits *= logits.dtype.type(self.sharpness)
        if self.slope is None:
            return
        below = np.minimum(rare_log_odds(logits) - START, 0)
        change = _bent(below, self.slope) - below
        logits[:, :-1] += change[:, None].astype(logits.dtype)


def fit_calibration(
    logits: Table,
    held_out: Table,
    known: NDArray[np.intp],
    targets: NDArray[np.integer[Any]],
    *,
    has_trees: bool = False,
) -> Calibration:
    """Calibrate the logits of a pool.

    Parameters
    ----------
    logits
        Of the whole pool, N x K; the last class is the majority class.
    held_out
        Of the labelled examples, by models trained without them.
    known, targets
        The labelled examples, ascending, and their classes.
    has_trees
        Whether the logits are averaged with those of trees.
    """
    is_rare = targets < logits.shape[1] - 1
    if is_rare.all() or not is_rare.any():
        return Calibration()
    sharpness = _sharpness(held_out, targets) ** (1 if has_trees else _BELIEVED)
    counts, middles = _histogram(logits, known, sharpness)
    below = middles < START
    tail, depth = counts[below], middles[below] - START
    by_model = float(tail @ _expit(START + depth))
    if by_model <= 0:
        return Calibration(sharpness)
    if has_trees:
        return Calibration(sharpness, _slope(tail, depth, by_model))
    n_above = float(counts[~below] @ _expit(middles[~below]))
    by_labels = _tail_by_labels(rare_log_odds(sharpness * held_out[is_rare]), n_above)
    wanted = by_model**_WEIGHT_OF_MODEL * by_labels ** (1 - _WEIGHT_OF_MODEL)
    return Calibration(sharpness, _slope(tail, depth, wanted))


def _tail_by_labels(odds: Table, n_above: float) -> float:
    """How many rare examples are below the start, if as many as among the rare labels.

    Parameters
    ----------
    odds
        The log odds of the rare labels, held out.
    n_above
        How many rare examples without a label are expected above the start.
    """
    n_below = int(np.count_nonzero(odds < START))
    odds_of_below = (n_below + 0.5) / (len(odds) - n_below + 0.5)
    return odds_of_below * (len(odds) - n_below + n_above)


def _bent(below: Table, slope: float) -> Table:
    """Log odds below the start, steep at first and flat from there on."""
    bent: Table = slope * np.maximum(below, -STEEP) + FLAT * np.minimum(below + STEEP, 0)
    return bent


def _sharpness(held_out: Table, targets: NDArray[np.integer[Any]]) -> float:
    """What held-out logits predict their labels best with; few labels keep it near 1."""
    from scipy.optimize import minimize_scalar

    rows = np.arange(len(targets))

    def loss(log_factor: float) -> float:
        logs = log_softmax(np.exp(log_factor) * held_out)[rows, targets]
        return float(-logs.sum() + (log_factor / _SPREAD) ** 2 / 2)

    found = minimize_scalar(loss, bounds=(-_MOST_LOG, _MOST_LOG), method="bounded")
    return float(np.exp(found.x))


def _slope(counts: Table, depth: Table, wanted: float) -> float:
    """The slope with which the probabilities below the start add up to a number."""
    from scipy.optimize import brentq

    def excess(slope: float) -> float:
        return float(counts @ _expit(START + _bent(depth, slope))) - wanted

    if excess(_FLATTEST) <= 0:
        return _FLATTEST
    if excess(_STEEPEST) >= 0:
        return _STEEPEST
    return float(brentq(excess, _FLATTEST, _STEEPEST, xtol=1e-6))


def _histogram(logits: Table, known: NDArray[np.intp], sharpness: float) -> tuple[Table, Table]:
    """How many unlabelled examples have which log odds of being rare: counts, and bins' middles."""
    edges = np.append(np.linspace(_LOWEST, START, _BINS + 1), np.linspace(START, 60, _BINS + 1)[1:])
    blocks = list(row_blocks(len(logits), _ROWS_AT_ONCE))
    counts = np.zeros((len(blocks), len(edges) - 1), np.int64)

    def count(number: int) -> None:
        low, high = blocks[number]
        odds = rare_log_odds(logits.dtype.type(sharpness) * logits[low:high])
        first, last = known.searchsorted((low, high))
        odds = np.delete(odds, known[first:last] - low)
        counts[number] = np.histogram(np.clip(odds, edges[0], edges[-1]), edges)[0]

    run_in_threads(count, range(len(blocks)))
    return counts.sum(axis=0).astype(np.float64), (edges[1:] + edges[:-1]) / 2


def _expit(log_odds: Table) -> Table:
    return 1 / (1 + np.exp(-log_odds))
