"""The advice of a project that no service has open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from galaxy_al.labelling.advising import Advice, Course, counted
from galaxy_al.labelling.auditor import Auditor
from galaxy_al.labelling.audits import AuditFacts
from galaxy_al.labelling.database import Database, PoolRecord
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.project import open_log, open_project, read_settings


def read_advice(folder: Path) -> Advice | None:
    """What to tell the people of a project; None before its pool was counted.

    The pool is read only if there was an audit or the pool has changed.
    """
    settings = read_settings(folder)
    database = open_log(folder, read_only=True)
    try:
        log, pools = Log(database.entries(), settings.classes), database.pools()
        if not pools:
            return None
        entries, audits = _known(folder, log, database, pools)
        course = Course(
            majority=settings.classes[-1],
            entries=entries,
            rounds=database.rounds(),
            pools=pools,
            audits=audits,
            target_recall=settings.target_recall,
        )
        return course.advice()
    finally:
        database.close()


def _known(
    folder: Path, log: Log, database: Database, pools: Sequence[PoolRecord]
) -> tuple[list[Entry], list[AuditFacts | None]]:
    """The entries that count, and what each audit knows."""
    if len(pools) == 1 and not database.audits():
        return [entry for entry in log.history() if log.is_answer(entry)], []
    project = open_project(folder)
    try:
        auditor = Auditor(project, database, list(database.entries()))
        return counted(project, log.history()), auditor.all_facts()
    finally:
        project.close()
