"""The active-learning loop: ask, tell, train, and again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.models.kernel import KernelTrainer
from galaxy_al.models.sklearn_head import Head, HeadTrainer, MakeHead
from galaxy_al.snapshot import Snapshot, checked_table
from galaxy_al.strategies import DEFAULT_STRATEGY, Session, Strategy, make_strategy
from galaxy_al.strategies.copying import fork


class TrainedModel(Protocol):
    """What a trainer makes."""

    def snapshot(self, pool: Any, labels: NDArray[Any] | None = None) -> Snapshot:
        """The scores of the pool and, for strategies that need them, embeddings and head."""


class TrainsModels(Protocol):
    """Whatever trains: `galaxy_al.models.networks.training.Trainer`, or one of your own."""

    def fit(self, pool: Any, labels: Mapping[int, int]) -> TrainedModel:
        """Train anew on the labelled examples."""


AnyHead = str | Head | MakeHead | TrainsModels


@dataclass(frozen=True)
class Seconds:
    """How long the parts of a round took; judging is computing the metrics, in a simulation."""

    selection: float = 0.0
    training: float = 0.0
    scoring: float = 0.0
    judging: float = 0.0


@dataclass(frozen=True)
class NextRound:
    """What `Learner.prepare_round` makes and `Learner.start_round` takes.

    Parameters
    ----------
    labels, skipped
        Those it was prepared with.
    seconds
        Of the training that led to it, and of starting its session.
    """

    model: TrainedModel
    snapshot: Snapshot
    strategy: Strategy
    session: Session
    labels: dict[int, int]
    skipped: set[int]
    seconds: Seconds


class Learner:
    """Asks for labels and learns from them, round by round.

    The first questions are ``explore``'s, until two classes are known; after every `refit` from
    then on they are the strategy's.

    Parameters
    ----------
    pool
        N x d embeddings; or images, an array or a pool of them, for a network that takes them.
    n_classes
        The number K of classes; the last one is the big one.
    strategy
        A name from `STRATEGIES` or a strategy.
    head
        What is trained: ``"auto"``, a `KernelTrainer`; ``"linear"``, ``"mlp"`` and ``"resnet18"``,
        networks of `galaxy_al.models.networks.training`; a scikit-learn classifier, or a function
        that makes one from a seed; or whatever has ``fit(pool, labels)`` as `Trainer` has.
    batch_size
        How many labels are given between two trainings.
    seed
        All random choices follow from it.
    explore
        What asks until two classes are known; by default uniform random, each seed its own.

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
        pool: Any,
        n_classes: int,
        *,
        strategy: str | Strategy = DEFAULT_STRATEGY,
        head: AnyHead = "auto",
        batch_size: int = 100,
        seed: int = 0,
        explore: str | Strategy = "random",
    ) -> None:
        if n_classes < 2:
            raise InvalidArgument(f"n_classes must be at least 2, got {n_classes}.")
        if batch_size < 1:
            raise InvalidArgument(f"batch_size must be at least 1, got {batch_size}.")
        self.pool = checked_pool(pool)
        self.n_classes = n_classes
        self.strategy = make_strategy(strategy) if isinstance(strategy, str) else strategy
        self.explore = make_strategy(explore) if isinstance(explore, str) else explore
        self.batch_size = batch_size
        self._trainer = _trainer(head, n_classes, seed, self.strategy.needs)
        self._seed, self._rng = seed, np.random.default_rng(seed)
        self.seconds = Seconds()
        self.model = self._trainer.fit(self.pool, {})
        self.snapshot = self.model.snapshot(self.pool)
        self._prepare()
        self._selecting = 0.0
        self._drawn_before: set[int] = set()
        self._asking = self._strategy_for({})
        self._session = self._start(self.snapshot, {}, set())

    @property
    def proba(self) -> NDArray[np.floating[Any]]:
        """The class probabilities of the pool by the last training, N x K."""
        return self.snapshot.proba

    @property
    def labels(self) -> dict[int, int]:
        """The labels given so far, by index."""
        return self._session.labels

    @property
    def pending(self) -> list[int]:
        """The examples asked and not yet answered."""
        return self._session.pending

    @property
    def skipped(self) -> set[int]:
        """The examples that are not to be asked."""
        return self._session.skipped

    @property
    def is_exploring(self) -> bool:
        """Whether ``explore`` asks, since there is nothing to tell apart yet."""
        return self._asking is self.explore

    @property
    def drawn(self) -> set[int]:
        """The examples asked by pure chance, as the first ones are: a fair sample of the rest."""
        return self._drawn_before | self._session.drawn

    @property
    def generator_state(self) -> dict[str, Any]:
        """Where the random choices stand; JSON can keep it."""
        return dict(self._rng.bit_generator.state)

    def ask(self) -> int:
        """The next example to label."""
        begin = time.perf_counter()
        index = self._session.ask()
        self._selecting += time.perf_counter() - begin
        return index

    def tell(self, index: int, label: int) -> None:
        """The label of an example."""
        begin = time.perf_counter()
        self._session.tell(index, label)
        self._selecting += time.perf_counter() - begin

    def skip(self, index: int) -> None:
        """Say that an example cannot be labelled."""
        self._session.skip(index)

    def release(self, index: int) -> None:
        """Give an example back unanswered."""
        self._drawn_before.discard(index)
        self._session.release(index)

    def restore(self, index: int) -> None:
        """Take a skip back."""
        self._session.restore(index)

    def withdraw(self, index: int) -> None:
        """Take a label back."""
        self._session.withdraw(index)

    def hold(self, index: int) -> None:
        """Count an example as asked, though it was not."""
        self._session.hold(index)

    def look_ahead(self, index: int) -> dict[int | None, int | None]:
        """What would be asked next after each answer to an example; None is a skip."""
        return self._session.look_ahead(index)

    def session_copy(self) -> Session:
        """The session as it is now, to look at while it goes on."""
        return fork(self._session)

    def refit(self) -> None:
        """Train on all labels, score the pool and let the strategy begin anew.

        Questions in flight stay so. `seconds` then says how long the round has taken that ends
        here.
        """
        self.start_round(self.prepare_round(self.labels, self.skipped))

    def prepare_round(
        self,
        labels: Mapping[int, int],
        skipped: Iterable[int],
        ask_again: Iterable[int] = (),
        rng: np.random.Generator | None = None,
    ) -> NextRound:
        """The next round, trained on these labels, while this one goes on.

        With a generator of its own it changes nothing, and so may be done by another thread.

        Parameters
        ----------
        labels, skipped
            Those of the learner now.
        ask_again
            Those of the skipped that may be asked again from then on.
        rng
            Draws from then on; by default the learner's.
        """
        begin = time.perf_counter()
        model = self._trainer.fit(self.pool, labels)
        trained = time.perf_counter()
        snapshot = model.snapshot(self.pool)
        scored = time.perf_counter()
        known, out = dict(labels), set(skipped)
        session = self._start(snapshot, known, out - set(ask_again), rng)
        started = time.perf_counter()
        seconds = Seconds(started - scored, trained - begin, scored - trained)
        return NextRound(model, snapshot, self._strategy_for(known), session, known, out, seconds)

    def start_round(self, ready: NextRound) -> None:
        """Begin a round that was prepared; what happened since then is carried over."""
        before, self._drawn_before = self._session, self.drawn
        self._begin(ready)
        _carry_over(before, ready)

    def resume(
        self,
        labels: Mapping[int, int],
        generator_state: dict[str, Any] | None = None,
        skipped: Iterable[int] = (),
        drawn: Iterable[int] = (),
    ) -> None:
        """Go on where another learner was just before a `refit`; the `refit` is done here.

        With that one's labels, skipped examples and `generator_state` this one asks exactly what
        that one would have. That one's `drawn` are remembered.
        """
        self._drawn_before = set(drawn)
        if generator_state is not None:
            self._rng.bit_generator.state = generator_state
        self._begin(self.prepare_round(labels, skipped))

    def _begin(self, ready: NextRound) -> None:
        self.model, self.snapshot = ready.model, ready.snapshot
        self._asking, self._session = ready.strategy, ready.session
        self.seconds = replace(ready.seconds, selection=self._selecting)
        self._selecting = ready.seconds.selection

    def _prepare(self) -> None:
        """What strategies make once, they make of pretrained embeddings: those given, if any."""
        self.strategy.check(self.snapshot)
        pretrained = self.snapshot
        if isinstance(self.pool, np.ndarray) and self.pool.ndim == 2:
            pretrained = replace(pretrained, embeddings=self.pool, head=None)
        # A generator of its own: the first batch of a seed is the same for all strategies.
        self.strategy.prepare(pretrained, rng=np.random.default_rng([self._seed, 1]))

    def _strategy_for(self, labels: Mapping[int, int]) -> Strategy:
        return self.strategy if len(set(labels.values())) > 1 else self.explore

    def _start(
        self,
        snapshot: Snapshot,
        labels: dict[int, int],
        skipped: set[int],
        rng: np.random.Generator | None = None,
    ) -> Session:
        """Let the strategy ask, or ``explore`` while there is nothing to tell apart."""
        now, asking = snapshot.updated(labels, skipped), self._strategy_for(labels)
        return asking.start(now, rng=rng or self._rng, budget=self.batch_size)


