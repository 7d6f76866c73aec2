"""Fair cuts: GALAXY's rankings, with discovery, a fair share for each class and one cut per class.

How each question is chosen:

1. While a declared class has no label, some questions look for it: as many as the chance that the
   next two batches, asked at random, would show one. That chance falls with every random label
   without one. Half of these questions are random. The others are local outliers, as long as these
   are rare more often than random ones are, and where the model is least sure, since it cannot be
   sure of what it has never seen. Once every class has a label, a share ``sample`` of the
   questions are random. All random questions together are a fair sample of what was not labelled.
2. The other questions go to the rare classes that have a label, in turn, so that all get equally
   many.
3. In a class's ranking, GALAXY's order of the pool from the least to the most likely, the cut is
   where the fewest labels are on the wrong side. One wrong label does not move it. There is one
   cut per class, where GALAXY has one between any two labels that differ.
4. Look at the free examples nearest to the middle of the two labels at the cut: as many as the
   class has labels, at most ``spread``. Ask for the one that is farthest from all labels and open
   questions. Asking in the middle bisects until nothing is left between the two labels, and then
   widens around the cut. Asking far from what is known keeps questions from repeating each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from galaxy_al.errors import InvalidArgument
from galaxy_al.graphs.places import Place
from galaxy_al.graphs.ranking import Ranking, build_rankings, gap_ends, sort_nodes
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.confidence import Confidence
from galaxy_al.strategies.discovery import RANDOM_SHARE, Discovery, search_share
from galaxy_al.strategies.guessing import GuessingSession
from galaxy_al.strategies.random import Random
from galaxy_al.strategies.scoring import check_count
from galaxy_al.strategies.session import LineView, Session, Start, selection
from galaxy_al.strategies.spreading import Apart

_LEAST_SURE_SHARE = 1 / 2  # of the questions that look for a missing class and are not random


class FairCuts(Strategy):
    """Ask around the cut of each rare class in turn, and some at random.

    Parameters
    ----------
    discover
        How many batches the search for a missing class looks ahead; 0 does not search.
    sample
        The share of random questions once all classes are found.
    spread
        How many examples at a cut are compared, at most. The one farthest from all labels and open
        questions is asked. With 1, or without embeddings, the one nearest to the cut is asked.

    Examples
    --------
    >>> from galaxy_al import Snapshot
    >>> proba = np.linspace([0.99, 0.01], [0.01, 0.99], num=99)
    >>> labels = np.full(99, -1)
    >>> labels[[0, 98]] = 0, 1
    >>> session = FairCuts(sample=0).start(Snapshot(proba, labels), rng=np.random.default_rng(0))
    >>> session.ask()
    49
    >>> session.tell(49, 0)
    >>> session.ask()
    74
    """

    name = "fair-cuts"
    summary = "around each rare class's cut in turn, some at random"
    paper = "none: made here, from GALAXY and DIRECT"
    works_on_shards = True
    needs_answers = "each"

    def __init__(self, discover: float = 2, sample: float = 0.05, spread: int = 5) -> None:
        if not 0 <= sample <= 1:
            raise InvalidArgument(f"sample must be a share between 0 and 1, got {sample!r}.")
        if not 0 <= discover < np.inf:
            raise InvalidArgument(f"discover must be a number of at least 0, got {discover!r}.")
        check_count("spread", spread)
        self.discover, self.sample, self.spread = discover, sample, spread
        self.discovery = self.explorer = Discovery()
        self.least_sure = Confidence()
        self.least_sure.view = "balanced"

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Note the embeddings, if there are any, for outliers."""
        if snapshot.embeddings is not None:
            self.discovery.prepare(snapshot, rng=rng)

    def n_ahead(self, batch_size: int) -> float:
        """How many examples the search for a missing class looks ahead."""
        return self.discover * batch_size

    def open_session(self, start: Start) -> Session:
        """A session in which the budget matters only for the search."""
        return FairCutsSession(self, start)


@dataclass
class _LabeledRanking:
    """A class's ranking and the labels on it in order: where, and whether of the class."""

    ranking: Ranking
    places: list[Place]
    is_target: list[bool]

    def put(self, node: int, is_target: bool | None) -> None:
        """Give a node a label, or none."""
        place = self.ranking.place(node)
        at = bisect_left(self.places, place)
        if at < len(self.places) and self.places[at] == place:
            del self.places[at], self.is_target[at]
        if is_target is not None:
            self.places.insert(at, place)
            self.is_target.insert(at, is_target)

    def cut(self, rng: np.random.Generator) -> tuple[int, int]:
        """The ranks of the labels below and above the cut, those of the ranking's ends if none.

        Ties are broken evenly at random.
        """
        steps = np.where(self.is_target, -1, 1)
        right = np.append(0, steps.cumsum())  # right side, less those that always are
        tied = np.flatnonzero(right == right.max())
        above = int(tied[0] if len(tied) == 1 else rng.choice(tied))
        low = self.ranking.rank(self.places[above - 1][-1]) if above > 0 else -1
        n_labels, end = len(self.places), len(self.ranking)
        high = self.ranking.rank(self.places[above][-1]) if above < n_labels else end
        return low, high

    def view(self, target: int, rng: np.random.Generator) -> LineView:
        """The ranking as it is now."""
        low, high = self.cut(rng)
        labels = [
            (self.ranking.rank(place[-1]), sign)
            for place, sign in selection(list(zip(self.places, self.is_target)))
        ]
        return LineView(target, len(self.ranking), low, high, order=1, labels=labels)


