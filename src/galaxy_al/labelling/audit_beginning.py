"""How an audit begins, and what ends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from galaxy_al.audit.sampling import Strata, make_strata
from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.audit_records import AuditRecord, as_tuples, packed
from galaxy_al.labelling.model import decide_pool
from galaxy_al.labelling.project import Project
from galaxy_al.models.protocols import TrainedModel
from galaxy_al.system.files import digest


@dataclass(frozen=True)
class Beginning:
    """What an audit needs to know of the labels when it begins.

    Parameters
    ----------
    labeled
        The examples that have a label.
    cannot_tell
        Those that an annotator could not label: they have been looked at, and count as none of the
        classes.
    after, random_after
        As of `AuditRecord`.
    """

    labeled: frozenset[int]
    cannot_tell: frozenset[int]
    after: int
    random_after: int


def begin_audit(project: Project, model: TrainedModel, beginning: Beginning) -> AuditRecord:
    """The record of a new audit of the decisions that a model makes."""
    decided = decide_pool(project, model)
    usable = np.ones(len(project.pool), dtype=np.bool_)
    usable[list(project.bad)] = False
    if usable.sum() <= len(beginning.labeled | beginning.cannot_tell):
        raise GalaxyError("Every example has a label: there is nothing to audit.")
    strata = make_strata(decided.proba, decided.classes, np.flatnonzero(usable))
    return AuditRecord(
        classes=project.classes,
        size=len(project.pool),
        digest=ids_digest(project.pool.ids),
        after=beginning.after,
        random_after=beginning.random_after,
        strata=packed(strata.of),
        decided=as_tuples(strata.decided),
        expected=as_tuples(strata.expected),
    )


def ids_digest(ids: Iterable[str]) -> str:
    """What a list of ids is known by."""
    return digest(f"{id}\n".encode("utf-8", "surrogateescape") for id in ids)


def is_readable(project: Project, record: AuditRecord) -> bool:
    """Whether the pool still has the examples of an audit at their places."""
    ids = project.pool.ids
    return len(ids) >= record.size and ids_digest(ids[: record.size]) == record.digest


def why_ended(project: Project, record: AuditRecord) -> str:
    """Why an audit cannot be continued, in one sentence; empty if it can."""
    begun = record.created_at[:10]
    if record.classes != project.classes:
        before = ", ".join(record.classes)
        return f"The audit of {begun} is over: the classes were {before} then. Start another one."
    if not is_readable(project, record):
        return (
            f"The audit of {begun} is over: examples were removed from the pool or reordered "
            "since. Start another one."
        )
    return ""


def strata_of(record: AuditRecord, size: int) -> Strata:
    """The strata of an audit; examples that came since are in none."""
    strata = record.unpacked()
    of = np.full(size, -1, dtype=np.intp)
    of[: len(strata.of)] = strata.of
    return Strata(of, strata.decided, strata.expected)
