"""Who is at work on a project."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from galaxy_al.labelling.log import IMPORTER, Log
from galaxy_al.labelling.views import Person

_AWAY_AFTER = 45.0  # seconds without a request


class Presence:
    """When each annotator was last seen.

    Examples
    --------
    >>> presence = Presence(clock=lambda: 0.0)
    >>> presence.see("ann"), presence.see("ann")
    (True, False)
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_seen: dict[str, float] = {}

    def see(self, annotator: str) -> bool:
        """An annotator has sent something; returns whether they are new."""
        is_new = annotator not in self._last_seen
        self._last_seen[annotator] = self._clock()
        return is_new

    def leave(self, annotator: str) -> None:
        """An annotator has closed the page."""
        self._last_seen.pop(annotator, None)

    def people(self, log: Log) -> tuple[Person, ...]:
        """All annotators, with those whose answers were undone."""
        now, names = self._clock(), {*self._last_seen, *log.annotators()} - {IMPORTER}
        return tuple(
            Person(name, log.count_of(name), self._seconds_away(name, now) < _AWAY_AFTER)
            for name in sorted(names)
        )

    def _seconds_away(self, annotator: str, now: float) -> float:
        return now - self._last_seen.get(annotator, -np.inf)
