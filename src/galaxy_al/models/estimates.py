"""How good decisions will be on data like the pool, with intervals.

The pool's own probabilities say how many of the examples that are decided to be of a class should
be. Labels that the model was trained without say how much that is off. They were not sampled at
random, but labels with the same probability tell the same, however they were chosen. So the pool is
cut into strata by probability and decision. Two things are unknown:

- How much all log odds of a class are off: they should be multiplied by one number and moved by
  another. Before any label both are normal, and large: a model of few labels is too cautious.
- By which factor the number of examples on the less likely side of each stratum is off as well.
  It has a Gamma distribution of mean 1 before any label.

The labels update both. For many draws of them it is drawn how many examples of each stratum are of
the class, and the measures are computed: the intervals are those of the pool itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.auto import HeldOut
from galaxy_al.models.decisions import Decision
from galaxy_al.models.log_odds import Table

_EDGES = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95])
_LIKELY = np.tile(np.append(0, _EDGES) >= 0.5, 2)  # the strata below the threshold, then above
_SHIFT_SPREAD, _SLOPE_SPREAD = 2.0, 0.5  # before any label; the latter of the logarithm
_SHIFTS, _SLOPES = (
    grid.ravel() for grid in np.meshgrid(np.linspace(-5, 5, 61), np.exp(np.linspace(-1.2, 1.2, 13)))
)
_SHAPE = 1.0  # of the factor of each stratum
_TRUST = 0.2  # a label counts as so many: it was not sampled at random
_LEAST = 1e-9
_SAMPLES = 4000
_QUANTILES = (0.025, 0.5, 0.975)


@dataclass(frozen=True)
class Interval:
    """A value and its approximate 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class ClassEstimate:
    """How well one class is decided, and how many of its examples are in the pool."""

    precision: Interval
    recall: Interval
    f1: Interval
    count: Interval


@dataclass(frozen=True)
class Estimate:
    """How good decisions are.

    Parameters
    ----------
    classes
        One for each class.
    confusion
        How many examples of each class (row) are expected to be decided as each class (column),
        by a model that was trained without them.
    """

    classes: tuple[ClassEstimate, ...]
    confusion: NDArray[np.float64]


def held_out_table(proba: Table, held_out: HeldOut) -> Table:
    """The probabilities of a pool as if it were new: labelled examples by models without them."""
    table = proba.copy()
    table[held_out.indices] = held_out.proba
    return table


def estimate_decisions(
    table: Table,
    held_out: HeldOut,
    decision: Decision,
    counts: NDArray[np.int64] | None = None,
) -> Estimate:
    """Estimate precision, recall and F1 of each class.

    Parameters
    ----------
    table
        From `held_out_table`.
    counts
        How many examples each row stands for, by default one; a label stands for itself.
    """
    n_classes, decided = table.shape[1], decision.classes(table)
    rng = np.random.default_rng(0)
    classes = []
    for k in range(n_classes):
        is_target = held_out.targets == k
        strata = _Strata.of(table[:, k], decided == k, held_out.indices, is_target, counts)
        classes.append(strata.estimate(rng))
    return Estimate(tuple(classes), _confusion(table, held_out, decided, counts))


def _confusion(
    table: Table,
    held_out: HeldOut,
    decided: NDArray[np.intp],
    counts: NDArray[np.int64] | None,
) -> NDArray[np.float64]:
    """Labels count as what they are, other examples by their probabilities."""
    n_classes = table.shape[1]
    free = np.delete(np.arange(len(table)), held_out.indices)
    times = 1 if counts is None else counts[free]
    confusion: NDArray[np.float64] = np.stack(
        [
            np.bincount(decided[free], table[free, k].astype(np.float64) * times, n_classes)
            for k in range(n_classes)
        ]
    )
    np.add.at(confusion, (held_out.targets, decided[held_out.indices]), 1)
    return confusion


