"""What a person should look at again: duplicates, disagreements, and suspected errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from galaxy_al.labelling.disagreements import Disagreement, disagreements, label_weights
from galaxy_al.labelling.duplicates import Duplicate, Duplicates
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.model import class_indices, labels_of, train_model
from galaxy_al.labelling.project import Project, open_log, open_project
from galaxy_al.labelling.suspects import Suspect, held_out_of, suspects_of
from galaxy_al.models.auto import HeldOut
from galaxy_al.second_look.duplicates import groups_of

Reason = Literal["duplicates", "disagreement", "suspect"]
CANNOT_TELL = "can't tell"


@dataclass(frozen=True)
class Labels:
    """The labels of a project at one moment.

    Parameters
    ----------
    current
        The entry that counts for each labelled example.
    disputed
        Where people disagree.
    answers_to
        What each person has answered about an example.
    """

    current: Mapping[str, Entry]
    disputed: Sequence[Disagreement]
    answers_to: Callable[[str], list[Entry]]

    @classmethod
    def of(cls, log: Log) -> Labels:
        """The labels in a log."""
        current = {entry.example: entry for entry in log.all_current() if entry.label is not None}
        return cls(current, disagreements(log), log.answers)


@dataclass(frozen=True)
class Reviewed:
    """An example in a review.

    Parameters
    ----------
    label, annotator
        The label that counts, and who gave it.
    answers
        The class that each person gave it, or that they cannot tell.
    """

    id: str
    label: str
    annotator: str
    answers: Mapping[str, str]


@dataclass(frozen=True)
class Item:
    """Something to look at again.

    Parameters
    ----------
    reason, sentence
        Why; in a word and in one sentence.
    examples
        The example, or the group of duplicates.
    suggested, error
        What the model suggests, and how likely it finds that the label is wrong, of a suspect.
    """

    reason: Reason
    sentence: str
    examples: tuple[Reviewed, ...]
    suggested: str | None = None
    error: float | None = None


def review_items(
    project: Project, labels: Labels, held_out: HeldOut | None, duplicates: Iterable[Duplicate]
) -> list[Item]:
    """Everything to look at again: labels that contradict each other, then those in doubt.

    An example is in one item only. What a person has decided under review is left out, except for
    the `suspects_of` the model has changed its mind about.

    Parameters
    ----------
    held_out
        Of the last training.
    duplicates
        Pairs that had different labels when they were looked for.
    """
    items = _duplicates(project, labels, duplicates) + _disagreements(project, labels)
    seen = {example.id for item in items for example in item.examples}
    suspects = suspects_of(project, labels.current.values(), held_out)
    return items + [_suspect(labels, one) for one in suspects if one.id not in seen]


def review_project(folder: Path, scheduler: str | None = None) -> list[Item]:
    """The `review_items` of a project, with a model trained on its labels.

    Parameters
    ----------
    scheduler
        As of `open_project`.
    """
    project, database = open_project(folder, scheduler), open_log(folder, read_only=True)
    log = Log(database.entries(), project.classes)
    database.close()
    usable = labels_of(project, log.all_current())
    found = Duplicates(project).find(class_indices(project, usable))
    held_out = held_out_of(train_model(project, usable, label_weights(log)))
    return review_items(project, Labels.of(log), held_out, found)


def _duplicates(project: Project, labels: Labels, found: Iterable[Duplicate]) -> list[Item]:
    current = labels.current
    is_exact = {
        (pair.one, pair.other): pair.is_exact
        for pair in found
        if pair.one in current
        and pair.other in current
        and current[pair.one].label != current[pair.other].label
    }
    items = []
    for group in groups_of(is_exact):
        if all(current[id].source == "review" for id in group):
            continue
        nearly = "" if all(is_exact[pair] for pair in is_exact if pair[0] in group) else "nearly "
        sentence = f"These {project.pool.kind} are {nearly}the same, but their labels differ."
        examples = tuple(_reviewed(labels, id) for id in group)
        items.append(Item("duplicates", sentence, examples))
    return items


def _disagreements(project: Project, labels: Labels) -> list[Item]:
    usable = project.usable_indices(one.id for one in labels.disputed)
    items = []
    for one in labels.disputed:
        if one.id in usable and one.id in labels.current:
            said = (f"{name} says {answer or CANNOT_TELL}" for name, answer in one.answers.items())
            items.append(Item("disagreement", f"{', '.join(said)}.", (_reviewed(labels, one.id),)))
    return items


def _suspect(labels: Labels, suspect: Suspect) -> Item:
    sentence = (
        f"Labelled {suspect.label}, but the model thinks {suspect.suggested} "
        f"({suspect.of_suggested:.2f}), without having seen this label."
    )
    examples = (_reviewed(labels, suspect.id),)
    return Item("suspect", sentence, examples, suspect.suggested, suspect.error)


def _reviewed(labels: Labels, id: str) -> Reviewed:
    answers = {
        answer.annotator: CANNOT_TELL if answer.label is None else answer.label
        for answer in labels.answers_to(id)
        if answer.kind != "skip"
    }
    entry = labels.current[id]
    return Reviewed(id, entry.label or "", entry.annotator, answers)
