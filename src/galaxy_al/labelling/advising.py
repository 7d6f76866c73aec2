"""What to tell the people of a project: how many are left, what comes next, when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor

import numpy as np

from galaxy_al.advice.forecast import forecast_finds, forecast_rise
from galaxy_al.advice.left import Left, left_by_model
from galaxy_al.advice.proof import plan_proof
from galaxy_al.advice.random_labels import RandomLabels
from galaxy_al.advice.sentences import (
    Progress,
    advice_sentence,
    finds_clause,
    plural,
    recall_text,
    rise_clause,
)
from galaxy_al.advice.stopping import State, StopAdvice, advise_stop, evidence_of
from galaxy_al.audit.random_sample import HALF_WIDTH, MOST_IMAGINED
from galaxy_al.labelling.audits import AuditFacts
from galaxy_al.labelling.database import Database, PoolRecord, RoundRecord
from galaxy_al.labelling.evaluation import last_change
from galaxy_al.labelling.insight import Insight
from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.project import Project
from galaxy_al.models.estimates import Interval

_LAST = 100  # questions that are looked back at
_AHEAD = (50, 100, 200)


@dataclass(frozen=True)
class Forecast:
    """How many rare examples so many more questions may find; None if it is too early to tell."""

    n: int
    found: Interval | None


@dataclass(frozen=True)
class Advice:
    """What is known of the progress, in sentences and in numbers.

    Parameters
    ----------
    sentence
        How many were found, how many are left, and what would prove it.
    outlook
        What more labels may bring.
    accuracy
        The balanced accuracy of the model by random labels, or how many more it takes.
    left
        How many rare examples have no label; None if that cannot be told.
    finds
        How many the next questions may find.
    stop
        What the stop rule says; None if the project has none.
    """

    sentence: str
    outlook: str
    accuracy: str
    left: Left | None
    finds: tuple[Forecast, ...]
    stop: State | None


@dataclass(frozen=True)
class Course:
    """How a project got to where it is.

    Parameters
    ----------
    majority
        The name of the majority class.
    entries
        The current entry of each example, in the order in which the examples were answered.
    rounds, pools
        As of the database.
    audits
        What each audit knows now, the first one first.
    target_recall
        As of the settings.
    """

    majority: str
    entries: Sequence[Entry]
    rounds: Sequence[RoundRecord]
    pools: Sequence[PoolRecord]
    audits: Sequence[AuditFacts | None]
    target_recall: float

    def advice(self) -> Advice:
        """What to tell."""
        stop = self._stop() if self.target_recall else None
        progress = Progress(
            n_found=self.n_found,
            n_free=self.n_free,
            n_labels=len(self.entries),
            last=self._last(),
            left=self._left(),
            proof=plan_proof(self.n_free, len(self.entries)) if self.n_free else None,
            stop=stop,
            audit=self._running_audit(),
            bound=self._guaranteed,
        )
        ahead = sorted({min(n, self.n_free) for n in _AHEAD} - {0})
        finds = tuple(Forecast(n, self._finds(n)) for n in ahead)
        return Advice(
            sentence=advice_sentence(progress),
            outlook=self._outlook(finds),
            accuracy=self._accuracy(),
            left=progress.left,
            finds=finds,
            stop=None if stop is None else stop.state,
        )

    @property
    def n_usable(self) -> int:
        """The examples that can be labelled."""
        return self.pools[-1].n_usable

    @property
    def n_free(self) -> int:
        """The examples without an answer."""
        return max(self.n_usable - len(self.entries), 0)

    @cached_property
    def is_rare(self) -> list[bool]:
        """Of each entry, whether it is a label of a rare class."""
        return [entry.kind == "label" and entry.label != self.majority for entry in self.entries]

    @property
    def n_found(self) -> int:
        """The rare examples with a label."""
        return sum(self.is_rare)

    @cached_property
    def evidence(self) -> list[Left]:
        """What random labels say of how many are left."""
        return evidence_of(
            [None if facts is None or facts.ended else facts.result for facts in self.audits],
            self._random_labels(),
            self.n_free,
            self.n_found,
            n_added=self._n_added(),
        )

    def _random_labels(self) -> RandomLabels:
        """Those that were drawn from all examples that the pool has now."""
        since = last_change(self.pools)
        is_random = [entry.is_random and entry.number > since for entry in self.entries]
        return RandomLabels.of_history(self.n_usable, self.is_rare, is_random)

    def _n_added(self) -> int:
        last = self.audits[-1] if self.audits else None
        return 0 if last is None else max(last.pool_size - last.record.size, 0)

    def _left(self) -> Left | None:
        """By an audit, or by the model, or by the random labels of the strategy."""
        guaranteed, insight = self._guaranteed, self._insight
        if guaranteed is not None and guaranteed.source == "audit":
            return guaranteed
        by_model = insight and left_by_model(insight.count, self.n_found, self.n_free)
        return by_model or guaranteed

    @property
    def _guaranteed(self) -> Left | None:
        """The narrowest that is guaranteed."""
        return min(self.evidence, key=lambda one: one.high - one.low, default=None)

    @cached_property
    def _insight(self) -> Insight | None:
        texts = [record.insight for record in self.rounds if record.insight]
        return Insight.loads(texts[-1]) if texts else None

    def _stop(self) -> StopAdvice:
        return advise_stop(
            self.target_recall, self.n_found, self.n_free, self._n_since_find(), self.evidence
        )

    def _n_since_find(self) -> int:
        """The questions of the strategy since the last rare example was found in any way."""
        last = max((i for i, is_rare in enumerate(self.is_rare) if is_rare), default=-1)
        return sum(entry.source == "asked" for entry in self.entries[last + 1 :])

    def _last(self) -> tuple[int, int] | None:
        asked = self._asked()[-_LAST:]
        return (len(asked), sum(asked)) if asked else None

    def _asked(self, *, at_random: bool = True) -> list[bool]:
        """Whether each question of the strategy found a rare example."""
        return [
            is_rare
            for entry, is_rare in zip(self.entries, self.is_rare)
            if entry.source == "asked" and (at_random or not entry.is_random)
        ]

    def _running_audit(self) -> tuple[int, int] | None:
        last = self.audits[-1] if self.audits else None
        if last is None or last.ended or last.result is None:
            return None
        progress = last.n_answered, last.plan.n_wanted
        return progress if last.n_answered < last.plan.n_wanted else None

    def _finds(self, n: int) -> Interval | None:
        if self._insight is None:
            return None
        planned, recent = np.array(self._insight.planned), self._asked(at_random=False)
        return forecast_finds(planned, recent, n, self.n_found) if len(planned) else None

    def _accuracy(self) -> str:
        last = self.audits[-1] if self.audits else None
        if last is not None and last.result is not None and last.n_answered:
            begun, interval = last.record.created_at[:10], last.result.balanced_accuracy()
            if interval.high - interval.low > 2 * HALF_WIDTH:
                return f"Not enough labels in the audit of {begun} yet ({_bounds(interval)})."
            return f"{recall_text(interval)} by the audit of {begun}."
        if self._insight is None or not self.rounds:
            return ""
        record, n_more = self.rounds[-1], self._insight.n_more
        if record.accuracy is None or record.low is None or record.high is None:
            return ""
        interval = Interval(record.accuracy, record.low, record.high)
        if n_more == 0:
            return f"{recall_text(interval)} by {self._insight.n_random:,} random labels."
        more = f"more than {MOST_IMAGINED}" if n_more is None else f"about {n_more:,}"
        return f"Not enough random labels yet ({_bounds(interval)}): {more} more give ±10."

    def _outlook(self, finds: Sequence[Forecast]) -> str:
        if self._insight is None or not self.n_free:
            return ""
        n = min(_AHEAD[1], self.n_free)
        precise = [(r.n_labels, Insight.loads(r.insight)) for r in self.rounds if r.insight]
        rise = forecast_rise([(labels, each.average_precision) for labels, each in precise], n)
        (found,) = [each.found for each in finds if each.n == n]
        if found is None and rise is None:
            labels = plural(n, "more label", "more labels")
            return f"It is too early to tell what {labels} will bring."
        text = f"{finds_clause(found, n)}; {rise_clause(rise, n)}"
        return f"{text[0].upper()}{text[1:]}."


def _bounds(interval: Interval) -> str:
    return f"{floor(100 * interval.low)} to {ceil(100 * interval.high)}%"


def counted(project: Project, history: Sequence[Entry]) -> list[Entry]:
    """The entries about examples that the pool has, with labels of classes it knows."""
    index_of = project.usable_indices(entry.example for entry in history)
    return [
        entry
        for entry in history
        if entry.example in index_of
        and (entry.kind == "cannot tell" or entry.label in project.classes)
    ]


def note_pool(database: Database, project: Project, last_entry: int) -> list[PoolRecord]:
    """The sizes of the pool in order; a new one is written."""
    found, size = database.pools(), len(project.pool)
    if not found or (found[-1].size, found[-1].n_usable) != (size, size - len(project.bad)):
        found.append(database.add_pool(PoolRecord(size, size - len(project.bad), last_entry)))
    return found
