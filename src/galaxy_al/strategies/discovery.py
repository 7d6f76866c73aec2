"""Looking for classes that have no label yet."""

from __future__ import annotations

import numpy as np

from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.outliers import Outliers
from galaxy_al.strategies.random import Random
from galaxy_al.strategies.session import Session, Start
from galaxy_al.strategies.with_helpers import SessionWithHelpers

RANDOM_SHARE = 1 / 2  # of the questions that look for a missing class


def search_share(n_random: int, n_missing: int, n_ahead: float) -> float:
    """The share of the questions that look for missing classes.

    It is the chance that at least one of them would show up among the next ``n_ahead`` random
    examples, given that ``n_random`` random examples had none. Before these, any share of the pool
    was as likely for each missing class; the chance of none is then (n + 1) / (n + 1 + n_ahead).

    Examples
    --------
    >>> search_share(n_random=0, n_missing=1, n_ahead=99)
    0.99
    >>> round(search_share(n_random=900, n_missing=1, n_ahead=99), 3)
    0.099
    """
    none = (n_random + 1) / (n_random + 1 + n_ahead)
    return float(1 - none**n_missing)


class Discovery(Strategy):
    """Ask half at random and half for local outliers: what finds the first rare examples.

    It needs no model. A class that lies apart from the others is found sooner than at random. Once
    something rare has a label, it asks for fewer outliers if they are rare less often than random
    examples are.

    Whatever the classes look like, it takes at most twice as many questions as sampling at random,
    since every second question on average is random.

    Examples
    --------
    >>> from galaxy_al import Snapshot
    >>> embeddings = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[9, 9]], axis=0)
    >>> snapshot = Snapshot(np.full((100, 2), 0.5), embeddings=embeddings)
    >>> session = Discovery().start(snapshot, rng=np.random.default_rng(1))
    >>> 99 in [session.ask() for _ in range(5)]
    True
    """

    name = "discovery"
    summary = "half at random, half outliers, to find missing classes"
    paper = "none: made here, from local outliers"
    works_on_shards = True
    needs = ("embeddings",)

    def __init__(self) -> None:
        self.outliers = Outliers()

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Note the embeddings."""
        self.outliers.prepare(snapshot, rng=rng)

    def open_session(self, start: Start) -> Session:
        """A session in which the budget does not matter."""
        return DiscoverySession(self.outliers, start)


class DiscoverySession(SessionWithHelpers):
    """Answers decide whether outliers pay, and where they are asked next."""

    def __init__(self, outliers: Outliers, start: Start) -> None:
        super().__init__(start)
        self._outliers, self._random = outliers, Random()
        self._given_back: list[Strategy] = []  # whose questions they were

    def _pick(self) -> int:
        return self._let_ask(self._given_back.pop() if self._given_back else self._next())

    def _next(self) -> Strategy:
        is_random = self._rng.random() < RANDOM_SHARE
        if is_random or not self._outliers.pay(self.state, self.snapshot, self._rng):
            return self._random
        return self._outliers

    def on_release(self, index: int) -> None:
        """Ask it again next, by the strategy that asked it."""
        helper = self._asked_by.get(index)
        for strategy in (self._random, self._outliers):
            if helper is not None and helper is self._helpers.get(type(strategy)):
                self._given_back.append(strategy)
        super().on_release(index)
