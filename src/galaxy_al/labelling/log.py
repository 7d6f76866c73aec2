"""What each annotator answered about each example, and what is current."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["label", "skip", "cannot tell", "undo"]
Source = Literal["asked", "audit", "found", "import"]


@dataclass(frozen=True)
class Entry:
    """One entry of the log, which only grows.

    Parameters
    ----------
    kind
        ``"skip"`` postpones the example, ``"cannot tell"`` removes it for good, and ``"undo"``
        undoes another entry.
    example
        The id of the example.
    label
        The name of the class, if the entry is a label.
    undoes
        The number of the entry that an undo undoes.
    round
        The number of trainings before this entry.
    is_random
        Whether the example was asked purely at random.
    source
        Whether the example was asked by the strategy or by an audit, found by the annotator, or
        imported.
    created_at
        The time in UTC.
    number
        The position in the log, from 1. The database assigns it.
    """

    annotator: str
    kind: Kind
    example: str
    label: str | None = None
    undoes: int | None = None
    round: int = 0
    is_random: bool = False
    source: Source = "asked"
    created_at: str = ""
    number: int = 0


class Log:
    """The log in memory.

    Examples
    --------
    >>> log = Log([Entry("ann", "label", "a.jpg", "dent", number=1)])
    >>> log.current("a.jpg").label
    'dent'
    >>> log.add(Entry("ann", "undo", "a.jpg", undoes=1, number=2))
    >>> log.current("a.jpg")
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._of_example: defaultdict[str, list[Entry]] = defaultdict(list)
        self._of_annotator: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add the next entry."""
        if entry.kind != "undo":
            self._of_example[entry.example].append(entry)
            self._of_annotator[entry.annotator].append(entry)
            return
        for entries in (self._of_example[entry.example], self._of_annotator[entry.annotator]):
            for position in reversed(range(len(entries))):
                if entries[position].number == entry.undoes:
                    del entries[position]
                    break

    def current(self, example: str) -> Entry | None:
        """The last entry about an example that was not undone."""
        entries = self._of_example.get(example)
        return entries[-1] if entries else None

    def current_in_round(self, example: str, round: int) -> Entry | None:
        """The same, except that a skip ends with its round."""
        entry = self.current(example)
        is_over = entry is not None and entry.kind == "skip" and entry.round < round
        return None if is_over else entry

    def repeats(self, entry: Entry, round: int) -> bool:
        """Whether the annotator has given the same answer before, as when a request is resent."""
        current = self.current_in_round(entry.example, round)
        if current is None:
            return False
        before, now = ((e.annotator, e.kind, e.label) for e in (current, entry))
        return before == now

    def all_current(self) -> list[Entry]:
        """The current entry of each example, in the order of the log."""
        found = [entries[-1] for entries in self._of_example.values() if entries]
        return sorted(found, key=lambda entry: entry.number)

    def last_of(self, annotator: str) -> Entry | None:
        """The annotator's last entry that was not undone."""
        entries = self._of_annotator.get(annotator)
        return entries[-1] if entries else None

    def annotators(self) -> list[str]:
        """The annotators with an entry."""
        return list(self._of_annotator)

    def count_of(self, annotator: str) -> int:
        """The number of the annotator's entries that were not undone."""
        return len(self._of_annotator.get(annotator, ()))
