"""A session that lets other strategies ask some of its questions."""

from __future__ import annotations

from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.session import Session, Start


class SessionWithHelpers(Session):
    """Other strategies may ask some of the questions. They share this session's state."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self._helpers: dict[type[Strategy], Session] = {}
        self._asked_by: dict[int, Session] = {}

    def _let_ask(self, strategy: Strategy) -> int:
        """What another strategy asks."""
        helper = self._helpers.get(type(strategy))
        if helper is None:
            helper = strategy.start(
                self.snapshot, rng=self._rng, budget=self._budget, state=self.state
            )
            self._helpers[type(strategy)] = helper
        index = helper._pick()
        self._asked_by[index] = helper
        return index

    def on_change(self, index: int) -> None:
        """Report the change to the helpers."""
        if not self.state.is_free(index) and index not in self.state.pending:
            self._asked_by.pop(index, None)
        for helper in self._helpers.values():
            helper.on_change(index)

    def on_release(self, index: int) -> None:
        """Give it back to the helper that asked it: for another one it would not be random."""
        helper = self._asked_by.pop(index, None)
        if helper is not None:
            helper.on_release(index)
