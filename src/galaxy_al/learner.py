"""The active-learning loop: ask, tell, train, and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from galaxy_al.annotators import Annotator
from galaxy_al.errors import PoolExhausted
from galaxy_al.metrics import balanced_accuracy, rare_average_precision, rare_found
from galaxy_al.models.heads import FittedHead, Head, fit_head, kernel_head
from galaxy_al.snapshot import Snapshot, checked_table
from galaxy_al.strategies import Session, Strategy, make_strategy
from galaxy_al.strategies.random import Random

MakeHead = Callable[[int], Head]


class Learner:
    """Asks for labels and learns from them, round by round.

    The first questions are random, each seed its own, until two classes are known; after every
    `refit` from then on they are the strategy's.

    Parameters
    ----------
    embeddings
        N x d vectors.
    n_classes
        The number K of classes; the last one is the big one.
    strategy
        A name from `STRATEGIES` or a strategy.
    head
        Makes a classifier from a seed; ``"auto"`` takes `kernel_head`.
    batch_size
        How many labels are given between two trainings.
    seed
        All random choices follow from it.

    Examples
    --------
    >>> learner = Learner(np.eye(4), n_classes=2, strategy="random", batch_size=2)
    >>> first, second = learner.ask(), learner.ask()
    >>> learner.tell(first, 0)
    >>> learner.tell(second, 1)
    >>> learner.refit()
    >>> learner.proba.shape
    (4, 2)
    """

    def __init__(
        self,
        embeddings: ArrayLike,
        n_classes: int,
        *,
        strategy: str | Strategy = "galaxy",
        head: str | MakeHead = "auto",
        batch_size: int = 100,
        seed: int = 0,
    ) -> None:
        if n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {n_classes}.")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        self.embeddings = checked_table(embeddings)
        self.n_classes = n_classes
        self.strategy = make_strategy(strategy) if isinstance(strategy, str) else strategy
        self.batch_size = batch_size
        self._make_head = _checked_head(head)
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._fitted = self._fit({})
        self.strategy.check(self._snapshot())
        self.strategy.prepare(self._snapshot(), rng=self._rng)
        self._session = self._start({}, set())

    @property
    def proba(self) -> NDArray[np.float64]:
        """The class probabilities of the pool by the last training, N x K."""
        return self._fitted.proba

    @property
    def labels(self) -> dict[int, int]:
        """The labels given so far, by index."""
        return self._session.labels

    @property
    def pending(self) -> list[int]:
        """The examples asked and not yet answered."""
        return self._session.pending

    def ask(self) -> int:
        """The next example to label."""
        return self._session.ask()

    def tell(self, index: int, label: int) -> None:
        """The label of an example."""
        self._session.tell(index, label)

    def skip(self, index: int) -> None:
        """Say that an example cannot be labelled."""
        self._session.skip(index)

    def release(self, index: int) -> None:
        """Give an example back unanswered."""
        self._session.release(index)

    def withdraw(self, index: int) -> None:
        """Take a label back."""
        self._session.withdraw(index)

    def refit(self) -> None:
        """Train on all labels, score the pool and let the strategy begin anew.

        Questions in flight stay so.
        """
        before = self._session
        self._fitted = self._fit(before.labels)
        self._session = self._start(before.labels, before.skipped)
        for index in before.pending:
            self._session.hold(index)

    def _fit(self, labels: dict[int, int]) -> FittedHead:
        head, keep = self._make_head(self._seed), "embeddings" in self.strategy.needs
        return fit_head(head, self.embeddings, labels, self.n_classes, keep)

    def _snapshot(self) -> Snapshot:
        fitted = self._fitted
        return Snapshot(fitted.proba, None, fitted.embeddings, fitted.last_layer)

    def _start(self, labels: dict[int, int], skipped: set[int]) -> Session:
        """Let the strategy ask, or chance while there is nothing to tell apart."""
        strategy = self.strategy if len(set(labels.values())) > 1 else Random()
        now = self._snapshot().updated(labels, skipped)
        return strategy.start(now, rng=self._rng, budget=self.batch_size)


@dataclass(frozen=True)
class Round:
    """What a simulated round found and how good the classifier trained after it is.

    Parameters
    ----------
    n_labels
        Labels given so far.
    balanced_accuracy
        Over the whole pool, the paper's metric.
    average_precision
        Of the rare classes, their mean, over the whole pool.
    rare_found
        Examples of rare classes labelled so far, whatever the annotator called them.
    indices
        The examples labelled in this round, in order.
    """

    n_labels: int
    balanced_accuracy: float
    average_precision: float
    rare_found: int
    indices: tuple[int, ...]


def simulate(
    embeddings: ArrayLike,
    truth: Sequence[int] | NDArray[np.integer[Any]],
    strategy: str | Strategy = "galaxy",
    head: str | MakeHead = "auto",
    batch_size: int = 100,
    rounds: int = 20,
    seed: int = 0,
    annotator: Annotator | None = None,
) -> list[Round]:
    """Run active learning against known labels; fewer rounds if the pool ends.

    Parameters
    ----------
    truth
        N integers; the last class is the big one.
    annotator
        Who answers; by default somebody who knows the truth. `noisy_annotator` makes mistakes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1], [10, 190])
    >>> embeddings = rng.normal(size=(200, 2)) + 3 * (truth == 0)[:, None]
    >>> history = simulate(embeddings, truth, batch_size=20, rounds=3)
    >>> [step.n_labels for step in history]
    [20, 40, 60]
    """
    embeddings, truth = checked_table(embeddings), np.asarray(truth)
    if rounds < 0:
        raise ValueError(f"rounds must be at least 0, got {rounds}.")
    if truth.shape != (len(embeddings),) or truth.dtype.kind not in "iu" or truth.min() < 0:
        raise ValueError(
            f"truth must be a class, 0 or more, for each of {len(embeddings)} embeddings, "
            f"got shape {truth.shape} of {truth.dtype}."
        )
    if truth.min() == truth.max():
        raise ValueError(f"truth must have two classes or more, got only {truth.min()}.")
    n_classes = int(truth.max()) + 1
    learner = Learner(
        embeddings, n_classes, strategy=strategy, head=head, batch_size=batch_size, seed=seed
    )
    history = []
    for _ in range(rounds):
        indices = _answer_batch(learner, annotator or (lambda index: int(truth[index])))
        if not indices:
            break
        learner.refit()
        history.append(_evaluated(learner, truth, indices))
    return history


def _evaluated(learner: Learner, truth: NDArray[Any], indices: list[int]) -> Round:
    other = learner.n_classes - 1
    return Round(
        n_labels=len(learner.labels),
        balanced_accuracy=balanced_accuracy(truth, learner.proba.argmax(axis=1)),
        average_precision=rare_average_precision(truth, learner.proba, other),
        rare_found=rare_found(truth, list(learner.labels), other),
        indices=tuple(indices),
    )


def _answer_batch(learner: Learner, annotator: Annotator) -> list[int]:
    indices: list[int] = []
    for _ in range(learner.batch_size):
        try:
            index = learner.ask()
        except PoolExhausted:
            break
        learner.tell(index, annotator(index))
        indices.append(index)
    return indices


def _checked_head(head: str | MakeHead) -> MakeHead:
    if callable(head):
        return head
    if head != "auto":
        raise ValueError(f"Unknown head {head!r}. Choose 'auto' or a function that makes one.")
    return kernel_head
