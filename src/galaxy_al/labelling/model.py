"""The labels that stand in a project, and the model that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.database import RoundRecord
from galaxy_al.labelling.evaluation import cross_validated
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.project import IMPORTER, Project, open_log, open_project, read_settings
from galaxy_al.learner import NextRound
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.kernel import KernelModel, KernelTrainer
from galaxy_al.models.protocols import Embedder


@dataclass(frozen=True)
class Summary:
    """How far a project is, by its log alone."""

    classes: tuple[str, ...]
    entries: Sequence[Entry]
    rounds: Sequence[RoundRecord]

    def count(self, name: str) -> int:
        """How many labels of a class stand."""
        return self._counts["label", name]

    @property
    def n_labels(self) -> int:
        """How many labels stand."""
        return sum(self.count(name) for name in self.classes)

    @property
    def n_cannot_tell(self) -> int:
        """About how many nobody could tell."""
        return self._counts["cannot tell", None]

    @property
    def n_annotators(self) -> int:
        """Of how many people something stands."""
        return len({entry.annotator for entry in self.entries} - {IMPORTER})

    @property
    def n_imported(self) -> int:
        """How many labels existed before the project."""
        return sum(entry.annotator == IMPORTER for entry in self.entries)

    @cached_property
    def _counts(self) -> Counter[tuple[str, str | None]]:
        return Counter((entry.kind, entry.label) for entry in self.entries)


def summary(folder: Path) -> Summary:
    """How far a project is."""
    settings = read_settings(folder)
    database = open_log(folder)
    entries, rounds = Log(database.entries()).all_current(), database.rounds()
    database.close()
    return Summary(settings.classes, entries, rounds)


@dataclass(frozen=True)
class Labelled:
    """The labels of a project, and what the model says of the same examples.

    Parameters
    ----------
    entries
        One a labelled example that is in the pool.
    proba
        Their class probabilities; None while only one class has labels.
    """

    project: Project
    entries: Sequence[Entry]
    proba: NDArray[np.floating[Any]] | None

    @cached_property
    def indices(self) -> list[int]:
        """Where the examples are in the pool."""
        return [self.project.index_of[entry.example] for entry in self.entries]


def labels_of(project: Project, entries: Iterable[Entry]) -> list[Entry]:
    """Those that are labels of an example and a class that there are."""
    known = set(project.classes)
    return [
        entry
        for entry in entries
        if entry.kind == "label" and entry.label in known and entry.example in project.usable
    ]


def labelled_project(folder: Path) -> Labelled:
    """The labels that stand in a project, and what a model says that was trained on them."""
    project = open_project(folder)
    entries = labels_of(project, summary(folder).entries)
    model, indices = train_model(project, entries), [project.index_of[e.example] for e in entries]
    is_trained = model.class_priors.any()
    return Labelled(project, entries, model.proba(project.vectors[indices]) if is_trained else None)


def class_indices(project: Project, labels: Iterable[Entry]) -> dict[int, int]:
    """The numbers of the classes by the examples' indices."""
    code = {name: at for at, name in enumerate(project.classes)}
    return {project.index_of[entry.example]: code[entry.label or ""] for entry in labels}


def train_model(project: Project, labels: Iterable[Entry]) -> KernelModel:
    """The model of some labels."""
    trainer = KernelTrainer(n_classes=len(project.classes), seed=project.settings.seed)
    return trainer.fit(project.vectors, class_indices(project, labels))


def evaluate_round(project: Project, ready: NextRound, drawn: Collection[int]) -> RoundRecord:
    """What is worth knowing of a round; its number and time are not known here.

    Parameters
    ----------
    drawn
        As of `cross_validated`.
    """
    n_classes, labels, quality = len(project.classes), ready.state.labels, None
    if isinstance(ready.model, KernelModel):
        quality = cross_validated(project.vectors, labels, drawn, ready.model, n_classes)
    return RoundRecord(
        number=0,
        n_labels=len(labels),
        rare_found=sum(label != n_classes - 1 for label in labels.values()),
        accuracy=quality.accuracy if quality else None,
        low=quality.low if quality else None,
        high=quality.high if quality else None,
        seconds=0.0,
    )


def save_trained(folder: Path, output: Path) -> int:
    """Train on all labels of a project and save the model; how many labels there were."""
    from galaxy_al.models.saving import save_model

    project = open_project(folder)
    entries = labels_of(project, summary(folder).entries)
    model = train_model(project, entries)
    if not model.class_priors.any():
        found = "labels of one class only" if entries else "no labels yet"
        raise GalaxyError(f"{folder} has {found}: there is nothing to tell apart.")
    save_model(model, output, classes=project.classes, embedder=_embedder(project))
    return len(entries)


def _embedder(project: Project) -> Embedder | None:
    if not project.pool.modality.is_embedded:
        return None
    name = project.settings.embedder or None
    return load_embedder(project.pool.kind, name, records=project.folder / "embeddings")
