"""How many rare examples have no label, and how that is known.

Labels that were drawn at random say it with a guarantee: an audit, or the random labels of a
strategy. Without them only the model can say it. It does not know of a group of rare examples that
looks like nothing it has seen, so its number is an estimate and not a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from galaxy_al.advice.random_labels import ERROR, RandomLabels, interval_of_left
from galaxy_al.audit.draws import CANNOT_TELL, Draws
from galaxy_al.audit.measures import Audit, Labeled
from galaxy_al.audit.sampling import Strata
from galaxy_al.models.estimates import Interval

MIN_LABELS = 5  # of a class, for an estimate by the model
_WIDER = 2.0  # is the interval by the model than what it says
Table = TypeVar("Table", bound=NDArray[Any])
Source = Literal["audit", "random labels", "model"]


@dataclass(frozen=True)
class Left:
    """How many rare examples have no label.

    Parameters
    ----------
    source
        How that is known. Only the first two are guarantees.
    n_random
        How many labels drawn at random it rests on.
    """

    value: float
    low: int
    high: int
    source: Source
    n_random: int = 0

    def recall(self, n_found: int) -> Interval:
        """The share of the rare examples that was found.

        Examples
        --------
        >>> print(Left(10, 5, 60, "audit").recall(90))
        0.90 (0.60 to 0.95)
        """
        parts = (n_found / max(n_found + n, 1e-9) for n in (self.value, self.high, self.low))
        return Interval(*parts)


def left_by_audit(
    audit: Audit, error: float = ERROR, k: int | None = None, n_added: int = 0
) -> Left:
    """By an audit, at every moment.

    Parameters
    ----------
    error
        The probability that it is ever wrong, half of it on each side.
    k
        A class; by default all rare classes together.
    n_added
        How many examples without a label came to the pool since the audit began. It does not know
        of them: all may be rare.
    """
    if k is None:
        audit, k = all_rare(audit), 0
    total, n_known = audit.total(k, error), int(audit.known[:, k].sum())
    low, high = int(total.low) - n_known, int(total.high) - n_known
    value = float(np.clip(total.value - n_known, low, high))
    return Left(value, low, high + n_added, "audit", len(audit.draws))


def left_by_random_labels(
    draws: RandomLabels, n_free: int, n_found: int, error: float = ERROR
) -> Left | None:
    """By the labels that a strategy drew at random, at every moment; None if there are none."""
    if not len(draws):
        return None
    low, high = interval_of_left(draws, n_free, n_found, error)
    # The draws that are rare stand for examples that were free; most have a label now.
    weights = np.where(draws.is_rare, draws.n_free, 0.0)
    total = float((draws.n_found + weights).mean())
    value = float(np.clip(total - n_found, low, high))
    return Left(value, low, high, "random labels", len(draws))


def left_by_model(count: Interval, n_found: int, n_free: int) -> Left | None:
    """By the model's calibrated probabilities: an estimate, not a guarantee.

    The interval is made wider: labels that a strategy chose tell less than the model assumes.

    Parameters
    ----------
    count
        How many examples of the class are in the pool, of `ClassEstimate`.
    n_found
        How many of them have a label. With fewer than `MIN_LABELS` there is no estimate.

    Examples
    --------
    >>> left_by_model(Interval(46.0, 44.0, 61.0), n_found=40, n_free=900)
    Left(value=6.0, low=2, high=42, source='model', n_random=0)
    """
    if n_found < MIN_LABELS:
        return None
    low, high = floor((count.low - n_found) / _WIDER), ceil((count.high - n_found) * _WIDER)
    value = float(np.clip(count.value - n_found, 0, n_free))
    return Left(value, int(np.clip(low, 0, n_free)), int(np.clip(high, 0, n_free)), "model")


def all_rare(audit: Audit) -> Audit:
    """An audit of all rare classes as one: class 0; class 1 is the majority class."""
    draws, strata = audit.draws, audit.strata
    majority = strata.expected.shape[1] - 1
    classes = np.where(draws.classes == majority, 1, np.minimum(draws.classes, 0))
    merged = Draws(
        draws.strata,
        np.where(draws.classes == CANNOT_TELL, CANNOT_TELL, classes),
        draws.n_free,
        draws.chances,
        _merged(draws.known),
        draws.is_blind,
    )
    decided = np.where(strata.decided == majority, 1, 0)
    return Audit(
        Strata(strata.of, decided, _merged(strata.expected)),
        Labeled(_merged(_merged(audit.labeled.confusion).T).T),
        merged,
        audit.n_free,
        _merged(audit.known),
    )


def _merged(table: Table) -> Table:
    """The last axis has a column per class; afterwards all rare ones are one."""
    merged: Any = np.stack([table[..., :-1].sum(axis=-1), table[..., -1]], axis=-1)
    return cast(Table, merged)
