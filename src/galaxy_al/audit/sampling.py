"""Which examples to draw: strata by what the model says, and the chances of each.

The chance of a stratum is between two rules. By Neyman's, its size times the spread of what is
wanted in it, the interval is narrow if the model is right. The other, its size alone, believes
nothing: no part of a pool is left alone because a model is sure of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.audit.draws import Counts, Values

_BANDS = 4  # of the examples that are decided to be of the majority class
_FEWEST = 20  # examples of a stratum
_PROPORTIONAL = 0.5  # of the chances do not believe the model
_STRENGTH = 2.0  # draws that the model's probabilities count for
_NEVER_SURE = 1.0  # hits that the next draw of a stratum could bring, by which none is ever sure


@dataclass(frozen=True)
class Strata:
    """A pool cut into strata.

    Parameters
    ----------
    of
        The stratum of each example, -1 if it has a label.
    decided
        The class that the examples of each stratum are decided to be of.
    expected
        The mean probabilities of each stratum, a column per class.
    """

    of: NDArray[np.intp]
    decided: NDArray[np.intp]
    expected: Values

    @property
    def sizes(self) -> Counts:
        """How many examples each stratum has."""
        return np.bincount(self.of[self.of >= 0], minlength=len(self.decided))


def make_strata(
    proba: NDArray[np.floating[Any]], decided: NDArray[np.intp], free: NDArray[np.intp]
) -> Strata:
    """Cut the examples without a label by decision, and those of the majority class by score.

    The bands of the latter hold equal sums of the spread of what is wanted, as Dalenius and Hodges
    cut them: many of the examples that the model is sure of, and few of the others.

    Parameters
    ----------
    proba, decided
        Of the whole pool.
    free
        The examples without a label.
    """
    n_classes = proba.shape[1]
    of = np.full(len(proba), -1, dtype=np.intp)
    groups: list[tuple[int, NDArray[np.intp]]] = []
    for k in range(n_classes):
        members = free[decided[free] == k]
        groups += [(k, part) for part in _bands(members, proba, is_majority=k == n_classes - 1)]
    for number, (_, members) in enumerate(groups):
        of[members] = number
    expected = np.stack([proba[members].mean(axis=0, dtype=np.float64) for _, members in groups])
    return Strata(of, np.array([k for k, _ in groups], dtype=np.intp), expected)


def _bands(
    members: NDArray[np.intp], proba: NDArray[np.floating[Any]], *, is_majority: bool
) -> list[NDArray[np.intp]]:
    if not len(members):
        return []
    if not is_majority:
        return [members]
    score = 1 - proba[members, -1].astype(np.float64)
    order = np.argsort(score, kind="stable")
    spread = np.sqrt(np.clip(score[order], 1e-9, 1) * np.clip(1 - score[order], 1e-9, 1))
    place = np.cumsum(spread) / spread.sum()
    cuts = np.searchsorted(place, np.arange(1, _BANDS) / _BANDS)
    edges = [0]
    for cut in cuts.tolist():
        if cut - edges[-1] >= _FEWEST and len(members) - cut >= _FEWEST:
            edges.append(cut)
    return [members[part] for part in np.split(order, edges[1:])]


def believed(expected: Values, n_hits: Counts, n_draws: Counts) -> Values:
    """The share of each class in each stratum, by the model first and by the draws then."""
    rates: Values = (n_hits + _STRENGTH * expected) / (n_draws + _STRENGTH)[..., None]
    return rates


def chances(n_free: Counts, rates: Values, n_draws: Counts) -> Values:
    """The chance of each stratum to be drawn from.

    Several audits can be asked about at once, along axes before the strata.

    Parameters
    ----------
    n_free
        How many examples of each stratum have no label.
    rates
        From `believed`.
    """
    unsure = _NEVER_SURE / (n_draws + 3)
    rare = np.maximum(rates[..., :-1], unsure[..., None] / max(rates.shape[-1] - 1, 1))
    spread = np.sqrt((rare * np.clip(1 - rare, 0, 1)).sum(axis=-1))
    by_size = n_free / n_free.sum(axis=-1, keepdims=True)
    by_spread = n_free * spread
    total = by_spread.sum(axis=-1, keepdims=True)
    neyman = np.divide(by_spread, total, out=by_size.copy(), where=total > 0)
    mixed: Values = _PROPORTIONAL * by_size + (1 - _PROPORTIONAL) * neyman
    return mixed
