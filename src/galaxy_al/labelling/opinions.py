"""What the people of a project think of the same examples, and who may see it."""

from __future__ import annotations

from threading import RLock

from galaxy_al.labelling.answers import Answers
from galaxy_al.labelling.disagreements import Disagreement, disagreements
from galaxy_al.labelling.project import Project
from galaxy_al.labelling.reliability import AgreementReport, report_agreement


class Opinions:
    """Reads the answers of several people while others are written.

    Parameters
    ----------
    lock
        Held while anything is written to the answers.
    """

    def __init__(self, project: Project, answers: Answers, lock: RLock) -> None:
        self._project, self._answers, self._lock = project, answers, lock
        self._report: AgreementReport | None = None
        self._reported: object = None  # the consensus then: it is another object after each change

    def disagreements(self, annotator: str | None = None) -> list[Disagreement]:
        """The examples on which people disagree and that are not decided.

        Parameters
        ----------
        annotator
            Leave out what this person is still to be asked.
        """
        with self._lock:
            found, hidden = disagreements(self._answers.log), self.hidden_from(annotator)
        usable = self._project.usable_indices(one.id for one in found)
        return [one for one in found if one.id in usable and one.id not in hidden]

    def agreement(self) -> AgreementReport | None:
        """How well people agree; None if no example has the labels of two people."""
        with self._lock:
            consensus = self._answers.log.consensus()
            if consensus is self._reported:
                return self._report
            labels = self._answers.log.shared_labels()
        report = report_agreement(labels.values(), self._project.classes)
        self._report, self._reported = report, consensus
        return report

    def hidden_from(self, annotator: str | None) -> set[str]:
        """The examples whose answers a person must not see: they are still to be asked."""
        return set() if annotator is None else set(self._answers.overlap.wanted(annotator))
