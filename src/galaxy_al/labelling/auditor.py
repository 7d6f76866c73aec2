"""The audit that is running: it hands out its draws among the other questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.labelling.audit_beginning import is_readable, why_ended
from galaxy_al.labelling.audit_records import AuditRecord, PlanRecord
from galaxy_al.labelling.audit_report import AuditReport, report_of
from galaxy_al.labelling.audits import AuditFacts, ProjectAudit
from galaxy_al.labelling.database import Database
from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.project import Project, open_log, open_project

MIXED = 0.5  # of the questions are draws, if the strategy goes on beside an audit


@dataclass(frozen=True)
class Plan:
    """What an audit is to ask next.

    Parameters
    ----------
    n_draws
        How many examples to draw.
    is_mixed
        Whether the strategy asks every other question.
    """

    n_draws: int
    is_mixed: bool = False

    def __post_init__(self) -> None:
        if self.n_draws < 0:
            raise InvalidArgument(f"labels must be at least 0, got {self.n_draws}.")


class Auditor:
    """Keeps the last audit of a project. The caller makes sure that one thread uses it at a time.

    Parameters
    ----------
    entries
        The whole log.
    """

    def __init__(self, project: Project, database: Database, entries: Sequence[Entry]) -> None:
        self._project, self._database = project, database
        self._entries = list(entries)
        self._audit, self._past = _last_audit(project, database, entries)
        self._rng = np.random.default_rng([abs(project.settings.seed), len(entries), 1])
        self._turns = 0.0
        self._facts: tuple[tuple[int, ...], AuditFacts] | None = None  # of the last moment

    @property
    def is_asking(self) -> bool:
        """Whether draws are to be made, or have no answer yet."""
        audit = self._audit
        if audit is None or audit.ended:
            return False
        return audit.n_drawn < audit.plan.n_wanted or bool(audit.open_draws())

    def add(self, entry: Entry) -> None:
        """Note the next entry of the log."""
        self._entries.append(entry)
        if self._audit is not None:
            self._audit.add(entry)

    @property
    def last_entry(self) -> int:
        """The number of the last entry in the log."""
        return self._entries[-1].number if self._entries else 0

    @property
    def can_continue(self) -> bool:
        """Whether there is an audit that nothing has ended."""
        return self._audit is not None and not self._audit.ended

    def begin(self, record: AuditRecord, plan: Plan) -> None:
        """Begin an audit."""
        record = self._database.add_audit(record)
        self._audit = ProjectAudit(
            self._project, record, self._written(plan, record, 0), [], self._entries
        )

    def extend(self, plan: Plan) -> None:
        """Draw so many examples more; none ends the questions of the audit."""
        audit = self._audit
        if audit is None or audit.ended:
            raise GalaxyError("There is no audit that can be continued.")
        audit.plan = self._written(plan, audit.record, audit.n_drawn)

    def _written(self, plan: Plan, record: AuditRecord, n_drawn: int) -> PlanRecord:
        share = MIXED if plan.is_mixed else 1.0
        return self._database.add_plan(PlanRecord(record.number, n_drawn + plan.n_draws, share))

    def claimed(self, entry: Entry) -> Entry:
        """The entry as one of the audit, if it answers a draw: the page does not know of draws."""
        audit = self._audit
        if audit is None or entry.source != "asked" or entry.example not in audit.open_draws():
            return entry
        return replace(entry, source="audit", is_random=False)

    def next(self, is_free: Callable[[int], bool]) -> int | None:
        """The example to ask for the audit now; None if the strategy's turn has come.

        Parameters
        ----------
        is_free
            Whether an example can be asked: another annotator may be looking at it.
        """
        audit = self._audit
        if audit is None or not self.is_asking:
            return None
        self._turns += audit.plan.share
        if self._turns < 1:
            return None
        self._turns -= 1
        for index in self._project.indices(audit.open_draws()).values():
            if is_free(index):
                return index
        while audit.n_drawn < audit.plan.n_wanted:
            draw = audit.draw(self._rng)
            if draw is None:
                break
            audit.made(self._database.add_draw(draw))
            index = self._project.find(draw.example)
            if is_free(index):
                return index
        return None

    def facts(self) -> AuditFacts | None:
        """What the last audit knows now; None if there never was one."""
        audit = self._audit
        if audit is None:
            return self._past
        moment = (audit.record.number, audit.plan.number, audit.n_drawn, self.last_entry)
        if self._facts is None or self._facts[0] != moment:
            self._facts = moment, audit.facts()
        return self._facts[1]

    def all_facts(self) -> list[AuditFacts | None]:
        """The same of every audit, the first one first; None for those that are over."""
        last = self.facts()
        return [] if last is None else [*[None] * (last.record.number - 1), last]


def read_audit(folder: Path) -> AuditReport | None:
    """What the last audit of a project says, without changing its files."""
    project, database = open_project(folder), open_log(folder, read_only=True)
    facts = Auditor(project, database, list(database.entries())).facts()
    database.close()
    return None if facts is None else report_of(facts)


def _last_audit(
    project: Project, database: Database, entries: Sequence[Entry]
) -> tuple[ProjectAudit | None, AuditFacts | None]:
    """The last audit of a project, or what is left of one that cannot be computed any more."""
    records = database.audits()
    if not records:
        return None, None
    record, ended = records[-1], why_ended(project, records[-1])
    plan = [plan for plan in database.plans() if plan.audit == record.number][-1]
    if not is_readable(project, record):
        return None, AuditFacts.of_past(record, plan, ended)
    draws = [draw for draw in database.draws() if draw.audit == record.number]
    return ProjectAudit(project, record, plan, draws, entries, ended), None
