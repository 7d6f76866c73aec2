"""When a project may stop: the found examples are a wanted share of all, by proof.

That a strategy finds nothing more proves nothing: it may be blind for a whole group. So the rule
holds only by labels that were drawn at random, with bounds that hold at every moment. It may be
asked after every label. All of its sources together are wrong in at most 5% of projects:

- the random labels of a strategy in 1%,
- the first audit in 3%, and each later one in a quarter of the one before.

Random labels are expensive where the class is rare, so they should not begin while a strategy still
finds examples. The rule advises them once the strategy has found nothing for a while: a quarter as
many questions as the proof takes. An example that the proof finds ends it for a while. The model
learns it, and the strategy asks until it finds nothing again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from galaxy_al.advice.left import Left, left_by_audit, left_by_random_labels
from galaxy_al.advice.proof import allowed_left, n_to_prove
from galaxy_al.advice.random_labels import RandomLabels
from galaxy_al.audit.measures import Audit
from galaxy_al.errors import InvalidArgument
from galaxy_al.models.estimates import Interval

_ERROR_OF_RANDOM_LABELS = 0.01
_ERROR_OF_FIRST_AUDIT = 0.03
_NEXT_AUDIT = 1 / 4  # of the error of the one before
_PRICE = 1 / 2  # of an error: what it costs that one may look at every moment
_DRY = 1 / 4  # of the labels of a proof, asked without a find, before it begins
_LEAST_DRY, _MOST_DRY = 50, 500

State = Literal["complete", "holds", "sample", "ask"]


@dataclass(frozen=True)
class StopAdvice:
    """Whether the wanted share is found, and what to do if that is not known.

    Parameters
    ----------
    state
        ``"complete"``: every example has a label. ``"holds"``: the share is found, by proof.
        ``"sample"``: draw labels at random. ``"ask"``: the strategy should ask.
    target
        The wanted share.
    evidence
        What says most about how many are left; None before any random label.
    limit
        How many may be left.
    proof
        About how many random labels of an audit prove that, if none of them is rare.
    n_dry
        How many questions without a find come before a proof is worth its labels.
    n_free
        How many examples have no label now.
    """

    state: State
    target: float
    evidence: Left | None
    recall: Interval | None
    limit: int
    proof: int
    n_dry: int
    n_free: int


def checked_target(target: float) -> float:
    """A target recall, above 0 and below 1."""
    if not 0 < target < 1:
        raise InvalidArgument(f"target_recall must be between 0 and 1, got {target!r}.")
    return target


def advise_stop(
    target: float,
    n_found: int,
    n_free: int,
    n_since_find: int,
    evidence: Sequence[Left] = (),
) -> StopAdvice:
    """Whether a share of the rare examples is found, and what to do next.

    Parameters
    ----------
    n_found, n_free
        The rare examples with a label, and all examples without one.
    n_since_find
        How many questions the strategy asked since the last rare example was found in any way.
    evidence
        From `evidence_of`. Numbers by a model are refused.

    Examples
    --------
    >>> advise_stop(0.9, n_found=90, n_free=900, n_since_find=60).state
    'sample'
    >>> advise_stop(0.9, 90, 900, 60, [Left(0.0, 0, 9, "audit", 300)]).state
    'holds'
    """
    checked_target(target)
    if any(one.source == "model" for one in evidence):
        raise InvalidArgument("The stop rule takes numbers by random labels, got some by a model.")
    limit = allowed_left(n_found, target)
    best = min(evidence, key=lambda one: one.high, default=None)
    proof = n_to_prove(n_free, limit, _ERROR_OF_FIRST_AUDIT * _PRICE)
    n_dry = int(min(max(_DRY * n_to_prove(n_free, limit), _LEAST_DRY), _MOST_DRY))
    state: State = "sample" if n_found and n_since_find >= n_dry else "ask"
    if n_free == 0:
        state = "complete"
    elif n_found and best is not None and best.high <= limit:
        state = "holds"
    recall = best.recall(n_found) if best is not None and n_found else None
    return StopAdvice(state, target, best, recall, limit, proof, n_dry, n_free)


def evidence_of(
    audits: Sequence[Audit | None],
    draws: RandomLabels,
    n_free: int,
    n_found: int,
    n_added: int = 0,
) -> list[Left]:
    """What random labels say, each source with its part of the error.

    Parameters
    ----------
    audits
        All audits of the project, the first one first; None for one that is over. It keeps its
        part of the error.
    draws
        The labels that the strategy drew at random, without those of audits. None of them count
        that were drawn before the pool grew.
    n_added
        As of `left_by_audit`.
    """
    # An upper bound is wrong with half of the error of an interval.
    found = [
        left_by_audit(audit, 2 * _ERROR_OF_FIRST_AUDIT * _NEXT_AUDIT**number, n_added=n_added)
        for number, audit in enumerate(audits)
        if audit is not None
    ]
    random = left_by_random_labels(draws, n_free, n_found, _ERROR_OF_RANDOM_LABELS)
    return found if random is None else [*found, random]
