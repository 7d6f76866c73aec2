"""Which examples several people are asked, and who is still to be asked about which.

A hash of the id decides, so the share is the same among examples of every kind, and does not depend
on who labels or in which order. The strategy asks the first person. Then the example waits for
another person, until as many have answered as the project wants. Nothing else waits for it: its
label counts at once, and with one annotator nothing is ever asked twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from galaxy_al.labelling.log import IMPORTER, Log
from galaxy_al.labelling.project import Project


class Overlap:
    """The examples that wait for the answers of other people.

    A person is not asked about an example again on which they have an entry, be it a skip. An
    imported label and one of a class that was removed are not answers. What was decided under
    review waits no longer.
    """

    def __init__(self, project: Project, log: Log) -> None:
        self._project, self._log = project, log
        self._share = project.settings.overlap
        self._n_people = project.settings.overlap_people
        self._waiting: dict[str, None] = {}  # the one that has waited longest is first
        if self._share:
            for entry in log.all_current():
                self.update(entry.example)

    def update(self, example: str) -> None:
        """Look again at an example about which something was written to the log."""
        if not is_shared(example, self._share):
            return
        answers = self._log.answers(example)
        own = [entry for entry in answers if entry.annotator != IMPORTER]
        n_answers = sum(self._log.is_answer(entry) for entry in own)
        if 0 < n_answers < self._n_people and not self._log.is_decided(example):
            self._waiting.setdefault(example)
        else:
            self._waiting.pop(example, None)

    def is_wanted(self, example: str, annotator: str) -> bool:
        """Whether the example still waits for the answer of a person."""
        is_waiting = example in self._waiting
        return is_waiting and self._log.answer_of(annotator, example) is None

    def wanted(self, annotator: str) -> Iterator[str]:
        """The examples that wait for a person, the one that has waited longest first."""
        return (example for example in self._waiting if self.is_wanted(example, annotator))

    def is_turn(self, annotator: str, n_ahead: int) -> bool:
        """Whether a person's question is one that waits: every second one, in no visible order.

        Parameters
        ----------
        n_ahead
            How many questions they will have answered before it.
        """
        if next(self.wanted(annotator), None) is None:
            return False
        number = self._log.count_of(annotator) + n_ahead
        return _fraction(f"{annotator}/{number}") < 0.5

    def usable_index(self, example: str) -> int | None:
        """The index of an example; None if it is gone or cannot be used."""
        return self._project.usable_indices([example]).get(example)

    def id(self, index: int) -> str:
        """The id of an example."""
        return self._project.ids_of([index])[0]


def is_shared(example: str, share: float) -> bool:
    """Whether an example belongs to the share that several people are asked.

    Examples
    --------
    >>> sum(is_shared(f"{number}.jpg", 0.1) for number in range(1000))
    99
    """
    return _fraction(example) < share


def _fraction(text: str) -> float:
    """A number from 0 to 1 that is as good as random, and the same for the same text."""
    found = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(found, "big") / 2**64
