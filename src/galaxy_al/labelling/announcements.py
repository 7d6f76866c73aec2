"""What each page shows next, before the server has the answer to what it shows now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Answer = int | None
"""The index of a class; None is a skip."""
After = Mapping[Answer, int | None]
"""The example that follows each answer; None if nothing is left."""


@dataclass(frozen=True)
class Announced:
    """The annotator has a question, and their page knows what follows each answer."""

    question: int
    after: After


@dataclass(frozen=True)
class Promised:
    """The annotator has answered, and their page shows this example already."""

    example: int


class Announcements:
    """One small state machine per annotator.

    ========== ============= ======================== ================ ==================
    state      `announce`    `answer` to the question `drop`           `collect`
    ========== ============= ======================== ================ ==================
    idle       announced     idle                     idle             idle: None
    announced  announced, by promised; idle if        idle             announced: None
               the new one   nothing follows
    promised   announced     promised                 idle             idle: the promised
                                                                       example
    ========== ============= ======================== ================ ==================

    An announcement is kept even if the strategy would now choose differently, because the page
    may show the example already.

    Examples
    --------
    >>> announcements = Announcements()
    >>> announcements.announce("ann", 7, {0: 4, 1: 5, None: None})
    >>> announcements.annotator_of(4), announcements.annotator_of(6)
    ('ann', None)
    >>> announcements.answer("ann", 7, 1)
    >>> announcements.annotator_of(4), announcements.annotator_of(5)
    (None, 'ann')
    >>> announcements.collect("ann"), announcements.collect("ann")
    (5, None)
    """

    def __init__(self) -> None:
        self._states: dict[str, Announced | Promised] = {}  # an annotator not in here is idle

    def announce(self, annotator: str, question: int, after: After) -> None:
        """Remember what an annotator's page will show after each answer."""
        self._states[annotator] = Announced(question, after)

    def answer(self, annotator: str, question: int, answer: Answer) -> None:
        """The annotator has answered a question: their page shows what was announced."""
        state = self._states.get(annotator)
        if isinstance(state, Announced) and state.question == question:
            example = state.after.get(answer)
            if example is None:
                del self._states[annotator]
            else:
                self._states[annotator] = Promised(example)

    def collect(self, annotator: str) -> int | None:
        """The example that an annotator's page shows already; it is given out only once."""
        state = self._states.get(annotator)
        if not isinstance(state, Promised):
            return None
        del self._states[annotator]
        return state.example

    def drop(self, annotator: str, example: int | None = None) -> None:
        """Forget what was announced to an annotator, or only if it is about one example."""
        state = self._states.get(annotator)
        about = state.example if isinstance(state, Promised) else state and state.question
        if example in (None, about):
            self._states.pop(annotator, None)

    def annotator_of(self, index: int) -> str | None:
        """The annotator whose page may show an example already."""
        for annotator, state in self._states.items():
            if isinstance(state, Promised):
                shown = state.example == index
            else:
                shown = index in state.after.values()
            if shown:
                return annotator
        return None
