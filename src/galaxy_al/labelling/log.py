"""What each annotator answered about each example, and what counts.

An example keeps one answer per person: the last entry of theirs that was not undone. Five rules
say which entry counts:

1. A decision made under review counts before all answers, and a later decision before an earlier
   one. It ends when the person who made it answers again or undoes it.
2. Otherwise the consensus of the labels counts. No label replaces that of another person.
3. A label outweighs "cannot tell", and both outweigh a skip: these say nothing about the class.
4. A label whose class is not in the project (any more) counts only if there is nothing else.
5. An imported label is replaced by any person's label, or by their "cannot tell".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from galaxy_al.labelling.consensus import Consensus, find_consensus

Kind = Literal["label", "skip", "cannot tell", "undo"]
Source = Literal["asked", "audit", "found", "import", "review"]
IMPORTER = "import"  # the annotator of imported labels


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
        Whether the example was asked by the strategy or by an audit, found by the annotator,
        imported, or decided under review, where the answers so far are seen.
    created_at
        The time in UTC.
    number
        The position in the log, from 1. The database assigns it.
    probability
        How likely the model found the label when it was given under review, without having seen
        any; None otherwise.
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
    probability: float | None = None


class Log:
    """The log in memory.

    Parameters
    ----------
    classes
        The classes of the project. Without them, every label counts.

    Examples
    --------
    >>> log = Log([Entry("ann", "label", "a.jpg", "dent", number=1)])
    >>> log.add(Entry("bob", "label", "a.jpg", "fine", number=2))
    >>> [(entry.annotator, entry.label) for entry in log.answers("a.jpg")]
    [('ann', 'dent'), ('bob', 'fine')]
    >>> log.current("a.jpg").label
    'dent'
    >>> log.add(Entry("eve", "label", "a.jpg", "fine", source="review", number=3))
    >>> log.current("a.jpg").label
    'fine'
    >>> log.add(Entry("eve", "undo", "a.jpg", undoes=3, number=4))
    >>> log.current("a.jpg").label
    'dent'
    """

    def __init__(
        self, entries: Iterable[Entry] = (), classes: Collection[str] | None = None
    ) -> None:
        self._classes = classes
        self._of_example: defaultdict[str, list[Entry]] = defaultdict(list)
        self._of_annotator: defaultdict[str, list[Entry]] = defaultdict(list)
        self._shared: dict[str, None] = {}  # examples with entries of several annotators
        self._consensus: dict[str, Consensus] | None = None  # until the next shared entry
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add the next entry."""
        if entry.kind == "undo":
            for entries in (self._of_example[entry.example], self._of_annotator[entry.annotator]):
                _remove(entries, entry.undoes)
        else:
            self._of_example[entry.example].append(entry)
            self._of_annotator[entry.annotator].append(entry)
        if entry.example in self._shared:
            self._consensus = None
        if len({other.annotator for other in self._of_example[entry.example]}) > 1:
            self._shared[entry.example] = None
            self._consensus = None
        else:
            self._shared.pop(entry.example, None)

    def answers(self, example: str) -> list[Entry]:
        """The answer of each person, in the order of the log; skips are among them.

        An imported label is an answer until a person labels the example or cannot tell.
        """
        return _last_of_each(self._of_example.get(example, ()))

    def opinions(self, example: str) -> list[Entry]:
        """The same without what was answered under review, where others' answers are seen."""
        entries = self._of_example.get(example, ())
        return _last_of_each(entry for entry in entries if entry.source != "review")

    def answer_of(self, annotator: str, example: str) -> Entry | None:
        """The answer of one person."""
        for entry in reversed(self._of_example.get(example, ())):
            if entry.annotator == annotator:
                return entry
        return None

    def current(self, example: str) -> Entry | None:
        """The entry that counts for an example; if several people agree, that of the first."""
        if example not in self._shared:
            entries = self._of_example.get(example)
            return entries[-1] if entries else None
        answers = self.answers(example)
        decisions = [entry for entry in answers if self._is_decision(entry)]
        if decisions:
            return decisions[-1]
        if labels := [entry for entry in self.opinions(example) if self._is_label(entry)]:
            label = self.consensus()[example].label
            return next(entry for entry in labels if entry.label == label)
        for kind in ("cannot tell", "label", "skip"):
            if found := [entry for entry in answers if entry.kind == kind]:
                return found[-1]
        return None

    def current_in_round(self, example: str, round: int) -> Entry | None:
        """The same, except that a skip ends with its round."""
        entry = self.current(example)
        is_over = entry is not None and entry.kind == "skip" and entry.round < round
        return None if is_over else entry

    def consensus(self) -> Mapping[str, Consensus]:
        """The consensus of the labels of each example that several people have labelled.

        Decisions made under review do not change it.
        """
        if self._consensus is None:
            self._consensus = find_consensus(self.shared_labels())
        return self._consensus

    def shared_labels(self) -> dict[str, dict[str, str]]:
        """Each person's own label, for the examples that have entries of several annotators."""
        found = {example: self.labels_of(example) for example in self._shared}
        return {example: labels for example, labels in found.items() if labels}

    def labels_of(self, example: str) -> dict[str, str]:
        """Each person's own label of one example, in the order of the log."""
        labels = [entry for entry in self.opinions(example) if self._is_label(entry)]
        return {entry.annotator: entry.label or "" for entry in labels}

    def disputed(self) -> list[str]:
        """The examples on which people disagree, decided or not."""
        return [example for example in self._shared if self.is_disputed(example)]

    def is_disputed(self, example: str) -> bool:
        """Whether people gave an example other classes, or one cannot tell and another can."""
        found = {entry.label for entry in self.opinions(example) if self.is_answer(entry)}
        return len(found) > 1

    def is_decided(self, example: str) -> bool:
        """Whether the entry that counts for an example is a decision."""
        current = self.current(example)
        return current is not None and self._is_decision(current)

    def is_answer(self, entry: Entry) -> bool:
        """Whether an entry is the label of a class of the project, or "cannot tell"."""
        return entry.kind == "cannot tell" or self._is_label(entry)

    def repeats(self, entry: Entry, round: int) -> bool:
        """Whether the annotator has given the same answer before, as when a request is resent."""
        before = self.answer_of(entry.annotator, entry.example)
        if before is None or (before.kind == "skip" and before.round < round):
            return False
        if entry.source == "review" and before is not self.current(entry.example):
            return False
        if entry.source == "review" and (before.source, before.probability) != (
            entry.source,
            entry.probability,
        ):
            return False
        return (before.kind, before.label) == (entry.kind, entry.label)

    def all_current(self) -> list[Entry]:
        """The current entry of each example, in the order of the log."""
        found = [self.current(example) for example in self._of_example]
        return sorted((e for e in found if e is not None), key=lambda entry: entry.number)

    def all_answers(self) -> list[Entry]:
        """The answer of each person about each example, in the order of the log."""
        found = [entry for example in self._of_example for entry in self.answers(example)]
        return sorted(found, key=lambda entry: entry.number)

    def history(self) -> list[Entry]:
        """The answer that counts for each example, in the order in which they were first answered.

        Each has the number of the first answer, and was asked or found as that one was: whether an
        example was drawn at random must not depend on what it is corrected to later.
        """
        found = []
        for example, entries in self._of_example.items():
            first = next(filter(self.is_answer, entries), None)
            entry = self.current(example)
            if first is not None and entry is not None and self.is_answer(entry):
                origin = {name: getattr(first, name) for name in ("number", "source", "is_random")}
                found.append(replace(entry, **origin))
        return sorted(found, key=lambda entry: entry.number)

    def was_skipped(self, example: str) -> bool:
        """Whether a person skipped an example and did not undo that."""
        return any(entry.kind == "skip" for entry in self._of_example.get(example, ()))

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

    def _is_decision(self, entry: Entry) -> bool:
        return entry.source == "review" and self.is_answer(entry)

    def _is_label(self, entry: Entry) -> bool:
        is_known = self._classes is None or entry.label in self._classes
        return entry.kind == "label" and is_known


def _last_of_each(entries: Iterable[Entry]) -> list[Entry]:
    """The last entry of each person; the import only if no person has answered."""
    last: dict[str, Entry] = {}
    for entry in entries:
        last.pop(entry.annotator, None)
        last[entry.annotator] = entry
    if any(e.kind != "skip" and e.annotator != IMPORTER for e in last.values()):
        last.pop(IMPORTER, None)
    return list(last.values())


def _remove(entries: list[Entry], number: int | None) -> None:
    for position in reversed(range(len(entries))):
        if entries[position].number == number:
            del entries[position]
            return
