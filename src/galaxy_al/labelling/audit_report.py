"""What an audit says so far, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

from galaxy_al.audit.measures import ClassAudit
from galaxy_al.labelling.audits import AuditFacts
from galaxy_al.models.estimates import Interval

_SURPRISE = 1e-3  # the probability below which answers are remarked


@dataclass(frozen=True)
class AuditReport:
    """An audit at one moment.

    Parameters
    ----------
    begun
        The time in UTC.
    n_answered, n_drawn, n_wanted
        The draws that count, all draws, and the draws that are planned.
    share
        The share of the questions that are draws.
    classes
        By name, the majority class last; empty if the pool has changed too much to tell.
    notes
        Sentences about what a reader must know.
    ended
        Why the audit cannot be continued; empty if it can.
    """

    begun: str
    n_answered: int
    n_drawn: int
    n_wanted: int
    share: float
    classes: dict[str, ClassAudit]
    balanced_accuracy: Interval | None
    notes: tuple[str, ...]
    ended: str

    def lines(self) -> Iterator[str]:
        """The report as a person reads it."""
        if self.ended:
            yield self.ended
        if self.balanced_accuracy is None:
            return
        yield (
            f"Audit of {self.begun[:10]}: {self.n_answered:,} of {self.n_wanted:,} random examples "
            "answered."
        )
        for name, found in list(self.classes.items())[:-1]:
            yield f"{name}: {_left(found)}"
            yield f"  {_decisions(name, found)}"
        yield f"Balanced accuracy of the model: {_percent(self.balanced_accuracy)}."
        yield from self.notes
        yield "Each interval holds the truth with 95% confidence, whenever you look."


def report_of(facts: AuditFacts) -> AuditReport:
    """The report of an audit."""
    result, names = facts.result, facts.record.classes
    return AuditReport(
        begun=facts.record.created_at,
        n_answered=facts.n_answered,
        n_drawn=facts.n_drawn,
        n_wanted=facts.plan.n_wanted,
        share=facts.plan.share,
        classes={name: result.of_class(k) for k, name in enumerate(names)} if result else {},
        balanced_accuracy=result.balanced_accuracy() if result else None,
        notes=tuple(_notes(facts)) if result else (),
        ended=facts.ended,
    )


def _notes(facts: AuditFacts) -> Iterator[str]:
    grown = facts.pool_size - facts.record.size
    if grown > 0:
        yield (
            f"The pool has grown by {_examples(grown)} since the audit began. The audit speaks "
            f"about the {facts.record.size:,} that were there."
        )
    if facts.n_cannot_tell:
        verb = "counts" if facts.n_cannot_tell == 1 else "count"
        yield (
            f"{_examples(facts.n_cannot_tell)} could not be labelled and {verb} as none of the "
            "classes."
        )
    waiting = facts.n_drawn - facts.n_open - facts.n_answered
    if waiting > 0:
        verb = "waits" if waiting == 1 else "wait"
        yield f"{_examples(waiting)} with an answer {verb} for one that was drawn earlier."
    for name, answers in facts.answers.items():
        yield from _doubts(name, answers, facts)


def _doubts(name: str, answers: Sequence[tuple[int, str]], facts: AuditFacts) -> Iterator[str]:
    """A sentence about an annotator whose answers are all the same, against all odds."""
    labels = {label for _, label in answers}
    if len(labels) != 1:
        return
    label = labels.pop()
    k = facts.record.classes.index(label)
    expected = facts.record.expected
    others = sum(1 - expected[stratum][k] for stratum, _ in answers)
    if exp(-others) < _SURPRISE:  # by Poisson's distribution
        yield (
            f"{name} answered {label} {len(answers):,} times and nothing else, where the model "
            f"expected about {others:.0f} of other classes. Either the model or these answers are "
            "wrong: look at some of them again."
        )


def _left(found: ClassAudit) -> str:
    left = found.left
    return (
        f"about {left.value:,.0f} left ({left.low:,.0f} to {left.high:,.0f}); "
        f"{_percent(found.found)} of the class have a label."
    )


def _decisions(name: str, found: ClassAudit) -> str:
    if found.precision is None:
        return f"The model decides no example to be {name}; recall {_percent(found.recall)}."
    return f"Decisions: precision {_percent(found.precision)}, recall {_percent(found.recall)}."


def _percent(interval: Interval) -> str:
    value, low, high = (100 * part for part in (interval.value, interval.low, interval.high))
    digits = 1 if value < 10 else 0
    return f"{value:.{digits}f}% ({low:.{digits}f} to {high:.{digits}f}%)"


def _examples(count: int) -> str:
    return f"{count:,} example{'' if count == 1 else 's'}"
