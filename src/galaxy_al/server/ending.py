"""When the server has to end."""

from __future__ import annotations

from collections.abc import Callable

from galaxy_al.errors import GalaxyError, LostScheduler


class Ending:
    """Ends the server if it cannot continue: what a lost scheduler had does not come back.

    Attributes
    ----------
    reason
        Why the server has to end.
    stop
        Asks the server to end.
    """

    def __init__(self) -> None:
        self.reason: LostScheduler | None = None
        self.stop: Callable[[], None] = lambda: None

    def note(self, error: GalaxyError) -> None:
        """Look at an error that a request had."""
        if isinstance(error, LostScheduler):
            self.reason = error
            self.stop()
