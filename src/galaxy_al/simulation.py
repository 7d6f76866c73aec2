"""Active learning against known labels, round by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument, PoolExhausted
from galaxy_al.goals import DEFAULT_GOAL
from galaxy_al.learner import Learner, Seconds, checked_pool
from galaxy_al.metrics import (
    balanced_accuracy,
    brier_score,
    calibration_error,
    log_loss,
    rare_average_precision,
    rare_f1,
    rare_found,
    rare_precision,
    rare_recall,
)
from galaxy_al.models.decisions import DEFAULT_RULE, choose_thresholds
from galaxy_al.models.protocols import AnyHead
from galaxy_al.strategies import Strategy

Annotator = Callable[[int], int]
"""Answers an index with a label."""


@dataclass(frozen=True)
class Round:
    """What a simulated round found and how good the classifier trained after it is.

    Parameters
    ----------
    n_labels
        Labels given so far.
    balanced_accuracy
        Over the whole pool, the paper's metric, if the model decides as if all classes were as
        frequent.
    average_precision, f1
        Of the rare classes, their mean, over the whole pool.
    precision, recall
        Of all rare classes together. Like F1 they are of the model's own decisions, with the
        thresholds that are best for F1 by its own probabilities.
    log_loss, brier, calibration_error
        Of the probabilities; the last one of being rare.
    rare_found
        Examples of rare classes labelled so far, whatever the annotator called them.
    indices, random
        The examples labelled in this round, in order, and those of them that were asked at random.
    generator_state
        The learner's random generator when all was labelled, for `Learner.resume`.
    seconds
        What the round's selection, training, scoring and judging took.
    """

    n_labels: int
    balanced_accuracy: float
    average_precision: float
    f1: float
    precision: float
    recall: float
    log_loss: float
    brier: float
    calibration_error: float
    rare_found: int
    indices: tuple[int, ...]
    random: tuple[int, ...]
    generator_state: dict[str, Any] = field(repr=False)
    seconds: Seconds = field(compare=False)


def simulate(
    pool: Any,
    truth: Sequence[int] | NDArray[np.integer[Any]],
    strategy: str | Strategy | None = None,
    head: AnyHead = "auto",
    batch_size: int = 100,
    rounds: int = 20,
    seed: int = 0,
    annotator: Annotator | None = None,
    goal: str = DEFAULT_GOAL,
    texts: Sequence[str] | None = None,
) -> list[Round]:
    """Run active learning against known labels; fewer rounds if the pool ends.

    Parameters
    ----------
    pool, strategy, head, batch_size, seed, goal, texts
        As of `Learner`.
    truth
        N integers; the last class is the majority class.
    annotator
        Answers the questions; by default with the truth. `noisy_annotator` makes mistakes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1], [10, 190])
    >>> embeddings = rng.normal(size=(200, 2)) + 3 * (truth == 0)[:, None]
    >>> history = simulate(embeddings, truth, batch_size=20, rounds=3)
    >>> [step.n_labels for step in history]
    [20, 40, 60]
    """
    pool = checked_pool(pool)
    truth = checked_truth(truth, len(pool))
    if rounds < 0:
        raise InvalidArgument(f"rounds must be at least 0, got {rounds}.")
    n_classes = int(truth.max()) + 1
    learner = Learner(
        pool,
        n_classes,
        strategy=strategy,
        head=head,
        batch_size=batch_size,
        goal=goal,
        seed=seed,
        texts=texts,
    )
    history: list[Round] = []
    while len(history) < rounds and (step := play_round(learner, truth, annotator)) is not None:
        history.append(step)
    return history


def play_round(
    learner: Learner,
    truth: NDArray[np.integer[Any]],
    annotator: Annotator | None = None,
    scores: Callable[[Learner], NDArray[Any]] | None = None,
) -> Round | None:
    """Answer a learner's batch, train it and judge it; None if there is nothing left to ask.

    Parameters
    ----------
    scores
        The class scores of the pool that are judged, N x K; by default the learner's own.
    """
    indices = _answer_batch(learner, annotator or (lambda index: int(truth[index])))
    if not indices:
        return None
    random = tuple(index for index in indices if index in learner.state.random)
    generator_state = learner.generator_state
    learner.refit()
    begin = time.perf_counter()
    # A pool in shards is judged in one piece; so is the truth.
    table = np.asarray(learner.proba if scores is None else scores(learner))
    balanced = np.asarray(learner.snapshot.balanced) if scores is None else table
    majority, labeled = learner.n_classes - 1, list(learner.state.labels)
    decided = choose_thresholds(DEFAULT_RULE, table, table.mean(axis=0)).classes(table)
    judged = Round(
        n_labels=len(labeled),
        balanced_accuracy=balanced_accuracy(truth, balanced.argmax(axis=1)),
        average_precision=rare_average_precision(truth, table, majority),
        f1=rare_f1(truth, decided, majority),
        precision=rare_precision(truth, decided, majority),
        recall=rare_recall(truth, decided, majority),
        log_loss=log_loss(truth, table),
        brier=brier_score(truth, table),
        calibration_error=calibration_error(truth != majority, 1 - table[:, majority]),
        rare_found=rare_found(truth, labeled, majority),
        indices=tuple(indices),
        random=random,
        generator_state=generator_state,
        seconds=learner.seconds,
    )
    seconds = replace(learner.seconds, judging=time.perf_counter() - begin)
    return replace(judged, seconds=seconds)


def checked_truth(
    truth: Sequence[int] | NDArray[np.integer[Any]], size: int
) -> NDArray[np.integer[Any]]:
    """A class for each example, at least two different ones."""
    truth = np.asarray(truth)
    if truth.shape != (size,) or truth.dtype.kind not in "iu" or truth.min() < 0:
        raise InvalidArgument(
            f"truth must be a class, 0 or more, for each of {size} examples, "
            f"got shape {truth.shape} of {truth.dtype}."
        )
    if truth.min() == truth.max():
        raise InvalidArgument(f"truth must have two classes or more, got only {truth.min()}.")
    missing = np.setdiff1d(np.arange(truth.max()), truth)
    if len(missing):
        raise InvalidArgument(
            f"truth must have an example of every class, 0 to {truth.max()}, got none of class "
            f"{missing[0]}."
        )
    return truth


def _answer_batch(learner: Learner, annotator: Annotator) -> list[int]:
    indices: list[int] = []
    for _ in range(learner.current_batch):
        try:
            index = learner.ask()
        except PoolExhausted:
            break
        learner.tell(index, annotator(index))
        indices.append(index)
        if learner.goal.is_eager and learner.can_stop_exploring:
            break
    return indices


def noisy_annotator(
    truth: Sequence[int] | NDArray[np.integer[Any]],
    flip_rate: float,
    rng: np.random.Generator,
    n_classes: int | None = None,
) -> Annotator:
    """An annotator who answers random examples with a wrong class.

    All wrong classes are as likely. Asked again about an example, the answer is the same.

    Parameters
    ----------
    flip_rate
        The chance of each example to be answered wrongly, 0 to 1.
    n_classes
        The number of classes; by default as many as ``truth`` has.

    Examples
    --------
    >>> annotator = noisy_annotator([0, 1, 1, 2], 1.0, np.random.default_rng(0))
    >>> [annotator(index) != label for index, label in enumerate([0, 1, 1, 2])]
    [True, True, True, True]
    """
    right = np.asarray(truth)
    if right.ndim != 1 or not len(right) or right.dtype.kind not in "iu" or right.min() < 0:
        raise InvalidArgument(
            f"truth must be a list of classes, 0 or more, got {right.dtype} of shape {right.shape}."
        )
    n_classes = int(right.max()) + 1 if n_classes is None else n_classes
    if not 0 <= flip_rate <= 1:
        raise InvalidArgument(f"flip_rate must be between 0 and 1, got {flip_rate}.")
    if n_classes < 2 or n_classes <= right.max():
        raise InvalidArgument(
            f"n_classes must be at least 2 and more than the largest class, got {n_classes}."
        )
    away = rng.integers(1, n_classes, size=len(right))
    answers = np.where(rng.random(len(right)) < flip_rate, (right + away) % n_classes, right)
    return lambda index: int(answers[index])
