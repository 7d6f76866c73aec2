"""Which annotators are here."""

from __future__ import annotations

from collections.abc import Callable

from galaxy_al.labelling.log import IMPORTER, Log
from galaxy_al.labelling.views import Person

_AWAY_AFTER = 45.0  # seconds without a request


class Presence:
    """Knows when each annotator was last seen."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._now = clock
        self._last_seen: dict[str, float] = {}

    def see(self, annotator: str) -> bool:
        """Note that an annotator is here; whether they were not before."""
        is_new = annotator not in self._last_seen
        self._last_seen[annotator] = self._now()
        return is_new

    def leave(self, annotator: str) -> None:
        """Note that an annotator has closed the page."""
        self._last_seen.pop(annotator, None)

    def people(self, log: Log) -> list[Person]:
        """All annotators who are here or have answered, by name."""
        names = sorted({*self._last_seen, *log.annotators()} - {IMPORTER})
        return [Person(name, log.count_of(name), self._is_here(name)) for name in names]

    def _is_here(self, name: str) -> bool:
        return name in self._last_seen and self._now() - self._last_seen[name] < _AWAY_AFTER
