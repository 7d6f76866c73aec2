"""Session: one conversation about a snapshot, and the two kinds that most strategies use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, PoolExhausted
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.copying import fork
from galaxy_al.strategies.label_state import LabelState

_LABELS_SHOWN = 150

Item = TypeVar("Item")


@dataclass(frozen=True)
class LineView:
    """One class's ranking as it is now, for a picture.

    Parameters
    ----------
    size
        How many examples are ranked, from the least to the most likely of the class.
    low, high
        The ranks between which the next question lies; beyond the ends of the ranking where no
        label bounds them.
    order
        The order of the graph around its cuts; 1 while GALAXY bisects.
    labels
        Ranks of labels, and whether they are of the class. If there are many, a selection.
    """

    target: int
    size: int
    low: int
    high: int
    order: int
    labels: list[tuple[int, bool]]


@dataclass(frozen=True)
class Start:
    """What a session starts from.

    Parameters
    ----------
    budget
        How many examples will be asked, for strategies that pick a batch as a whole.
    """

    snapshot: Snapshot
    state: LabelState
    rng: np.random.Generator
    budget: int


class Session(ABC):
    """One conversation about a snapshot: ask, tell, release, skip.

    Indices always mean the pool. You may ask several questions before you answer the first.

    Attributes
    ----------
    state
        What is known about the examples: read it, and change it by its other verbs.
    """

    def __init__(self, start: Start) -> None:
        self.snapshot, self.state = start.snapshot, start.state
        self._rng, self._budget = start.rng, start.budget

    def ask(self) -> int:
        """The next example to label; raises `PoolExhausted` if none is left."""
        self.state.check_any_free()
        index = self._pick()
        self.state.mark_asked(index)
        return index

    def tell(self, index: int, label: int) -> None:
        """Label an example, asked or not. A second label replaces the first."""
        self.state.tell(index, label)

    def release(self, index: int) -> None:
        """Give an example back unanswered: it may be asked again."""
        self.state.release(index)

    def skip(self, index: int) -> None:
        """Never ask this example again. It loses its label if it has one."""
        self.state.skip(index)

    def look_ahead(self, index: int) -> dict[int | None, int | None]:
        """What would be asked next after each answer to an example. Nothing changes.

        The keys are the classes; ``None`` is for skipping it. The value is None where nothing
        would be left to ask. If you give one of these answers next, you get exactly this question.
        """
        index = self.state.checked(index)
        answers: list[int | None] = [*range(self.snapshot.n_classes), None]
        return {answer: self._after(index, answer) for answer in answers}

    def _after(self, index: int, answer: int | None) -> int | None:
        twin = fork(self)
        if answer is None:
            twin.skip(index)
        else:
            twin.tell(index, answer)
        try:
            return twin.ask()
        except PoolExhausted:
            return None

    def rankings(self) -> list[LineView]:
        """The rankings of the classes, if the strategy uses such. Nothing changes."""
        return fork(self)._ranking_views()

    def _ranking_views(self) -> list[LineView]:
        return []

    @abstractmethod
    def _pick(self) -> int:
        """A free example. There is at least one."""

    @abstractmethod
    def on_change(self, index: int) -> None:
        """React: an example was labelled, freed, skipped or held."""

    @abstractmethod
    def on_release(self, index: int) -> None:
        """React: an example was given back unanswered. It is still wanted."""


class QueuedSession(Session):
    """Asks from a queue that is filled again and again, one group at a time."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self._queue: deque[int] = deque()

    @abstractmethod
    def _next_group(self) -> Iterable[int]:
        """The examples to ask next, at least one of them free."""

    def _pick(self) -> int:
        index = self._next_in_queue()
        if index is None:
            self._queue.extend(self._next_group())
            index = self._next_in_queue()
        if index is None:
            raise GalaxyError(f"{type(self).__name__} found no example that can be asked.")
        return index

    def _next_in_queue(self) -> int | None:
        while self._queue:
            index = self._queue.popleft()
            if self.state.is_free(index):
                return index
        return None

    def on_change(self, index: int) -> None:
        """Do nothing: an example that is free again is found when the queue is filled."""

    def on_release(self, index: int) -> None:
        """Ask the example again next."""
        self._queue.appendleft(index)


class Ranks(Protocol):
    """What a `RankedSession` needs of its strategy."""

    is_random: bool

    def rank(
        self, snapshot: Snapshot, budget: int, rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        """At most ``budget`` askable indices, the most wanted first."""


class RankedSession(QueuedSession):
    """Asks in the order of a ranking that is computed once per ``budget`` questions."""

    def __init__(self, strategy: Ranks, start: Start) -> None:
        super().__init__(start)
        self._strategy = strategy

    def _pick(self) -> int:
        index = super()._pick()
        if self._strategy.is_random:
            self.state.mark_random(index)
        return index

    def _next_group(self) -> Iterable[int]:
        state = self.state
        now = self.snapshot.updated(state.labels, state.skipped | state.pending)
        ranked: list[int] = self._strategy.rank(now, self._budget, self._rng).tolist()
        if not ranked:
            raise GalaxyError(f"{type(self._strategy).__name__}.rank gave no example to ask.")
        return ranked


def selection(items: Sequence[Item], most: int = _LABELS_SHOWN) -> list[Item]:
    """All items, or evenly spaced ones if there are more than ``most``."""
    return list(items[:: -(-len(items) // most) or 1])
