"""Asking one by one although several people answer: guesses replace missing answers."""

from __future__ import annotations

from abc import abstractmethod

from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.session import Start
from galaxy_al.strategies.with_helpers import SessionWithHelpers


class GuessingSession(SessionWithHelpers):
    """Each question depends on the answers before it.

    If another question is asked while one is pending, the session assumes an answer to the
    pending one until the real answer arrives. An annotator who answers before asking again
    therefore gets exactly the sequence of the method. Where the method has no question,
    ``explore`` asks. A method may also let other strategies ask.
    """

    def __init__(self, explore: Strategy, start: Start) -> None:
        super().__init__(start)
        self._assumed = dict(self.state.labels)  # the labels and the guesses
        self._not_guessed: set[int] = set()
        self._explore_with = explore

    @abstractmethod
    def _next(self) -> int | None:
        """The method's next question; None if it has nothing to go by."""

    def _guess(self, index: int) -> int:
        """The label to assume until the answer arrives: by default the model's most likely."""
        return int(self.snapshot.scores[index].argmax())

    @abstractmethod
    def _assume(self, index: int, label: int | None) -> None:
        """Give an example this label in ``_assumed``, or none, and update what depends on it."""

    def _pick(self) -> int:
        self._guess_pending()
        index = self._next()
        if index is None:
            index = self._let_ask(self._explore_with)
        self._not_guessed.add(index)
        return index

    def _guess_pending(self) -> None:
        """Assume an answer to every pending question."""
        for index in self._not_guessed:
            self._assume(index, self._guess(index))
        self._not_guessed.clear()

    def on_change(self, index: int) -> None:
        """Assume what is known of the example now, here and in the helpers."""
        self._not_guessed.discard(index)
        if index in self.state.pending:
            self._not_guessed.add(index)
        self._assume(index, self.state.labels.get(index))
        super().on_change(index)
