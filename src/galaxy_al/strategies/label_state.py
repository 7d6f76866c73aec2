"""What is known about the examples of a pool: one object that everything else shares."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping
from types import MappingProxyType
from typing import Protocol, TypeGuard

import numpy as np

from galaxy_al.errors import InvalidArgument, PoolExhausted
from galaxy_al.snapshot import Snapshot


class Listener(Protocol):
    """Is notified of every change."""

    def on_change(self, index: int) -> None:
        """An example was labelled, freed, skipped or held."""

    def on_release(self, index: int) -> None:
        """An example was given back unanswered. `on_change` was called before."""


class LabelState:
    """Which examples are labelled, pending, skipped, and which were asked at random.

    An example is labelled, skipped, pending or free. Everything that can be read is a live view:
    nothing is copied. Every change is reported to the listeners.

    Parameters
    ----------
    size, n_classes
        Of the pool.
    labels
        The class of each labelled example, by index.
    skipped
        The examples that must not be asked.
    random
        The examples that were asked at random: a fair sample of what was not labelled then.

    Attributes
    ----------
    n_answers
        How many answers were given: a label, a correction, a skip and an undo count one each. An
        answer that changes nothing does not count.

    Examples
    --------
    >>> state = LabelState(size=3, n_classes=2, labels={0: 1})
    >>> state.tell(2, 0)
    >>> dict(state.labels), state.is_free(1), state.n_answers
    ({0: 1, 2: 0}, True, 1)
    """

    def __init__(
        self,
        size: int,
        n_classes: int,
        labels: Mapping[int, int] | None = None,
        skipped: Iterable[int] = (),
        random: Iterable[int] = (),
    ) -> None:
        self.size, self.n_classes = size, n_classes
        self.n_answers = 0
        self._labels: dict[int, int] = dict(labels or {})
        self._skipped: dict[int, None] = dict.fromkeys(skipped)
        self._pending: dict[int, None] = {}
        self._random: dict[int, None] = dict.fromkeys(random)
        self._listeners: list[Listener] = []

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> LabelState:
        """The labels and the skipped examples of a snapshot."""
        return cls(snapshot.size, snapshot.n_classes, snapshot.known, snapshot.skipped.tolist())

    @property
    def labels(self) -> Mapping[int, int]:
        """The class of each labelled example, by index."""
        return MappingProxyType(self._labels)

    @property
    def pending(self) -> KeysView[int]:
        """The examples that were asked and not yet answered, the oldest first."""
        return self._pending.keys()

    @property
    def skipped(self) -> KeysView[int]:
        """The examples that must not be asked."""
        return self._skipped.keys()

    @property
    def random(self) -> KeysView[int]:
        """The examples that were asked at random."""
        return self._random.keys()

    @property
    def n_random_labels(self) -> int:
        """How many labelled examples were asked at random."""
        return sum(index in self._labels for index in self._random)

    @property
    def n_busy(self) -> int:
        """How many examples are labelled, skipped or pending."""
        return len(self._labels) + len(self._skipped) + len(self._pending)

    def is_free(self, index: int) -> bool:
        """Whether an example can be asked: it is not labelled, skipped or pending."""
        return not (index in self._labels or index in self._skipped or index in self._pending)

    def copy(self) -> LabelState:
        """A state of its own, equal to this one now, without listeners."""
        other = LabelState(self.size, self.n_classes, self._labels, self._skipped, self._random)
        other._pending.update(self._pending)
        other.n_answers = self.n_answers
        return other

    def listen(self, listener: Listener) -> None:
        """Report all further changes to a listener, after those that listen already."""
        self._listeners.append(listener)

    def check_any_free(self) -> None:
        """Raise `PoolExhausted` if no example is free."""
        if self.n_busy >= self.size:
            raise PoolExhausted(
                f"No example is left to ask: of {self.size} examples {len(self._labels)} are "
                f"labelled, {len(self._skipped)} skipped and {len(self._pending)} being answered."
            )

    def mark_asked(self, index: int) -> None:
        """Note that a session asks an example."""
        self._pending[index] = None

    def mark_random(self, index: int) -> None:
        """Note that a session chose an example at random."""
        self._random[index] = None

    def tell(self, index: int, label: int) -> None:
        """Label an example, asked or not. A second label replaces the first."""
        index = self.checked(index)
        if not (is_whole(label) and 0 <= label < self.n_classes):
            raise InvalidArgument(
                f"A label must be a class 0 to {self.n_classes - 1}, got {label!r}."
            )
        if self._labels.get(index) == label:
            return
        self._pending.pop(index, None)
        self._skipped.pop(index, None)
        self._labels[index] = int(label)
        self._answered(index)

    def skip(self, index: int) -> None:
        """Never ask this example again. It loses its label if it has one."""
        index = self.checked(index)
        if index in self._skipped:
            return
        self._pending.pop(index, None)
        self._labels.pop(index, None)
        self._skipped[index] = None
        self._answered(index)

    def withdraw(self, index: int) -> None:
        """Remove a label: the example may be asked again."""
        index = self.checked(index)
        if index not in self._labels:
            raise InvalidArgument(f"Example {index} has no label to withdraw.")
        del self._labels[index]
        self._answered(index)

    def restore(self, index: int) -> None:
        """Undo a skip: the example may be asked again."""
        index = self.checked(index)
        if index not in self._skipped:
            raise InvalidArgument(f"Example {index} is not skipped: nothing to restore.")
        del self._skipped[index]
        self._answered(index)

    def hold(self, index: int) -> None:
        """Count an example as pending although the session did not ask it."""
        index = self.checked(index)
        if not self.is_free(index):
            raise InvalidArgument(
                f"Example {index} is already labelled, skipped or being answered."
            )
        self._pending[index] = None
        self._changed(index)

    def release(self, index: int) -> None:
        """Give a pending example back unanswered: it may be asked again."""
        index = self.checked(index)
        if index not in self._pending:
            raise InvalidArgument(
                f"Example {index} is not waiting for an answer: nothing to give back."
            )
        del self._pending[index]
        self._random.pop(index, None)
        self._changed(index)
        for listener in self._listeners:
            listener.on_release(index)

    def catch_up(self, before: LabelState, now: LabelState) -> None:
        """Repeat here what happened between two moments of another state."""
        for index in before.labels.keys() - now.labels.keys():
            self.withdraw(index)
        for index in (before.skipped - now.skipped) & self.skipped:
            self.restore(index)
        for index, label in now.labels.items() - before.labels.items():
            self.tell(index, label)
        for index in now.skipped - before.skipped:
            self.skip(index)
        for index in now.pending:
            self.hold(index)
        self._random.update(now._random)
        self.n_answers = now.n_answers

    def checked(self, index: int) -> int:
        """An index of the pool as a plain integer; anything else is refused."""
        if not (is_whole(index) and 0 <= index < self.size):
            raise InvalidArgument(
                f"An index must be a whole number 0 to {self.size - 1}, got {index!r}."
            )
        return int(index)

    def _answered(self, index: int) -> None:
        self.n_answers += 1
        self._changed(index)

    def _changed(self, index: int) -> None:
        for listener in self._listeners:
            listener.on_change(index)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, of Python or NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
