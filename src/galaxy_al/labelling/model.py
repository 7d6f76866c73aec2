"""The model of a project, trained on its current labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError
from galaxy_al.free_examples import FreeExamples
from galaxy_al.labelling.disagreements import Support, label_weights, support
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.project import Project, embedder_of_pool, open_project
from galaxy_al.labelling.summary import class_warnings, summarize
from galaxy_al.labelling.suspects import held_out_of, suspects_of
from galaxy_al.models.auto import AutoModel, HeldOut
from galaxy_al.models.decisions import (
    DEFAULT_RULE,
    Rule,
    ThresholdCurve,
    choose_from_curves,
    choose_thresholds,
)
from galaxy_al.models.estimates import estimate_decisions, held_out_table
from galaxy_al.models.few_rows import few_rows
from galaxy_al.models.heads import NETWORKS, make_trainer
from galaxy_al.models.protocols import TrainedModel, fit
from galaxy_al.models.report import ONNX, ModelReport
from galaxy_al.shards import ShardedTable

MOST_ROWS = 4_000_000  # of a pool in shards whose scores are all brought here


@dataclass(frozen=True)
class LabeledExamples:
    """The labels of a project, and the model's probabilities of the same examples.

    Parameters
    ----------
    entries
        The label of each labelled example in the pool, also if its class is not in the settings.
    proba
        The probabilities of the classes in the settings. None while fewer than two have labels.
    warnings
        One line for each reason why labels are not used.
    supports
        What each label rests on.
    suspected
        How likely each suspected label is wrong, by the id of the example.
    """

    project: Project
    entries: Sequence[Entry]
    proba: NDArray[np.floating[Any]] | None
    warnings: Sequence[str] = ()
    supports: Sequence[Support] = ()
    suspected: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Project, log: Log) -> LabeledExamples:
        """The labels that count, without probabilities and suspicions."""
        current = log.all_current()
        entries = usable_labels(project, current)
        supports = [support(log, entry.example) for entry in entries]
        return cls(project, entries, None, label_warnings(project, current), supports)

    def judged_by(self, held_out: HeldOut | None) -> LabeledExamples:
        """The same with the labels that are suspected."""
        suspects = suspects_of(self.project, self.entries, held_out)
        return replace(self, suspected={suspect.id: suspect.error for suspect in suspects})

    def without(self, hidden: Collection[str]) -> LabeledExamples:
        """The same without some examples, and without probabilities."""
        rows = [row for row in zip(self.entries, self.supports) if row[0].example not in hidden]
        entries, supports = [row[0] for row in rows], [row[1] for row in rows]
        return replace(self, entries=entries, supports=supports, proba=None)

    @cached_property
    def indices(self) -> list[int]:
        """The indices of the examples in the pool."""
        index_of = self.project.indices(entry.example for entry in self.entries)
        return [index_of[entry.example] for entry in self.entries]

    @cached_property
    def classes(self) -> list[str]:
        """The classes in the settings, then the others that labels have."""
        return list(dict.fromkeys([*self.project.classes, *(e.label or "" for e in self.entries)]))


def usable_labels(project: Project, entries: Iterable[Entry]) -> list[Entry]:
    """The labels of examples that are in the pool and can be read."""
    labels = [entry for entry in entries if entry.kind == "label"]
    usable = project.usable_indices(entry.example for entry in labels)
    return [entry for entry in labels if entry.example in usable]


def labels_of(project: Project, entries: Iterable[Entry]) -> list[Entry]:
    """The labels that a model can be trained on: of usable examples and known classes."""
    known = set(project.classes)
    return [entry for entry in usable_labels(project, entries) if entry.label in known]


def label_warnings(project: Project, entries: Iterable[Entry]) -> list[str]:
    """One line for each reason why labels are not used."""
    labels = [entry for entry in entries if entry.kind == "label"]
    n_lost = len(labels) - len(usable_labels(project, labels))
    lost = f"Labels of examples that are not in the pool or cannot be read: {n_lost:,}. Left out."
    return class_warnings(project.classes, labels) + ([lost] if n_lost else [])


def labeled_examples(folder: Path, scheduler: str | None = None) -> LabeledExamples:
    """The current labels of a project, and the probabilities by a model trained on them.

    Parameters
    ----------
    scheduler
        As of `open_project`.
    """
    project, log = open_project(folder, scheduler), summarize(folder).log
    found = LabeledExamples.of(project, log)
    model = train_model(project, labels_of(project, found.entries), label_weights(log))
    if model is None:
        return found
    found = found.judged_by(held_out_of(model))
    return replace(found, proba=model.snapshot(project.vectors[found.indices]).proba)


def class_indices(project: Project, labels: Iterable[Entry]) -> dict[int, int]:
    """The class indices by the indices of the examples."""
    labels, number = list(labels), {name: k for k, name in enumerate(project.classes)}
    index_of = project.indices(entry.example for entry in labels)
    return {index_of[entry.example]: number[entry.label or ""] for entry in labels}


def train_model(
    project: Project, labels: Iterable[Entry], weights: Mapping[str, float]
) -> TrainedModel | None:
    """Train the head of a project on labels; None if they have fewer than two classes.

    Parameters
    ----------
    weights
        As of `label_weights`.
    """
    known, settings = class_indices(project, labels), project.settings
    if len(set(known.values())) < 2:
        return None
    trainer = make_trainer(settings.head, n_classes=len(project.classes), seed=settings.seed)
    return fit(trainer, project.vectors, known, weights_by_index(project, weights))


def weights_by_index(project: Project, weights: Mapping[str, float]) -> dict[int, float]:
    """How much labels count, by the indices of their examples."""
    return {index: weights[id] for id, index in project.indices(weights).items()}


@dataclass(frozen=True)
class TrainedProject:
    """A model that was trained and saved.

    Parameters
    ----------
    curves
        What each threshold gives, for each rare class.
    """

    model: Any
    report: ModelReport
    curves: list[ThresholdCurve]


def save_trained_model(
    folder: Path,
    output: Path,
    rule: str = DEFAULT_RULE,
    *,
    onnx: bool = False,
    scheduler: str | None = None,
) -> TrainedProject:
    """Train on all labels of a project and save the model with its decisions.

    Nothing is written if the rule cannot be met.

    Parameters
    ----------
    scheduler
        As of `open_project`.
    """
    from galaxy_al.models.saving import save_model, save_onnx

    Rule.parse(rule)
    project, savable = open_project(folder, scheduler), ("auto", *NETWORKS)
    if (head := project.settings.head) not in savable:
        allowed = f"{', '.join(savable[:-1])} and {savable[-1]}"
        raise GalaxyError(f"The head {head!r} cannot be saved: only {allowed} can.")
    log = summarize(folder).log
    labels = labels_of(project, log.all_current())
    model: Any = train_model(project, labels, label_weights(log))
    if model is None:
        found = "labels of one class only" if labels else "no labels yet"
        raise GalaxyError(f"{folder} has {found}. Training needs labels of two classes.")
    trained = _decide(project, model, labels, rule)
    embedder = embedder_of_pool(project)
    save_model(model, output, classes=project.classes, embedder=embedder, report=trained.report)
    exported = output / ONNX
    exported.unlink(missing_ok=True)  # that of an earlier training
    if onnx:
        save_onnx(model, trained.report.decision, exported)
    return trained


def _decide(project: Project, model: Any, labels: Sequence[Entry], rule: str) -> TrainedProject:
    """Choose the thresholds of a trained model, and estimate what they give."""
    pool = _pool_as_if_new(project, model)
    curves = [ThresholdCurve.of(*column) for column in pool.columns]
    class_priors = pool.rows.mean(axis=0, dtype=np.float64)
    if isinstance(model, AutoModel):
        class_priors = model.class_priors
    decision = choose_from_curves(rule, curves, class_priors, project.classes)
    estimate = None
    if pool.held_out is not None:
        estimate = estimate_decisions(pool.rows, pool.held_out, decision, pool.counts)
    report = ModelReport(
        classes=project.classes,
        counts=tuple(sum(entry.label == name for entry in labels) for name in project.classes),
        n_examples=len(project.pool) - len(project.bad),
        class_priors=class_priors,
        decision=decision,
        estimate=estimate,
    )
    return TrainedProject(model, report, curves)


@dataclass(frozen=True)
class DecidedPool:
    """What a model says of every example of a pool; of labelled ones, had it not seen them.

    Parameters
    ----------
    proba, classes
        The probabilities, and the class that is decided at the thresholds for F1.
    """

    proba: NDArray[np.floating[Any]]
    classes: NDArray[np.intp]


def decide_pool(project: Project, model: TrainedModel) -> DecidedPool:
    """Decide the class of every example by the thresholds that `save_trained_model` would take."""
    if len(project.pool) > MOST_ROWS:
        raise GalaxyError(f"An audit needs a pool of at most {MOST_ROWS:,} examples.")
    table, priors = (
        np.asarray(model.snapshot(project.vectors).proba),
        np.zeros(len(project.classes)),
    )
    if isinstance(model, AutoModel):
        priors = model.class_priors
        if model.held_out is not None:
            table = held_out_table(table, model.held_out)
    elif len(np.unique(table.argmax(axis=1))) > 1:
        priors = table.mean(axis=0, dtype=np.float64)
    return decide_table(table, priors, project)


def decide_table(
    table: NDArray[np.floating[Any]], class_priors: NDArray[np.float64], project: Project
) -> DecidedPool:
    """The same from probabilities, those of labelled examples by models without them."""
    usable = np.delete(np.arange(len(table)), list(project.bad))
    decision = choose_thresholds(DEFAULT_RULE, table[usable], class_priors, project.classes)
    return DecidedPool(table, decision.classes(table))


@dataclass(frozen=True)
class _PoolAsIfNew:
    """The probabilities of the usable examples by models that do not know their labels.

    Parameters
    ----------
    held_out
        The labels, with the rows that they are in; None for heads other than ``auto``.
    columns
        The probabilities of each rare class, and how many examples each stands for.
    counts
        How many examples each row stands for; None is one.
    """

    rows: NDArray[np.floating[Any]]
    held_out: HeldOut | None
    columns: list[tuple[NDArray[np.floating[Any]], NDArray[np.int64] | None]]
    counts: NDArray[np.int64] | None = None


def _pool_as_if_new(project: Project, model: Any) -> _PoolAsIfNew:
    table = model.proba(project.vectors)
    held_out = held_out_of(model)
    if isinstance(table, ShardedTable) and held_out is not None and len(table) > MOST_ROWS:
        return _in_few_rows(table, held_out, project.bad)
    table = np.asarray(table)
    usable = np.setdiff1d(np.arange(len(table)), list(project.bad))
    if held_out is not None:
        table = held_out_table(table, held_out)
        held_out = replace(held_out, indices=np.searchsorted(usable, held_out.indices))
    rows = table[usable]
    return _PoolAsIfNew(rows, held_out, [(column, None) for column in rows.T[:-1]])


def _in_few_rows(table: ShardedTable, held_out: HeldOut, bad: Collection[int]) -> _PoolAsIfNew:
    """Of a pool too large to bring here."""
    few = few_rows(table, FreeExamples(len(table), [*bad, *held_out.indices.tolist()]))
    places = np.arange(len(few.rows), len(few.rows) + len(held_out.indices))
    ones = np.ones(len(places), dtype=np.int64)
    columns = [
        (np.append(values, held_out.proba[:, k]), np.append(counts, ones))
        for k, (values, counts) in enumerate(few.columns)
    ]
    return _PoolAsIfNew(
        np.concatenate([few.rows, held_out.proba]),
        replace(held_out, indices=places),
        list(columns),
        np.append(few.counts, ones),
    )
