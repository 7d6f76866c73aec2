"""Who is looking at which example, and until when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from galaxy_al.errors import InvalidArgument


@dataclass
class Lease:
    """An example that is one annotator's until a time.

    Parameters
    ----------
    announced
        What the annotator was told to get next, by the answer; None is a skip.
    """

    annotator: str
    until: float
    announced: Mapping[int | None, int | None] = field(default_factory=dict)


class Leases:
    """At most one annotator has an example; an annotator may have several.

    Examples
    --------
    >>> now = 0.0
    >>> leases = Leases(seconds=60, clock=lambda: now)
    >>> leases.give(7, "ann")
    >>> leases.holder(7), leases.held_by("ann"), leases.holder(8)
    ('ann', [7], None)
    >>> now = 61.0
    >>> leases.run_out()
    [7]
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._leases: dict[int, Lease] = {}

    def give(self, index: int, annotator: str) -> None:
        """Lease an example that nobody has."""
        if index in self._leases:
            raise InvalidArgument(
                f"Example {index} is leased to {self._leases[index].annotator!r}."
            )
        self._leases[index] = Lease(annotator, self._clock() + self._seconds)

    def renew(self, annotator: str) -> None:
        """Let an annotator's leases begin anew."""
        for index in self.held_by(annotator):
            self._leases[index].until = self._clock() + self._seconds

    def end(self, index: int) -> Lease | None:
        """Take an example back, if anybody has it."""
        return self._leases.pop(index, None)

    def announce(self, index: int, after: Mapping[int | None, int | None]) -> None:
        """Remember what was told to come after each answer to an example that is leased."""
        self._leases[index].announced = after

    def announced_to(self, index: int) -> str | None:
        """Who may be looking at an example already, since it was told to come next."""
        for lease in self._leases.values():
            if index in lease.announced.values():
                return lease.annotator
        return None

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

    def held_by(self, annotator: str) -> list[int]:
        """Which examples an annotator has, the first one first."""
        return [index for index, lease in self._leases.items() if lease.annotator == annotator]

    def is_alone(self, annotator: str) -> bool:
        """Whether nobody else has any."""
        return all(lease.annotator == annotator for lease in self._leases.values())
