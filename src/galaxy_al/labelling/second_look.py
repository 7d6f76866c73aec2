"""The review of a project while it is being labelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from galaxy_al.labelling.answers import Answers
from galaxy_al.labelling.background import Background, Training, Work
from galaxy_al.labelling.duplicates import Duplicate, Duplicates
from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.project import Project
from galaxy_al.labelling.review import Item, Labels, review_items
from galaxy_al.labelling.suspects import held_out_of, probability_of
from galaxy_al.learner import Learner


class SecondLook:
    """Finds what to look at again.

    Suspected errors follow from what the last training says of its labels. Duplicates are looked
    for in the background, after each training, because files may have to be read.

    Parameters
    ----------
    lock
        Of the answers and the learner.
    on_change
        Called, from another thread, when duplicates have been looked for.
    """

    def __init__(
        self,
        project: Project,
        answers: Answers,
        learner: Learner,
        lock: threading.RLock,
        on_change: Callable[[], None],
    ) -> None:
        self._project, self._on_change = project, on_change
        self._answers, self._learner, self._state_lock = answers, learner, lock
        self._finder = Duplicates(project)
        self._duplicates: list[Duplicate] = []
        self._background = Background(self._next)
        self._lock = threading.Lock()
        self._is_running = self._is_known = False
        self._wanted: Mapping[int, int] | None = None

    def refresh(self) -> None:
        """Look for duplicates among the labels in the background."""
        with self._state_lock:
            labels = dict(self._learner.state.labels)
        with self._lock:
            self._is_known, self._wanted = True, labels
            if self._is_running:
                return
            self._is_running = True
            self._background.start(self._work())

    def items(self, hidden: Collection[str] = ()) -> list[Item]:
        """The `review_items`; duplicates come later if nothing has looked for them yet.

        Parameters
        ----------
        hidden
            Examples whose answers must not be seen.
        """
        with self._state_lock:
            labels = Labels.of(self._answers.log)
            held_out = held_out_of(self._learner.model)
        if not self._is_known:
            self.refresh()
        found = review_items(self._project, labels, held_out, self._duplicates)
        return [item for item in found if not any(one.id in hidden for one in item.examples)]

    def noted(self, entries: Iterable[Entry], indices: Iterable[int], round: int) -> list[Entry]:
        """Entries with what is known of their examples now.

        A random question that was skipped is asked again if the strategy wants it: then it is not
        random any more.
        """
        random, held_out = self._learner.state.random, held_out_of(self._learner.model)
        was_skipped = self._answers.log.was_skipped
        return [
            replace(
                entry,
                round=round,
                is_random=entry.source in ("asked", "review")
                and index in random
                and not was_skipped(entry.example),
                probability=probability_of(entry, index, self._project, held_out),
            )
            for entry, index in zip(entries, indices)
        ]

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
