"""The answers of a project: on disk first, then in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from galaxy_al.labelling.database import Database
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.overlap import Overlap
from galaxy_al.labelling.project import Project


class Answers:
    """Writes answers to the database, and keeps the log and the overlap up to date.

    Parameters
    ----------
    on_entry
        Called with every new entry.
    """

    def __init__(
        self,
        project: Project,
        database: Database,
        entries: Iterable[Entry],
        on_entry: Callable[[Entry], None],
    ) -> None:
        self._project, self._database, self._on_entry = project, database, on_entry
        self.log = Log(entries, project.classes)
        self.overlap = Overlap(project, self.log)

    def write(self, entries: Iterable[Entry]) -> None:
        """Add entries, all or none."""
        for entry in self._database.add(list(entries)):
            self.log.add(entry)
            self._on_entry(entry)
            self.overlap.update(entry.example)

    def undo(self, entry: Entry) -> None:
        """Undo an entry. It stays in the database."""
        undo = replace(entry, kind="undo", label=None, undoes=entry.number, created_at="", number=0)
        self.write([undo])

    def last_usable(self, annotator: str) -> Entry | None:
        """The last answer of an annotator; those about examples that are gone are undone."""
        last = self.log.last_of(annotator)
        while last is not None and not self._project.usable_indices([last.example]):
            self.undo(last)
            last = self.log.last_of(annotator)
        return last
