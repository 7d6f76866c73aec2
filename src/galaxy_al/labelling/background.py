"""Training in a thread of its own, while annotators continue to label."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex

from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.system.threads import at_most_threads, n_threads, one_blas_thread

Work = Callable[[], None]

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """What the background is doing.

    Parameters
    ----------
    seconds
        How long the last training took.
    problem
        Why the last training failed; empty if it did not.
    """

    is_running: bool = False
    seconds: float = 0.0
    problem: str = ""


class Background:
    """Runs one training after another. One that fails must not stop the labelling.

    Parameters
    ----------
    then
        Called from the thread after each training; returns the next one, or None.
    """

    def __init__(self, then: Callable[[Training], Work | None]) -> None:
        self._then = then
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, work: Work) -> None:
        """Begin a training. Do not call this while one is running."""
        with self._lock:
            self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Return when no training is running."""
        joined = None
        while joined is not self._thread:
            with self._lock:
                joined = self._thread
            if joined is not None:
                joined.join()

    def _run(self, work: Work | None) -> None:
        while work is not None:
            work = self._then(_attempt(work))


def _attempt(work: Work) -> Training:
    begin, problem = time.perf_counter(), ""
    try:
        # One core is left for the annotators.
        with one_blas_thread(), at_most_threads(max(n_threads() - 1, 1)):
            work()
    except Exception as error:
        problem = one_line(error)
        if not isinstance(error, GalaxyError):
            id = token_hex(4)
            problem += f" (internal error {id}, with its details in the log of the server)"
            _LOGGER.exception("Internal error %s in a training", id)
    return Training(seconds=time.perf_counter() - begin, problem=problem)
