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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from galaxy_al.audit.draws import CANNOT_TELL, Counts, Draws
from galaxy_al.audit.measures import Audit, Labeled
from galaxy_al.audit.sampling import Strata, believed, chances
from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.audit_records import AuditRecord, DrawRecord, as_tuples, packed
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.project import Project
from galaxy_al.system.files import digest

_UNKNOWN = -2  # of an example whose label was undone


class ProjectAudit:
    """An audit that is running or over.

    Parameters
    ----------
    draws, entries
        All draws of this audit, and the whole log.
    """

    def __init__(
        self,
        project: Project,
        record: AuditRecord,
        draws: Sequence[DrawRecord],
        entries: Sequence[Entry],
    ) -> None:
        self.record = record
        self.strata = record.unpacked()
        self._project = project
        self._draws = list(draws)
        self._entries = [entry for entry in entries if entry.number > record.after]
        self._log = Log(self._entries)
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
        free = np.flatnonzero(self.strata.of == stratum)
        free = free[~np.isin(free, list(replay.out))]
        return DrawRecord(
            audit=self.record.number,
            example=self._project.ids_of([int(rng.choice(free))])[0],
            stratum=stratum,
            n_free=as_tuples(replay.n_free),
            chances=as_tuples(chance),
            after=self._entries[-1].number if self._entries else self.record.after,
        )

    def made(self, draw: DrawRecord) -> None:
        """A draw is on disk."""
        self._draws.append(draw)

    def result(self) -> Audit:
        """What the draws so far say."""
        replay = self._replay()
        labeled = Labeled(np.array(self.record.confusion, dtype=np.int64))
        return Audit(self.strata, labeled, replay.draws(), replay.n_free, replay.known)

    def _class_of(self, example: str) -> int:
        """The class index of an example now; `CANNOT_TELL`, or `_UNKNOWN` if it has no answer."""
        entry = self._log.current(example)
        if entry is None or entry.kind == "skip":
            return _UNKNOWN
        if entry.kind == "cannot tell":
            return CANNOT_TELL
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


class _Replay:
    """The state of an audit while its history is gone through.

    Attributes
    ----------
    out
        The examples that are not free: they have an answer, or were drawn.
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
        self._answers: defaultdict[int, set[int]] = defaultdict(set)  # numbers of entries
        self._n_unknown, self._is_over = 0, False
        self._rows: list[tuple[int, int, Counts, NDArray[np.float64], Counts]] = []
        self._known_then = self.known.copy(), self.n_free.copy()

    def draw(self, draw: DrawRecord, index: int) -> None:
        """A draw was made."""
        label = self._classes[index]
        self._is_over |= bool(self._n_unknown) or label == _UNKNOWN
        if not self._is_over:
            chance = np.array(draw.chances)
            row = (draw.stratum, label, self.n_free.copy(), chance, self.known.copy())
            self._rows.append(row)
            self.n_draws[draw.stratum] += 1
            if label != CANNOT_TELL:
                self.hits[draw.stratum, label] += 1
        self._drawn.add(index)
        self._leave(index)

    def entry(self, entry: Entry, index: int) -> None:
        """Something was written to the log."""
        answers = self._answers[index]
        if entry.kind in ("label", "cannot tell"):
            answers.add(entry.number)
            self._leave(index)
        elif entry.kind == "undo":
            answers.discard(entry.undoes or 0)
            if not answers and index not in self._drawn:  # nor has another person answered it
                self._return(index)

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


@dataclass(frozen=True)
class Beginning:
    """What an audit needs to know of a model when it begins.

    Parameters
    ----------
    strata
        Of the examples without a label.
    confusion
        As of `Labeled`.
    """

    strata: Strata
    confusion: Counts


def begin_audit(
    project: Project, beginning: Beginning, n_wanted: int, last_entry: int
) -> AuditRecord:
    """The record of a new audit."""
    if not (beginning.strata.of >= 0).any():
        raise GalaxyError("Every example has a label: there is nothing to audit.")
    return AuditRecord(
        classes=project.classes,
        size=len(project.pool),
        digest=ids_digest(project.pool.ids),
        n_wanted=n_wanted,
        after=last_entry,
        strata=packed(beginning.strata.of),
        decided=as_tuples(beginning.strata.decided),
        expected=as_tuples(beginning.strata.expected),
        confusion=as_tuples(beginning.confusion),
    )


def ids_digest(ids: Iterable[str]) -> str:
    """What a list of ids is known by."""
    return digest(f"{id}\n".encode("utf-8", "surrogateescape") for id in ids)


def why_ended(project: Project, record: AuditRecord) -> str:
    """Why an audit cannot be continued, in one sentence; empty if it can."""
    begun = record.created_at[:10]
    if record.classes != project.classes:
        return (
            f"The audit of {begun} is over: the classes were {', '.join(record.classes)} then. "
            "Start another one."
        )
    size = len(project.pool)
    if size < record.size or ids_digest(project.pool.ids[: record.size]) != record.digest:
        return f"The audit of {begun} is over: the pool has changed since. Start another one."
    return ""