def _carry_over(before: Session, ready: NextRound) -> None:
    """Give a new session what happened in the one before while it was prepared."""
    now, after = before.labels, ready.session
    for index in ready.labels.keys() - now.keys():
        after.withdraw(index)
    for index in (ready.skipped - before.skipped) & after.skipped:
        after.restore(index)
    for index, label in now.items() - ready.labels.items():
        after.tell(index, label)
    for index in before.skipped - ready.skipped:
        after.skip(index)
    for index in before.pending:
        after.hold(index)


def checked_pool(pool: Any) -> Any:
    """Images as they are, and anything else as a table of finite numbers."""
    items = getattr(pool, "items", pool)
    is_images = getattr(pool, "kind", None) == "images" or np.ndim(items) == 4
    return pool if is_images else checked_table(items)


def _trainer(head: AnyHead, n_classes: int, seed: int, needs: tuple[str, ...]) -> TrainsModels:
    if head == "auto":
        return KernelTrainer(n_classes=n_classes, seed=seed, keep_head="head" in needs)
    if isinstance(head, str):
        from galaxy_al.models.networks.training import Trainer

        network: Any = head
        return Trainer(network, n_classes=n_classes, seed=seed)
    if hasattr(head, "predict_proba"):
        from sklearn.base import clone

        return _trainer(lambda seed: clone(head), n_classes, seed, needs)
    if hasattr(head, "fit"):
        return head
    if not callable(head):
        raise InvalidArgument(f"head must be a name, a classifier or make one, got {head!r}.")
    keep_features = "embeddings" in needs
    return HeadTrainer(head, n_classes=n_classes, seed=seed, keep_features=keep_features)
