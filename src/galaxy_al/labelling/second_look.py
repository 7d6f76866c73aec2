"""The review of a project while it is being labelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from galaxy_al.labelling.background import Background, Training, Work
from galaxy_al.labelling.duplicates import Duplicate, Duplicates
from galaxy_al.labelling.project import Project
from galaxy_al.labelling.review import Item, Labels, review_items
from galaxy_al.models.auto import HeldOut


class SecondLook:
    """Finds what to look at again.

    Suspected errors follow from what the last training says of its labels. Duplicates are looked
    for in the background, after each training, because files may have to be read.

    Parameters
    ----------
    on_change
        Called, from another thread, when duplicates have been looked for.
    """

    def __init__(self, project: Project, on_change: Callable[[], None]) -> None:
        self._project, self._on_change = project, on_change
        self._finder = Duplicates(project)
        self._duplicates: list[Duplicate] = []
        self._background = Background(self._next)
        self._lock = threading.Lock()
        self._is_running = self._is_known = False
        self._wanted: Mapping[int, int] | None = None

    def refresh(self, labels: Mapping[int, int]) -> None:
        """Look for duplicates among labelled examples in the background.

        Parameters
        ----------
        labels
            The class index of each; they must not change.
        """
        with self._lock:
            self._is_known = True
            self._wanted = labels
            if self._is_running:
                return
            self._is_running = True
            self._background.start(self._work())

    def refresh_once(self, labels: Mapping[int, int]) -> None:
        """The same, unless it was done before."""
        if not self._is_known:
            self.refresh(labels)

    def items(self, labels: Labels, held_out: HeldOut | None) -> list[Item]:
        """The `review_items` as far as duplicates are known."""
        return review_items(self._project, labels, held_out, self._duplicates)

    def wait(self) -> None:
        """Wait until duplicates have been looked for."""
        self._background.wait()

    def _work(self) -> Work:
        labels, self._wanted = self._wanted or {}, None
        return partial(self._find, labels)

    def _find(self, labels: Mapping[int, int]) -> None:
        self._duplicates = self._finder.find(labels)

    def _next(self, done: Training) -> Work | None:
        with self._lock:
            work = None if self._wanted is None else self._work()
            self._is_running = work is not None
        self._on_change()
        return work