@dataclass(frozen=True)
class _Strata:
    """A pool cut by the probability of one class; each stratum is above the threshold or below.

    Parameters
    ----------
    sizes, mean
        How many examples, and the mean probability of the class.
    n_labels, label_mean
        The same of the labelled examples.
    n_off
        How many labels are on the less likely side.
    n_known, free_share
        How many labels are of the class, and the share of each stratum that has no label.
    """

    is_decided: NDArray[np.bool_]
    sizes: NDArray[np.float64]
    mean: NDArray[np.float64]
    n_labels: NDArray[np.float64]
    label_mean: NDArray[np.float64]
    n_off: NDArray[np.float64]
    n_known: int
    free_share: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        proba: Table,
        is_decided: NDArray[np.bool_],
        known: NDArray[np.intp],
        is_target: NDArray[np.bool_],
        counts: NDArray[np.int64] | None = None,
    ) -> _Strata:
        p = np.clip(proba.astype(np.float64), _LEAST, 1 - _LEAST)
        stratum = np.searchsorted(_EDGES, p, side="right") + len(_LIKELY) // 2 * is_decided

        def count(which: Any, weights: Any = None) -> NDArray[np.float64]:
            return np.bincount(which, weights, minlength=len(_LIKELY)).astype(np.float64)

        sizes, n_labels, of_labels = count(stratum, counts), count(stratum[known]), stratum[known]
        times = 1 if counts is None else counts
        return cls(
            is_decided=np.repeat([False, True], len(_LIKELY) // 2),
            sizes=sizes,
            mean=np.clip(count(stratum, p * times) / np.maximum(sizes, 1), _LEAST, 1 - _LEAST),
            n_labels=_TRUST * n_labels,
            label_mean=np.clip(
                count(of_labels, p[known]) / np.maximum(n_labels, 1), _LEAST, 1 - _LEAST
            ),
            n_off=_TRUST * count(of_labels, np.where(_LIKELY[of_labels], ~is_target, is_target)),
            n_known=int(np.count_nonzero(is_target)),
            free_share=1 - n_labels / np.maximum(sizes, 1),
        )

    def estimate(self, rng: np.random.Generator) -> ClassEstimate:
        """The measures, from draws of what is unknown."""
        expected = self.n_labels * _off(self.label_mean)
        likelihood = self.n_off * np.log(expected + 1e-300) - (_SHAPE + self.n_off) * np.log(
            _SHAPE + expected
        )
        log_prior = (_SHIFTS / _SHIFT_SPREAD) ** 2 + (np.log(_SLOPES) / _SLOPE_SPREAD) ** 2
        log_weights = likelihood.sum(axis=1) - log_prior / 2
        weights = np.exp(log_weights - log_weights.max())
        which = rng.choice(len(weights), _SAMPLES, p=weights / weights.sum())
        factors = rng.gamma(_SHAPE + self.n_off, size=(_SAMPLES, len(self.n_off)))
        factors /= _SHAPE + expected[which]
        chances = np.minimum(_off(self.mean)[which] * factors, 1)
        measures = self._measures(rng.binomial(self.sizes.astype(np.int64), chances))
        low, middle, high = np.quantile(measures, _QUANTILES, axis=1)
        return ClassEstimate(*(Interval(*found) for found in zip(middle, low, high)))

    def _measures(self, off: NDArray[np.int64]) -> NDArray[np.float64]:
        """Precision, recall, F1 and the number of examples, from those on the less likely side."""
        found = np.where(_LIKELY, self.sizes.astype(np.int64) - off, off)
        right, total = found[:, self.is_decided].sum(axis=1), found.sum(axis=1)
        n_decided = self.sizes[self.is_decided].sum()
        precision = right / max(n_decided, 1)
        recall = right / np.maximum(total, 1)
        f1 = 2 * right / np.maximum(n_decided + total, 1)
        return np.stack([precision, recall, f1, self.n_known + found @ self.free_share])


def _off(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share on the less likely side of each stratum, for each shift and slope."""
    odds = _SLOPES[:, None] * np.log(mean / (1 - mean)) + _SHIFTS[:, None]
    share: NDArray[np.float64] = 1 / (1 + np.exp(np.where(_LIKELY, odds, -odds)))
    return share
