"""What a training tells beside its model: how good it is, what is left, what would come next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from galaxy_al.advice.forecast import expected_average_precision
from galaxy_al.audit.random_sample import (
    Accuracy,
    Answer,
    accuracy_of,
    random_audit,
    strata_of_decisions,
)
from galaxy_al.errors import PoolExhausted
from galaxy_al.labelling.model import MOST_ROWS, DecidedPool, decide_table
from galaxy_al.labelling.project import Project
from galaxy_al.learner import NextRound
from galaxy_al.models.auto import AutoModel, HeldOut
from galaxy_al.models.decisions import DEFAULT_RULE, choose_thresholds
from galaxy_al.models.estimates import Interval, estimate_decisions, held_out_table
from galaxy_al.strategies import Session
from galaxy_al.strategies.copying import fork

_PLANNED = 200  # questions that are looked ahead
_DIGITS = 4


@dataclass(frozen=True)
class Insight:
    """What a round tells beside its model.

    Parameters
    ----------
    count
        How many rare examples are in the pool, by the model.
    planned
        The probability of being rare of what the strategy would ask next.
    average_precision
        The average precision of the ranking, as its own probabilities expect it.
    n_more
        About how many more random labels make the interval of the balanced accuracy narrow enough
        to show; 0 if it is, None if too many.
    n_random
        How many random labels the balanced accuracy rests on.
    """

    count: Interval
    planned: tuple[float, ...]
    average_precision: float
    n_more: int | None
    n_random: int

    def dumps(self) -> str:
        """As text, for the database."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> Insight:
        """From the text."""
        values = json.loads(text)
        count, planned = Interval(**values.pop("count")), tuple(values.pop("planned"))
        return cls(count=count, planned=planned, **values)


def insight_of(
    project: Project, ready: NextRound, answers: Sequence[Answer]
) -> tuple[Insight, Interval] | None:
    """The insight of a round and its balanced accuracy; None if nothing can be told.

    Parameters
    ----------
    answers
        All current answers, in the order of their questions.
    """
    model = ready.model
    if not isinstance(model, AutoModel) or model.held_out is None or len(project.pool) > MOST_ROWS:
        return None
    if len(set(model.held_out.targets.tolist())) < 2:
        return None
    table = held_out_table(np.asarray(ready.snapshot.proba), model.held_out)
    decided = decide_table(table, model.class_priors, project)
    accuracy = _accuracy(project, decided, answers)
    return (
        Insight(
            count=_count(table, model.held_out),
            planned=_planned(fork(ready.session), table),
            average_precision=_expected_precision(table, model.held_out),
            n_more=accuracy.n_more,
            n_random=sum(answer.is_random for answer in answers),
        ),
        accuracy.interval,
    )


def _accuracy(project: Project, decided: DecidedPool, answers: Sequence[Answer]) -> Accuracy:
    strata = strata_of_decisions(decided.classes, decided.proba.astype(np.float64))
    of = strata.of.copy()
    of[list(project.bad)] = -1
    audit = random_audit(answers, replace(strata, of=of))
    return accuracy_of(audit, np.random.default_rng(0))


def _count(table: NDArray[np.floating], held_out: HeldOut) -> Interval:
    """Of all rare classes as one."""
    merged = _as_two(table)
    targets = (held_out.targets == table.shape[1] - 1).astype(np.int64)
    two = HeldOut(held_out.indices, targets, _as_two(held_out.proba))
    decision = choose_thresholds(DEFAULT_RULE, merged, merged.mean(axis=0, dtype=np.float64))
    return estimate_decisions(merged, two, decision).classes[0].count


def _as_two(table: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.column_stack([1 - table[:, -1], table[:, -1]])


def _expected_precision(table: NDArray[np.floating], held_out: HeldOut) -> float:
    rare = 1 - table[:, -1].astype(np.float64)
    rare[held_out.indices] = held_out.targets != table.shape[1] - 1
    return expected_average_precision(rare)


def _planned(session: Session, table: NDArray[np.floating]) -> tuple[float, ...]:
    """What a session asks if each answer is the likeliest one; it must be a copy."""
    planned: list[int] = []
    try:
        while len(planned) < _PLANNED:
            planned.append(session.ask())
    except PoolExhausted:
        pass
    return tuple(np.round(1 - table[planned, -1].astype(np.float64), _DIGITS).tolist())
