"""The labels of a project that are likely errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.project import Project
from galaxy_al.models.auto import AutoModel, HeldOut
from galaxy_al.second_look.suspects import find_suspects

_CHANGED_ITS_MIND = 0.1  # of the probability that a label had when a person kept it


@dataclass(frozen=True)
class Suspect:
    """A label that is likely an error.

    Parameters
    ----------
    suggested
        The class that the model finds most likely.
    probability, of_suggested
        How likely the model finds the label, and what it suggests, without having seen the label.
    error
        How likely the model finds it that the label is wrong.
    """

    id: str
    label: str
    annotator: str
    suggested: str
    probability: float
    of_suggested: float
    error: float


def held_out_of(model: Any) -> HeldOut | None:
    """What a model says of labels that it has not seen; None if it does not tell."""
    return model.held_out if isinstance(model, AutoModel) else None


def probability_of(
    entry: Entry, index: int, project: Project, held_out: HeldOut | None
) -> float | None:
    """How likely the model finds a label given under review, without having seen any.

    None if that is not known, or if an entry was not given under review.
    """
    if entry.source != "review" or entry.label not in project.classes or held_out is None:
        return None
    row = int(np.searchsorted(held_out.indices, index))
    if row == len(held_out.indices) or held_out.indices[row] != index:
        return None
    return float(held_out.proba[row, project.classes.index(entry.label)])


def suspects_of(
    project: Project, entries: Iterable[Entry], held_out: HeldOut | None
) -> list[Suspect]:
    """The labels that are likely errors, the most suspicious first.

    A label that a person gave or kept under review is left out, unless the model changes its mind
    strongly: until it finds the label ten times less likely than it did then.

    Parameters
    ----------
    entries
        The current entry of each example.
    held_out
        Of the last training. Labels given since are not suspected; corrected ones are compared
        with what the model said of the example.
    """
    known = {name: k for k, name in enumerate(project.classes)}
    by_id = {entry.example: entry for entry in entries if entry.label in known}
    if held_out is None or not by_id:
        return []
    by_index = {index: by_id[id] for id, index in project.indices(by_id).items()}
    rows = [row for row, index in enumerate(held_out.indices.tolist()) if index in by_index]
    labeled = [by_index[index] for index in held_out.indices[rows].tolist()]
    labels = np.array([known[entry.label or ""] for entry in labeled], dtype=np.int64)
    proba = held_out.proba[rows].astype(np.float64)
    found = find_suspects(proba, labels, held_out.targets)
    suspects = [
        Suspect(
            id=labeled[row].example,
            label=labeled[row].label or "",
            annotator=labeled[row].annotator,
            suggested=project.classes[found.suggested[row]],
            probability=float(proba[row, labels[row]]),
            of_suggested=float(proba[row].max()),
            error=float(found.error[row]),
        )
        for row in np.flatnonzero(found.is_suspect).tolist()
        if not _is_settled(labeled[row], float(proba[row, labels[row]]))
    ]
    return sorted(suspects, key=lambda suspect: -suspect.error)


def _is_settled(entry: Entry, probability: float) -> bool:
    """Whether a person has decided about a label, and the model has not changed its mind since."""
    if entry.source != "review":
        return False
    return entry.probability is None or probability >= _CHANGED_ITS_MIND * entry.probability
