"""What was said about each example, by whom, and what of it stands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["label", "skip", "cannot tell", "undo"]
Source = Literal["asked", "found", "import"]


@dataclass(frozen=True)
class Entry:
    """One line of the log, which only grows.

    Parameters
    ----------
    kind
        ``"skip"`` is not now, ``"cannot tell"`` never; ``"undo"`` takes another entry back.
    example
        Its id.
    label
        The name of a class, of a label.
    undoes
        The number of the entry that an undo takes back.
    round
        How many trainings there were before.
    is_random
        Whether the example was asked by pure chance.
    source
        Whether it was asked, found by the annotator, or imported.
    created_at
        When, in UTC.
    number
        Its place in the log, from 1; the database gives it.
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
        """Take in the next entry of the log."""
        if entry.kind != "undo":
            self._of_example[entry.example].append(entry)
            self._of_annotator[entry.annotator].append(entry)
            return
        for entries in (self._of_example[entry.example], self._of_annotator[entry.annotator]):
            for at in reversed(range(len(entries))):
                if entries[at].number == entry.undoes:
                    del entries[at]
                    break

    def current(self, example: str) -> Entry | None:
        """The last entry about an example that was not taken back."""
        entries = self._of_example.get(example)
        return entries[-1] if entries else None

    def current_in_round(self, example: str, round: int) -> Entry | None:
        """The same, but for a skip of an earlier round, which is over."""
        entry = self.current(example)
        is_over = entry is not None and entry.kind == "skip" and entry.round < round
        return None if is_over else entry

    def repeats(self, entry: Entry, round: int) -> bool:
        """Whether the same was said before by the same, as when an answer comes twice."""
        current = self.current_in_round(entry.example, round)
        if current is None:
            return False
        before, now = ((e.annotator, e.kind, e.label) for e in (current, entry))
        return before == now

    def all_current(self) -> list[Entry]:
        """What stands, in the order in which it was said."""
        found = [entries[-1] for entries in self._of_example.values() if entries]
        return sorted(found, key=lambda entry: entry.number)

    def last_of(self, annotator: str) -> Entry | None:
        """What the annotator said last and did not take back."""
        entries = self._of_annotator.get(annotator)
        return entries[-1] if entries else None

    def annotators(self) -> list[str]:
        """Who said anything."""
        return list(self._of_annotator)

    def count_of(self, annotator: str) -> int:
        """How many entries of the annotator were not taken back."""
        return len(self._of_annotator.get(annotator, ()))
