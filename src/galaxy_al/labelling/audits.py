"""The audit of a project: what it draws, and what it says so far.

An audit is about the examples that had no label when it began. Everything follows from its record,
its draws and the log. Three rules keep it right whatever else happens meanwhile:

- A draw is made from all examples of a stratum that have no label at that moment, also from those
  that an annotator is looking at. It stays open until its example has an answer, of any annotator.
- Draws count in the order in which they were made, up to the first one that is open or that was
  made when an example had a label that was undone since.
- An example that cannot be told counts as none of the classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from galaxy_al.audit.draws import CANNOT_TELL, Counts, Draws
from galaxy_al.audit.measures import Audit, Labeled
from galaxy_al.audit.random_sample import Answer, continued, random_audit
from galaxy_al.audit.sampling import Strata, believed, chances
from galaxy_al.labelling.audit_beginning import strata_of
from galaxy_al.labelling.audit_records import AuditRecord, DrawRecord, PlanRecord, as_tuples
from galaxy_al.labelling.evaluation import answers_of
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.project import Project

_UNKNOWN = -2  # of an example whose label was undone
_TRIES = 100  # to find a free example of a stratum at random, before all are listed


@dataclass(frozen=True)
class AuditFacts:
    """An audit at one moment, which nothing changes any more.

    Parameters
    ----------
    result
        What the draws say, and the random labels of the strategy; None if the pool has changed too
        much to tell.
    pool_size
        The number of examples in the pool now.
    ended
        Why the audit cannot be continued; empty if it can.
    n_drawn, n_answered, n_open, n_cannot_tell
        The draws, those that count, those without an answer, and those that an annotator could not
        label.
    answers
        For each annotator the stratum and the label of the drawn examples they labelled.
    """

    record: AuditRecord
    plan: PlanRecord
    result: Audit | None
    pool_size: int
    ended: str
    n_drawn: int
    n_answered: int
    n_open: int
    n_cannot_tell: int
    answers: Mapping[str, Sequence[tuple[int, str]]]

    @classmethod
    def of_past(cls, record: AuditRecord, plan: PlanRecord, ended: str) -> AuditFacts:
        """An audit of which nothing can be computed any more."""
        return cls(record, plan, None, 0, ended, 0, 0, 0, 0, {})


class ProjectAudit:
    """An audit whose examples the pool still has.

    Parameters
    ----------
    plan
        The last one; the caller may replace it.
    draws, entries
        All draws of this audit, and the whole log.
    ended
        Why the audit cannot be continued; empty if it can.
    """

    def __init__(
        self,
        project: Project,
        record: AuditRecord,
        plan: PlanRecord,
        draws: Sequence[DrawRecord],
        entries: Sequence[Entry],
        ended: str = "",
    ) -> None:
        self.record, self.plan, self.ended = record, plan, ended
        every = strata_of(record, len(project.pool))
        self._project = project
        self._every, self._answers_before = every, self._answered_before(every, entries)
        self.strata = without(every, [answer.example for answer in self._answers_before])
        self._members = _members(self.strata)
        self._draws = list(draws)
        self._entries = [entry for entry in entries if entry.number > record.after]
        self._log = Log(entries, project.classes)
        self._class_index = {name: k for k, name in enumerate(record.classes)}

    def add(self, entry: Entry) -> None:
        """Note the next entry of the log."""
        self._entries.append(entry)
        self._log.add(entry)

    @property
    def n_drawn(self) -> int:
        """How many draws there were."""
        return len(self._draws)

    def open_draws(self) -> list[str]:
        """The drawn examples without an answer, the oldest first."""
        return [draw.example for draw in self._draws if self._class_of(draw.example) == _UNKNOWN]

    def draw(self, rng: np.random.Generator) -> DrawRecord | None:
        """The next draw; None if no example is left. The caller writes it, then `made` takes it."""
        replay = self._replay()
        if not replay.n_free.sum():
            return None
        rates = believed(self.strata.expected, replay.hits, replay.n_draws)
        chance = chances(replay.n_free, rates, replay.n_draws)
        stratum = int(rng.choice(len(chance), p=chance))
        index = self._free_example(stratum, replay.out, rng)
        return DrawRecord(
            audit=self.record.number,
            example=self._project.ids_of([index])[0],
            stratum=stratum,
            n_free=as_tuples(replay.n_free),
            chances=as_tuples(chance),
            after=self._entries[-1].number if self._entries else self.record.after,
        )

    def made(self, draw: DrawRecord) -> None:
        """A draw is on disk."""
        self._draws.append(draw)

    def _free_example(self, stratum: int, out: set[int], rng: np.random.Generator) -> int:
        """An example of a stratum that is not out, each with the same chance."""
        members = self._members[stratum]
        for _ in range(_TRIES):
            index = int(rng.choice(members))
            if index not in out:
                return index
        return int(rng.choice([index for index in members.tolist() if index not in out]))

    def _answered_before(self, strata: Strata, entries: Iterable[Entry]) -> list[Answer]:
        """What was answered before the audit."""
        before = [entry for entry in entries if entry.number <= self.record.after]
        history = Log(before, self.record.classes).history()
        given = answers_of(self._project, self.record.classes, history, self.record.random_after)
        return [answer for answer in given if strata.of[answer.example] >= 0]

    def _before(self) -> Audit:
        """What the answers before the audit say by themselves, with what was corrected since."""
        examples = [answer.example for answer in self._answers_before]
        now = [self._class_of(id) for id in self._project.ids_of(examples)]
        answers = [
            answer if class_index == _UNKNOWN else answer._replace(class_index=class_index)
            for answer, class_index in zip(self._answers_before, now)
        ]
        return random_audit(answers, self._every)

    def facts(self) -> AuditFacts:
        """Everything that is known now."""
        replay = self._replay()
        nothing = np.zeros((len(self.record.classes),) * 2, dtype=np.int64)
        since = Audit(self.strata, Labeled(nothing), replay.draws(), replay.n_free, replay.known)
        answers: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for draw in self._draws:
            entry = self._log.current(draw.example)
            if entry is not None and entry.label is not None:
                answers[entry.annotator].append((draw.stratum, entry.label))
        return AuditFacts(
            record=self.record,
            plan=self.plan,
            result=continued(self._before(), since),
            pool_size=len(self._project.pool),
            ended=self.ended,
            n_drawn=self.n_drawn,
            n_answered=replay.n_answered,
            n_open=len(self.open_draws()),
            n_cannot_tell=sum(self._class_of(d.example) == CANNOT_TELL for d in self._draws),
            answers=answers,
        )

    def _class_of(self, example: str) -> int:
        """The class index of an example now; `CANNOT_TELL`, or `_UNKNOWN` if it has no answer."""
        entry = self._log.current(example)
        if entry is None or entry.kind == "skip":
            return _UNKNOWN
        if entry.kind == "label" and entry.label not in {
            *self._project.classes,
            *self._class_index,
        }:
            return _UNKNOWN  # a class that was removed before
        return self._class_index.get(entry.label or "", CANNOT_TELL)

    def _replay(self) -> _Replay:
        """Everything that happened since the audit began, in order."""
        examples = {entry.example for entry in self._entries} | {d.example for d in self._draws}
        indices = self._project.indices(examples)
        classes = {index: self._class_of(example) for example, index in indices.items()}
        replay = _Replay(self.strata, classes)
        draws = iter(self._draws)
        draw = next(draws, None)
        for entry in self._entries:
            while draw is not None and draw.after < entry.number:
                replay.draw(draw, indices[draw.example])
                draw = next(draws, None)
            if entry.example in indices:
                replay.entry(entry, indices[entry.example])
        while draw is not None:
            replay.draw(draw, indices[draw.example])
            draw = next(draws, None)
        return replay


def without(strata: Strata, labeled: list[int]) -> Strata:
    """Strata of which some examples have left."""
    of = strata.of.copy()
    of[labeled] = -1
    return replace(strata, of=of)


def _members(strata: Strata) -> list[NDArray[np.intp]]:
    """The examples of each stratum."""
    order = np.argsort(strata.of, kind="stable")
    places = np.searchsorted(strata.of[order], np.arange(len(strata.decided) + 1))
    return [order[low:high] for low, high in pairwise(places)]


class _Replay:
    """The state of an audit while its history is gone through.

    Attributes
    ----------
    out
        The examples that are not free: they have an answer, or were drawn.
    n_answered
        The draws of the audit that count.
    """

    def __init__(self, strata: Strata, classes: dict[int, int]) -> None:
        self._of, self._classes = strata.of, classes
        n_strata, n_classes = strata.expected.shape
        self.n_free = strata.sizes
        self.known = np.zeros((n_strata, n_classes), dtype=np.int64)
        self.hits = np.zeros_like(self.known)
        self.n_draws = np.zeros(n_strata, dtype=np.int64)
        self.out: set[int] = set()
        self._drawn: set[int] = set()
        self._asked: set[int] = set()  # at random, by the strategy
        self._standing: defaultdict[int, set[int]] = defaultdict(set)  # answers, not undone
        self._n_unknown, self._is_over = 0, False
        self.n_answered = 0
        self._rows: list[tuple[int, int, Counts, NDArray[np.float64], Counts]] = []

    def draw(self, draw: DrawRecord, index: int) -> None:
        """A draw was made."""
        label = self._classes[index]
        if self._counts(label):
            self._note(draw.stratum, label, np.array(draw.chances))
            self.n_answered += 1
        self._drawn.add(index)
        self._leave(index)

    def entry(self, entry: Entry, index: int) -> None:
        """Something was written to the log."""
        if entry.kind in ("label", "cannot tell"):
            if entry.is_random and self._of[index] >= 0 and not self._is_used(index):
                self._asked.add(index)  # it may be undone and answered again
                self._random(index)
            self._standing[index].add(entry.number)
            self._leave(index)
        elif entry.kind == "undo":
            self._standing[index].discard(entry.undoes or 0)
            if not self._standing[index] and index not in self._drawn:
                self._return(index)

    def _is_used(self, index: int) -> bool:
        return index in self.out or index in self._asked

    def _random(self, index: int) -> None:
        """The strategy drew an example from all without a label, each with the same chance."""
        label = self._classes[index]
        if label != _UNKNOWN and not self._n_unknown and not self._is_over:
            self._note(int(self._of[index]), label, self.n_free / self.n_free.sum())

    def _counts(self, label: int) -> bool:
        """Whether a draw counts: none does after one that has no answer."""
        self._is_over |= bool(self._n_unknown) or label == _UNKNOWN
        return not self._is_over

    def _note(self, stratum: int, label: int, chances: NDArray[np.float64]) -> None:
        self._rows.append((stratum, label, self.n_free.copy(), chances, self.known.copy()))
        self.n_draws[stratum] += 1
        if label != CANNOT_TELL:
            self.hits[stratum, label] += 1

    def draws(self) -> Draws:
        """The draws that count."""
        n_strata, n_classes = self.known.shape
        if not self._rows:
            none = np.zeros(0, dtype=np.intp)
            empty = np.zeros((0, n_strata, n_classes), dtype=np.int64)
            return Draws(none, none, empty[:, :, 0], np.zeros((0, n_strata)), empty)
        return Draws(*(np.array(part) for part in zip(*self._rows)))

    def _leave(self, index: int) -> None:
        if self._of[index] >= 0 and index not in self.out:
            self.out.add(index)
            self._count(index, 1)

    def _return(self, index: int) -> None:
        if index in self.out:
            self.out.remove(index)
            self._count(index, -1)

    def _count(self, index: int, change: int) -> None:
        stratum, label = self._of[index], self._classes[index]
        self.n_free[stratum] -= change
        if label == _UNKNOWN:
            self._n_unknown += change
        elif label != CANNOT_TELL:
            self.known[stratum, label] += change
