"""How many labels drawn at random would prove that few rare examples are left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import lgamma, log

from galaxy_al.advice.random_labels import ERROR
from galaxy_al.errors import InvalidArgument

_AFFORDABLE = 150  # random labels that are never too many; as many as were given are not either
_ROUND = (1, 2, 5)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Proof:
    """A plan: draw labels at random, and if none is rare, few are left.

    Parameters
    ----------
    n_labels
        How many labels to draw.
    limit
        How many rare examples are left at most, if none of them is rare.
    n_free
        How many examples have no label now.
    is_cheap
        Whether it takes at most as many labels as were given so far.
    """

    n_labels: int
    limit: int
    n_free: int
    is_cheap: bool


def n_to_prove(n_free: int, limit: int, error: float = ERROR) -> int:
    """How many labels, drawn at random and none of them rare, prove that few are left.

    If more than ``limit`` are left, so many draws without replacement miss all of them with a
    probability of at most the error. The number is the smallest with which this is so. It holds
    for a plan that is made before the first draw; who looks earlier needs an audit.

    Parameters
    ----------
    n_free
        How many examples have no label.

    Examples
    --------
    >>> n_to_prove(1000, limit=10)
    238
    >>> n_to_prove(1_000_000, limit=10)
    238403
    """
    if not 0 < error < 1:
        raise InvalidArgument(f"error must be between 0 and 1, got {error!r}.")
    if n_free < 0 or limit < 0:
        raise InvalidArgument(f"n_free and limit must be at least 0, got {n_free} and {limit}.")
    n_rare = limit + 1
    if n_rare > n_free:
        return 0
    low, high = 0, n_free - n_rare + 1  # so many cannot miss all of them
    while low < high:
        middle = (low + high) // 2
        if _log_miss(n_free, n_rare, middle) <= log(error):
            high = middle
        else:
            low = middle + 1
    return low


def plan_proof(n_free: int, n_labels: int, limit: int | None = None) -> Proof:
    """A proof that is worth its labels, or what it would take.

    Parameters
    ----------
    n_labels
        How many labels were given so far: so many more are affordable.
    limit
        What to prove; by default the smallest of 1, 2, 5, 10, 20 and so on that is affordable.

    Examples
    --------
    >>> plan_proof(1000, n_labels=300)
    Proof(n_labels=238, limit=10, n_free=1000, is_cheap=True)
    >>> plan_proof(1_000_000, n_labels=300, limit=9).is_cheap
    False
    """
    affordable = max(n_labels, _AFFORDABLE)
    if limit is None:
        limit = next(m for m in _round_numbers() if n_to_prove(n_free, m) <= affordable)
    needed = n_to_prove(n_free, limit)
    return Proof(needed, limit, n_free, needed <= affordable)


def allowed_left(n_found: int, target_recall: float) -> int:
    """How many may be left if the found ones are to be this share of all.

    Examples
    --------
    >>> allowed_left(90, 0.9), allowed_left(8, 0.9), allowed_left(57, 0.95)
    (10, 0, 3)
    """
    return int(n_found / target_recall - n_found + _ROUNDING)


def _round_numbers() -> Iterator[int]:
    return (digit * 10**power for power in count() for digit in _ROUND)


def _log_miss(n_free: int, n_rare: int, n_draws: int) -> float:
    """The logarithm of the probability that draws miss all rare examples."""
    n_others = n_free - n_rare
    return float(
        lgamma(n_others + 1)
        - lgamma(n_others - n_draws + 1)
        + lgamma(n_free - n_draws + 1)
        - lgamma(n_free + 1)
    )
