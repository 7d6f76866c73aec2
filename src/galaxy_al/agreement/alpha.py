"""How well people agree: Krippendorff's alpha and the agreement on each class, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from galaxy_al.agreement.votes import Votes

_SAMPLES = 2000
_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Estimate:
    """A figure with an approximate 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """How well people agree.

    Parameters
    ----------
    alpha
        1 if they always agree, 0 if they agree as often as at random. None if all gave the same
        class to everything, which says nothing about how they tell classes apart.
    per_class
        When one person gives this class, how often another one gives it also; None if no person
        gave it.
    n_examples
        How many examples at least two people have labelled.
    """

    alpha: Estimate | None
    per_class: tuple[Estimate | None, ...]
    n_examples: int


def agreement(votes: Votes) -> Agreement:
    """The agreement on the examples that at least two people have labelled.

    The intervals are by the Bayesian bootstrap over the examples (Rubin, 1981). Half an example
    on which people agree and half of one on which they do not are added, as in Jeffreys' prior:
    without them, a few examples without a disagreement would promise perfect agreement.

    Examples
    --------
    >>> labels = [{"ann": "dent", "bob": "dent"}] * 5 + [{"ann": "fine", "bob": "fine"}] * 20
    >>> labels += [{"ann": "dent", "bob": "fine"}]
    >>> found = agreement(Votes.of(labels, ["ann", "bob"], ["dent", "fine"]))
    >>> round(found.alpha.value, 2), found.alpha.low < 0.75
    (0.89, True)
    """
    counts = votes.counts()
    counts = counts[counts.sum(axis=1) > 1]
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=(_SAMPLES, len(counts)))
    added = 2 * rng.gamma(0.5, size=(2, _SAMPLES))
    return Agreement(
        _alpha(counts, weights, added), _per_class(counts, weights, added), len(counts)
    )


def _alpha(
    counts: NDArray[np.float64], weights: NDArray[np.float64], added: NDArray[np.float64]
) -> Estimate | None:
    sizes, by_class = counts.sum(axis=1), counts.sum(axis=0)
    total = by_class.sum()
    if np.count_nonzero(by_class) < 2:
        return None
    apart = (sizes**2 - (counts**2).sum(axis=1)) / (sizes - 1)
    expected = (total**2 - (by_class**2).sum()) / (total - 1)
    value = 1 - apart.sum() / expected
    frequencies = weights @ counts
    frequencies /= frequencies.sum(axis=1, keepdims=True)
    observed = (weights @ apart + added[0]) / (weights @ sizes + added.sum(axis=0))
    return _estimate(value, 1 - observed / (1 - (frequencies**2).sum(axis=1)))


def _per_class(
    counts: NDArray[np.float64], weights: NDArray[np.float64], added: NDArray[np.float64]
) -> tuple[Estimate | None, ...]:
    again = counts * (counts - 1) / (counts.sum(axis=1, keepdims=True) - 1)
    return tuple(
        _estimate(
            own.sum() / given.sum(),
            (weights @ own + added[1]) / (weights @ given + added.sum(axis=0)),
        )
        if given.any()
        else None
        for own, given in zip(again.T, counts.T)
    )


def _estimate(value: float, samples: NDArray[np.float64]) -> Estimate:
    low, high = np.quantile(samples, _QUANTILES)
    # As usual with Jeffreys' prior, the interval contains what was seen.
    return Estimate(float(value), min(float(low), float(value)), max(float(high), float(value)))
