"""Which annotator is looking at which example, and until when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from galaxy_al.errors import InvalidArgument


@dataclass
class Lease:
    """An example that belongs to one annotator until a time."""

    annotator: str
    until: float


class Leases:
    """An example has at most one holder. An annotator may hold several examples.

    Examples
    --------
    >>> now = 0.0
    >>> leases = Leases(seconds=60, clock=lambda: now)
    >>> leases.give(7, "ann")
    >>> leases.holder(7), leases.held_by("ann"), leases.holder(8)
    ('ann', [7], None)
    >>> now = 61.0
    >>> leases.end_expired()
    {7: 'ann'}
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._leases: dict[int, Lease] = {}

    def give(self, index: int, annotator: str) -> None:
        """Lease an example that has no holder."""
        if index in self._leases:
            raise InvalidArgument(
                f"Example {index} is leased to {self._leases[index].annotator!r}."
            )
        self._leases[index] = Lease(annotator, self._clock() + self._seconds)

    def renew(self, annotator: str) -> None:
        """Restart the time of all leases of an annotator."""
        for index in self.held_by(annotator):
            self._leases[index].until = self._clock() + self._seconds

    def end(self, index: int) -> str | None:
        """End the lease of an example; returns who held it."""
        lease = self._leases.pop(index, None)
        return lease.annotator if lease else None

    def end_expired(self) -> dict[int, str]:
        """End the leases whose time is over; returns who held which example."""
        now = self._clock()
        over = {i: lease.annotator for i, lease in self._leases.items() if lease.until <= now}
        for index in over:
            self.end(index)
        return over

    def holder(self, index: int) -> str | None:
        """Who holds an example."""
        lease = self._leases.get(index)
        return lease.annotator if lease else None

    def held_by(self, annotator: str) -> list[int]:
        """The examples that an annotator holds, the oldest lease first."""
        return [index for index, lease in self._leases.items() if lease.annotator == annotator]

    def holders(self) -> set[str]:
        """All annotators who hold an example."""
        return {lease.annotator for lease in self._leases.values()}
