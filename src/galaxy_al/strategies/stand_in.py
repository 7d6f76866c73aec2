"""Asking one by one although several people answer: guesses stand in for missing answers."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Session, Strategy


class StandInSession(Session):
    """Each question depends on the answers before it.

    While a question is in flight and another is asked, a guess stands in for the answer until
    that arrives and replaces it. So one annotator, who answers before asking again, gets exactly
    the sequence of the method. Where the method has no question, ``explore`` asks.
    """

    def __init__(
        self,
        strategy: Strategy,
        explore: Strategy,
        snapshot: Snapshot,
        rng: np.random.Generator,
        budget: int,
    ) -> None:
        super().__init__(strategy, snapshot, rng, budget)
        self._standing = dict(self._labels)  # the labels with the guesses
        self._not_guessed: set[int] = set()
        self._explore_with = explore
        self._explorer: Session | None = None

    @abstractmethod
    def _next(self) -> int | None:
        """The method's next question; none where it has nothing to go by."""

    def _guess(self, index: int) -> int:
        """The label to assume while the answer is not in: by default the model's most likely."""
        return int(self.snapshot.proba[index].argmax())

    @abstractmethod
    def _stand(self, index: int, label: int | None) -> None:
        """Give an example this label in ``_standing``, or none, and all that follows from it."""

    def _pick(self) -> int:
        for waiting in self._not_guessed:
            self._stand(waiting, self._guess(waiting))
        self._not_guessed.clear()
        index = self._next()
        if index is None:
            index = self._explore()
        self._not_guessed.add(index)
        return index

    def _explore(self) -> int:
        if self._explorer is None:
            now = self.snapshot.updated(self._labels, self._skipped)
            self._explorer = self._explore_with.start(now, rng=self._rng, budget=self._budget)
            self._explorer._follow(self)
        return self._explorer._pick()

    def _changed(self, index: int) -> None:
        self._not_guessed.discard(index)
        if index in self._pending:
            self._not_guessed.add(index)
        self._stand(index, self._labels.get(index))
        if self._explorer is not None:
            self._explorer._changed(index)

    def _given_back(self, index: int) -> None:
        if self._explorer is not None:
            self._explorer._given_back(index)
