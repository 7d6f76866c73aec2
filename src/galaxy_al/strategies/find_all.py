"""Finding all rare examples, or total recall: the most likely first.

How each question is chosen:

1. While no rare class has a label, all questions look for one. While some have and another has
   not, some questions look for what is missing: as many as the chance that the next batch, asked at
   random, would show it.
2. Otherwise the question is the example least likely to be of the majority class, by the
   probabilities in the pool.
"""

from __future__ import annotations

import numpy as np

from galaxy_al.errors import InvalidArgument
from galaxy_al.free_examples import FreeExamples
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.discovery import Discovery, search_share
from galaxy_al.strategies.random import Random
from galaxy_al.strategies.scoring import lowest_among
from galaxy_al.strategies.session import Session, Start
from galaxy_al.strategies.with_helpers import SessionWithHelpers


class FindAll(Strategy):
    """Ask for the example most likely to be rare, and look for classes that are missing.

    Parameters
    ----------
    discover
        How many examples ahead the search for a missing class looks; 0 does not search.

    Examples
    --------
    >>> snapshot = Snapshot([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]], labels=[0, -1, -1])
    >>> session = FindAll().start(snapshot, rng=np.random.default_rng(0))
    >>> session.ask(), session.ask()
    (1, 2)
    """

    name = "find-all"
    summary = "the most likely first, to find all rare examples"
    paper = "none: the rule of active search, with discovery"
    works_on_shards = True
    needs_answers = "each"
    view = "pool"

    def __init__(self, discover: float = 50.0) -> None:
        if not 0 <= discover < np.inf:
            raise InvalidArgument(f"discover must be a number of at least 0, got {discover!r}.")
        self.discover = discover
        self.discovery = self.explorer = Discovery()

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Note the embeddings, if there are any, for outliers."""
        if snapshot.embeddings is not None:
            self.discovery.prepare(snapshot, rng=rng)

    def n_ahead(self, batch_size: int) -> float:
        """How many examples the search for a missing class looks ahead, whatever the batch."""
        return self.discover

    def open_session(self, start: Start) -> Session:
        """A session in which the budget does not matter."""
        return FindAllSession(self, start)


class FindAllSession(SessionWithHelpers):
    """The scores do not change within a session. Answers decide what is missing."""

    def __init__(self, strategy: FindAll, start: Start) -> None:
        super().__init__(start)
        self._discover = strategy.discover
        has_embeddings = self.snapshot.embeddings is not None
        self._discover_with = strategy.discovery if has_embeddings else Random()
        self._rare = frozenset(range(self.snapshot.n_classes)) - {self.snapshot.other}
        self._rank(self.state.n_busy + self._budget)

    def _pick(self) -> int:
        return self._let_ask(self._discover_with) if self._discovers() else self._most_likely()

    def _discovers(self) -> bool:
        """Whether the next question looks for a missing class."""
        missing = self._rare.difference(self.state.labels.values())
        if not missing or missing == self._rare:
            return bool(missing)
        share = search_share(self.state.n_random_labels, len(missing), self._discover)
        return self._rng.random() < share

    def _most_likely(self) -> int:
        """The free example that is most likely to be rare."""
        while not self.state.is_free(self._ranked[self._at]):
            self._at += 1
            if self._at == len(self._ranked):
                self._rank(2 * len(self._ranked))
        return self._ranked[self._at]

    def _rank(self, count: int) -> None:
        """Rank the ``count`` examples most likely to be rare, ties by index."""
        rare, everything = sorted(self._rare), FreeExamples(self.snapshot.size, busy=())
        # Not by the probability of the majority class, which rounds to 1 where it is likely.
        first = lowest_among(
            self.snapshot.scores,
            everything,
            count,
            lambda rows: -rows.take(rare, axis=1).sum(axis=1),
        )
        self._ranked: tuple[int, ...] = tuple(first.tolist())
        self._at = 0

    def on_change(self, index: int) -> None:
        """An example that is free again may be more likely than those left."""
        super().on_change(index)
        if self.state.is_free(index):
            self._at = 0
