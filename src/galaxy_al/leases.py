"""Who is looking at which example, and until when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Lease:
    """An example that is one annotator's until a time."""

    annotator: str
    until: float


class Leases:
    """At most one annotator has an example, and an annotator has at most one.

    Examples
    --------
    >>> now = 0.0
    >>> leases = Leases(seconds=60, clock=lambda: now)
    >>> leases.give(7, "ann")
    >>> leases.holder(7), leases.held_by("ann"), leases.holder(8)
    ('ann', 7, None)
    >>> now = 61.0
    >>> leases.run_out()
    [7]
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._leases: dict[int, Lease] = {}
        self._held: dict[str, int] = {}

    def give(self, index: int, annotator: str) -> None:
        """Lease an example that nobody has to an annotator who has none."""
        if index in self._leases or annotator in self._held:
            raise ValueError(f"Example {index} or annotator {annotator!r} has a lease.")
        self._leases[index] = Lease(annotator, self._clock() + self._seconds)
        self._held[annotator] = index

    def renew(self, annotator: str) -> None:
        """Let an annotator's lease begin anew."""
        if annotator in self._held:
            self._leases[self._held[annotator]].until = self._clock() + self._seconds

    def end(self, index: int) -> None:
        """Take an example back, if anybody has it."""
        lease = self._leases.pop(index, None)
        if lease is not None:
            del self._held[lease.annotator]

    def run_out(self) -> list[int]:
        """End the leases whose time is over; these are the examples."""
        now = self._clock()
        over = [index for index, lease in self._leases.items() if lease.until <= now]
        for index in over:
            self.end(index)
        return over

    def holder(self, index: int) -> str | None:
        """Who has an example."""
        lease = self._leases.get(index)
        return lease.annotator if lease else None

    def held_by(self, annotator: str) -> int | None:
        """Which example an annotator has."""
        return self._held.get(annotator)
