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
    the sequence of the method. Where the method has no question, ``explore`` asks; a method may
    also let other strategies ask by itself.
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
        self._helpers: dict[type[Strategy], Session] = {}
        self._asked_by: dict[int, Session] = {}

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
            index = self._let_ask(self._explore_with)
        self._not_guessed.add(index)
        return index

    def _let_ask(self, strategy: Strategy) -> int:
        """What another strategy asks that sees all that happens here."""
        if type(strategy) not in self._helpers:
            now = self.snapshot.updated(self._labels, self._skipped)
            session = strategy.start(now, rng=self._rng, budget=self._budget)
            session._follow(self)
            self._helpers[type(strategy)] = session
        helper = self._helpers[type(strategy)]
        index = helper._pick()
        self._asked_by[index] = helper
        return index

    def _changed(self, index: int) -> None:
        self._not_guessed.discard(index)
        if index in self._pending:
            self._not_guessed.add(index)
        self._stand(index, self._labels.get(index))
        for helper in self._helpers.values():
            helper._changed(index)

    def _given_back(self, index: int) -> None:
        """Only who asked gets it back: what others wanted would make chance unfair."""
        helper = self._asked_by.pop(index, None)
        if helper is not None:
            helper._given_back(index)