class FairCutsSession(GuessingSession):
    """Until an answer arrives, the session assumes the model's most likely class."""

    def __init__(self, strategy: FairCuts, start: Start) -> None:
        super().__init__(Random(), start)
        self._strategy = strategy
        majority = self.snapshot.other
        self._rare = [k for k in range(self.snapshot.n_classes) if k != majority]
        self._turn = int(self._rng.integers(len(self._rare)))
        self._apart = Apart()
        self._rankings: dict[int, _LabeledRanking] = {}
        self._rank_classes()

    def _next(self) -> int | None:
        found = set(self.state.labels.values())
        n_missing = len(set(self._rare) - found)
        if not n_missing and self._rng.random() < self._strategy.sample:
            return None
        if n_missing and self._rng.random() < self._search_share(n_missing):
            return self._search(found)
        target = self._in_turn(found)
        return None if target is None else self._at_cut(target)

    def _search_share(self, n_missing: int) -> float:
        n_ahead = self._strategy.n_ahead(self._budget)
        return search_share(self.state.n_random_labels, n_missing, n_ahead)

    def _search(self, found: set[int]) -> int | None:
        """A question that looks for a missing class; None for a random one."""
        if self._rng.random() < RANDOM_SHARE:
            return None
        has_model, outliers = len(found) > 1, self._strategy.discovery.outliers
        wants_outliers = not (has_model and self._rng.random() < _LEAST_SURE_SHARE)
        has_outliers = self.snapshot.embeddings is not None
        if wants_outliers and has_outliers and outliers.pay(self.state, self.snapshot, self._rng):
            return self._let_ask(outliers)
        return self._let_ask(self._strategy.least_sure) if has_model else None

    def _in_turn(self, found: set[int]) -> int | None:
        """The next rare class that has a label."""
        ahead = self._rare[self._turn :] + self._rare[: self._turn]
        target = next((k for k in ahead if k in found), None)
        if target is not None:
            self._turn = (self._rare.index(target) + 1) % len(self._rare)
        return target

    def _at_cut(self, target: int) -> int:
        """Of the free examples nearest to the middle of a cut, the one farthest from the known."""
        if target not in self._rankings:
            self._rank_classes()
        labeled, embeddings = self._rankings[target], self.snapshot.embeddings
        n_near = min(sum(labeled.is_target), self._strategy.spread)
        near = list(islice(self._around_cut(labeled), n_near))
        if len(near) == 1 or embeddings is None:
            return near[0]
        return self._apart.farthest(near, self._assumed, embeddings)

    def _around_cut(self, labeled: _LabeledRanking) -> Iterator[int]:
        """The free examples by their distance to the middle of a cut; of two the likelier first."""
        low, high = labeled.cut(self._rng)
        size, middle = len(labeled.ranking), (low + high) // 2
        for distance in range(size + 1):
            for rank in dict.fromkeys((middle + distance, middle - distance)):
                if 0 <= rank < size and self.state.is_free(node := labeled.ranking.node(rank)):
                    yield node

    def _ranking_views(self) -> list[LineView]:
        return [ranking.view(k, self._rng) for k, ranking in sorted(self._rankings.items())]

    def _assume(self, index: int, label: int | None) -> None:
        before = self._assumed.pop(index, None)
        if label is not None:
            self._assumed[index] = label
        if before != label:
            for target, ranking in self._rankings.items():
                ranking.put(index, None if label is None else label == target)

    def _rank_classes(self) -> None:
        """Rank the pool for the classes that have a label and no ranking yet."""
        known = np.array(sorted(self._assumed))
        labels = np.array([self._assumed[i] for i in known.tolist()])
        new = [k for k in self._rare if k not in self._rankings and k in labels]
        if not new:
            return
        nodes, is_target, ends = {}, {}, {}
        for target, (order, _) in zip(new, sort_nodes(self.snapshot.scores, known, new)):
            nodes[target], is_target[target] = known[order], labels[order] == target
            ends[target] = gap_ends(nodes[target], is_target[target])
        for target, ranking in build_rankings(self.snapshot.scores, ends).items():
            places = [ranking.place(node) for node in nodes[target].tolist()]
            self._rankings[target] = _LabeledRanking(ranking, places, is_target[target].tolist())
