"""What the service hands out: immutable, in ids and names of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.labelling.background import Training
from galaxy_al.labelling.database import RoundRecord
from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.project import Project
from galaxy_al.models.auto import AutoModel
from galaxy_al.models.protocols import TrainedModel
from galaxy_al.strategies.session import LineView, Session


@dataclass(frozen=True)
class Question:
    """The example that an annotator has to answer.

    Parameters
    ----------
    ahead
        The example that follows each answer, by the name of the class; None as an answer is a
        skip, None as an example means that nothing is left. Empty if it is not known.
    """

    id: str
    ahead: Mapping[str | None, str | None]


@dataclass(frozen=True)
class Person:
    """An annotator, how many of their answers count, and whether their page is open."""

    name: str
    n_answers: int
    is_here: bool


@dataclass(frozen=True)
class Scores:
    """The pool at one moment, for a search, in the order of the pool.

    Parameters
    ----------
    is_trained
        Whether the probabilities come from a model that knows at least two classes.
    busy
        The examples that are labelled, skipped or being answered.
    """

    proba: NDArray[np.floating[Any]]
    is_trained: bool
    busy: frozenset[int]


@dataclass(frozen=True)
class View:
    """The whole project at one moment.

    Parameters
    ----------
    labels
        The class of each labelled example.
    skipped, pending, random
        The examples that must not be asked, that are being answered, and that were asked at random.
    entries
        The entry of the log that counts for each example, the oldest first.
    round, rounds
        How many trainings there were, and what is known of each.
    n_new, current_batch
        How many answers came since the last training began, and how many start the next one.
    strategy
        The name of the strategy that asks now.
    class_priors
        How frequent the model believes the classes to be; None if it cannot tell.
    rankings
        The rankings that the strategy uses, for a picture.
    """

    labels: Mapping[str, str]
    skipped: frozenset[str]
    pending: frozenset[str]
    random: frozenset[str]
    entries: tuple[Entry, ...]
    round: int
    rounds: tuple[RoundRecord, ...]
    n_new: int
    current_batch: int
    training: Training
    strategy: str
    is_exploring: bool
    class_priors: tuple[float, ...] | None
    rankings: tuple[LineView, ...]
    people: tuple[Person, ...]


def with_labels(
    make: Callable[..., View], project: Project, session: Session, model: TrainedModel
) -> View:
    """A view with the labels and the rankings of a session, in ids and names of classes."""
    state, ids_of, names = session.state, project.ids_of, project.classes
    priors = model.class_priors if isinstance(model, AutoModel) else np.zeros(1)
    labels = dict(zip(ids_of(state.labels), (names[label] for label in state.labels.values())))
    return make(
        labels=MappingProxyType(labels),
        skipped=frozenset(ids_of(state.skipped)),
        pending=frozenset(ids_of(state.pending)),
        random=frozenset(ids_of(state.random)),
        class_priors=tuple(priors.tolist()) if priors.any() else None,
        rankings=tuple(session.rankings()),
    )
