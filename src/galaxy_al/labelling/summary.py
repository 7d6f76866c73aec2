"""The progress of a project, from its log alone: the pool is not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from galaxy_al.labelling.database import RoundRecord
from galaxy_al.labelling.disagreements import disagreements
from galaxy_al.labelling.log import IMPORTER, Entry, Log
from galaxy_al.labelling.project import SETTINGS_FILE, open_log, read_settings
from galaxy_al.labelling.reliability import report_agreement


@dataclass(frozen=True)
class Summary:
    """The progress of a project.

    Parameters
    ----------
    log
        All answers of all people.
    """

    classes: tuple[str, ...]
    log: Log
    rounds: Sequence[RoundRecord]

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """The entry that counts for each example."""
        return self.log.all_current()

    def count(self, name: str) -> int:
        """The number of labels of a class."""
        return self._counts["label", name]

    @property
    def n_labels(self) -> int:
        """The number of labels of all classes in the settings."""
        return sum(self.count(name) for name in self.classes)

    @property
    def n_cannot_tell(self) -> int:
        """The number of examples that annotators could not label."""
        return self._counts["cannot tell", None]

    @property
    def n_annotators(self) -> int:
        """The number of annotators with an answer that was not undone."""
        people = {*self.log.annotators()} - {IMPORTER}
        return sum(self.log.count_of(name) > 0 for name in people)

    @property
    def n_imported(self) -> int:
        """The number of labels that were imported."""
        return sum(entry.annotator == IMPORTER for entry in self.entries)

    @property
    def warnings(self) -> list[str]:
        """As of `class_warnings`."""
        return class_warnings(self.classes, self.entries)

    def agreement_lines(self) -> list[str]:
        """How well people agree, in plain words; nothing if no two labelled the same example."""
        report = report_agreement(self.log.shared_labels().values(), self.classes)
        if report is None:
            return []
        n_open = len(disagreements(self.log))
        return [*report.lines(), f"Disagreements to decide: {n_open:,}"]

    @cached_property
    def _counts(self) -> Counter[tuple[str, str | None]]:
        return Counter((entry.kind, entry.label) for entry in self.entries)


def summarize(folder: Path) -> Summary:
    """Summarize a project without changing its files."""
    settings = read_settings(folder)
    database = open_log(folder, read_only=True)
    log, rounds = Log(database.entries(), settings.classes), database.rounds()
    database.close()
    return Summary(settings.classes, log, rounds)


def class_warnings(classes: Sequence[str], entries: Iterable[Entry]) -> list[str]:
    """One line for each class that labels have and the settings do not.

    Such labels are kept and exported, but the model does not use them, and their examples are
    asked again.

    Examples
    --------
    >>> print(*class_warnings(["dent"], [Entry("ann", "label", "a.jpg", "rust")]))
    1 label has the class 'rust', which is not in project.toml. Add it there or answer again.
    """
    labels = Counter(entry.label for entry in entries if entry.kind == "label")
    return [
        f"{n:,} {'label has' if n == 1 else 'labels have'} the class {name!r}, which is not in "
        f"{SETTINGS_FILE}. Add it there or answer again."
        for name, n in labels.items()
        if name not in classes
    ]
