"""Strategy and Session: the two things every method of active learning here is made of.

The method that is called BASE is in `balanced_selection.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument, GalaxyError, PoolExhausted
from galaxy_al.snapshot import Snapshot, row_blocks
from galaxy_al.strategies.copying import fork

ROWS_AT_ONCE = 1 << 12  # embeddings worked on at once: the temporaries stay small
_SCORES_AT_ONCE = 1 << 14
_LABELS_DRAWN = 150

Item = TypeVar("Item")


class Strategy:
    """Decides what to ask. It never sees the truth: its session asks, somebody tells.

    A strategy that picks a whole batch at once implements only `rank`. One that needs answers
    within the batch overrides `start` with a session of its own, and says so in `needs_answers`.
    `needs` names what it cannot do without beside the scores: ``"embeddings"``, ``"head"``.
    `is_chance` says that it looks at nothing and only draws.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    needs: tuple[str, ...] = ()
    needs_answers: ClassVar[Literal["no", "each", "in groups"]] = "no"
    is_chance: ClassVar[bool] = False

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot that lacks what the strategy needs."""
        for need in self.needs:
            if getattr(snapshot, need) is None:
                raise InvalidArgument(
                    f"Strategy {self.name!r} needs {need}, and the snapshot has none: "
                    f"make it with Snapshot(proba, labels, {need}=...)."
                )

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Make what is made once for a pool, before anything is trained, and keep it.

        Whoever has pretrained embeddings calls this with them. Without it, what is needed is made
        of the first snapshot.
        """

    def start(self, snapshot: Snapshot, *, rng: np.random.Generator, budget: int = 100) -> Session:
        """Begin to ask about a snapshot.

        Parameters
        ----------
        snapshot
            What is known now.
        rng
            Every random choice is drawn from it: the same seed asks the same questions.
        budget
            How many examples will be asked, for strategies that pick a batch as a whole.
            One may go on asking after that.
        """
        return RankedSession(self, snapshot, rng, budget)

    def rank(
        self, snapshot: Snapshot, budget: int, rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        """At most ``budget`` askable indices, the most wanted first."""
        raise NotImplementedError(f"{type(self).__name__} implements neither rank nor start.")


@dataclass(frozen=True)
class Line:
    """One class's line as it is now, to be drawn.

    Parameters
    ----------
    size
        How many examples stand on it, from the least to the most likely of the class.
    low, high
        The ranks between which the next question will be; beyond the line's ends where no label
        bounds them.
    order
        How far GALAXY looks around its cuts; 1 while it bisects.
    labels
        Ranks of labels, and whether they are of the class; some of them, if there are many.
    """

    target: int
    size: int
    low: int
    high: int
    order: int
    labels: list[tuple[int, bool]]


class Session(ABC):
    """One conversation about a snapshot: ask, tell, release, skip, withdraw, hold.

    Indices always mean the pool. Several questions may be in flight at once.
    """

    def __init__(
        self, strategy: Strategy, snapshot: Snapshot, rng: np.random.Generator, budget: int
    ) -> None:
        strategy.check(snapshot)
        if not isinstance(rng, np.random.Generator):
            raise InvalidArgument(f"rng must be a numpy.random.Generator, got {rng!r}.")
        check_count("budget", budget)
        self.snapshot = snapshot
        self._rng = rng
        self._budget = budget
        known = snapshot.labeled()
        self._labels: dict[int, int] = dict(zip(known.tolist(), snapshot.labels[known].tolist()))
        self._skipped: set[int] = set(snapshot.skipped.tolist())
        self._pending: dict[int, None] = {}
        self._drawn: set[int] = set()

    @property
    def labels(self) -> dict[int, int]:
        """The labels known now, by index."""
        return dict(self._labels)

    @property
    def pending(self) -> list[int]:
        """The indices asked and not yet answered, the oldest first."""
        return list(self._pending)

    @property
    def skipped(self) -> set[int]:
        """The indices that are not to be asked."""
        return set(self._skipped)

    @property
    def drawn(self) -> set[int]:
        """The indices asked by pure chance: a fair sample of what was not labelled then."""
        return set(self._drawn)

    def ask(self) -> int:
        """The next example to label; raises `PoolExhausted` when there is none."""
        busy = len(self._labels) + len(self._skipped) + len(self._pending)
        if busy >= self.snapshot.size:
            raise PoolExhausted(
                f"Nothing is left to ask: of {self.snapshot.size} examples {len(self._labels)} are "
                f"labelled, {len(self._skipped)} skipped and {len(self._pending)} being answered."
            )
        index = self._pick()
        self._pending[index] = None
        return index

    def tell(self, index: int, label: int) -> None:
        """The label of an example, asked or not; telling again replaces it."""
        index = self._checked(index)
        if not (_is_whole(label) and 0 <= label < self.snapshot.n_classes):
            raise InvalidArgument(
                f"A label must be a class 0 to {self.snapshot.n_classes - 1}, got {label!r}."
            )
        self._pending.pop(index, None)
        self._skipped.discard(index)
        self._labels[index] = int(label)
        self._changed(index)

    def release(self, index: int) -> None:
        """Give an example back unanswered: it may be asked again."""
        index = self._checked(index)
        if index not in self._pending:
            raise InvalidArgument(f"Example {index} is not waiting for an answer: nothing to give back.")
        del self._pending[index]
        self._drawn.discard(index)
        self._changed(index)
        self._given_back(index)

    def hold(self, index: int) -> None:
        """Count an example as asked: somebody is answering it, though this session did not ask."""
        index = self._checked(index)
        if not self._is_free(index):
            raise InvalidArgument(f"Example {index} is already labelled, skipped or being answered.")
        self._pending[index] = None
        self._changed(index)

    def skip(self, index: int) -> None:
        """Say that an example cannot be labelled: it is never asked again. A label it had goes."""
        index = self._checked(index)
        self._pending.pop(index, None)
        self._labels.pop(index, None)
        self._skipped.add(index)
        self._changed(index)

    def restore(self, index: int) -> None:
        """Take a skip back: the example may be asked again."""
        index = self._checked(index)
        if index not in self._skipped:
            raise InvalidArgument(f"Example {index} is not skipped: nothing to restore.")
        self._skipped.remove(index)
        self._changed(index)

    def withdraw(self, index: int) -> None:
        """Take a label back: the example is unlabelled again and may be asked again."""
        index = self._checked(index)
        if index not in self._labels:
            raise InvalidArgument(f"Example {index} has no label to withdraw.")
        del self._labels[index]
        self._changed(index)

    def look_ahead(self, index: int) -> dict[int | None, int | None]:
        """What would be asked next after each answer to an example. Nothing changes.

        By class; ``None`` is for skipping it. Where nothing would be left to ask the value is
        None, too. One who answers before anybody else does gets exactly this.
        """
        index = self._checked(index)
        answers: list[int | None] = [*range(self.snapshot.n_classes), None]
        return {answer: self._after(index, answer) for answer in answers}

    def _after(self, index: int, answer: int | None) -> int | None:
        other = fork(self)
        if answer is None:
            other.skip(index)
        else:
            other.tell(index, answer)
        try:
            return other.ask()
        except PoolExhausted:
            return None

    def lines(self) -> list[Line]:
        """The classes' lines, of a strategy that has such. Nothing changes."""
        return fork(self)._lines_now()

    def _lines_now(self) -> list[Line]:
        return []

    def _follow(self, other: Session) -> None:
        """Keep no books of one's own but look at another session's; it calls `_changed`."""
        self._labels, self._skipped, self._pending = other._labels, other._skipped, other._pending
        self._drawn = other._drawn

    @abstractmethod
    def _pick(self) -> int:
        """An example that is free: not labelled, skipped or pending. There is at least one."""

    @abstractmethod
    def _changed(self, index: int) -> None:
        """Notice that an example was labelled, freed, skipped or held."""

    @abstractmethod
    def _given_back(self, index: int) -> None:
        """Notice that an example was released: it was wanted and is still."""

    def _is_free(self, index: int) -> bool:
        return not (index in self._labels or index in self._skipped or index in self._pending)

    def _checked(self, index: int) -> int:
        if not (_is_whole(index) and 0 <= index < self.snapshot.size):
            raise InvalidArgument(
                f"An index must be a whole number 0 to {self.snapshot.size - 1}, got {index!r}."
            )
        return int(index)


class QueuedSession(Session):
    """Asks what stands in a queue that is filled again and again, a group at a time."""

    def __init__(
        self, strategy: Strategy, snapshot: Snapshot, rng: np.random.Generator, budget: int
    ) -> None:
        super().__init__(strategy, snapshot, rng, budget)
        self._queue: deque[int] = deque()

    @abstractmethod
    def _next_group(self) -> Iterable[int]:
        """The examples to ask next, one free one at least."""

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
            if self._is_free(index):
                return index
        return None

    def _changed(self, index: int) -> None:
        """What is free again is found when the queue is filled."""

    def _given_back(self, index: int) -> None:
        self._queue.appendleft(index)


class RankedSession(QueuedSession):
    """Asks in the order of a ranking made once for every ``budget`` questions."""

    def __init__(
        self, strategy: Strategy, snapshot: Snapshot, rng: np.random.Generator, budget: int
    ) -> None:
        super().__init__(strategy, snapshot, rng, budget)
        self._strategy = strategy

    def _pick(self) -> int:
        index = super()._pick()
        if self._strategy.is_chance:
            self._drawn.add(index)
        return index

    def _next_group(self) -> Iterable[int]:
        now = self.snapshot.updated(self._labels, self._skipped | self._pending.keys())
        ranked: list[int] = self._strategy.rank(now, self._budget, self._rng).tolist()
        if not ranked:
            raise GalaxyError(f"{type(self._strategy).__name__}.rank gave no example to ask.")
        return ranked


def some_of(items: Sequence[Item], most: int = _LABELS_DRAWN) -> list[Item]:
    """All items, or evenly some of them if there are too many to draw."""
    return list(items[:: -(-len(items) // most) or 1])


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_count(name: str, value: object) -> None:
    """Refuse an argument that is not a whole number of at least 1."""
    if not (_is_whole(value) and value >= 1):
        raise InvalidArgument(f"{name} must be a whole number of at least 1, got {value!r}.")


def lowest(
    snapshot: Snapshot, budget: int, score: Callable[[NDArray[np.floating[Any]]], NDArray[Any]]
) -> NDArray[np.intp]:
    """The ``budget`` askable indices of lowest score, ties by index.

    ``score`` turns rows of the table into one number each; it sees some thousands at once.
    """
    candidates = snapshot.askable()
    blocks = row_blocks(len(candidates), _SCORES_AT_ONCE)
    scores = np.concatenate(
        [np.empty(0), *(score(snapshot.proba[candidates[low:high]]) for low, high in blocks)]
    )
    return candidates[smallest(scores, budget)]


def smallest(scores: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Where the ``count`` smallest scores stand, the smallest first, ties in order."""
    if count >= len(scores):
        return np.argsort(scores, kind="stable")
    within = np.flatnonzero(scores <= np.partition(scores, count)[count])
    return within[np.argsort(scores[within], kind="stable")[:count]]
