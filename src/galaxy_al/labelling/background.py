"""Training in a thread of its own, while annotators continue to label."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from threadpoolctl import threadpool_limits

from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.system.threads import n_threads

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
    """Runs one training at a time. A training that fails must not stop the labelling.

    Parameters
    ----------
    seconds
        How long the last training took.
    on_end
        Called from the thread after each training.
    """

    def __init__(self, seconds: float, on_end: Callable[[], None]) -> None:
        self.training = Training(seconds=seconds)
        self._on_end = on_end
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin a training. Do not call this while one is running."""
        self.training = replace(self.training, is_running=True)
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when no training is running."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _run(self, work: Callable[[], None]) -> None:
        begin, problem = time.perf_counter(), ""
        try:
            with threadpool_limits(max(n_threads() - 1, 1)):  # one core is left for the annotators
                work()
        except Exception as error:
            problem = one_line(error)
            if not isinstance(error, GalaxyError):
                _LOGGER.exception("A training failed.")
        self.training = Training(seconds=time.perf_counter() - begin, problem=problem)
        self._on_end()
