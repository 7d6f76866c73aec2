"""What a project tells the people who label it, while they do: audits, and advice."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from galaxy_al.audit.random_sample import Answer
from galaxy_al.labelling.advising import Advice, Course, counted, note_pool
from galaxy_al.labelling.answers import Answers
from galaxy_al.labelling.audit_beginning import Beginning, begin_audit
from galaxy_al.labelling.audit_report import AuditReport, report_of
from galaxy_al.labelling.auditor import Auditor, Plan
from galaxy_al.labelling.audits import AuditFacts
from galaxy_al.labelling.database import Database, RoundRecord
from galaxy_al.labelling.evaluation import answers_of, last_change
from galaxy_al.labelling.project import Project
from galaxy_al.learner import Learner


class Guidance:
    """Begins audits, and says how many are left and when to stop.

    Parameters
    ----------
    lock
        Of the answers, the learner and the auditor. It is held as briefly as possible.
    """

    def __init__(
        self,
        project: Project,
        database: Database,
        auditor: Auditor,
        answers: Answers,
        learner: Learner,
        lock: threading.RLock,
    ) -> None:
        self.auditor = auditor
        self._project, self._answers = project, answers
        self._learner, self._lock = learner, lock
        self._pools = note_pool(database, project, auditor.last_entry)
        self._report: tuple[AuditFacts, AuditReport] | None = None

    def start_audit(self, plan: Plan, cannot_tell: frozenset[int], *, again: bool) -> None:
        """As of the service.

        Parameters
        ----------
        cannot_tell
            The examples that an annotator could not label.
        """
        with self._lock:
            if self.auditor.can_continue and not again:
                self.auditor.extend(plan)
                return
            model, labeled = self._learner.model, frozenset(self._learner.state.labels)
            since = last_change(self._pools)
            beginning = Beginning(labeled, cannot_tell, self.auditor.last_entry, since)
        record = begin_audit(self._project, model, beginning)  # may take a while
        with self._lock:
            self.auditor.begin(record, plan)

    def audit(self) -> AuditReport | None:
        """What the last audit says so far; None if there never was one."""
        with self._lock:
            facts = self.auditor.facts()
        if facts is None:
            return None
        if self._report is None or self._report[0] is not facts:
            self._report = facts, report_of(facts)  # several pages ask for it
        return self._report[1]

    def advice(self, rounds: Sequence[RoundRecord]) -> Advice:
        """What to tell."""
        settings = self._project.settings
        with self._lock:
            course = Course(
                majority=self._project.classes[-1],
                entries=counted(self._project, self._answers.log.history()),
                rounds=rounds,
                pools=self._pools,
                audits=self.auditor.all_facts(),
                target_recall=settings.target_recall,
            )
        return course.advice()

    def answers(self) -> list[Answer]:
        """What was answered, for the statistics of a round."""
        history, classes = self._answers.log.history(), self._project.classes
        return answers_of(self._project, classes, history, last_change(self._pools))
