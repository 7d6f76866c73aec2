"""GALAXY, Algorithms 3 and 4 of the paper.

Zhang, Katz-Samuels and Nowak: GALAXY: Graph-based Active Learning at the Extreme. ICML 2022.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import numpy as np

from galaxy_al.errors import InvalidArgument
from galaxy_al.graphs.linear_graph import LinearGraph
from galaxy_al.graphs.ranking import Ranking, build_rankings, gap_ends, sort_keys_of, sort_nodes
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.guessing import GuessingSession
from galaxy_al.strategies.random import Random
from galaxy_al.strategies.session import LineView, Session, Start, selection

Across = Literal["shortest", "rotate"]


class Galaxy(Strategy):
    """Bisect the shortest path between labels of a class and others, over all classes' rankings.

    Parameters
    ----------
    across
        Which class to ask about: ``"shortest"``, the one with the shortest path, as in the paper;
        or ``"rotate"``, the classes in turn, each with an order of its own, as in the code behind
        the published curves and fairer when there are many classes.
    explore
        What asks while no class has labels of both signs; by default uniform random, as in S2.

    Examples
    --------
    >>> from galaxy_al import Snapshot
    >>> proba = np.linspace([0.99, 0.01], [0.01, 0.99], num=99)
    >>> labels = np.full(99, -1)
    >>> labels[[0, 98]] = 0, 1
    >>> session = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    >>> session.ask()
    49
    >>> session.tell(49, 0)
    >>> session.ask() in (73, 74)
    True
    """

    name = "galaxy"
    summary = "bisects between differing labels in every class's ranking"
    paper = "Zhang, Katz-Samuels and Nowak, ICML 2022"
    works_on_shards = True
    needs_answers = "each"

    def __init__(self, across: Across = "shortest", explore: Strategy | None = None) -> None:
        if across not in ("shortest", "rotate"):
            raise InvalidArgument(f"Unknown across {across!r}. Choose from: rotate, shortest.")
        self.across: Across = across
        if not isinstance(explore, Strategy | None):
            raise InvalidArgument(f"explore must be a strategy, got {explore!r}.")
        self.explore = explore or Random()

    def open_session(self, start: Start) -> Session:
        """A session in which the budget matters only to ``explore``."""
        return GalaxySession(self, start)


class GalaxySession(GuessingSession):
    """Algorithm 4's inner loop by ask and tell; the guess is the model's most likely class."""

    def __init__(self, strategy: Galaxy, start: Start) -> None:
        super().__init__(strategy.explore, start)
        self._across = strategy.across
        # With two classes the second ranking is the mirror image of the first.
        n_classes = self.snapshot.n_classes
        self._classes = range(n_classes if n_classes > 2 else 1)
        self._turn = int(self._rng.integers(len(self._classes)))
        self._orders = dict.fromkeys(self._classes, 1)
        self._unranked = set(self.state.skipped)
        self._built_without: set[int] = set()
        self._counts = Counter(self._assumed.values())
        self._rankings: dict[int, Ranking] = {}
        self._graphs: dict[int, LinearGraph] = {}
        self._open_graphs()

    def _next(self) -> int | None:
        target = self._choose_class()
        return None if target is None else self._graphs[target].midpoint(self._orders[target])

    def _choose_class(self) -> int | None:
        return self._shortest() if self._across == "shortest" else self._in_turn()

    def _ranking_views(self) -> list[LineView]:
        self._guess_pending()
        chosen = self._choose_class()
        # The class that is asked about comes first: its ties are broken as the question's are.
        views = [self._view(k) for k in sorted(self._graphs, key=lambda k: k != chosen)]
        return sorted(views, key=lambda view: view.target)

    def _view(self, target: int) -> LineView:
        graph, size, order = self._graphs[target], len(self._rankings[target]), self._orders[target]
        first, (low, high) = graph.first_order(), (-1, size)
        if first is not None:
            low, high, _ = graph.path(max(order, first))
        return LineView(target, size, low, high, order, selection(graph.labels()))

    def _shortest(self) -> int | None:
        """The class with the shortest path, all at the same order; ties evenly at random."""
        order = next(iter(self._orders.values()))
        shortest, tied = self._shortest_at(order)
        if shortest == math.inf:
            firsts = [graph.first_order() for graph in self._graphs.values()]
            order = min((first for first in firsts if first is not None), default=0)
            if not order:
                return None
            self._orders = dict.fromkeys(self._classes, order)
            shortest, tied = self._shortest_at(order)
        return tied[0] if len(tied) == 1 else tied[int(self._rng.integers(len(tied)))]

    def _shortest_at(self, order: int) -> tuple[float, list[int]]:
        """The length of the shortest path of all classes, and the classes that have one."""
        shortest, tied = math.inf, []
        bounds = sorted((graph.least_length(order), k) for k, graph in self._graphs.items())
        for bound, target in bounds:
            if bound > shortest:
                break
            length = self._graphs[target].length(order, most=shortest)
            if length < shortest:
                shortest, tied = length, [target]
            elif length == shortest:
                tied.append(target)
        return shortest, tied

    def _in_turn(self) -> int | None:
        """The next class with a path, at an order of its own that grows when it must."""
        n = len(self._classes)
        for target in ((self._turn + i) % n for i in range(n)):
            first = self._graphs[target].first_order() if target in self._graphs else None
            if first is not None:
                self._orders[target] = max(self._orders[target], first)
                self._turn = (target + 1) % n
                return target
        return None

    def on_change(self, index: int) -> None:
        """Update rankings and graphs."""
        if (index in self.state.skipped) != (index in self._unranked):
            self._rank_or_unrank(index)
        super().on_change(index)

    def _assume(self, index: int, label: int | None) -> None:
        before = self._assumed.pop(index, None)
        if label is not None:
            self._assumed[index] = label
        if before == label:
            return
        if before is not None:
            self._counts[before] -= 1
        if label is not None:
            self._counts[label] += 1
        for target, key in self._keys_of(index):
            if label is None:
                self._graphs[target].unmark(index, key)
            else:
                self._graphs[target].mark(index, key, label == target)
        if label is not None:
            self._open_graphs()

    def _rank_or_unrank(self, index: int) -> None:
        """Take a skipped example out of the rankings, or put one back."""
        if index in self._built_without:
            self._rebuild_with(index)
            return
        leaves = index in self.state.skipped
        if leaves:
            self._assume(index, None)
        self._unranked ^= {index}
        for target, key in self._keys_of(index):
            if leaves:
                self._rankings[target].remove(index)
                self._graphs[target].close_up(index, key)
            else:
                self._rankings[target].restore(index)

    def _keys_of(self, index: int) -> Iterator[tuple[int, float]]:
        return zip(self._graphs, sort_keys_of(self.snapshot.scores, index, self._graphs))

    def _rebuild_with(self, index: int) -> None:
        """Build all rankings again: some lack this example, which was skipped when they were."""
        self._unranked.remove(index)
        self._built_without.clear()
        self._rankings.clear()
        self._graphs.clear()
        self._open_graphs()

    def _open_graphs(self) -> None:
        """Rank the pool for the classes that have labels of both signs for the first time."""
        total = len(self._assumed)
        new = [k for k in self._classes if k not in self._graphs and 0 < self._counts[k] < total]
        if not new:
            return
        proba, known = self.snapshot.scores, np.array(sorted(self._assumed))
        labels = np.array([self._assumed[i] for i in known.tolist()])
        labeled, ends = {}, {}
        for target, (order, keys) in zip(new, sort_nodes(proba, known, new)):
            nodes, positive = known[order], labels[order] == target
            ends[target] = gap_ends(nodes, positive)
            labeled[target] = (nodes.tolist(), keys.tolist(), positive.tolist())
        self._built_without |= self._unranked
        for target, ranking in build_rankings(proba, ends, sorted(self._unranked)).items():
            self._rankings[target] = ranking
            self._graphs[target] = LinearGraph(ranking, *labeled[target], self._rng)
