"""A heap whose entries can be replaced."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

_SLACK = 16


class Keyed(Protocol):
    """An entry: it compares with others, and its key says which one it replaces."""

    @property
    def key(self) -> Hashable:
        """There is one entry per key."""

    def __lt__(self, other: Any, /) -> bool:
        """Whether this one comes first."""


Entry = TypeVar("Entry", bound=Keyed)


class LazyHeap(Generic[Entry]):
    """Entries by key, the smallest first.

    An entry that was replaced or removed stays in the heap until it comes up.
    """

    def __init__(self) -> None:
        self._current: dict[Hashable, Entry] = {}
        self._heap: list[Entry] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of its key."""
        self._current[entry.key] = entry
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._current) + _SLACK:
            self._heap[:] = self._current.values()
            heapify(self._heap)

    def discard(self, key: Hashable) -> None:
        """Remove the entry of a key, if there is one."""
        self._current.pop(key, None)

    def bound(self) -> Entry | None:
        """An entry not larger than the smallest; it may be out of date."""
        return self._heap[0] if self._heap else None

    def smallest(self) -> Entry | None:
        """The smallest entry."""
        while self._heap:
            entry = self._heap[0]
            if self._current.get(entry.key) is entry:
                return entry
            heappop(self._heap)
        return None
