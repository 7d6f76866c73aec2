"""The active-learning loop: ask, tell, train, and again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.pool import Pool
from galaxy_al.errors import InvalidArgument
from galaxy_al.goals import DEFAULT_GOAL, find_goal
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.heads import make_trainer
from galaxy_al.models.protocols import AnyHead, TrainedModel, fit
from galaxy_al.models.sklearn_head import HeadTrainer
from galaxy_al.models.words import WordTrainer
from galaxy_al.shards import ShardedTable
from galaxy_al.snapshot import Snapshot, checked_table
from galaxy_al.strategies import Session, Strategy, make_strategy
from galaxy_al.strategies.copying import fork
from galaxy_al.strategies.label_state import LabelState


@dataclass(frozen=True)
class Seconds:
    """How long the parts of a round took; judging is computing the metrics of a simulation."""

    selection: float = 0.0
    training: float = 0.0
    scoring: float = 0.0
    judging: float = 0.0


@dataclass(frozen=True)
class NextRound:
    """What `Learner.prepare_round` makes and `Learner.start_round` takes.

    Parameters
    ----------
    state
        The state it was prepared from.
    seconds
        Of the training that led to it, and of starting its session.
    """

    model: TrainedModel
    snapshot: Snapshot
    strategy: Strategy
    session: Session
    state: LabelState
    seconds: Seconds


class Learner:
    """Asks for labels and learns from them, round by round.

    ``explore`` asks the first questions, until two classes are known. From the next `refit` on,
    the strategy asks.

    Parameters
    ----------
    pool
        N x d embeddings, as an array or a `ShardedPool`; or images, as an array or a pool, for a
        network that takes them.
    n_classes
        The number K of classes; the last one is the majority class.
    strategy
        A name from `STRATEGIES` or a strategy; by default that of the goal.
    head
        What is trained: ``"auto"``, an `AutoTrainer`; ``"linear"``, ``"mlp"`` and ``"resnet18"``,
        networks of `galaxy_al.models.networks.training`; a scikit-learn classifier, or a function
        that makes one from a seed; or any object with ``fit(pool, labels)`` as `Trainer` has.
    batch_size
        How many labels are given between two trainings, at most.
    goal
        What the labels are for: ``"classifier"`` or ``"find-all"``. It decides what asks and when
        to train, see `current_batch`.
    seed
        All random choices follow from it.
    texts
        The texts of the pool, if it has any. If the goal is to find all and the head ``"auto"``,
        their words count beside the embeddings: see `WordTrainer`. Not for a pool in shards.
    explore
        What asks until two classes are known; by default the strategy's own explorer, or random if
        it has none.

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
        strategy: str | Strategy | None = None,
        head: AnyHead = "auto",
        batch_size: int = 100,
        goal: str = DEFAULT_GOAL,
        seed: int = 0,
        texts: Sequence[str] | None = None,
        explore: str | Strategy | None = None,
    ) -> None:
        if n_classes < 2:
            raise InvalidArgument(f"n_classes must be at least 2, got {n_classes}.")
        if batch_size < 1:
            raise InvalidArgument(f"batch_size must be at least 1, got {batch_size}.")
        self.pool = checked_pool(pool)
        self.n_classes = n_classes
        self.goal = find_goal(goal)
        strategy = strategy or self.goal.strategy
        self.strategy = make_strategy(strategy) if isinstance(strategy, str) else strategy
        explore = explore or self.strategy.explorer or "random"
        self.explore = make_strategy(explore) if isinstance(explore, str) else explore
        self.batch_size = batch_size
        self._trainer = make_trainer(
            head, n_classes=n_classes, seed=seed, needs=self.strategy.needs
        )
        if texts is not None and self.goal.is_eager and isinstance(self._trainer, AutoTrainer):
            self._trainer = WordTrainer(self._trainer, texts)
        if isinstance(self.pool, ShardedTable):
            _check_works_on_shards(head, self._trainer)
        self._seed, self._rng = seed, np.random.default_rng(seed)
        self.seconds = Seconds()
        self.model = self._trainer.fit(self.pool, {})
        self.snapshot = self.model.snapshot(self.pool)
        self._prepare_strategy()
        self._selecting = 0.0
        self._asking = self.explore
        self._n_trained = 0
        self._session = self.explore.start(self.snapshot, rng=self._rng, budget=batch_size)

    @property
    def state(self) -> LabelState:
        """What is known about the examples, shared with the session. Every round has its own."""
        return self._session.state

    @property
    def proba(self) -> NDArray[np.floating[Any]]:
        """How likely each class is in the pool by the last training, N x K."""
        return self.snapshot.proba

    @property
    def is_exploring(self) -> bool:
        """Whether ``explore`` asks, since there is nothing to tell apart yet."""
        return self._asking is self.explore

    @property
    def can_stop_exploring(self) -> bool:
        """Whether ``explore`` asks although two classes are known: a `refit` ends that."""
        return self.is_exploring and len(set(self.state.labels.values())) > 1

    @property
    def current_batch(self) -> int:
        """How many labels to give between the last training and the next one, by the goal."""
        return self._batch_after(self._asking, self._n_trained)

    @property
    def generator_state(self) -> dict[str, Any]:
        """The state of the random generator, in a form that JSON can keep."""
        return dict(self._rng.bit_generator.state)

    def ask(self) -> int:
        """The next example to label."""
        begin = time.perf_counter()
        index = self._session.ask()
        self._selecting += time.perf_counter() - begin
        return index

    def tell(self, index: int, label: int) -> None:
        """Label an example."""
        begin = time.perf_counter()
        self._session.tell(index, label)
        self._selecting += time.perf_counter() - begin

    def look_ahead(self, index: int) -> dict[int | None, int | None]:
        """What would be asked next after each answer to an example; None is a skip."""
        return self._session.look_ahead(index)

    def session_copy(self) -> Session:
        """A copy of the session, to look at while the original continues."""
        return fork(self._session)

    def refit(self) -> None:
        """Train on all labels, score the pool and start the strategy again.

        Pending questions stay pending. `seconds` then says how long the round took that ends here.
        """
        self.start_round(self.prepare_round(self.state.copy()))

    def prepare_round(
        self,
        state: LabelState,
        ask_again: Iterable[int] = (),
        rng: np.random.Generator | None = None,
        weights: Mapping[int, float] | None = None,
    ) -> NextRound:
        """Train on the labels of a state and prepare the next round; this one continues.

        With a generator of its own this changes nothing, so another thread may do it.

        Parameters
        ----------
        state
            A copy of the learner's state now.
        ask_again
            Skipped examples that may be asked again in the next round.
        rng
            Makes the random choices of the next round; by default the learner's own.
        weights
            How much a label counts, from 0 to 1, by index; those that are not named count fully.
            For trainers that are `TrainsWeighted`, as ``"auto"`` is.
        """
        begin = time.perf_counter()
        model = fit(self._trainer, self.pool, state.labels, weights or {})
        trained = time.perf_counter()
        snapshot = model.snapshot(self.pool)
        scored = time.perf_counter()
        asking = self.strategy if len(set(state.labels.values())) > 1 else self.explore
        now = snapshot.updated(state.labels, state.skipped - set(ask_again))
        budget = self._batch_after(asking, len(state.labels))
        session = asking.start(now, rng=rng or self._rng, budget=budget)
        started = time.perf_counter()
        seconds = Seconds(started - scored, trained - begin, scored - trained)
        return NextRound(model, snapshot, asking, session, state, seconds)

    def start_round(self, ready: NextRound) -> None:
        """Start a prepared round; it catches up with what happened since it was prepared."""
        ready.session.state.catch_up(ready.state, self.state)
        self._begin(ready)

    def resume(
        self,
        labels: Mapping[int, int],
        generator_state: dict[str, Any] | None = None,
        skipped: Iterable[int] = (),
        random: Iterable[int] = (),
        weights: Mapping[int, float] | None = None,
    ) -> None:
        """Continue where another learner was just before a `refit`; the `refit` is done here.

        With the labels, the skipped and random examples and the `generator_state` of the other
        learner, this one asks exactly what the other one would have asked.

        Parameters
        ----------
        random
            The examples that the other learner had asked at random.
        weights
            As of `prepare_round`.
        """
        if generator_state is not None:
            self._rng.bit_generator.state = generator_state
        state = LabelState(len(self.pool), self.n_classes, labels, skipped, random)
        ready = self.prepare_round(state, weights=weights)
        ready.session.state.catch_up(state, state)
        self._begin(ready)

    def _begin(self, ready: NextRound) -> None:
        self.model, self.snapshot = ready.model, ready.snapshot
        self._asking, self._session = ready.strategy, ready.session
        self._n_trained = len(ready.state.labels)
        self.seconds = replace(ready.seconds, selection=self._selecting)
        self._selecting = ready.seconds.selection

    def _prepare_strategy(self) -> None:
        """Let the strategies prepare themselves, from the pool's embeddings if these were given."""
        self.strategy.check(self.snapshot)
        self.explore.check(self.snapshot)
        pretrained = self.snapshot
        if isinstance(self.pool, np.ndarray | ShardedTable) and self.pool.ndim == 2:
            pretrained = pretrained.with_embeddings(self.pool)
        # A generator of its own: the first batch of a seed is the same for all strategies.
        for strategy in (self.strategy, self.explore):
            strategy.prepare(pretrained, rng=np.random.default_rng([self._seed, 1]))

    def _batch_after(self, asking: Strategy, n_labels: int) -> int:
        """How many labels to give after a training; more trainings do not help to explore."""
        if asking is self.explore:
            return self.batch_size
        return self.goal.next_batch(n_labels, self.batch_size)


def _check_works_on_shards(head: AnyHead, trainer: Any) -> None:
    """Refuse what would bring a pool in shards here; a trainer of your own may know better."""
    if (isinstance(head, str) and head != "auto") or isinstance(trainer, HeadTrainer):
        raise InvalidArgument(
            f"The head {head!r} needs the whole pool at once, and this one is in shards. "
            "Choose: auto."
        )
    if isinstance(trainer, WordTrainer):
        raise InvalidArgument(
            "The words of texts need the whole pool at once, and this one is in shards. Leave out "
            "texts."
        )


def checked_pool(pool: Any) -> Any:
    """Images and tables in shards as they are, and anything else as a table of finite numbers."""
    if isinstance(table := getattr(pool, "vectors", pool), ShardedTable):
        return table
    items = getattr(pool, "items", pool)
    is_images = isinstance(pool, Pool) and pool.modality.goes_to_networks
    return pool if is_images or np.ndim(items) == 4 else checked_table(items)
