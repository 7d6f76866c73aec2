"""What an audit says: how many are left, what was found, and how good the model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.audit.betting import ERROR, Game, interval_of_count, interval_of_share
from galaxy_al.audit.draws import Counts, Draws, Values
from galaxy_al.audit.sampling import Strata, believed
from galaxy_al.models.estimates import Interval

# Most of the error is allowed where intervals are widest: how many are left is bounded above by
# draws that found nothing, and recall below.
UPPER_OF_COUNTS = 0.8
UPPER_OF_RECALL = 0.2


@dataclass(frozen=True)
class Labeled:
    """What was labelled before the audit began.

    Parameters
    ----------
    confusion
        How many labels of each class (row) the model decides to be of each class (column), by
        models that did not know them.
    n_cannot_tell
        How many examples of each decided class could not be labelled; by default none.
    """

    confusion: Counts
    n_cannot_tell: Counts | None = None

    def n_decided(self, k: int) -> int:
        """How many examples the model decides to be of a class."""
        others = 0 if self.n_cannot_tell is None else int(self.n_cannot_tell[k])
        return int(self.confusion[:, k].sum()) + others


@dataclass(frozen=True)
class ClassAudit:
    """What is known of one class, with intervals that hold at every moment.

    Parameters
    ----------
    left
        How many examples of the class have no label now.
    found
        The share of the examples of the class that have a label now.
    prevalence
        The share of the pool that is of the class.
    precision, recall
        Of the model's decisions as they were when the audit began; None if it decides no example
        to be of the class.
    """

    left: Interval
    found: Interval
    prevalence: Interval
    precision: Interval | None
    recall: Interval


class Audit:
    """The measures of an audit so far.

    Parameters
    ----------
    n_free, known
        As of `Draws`, now.
    of_decisions
        What precision and recall are taken from; by default this audit.
    """

    def __init__(
        self,
        strata: Strata,
        labeled: Labeled,
        draws: Draws,
        n_free: Counts,
        known: Counts,
        of_decisions: Audit | None = None,
    ) -> None:
        self.strata, self.labeled, self.draws = strata, labeled, draws
        self.n_free, self.known = n_free, known
        self._of_decisions = of_decisions
        self._balanced: dict[float, Interval] = {}  # by error: several ask for it
        self._all = _Believing.of(draws, strata.expected)

    def of_class(self, k: int, error: float = ERROR) -> ClassAudit:
        """Everything about one class."""
        n_before = int(self.labeled.confusion[k].sum())
        n_now = n_before + int(self.known[:, k].sum())
        total = self.total(k, error)
        every = Interval(*(n_before + value for value in (total.value, total.low, total.high)))
        size = int(self.labeled.confusion.sum() + self.strata.sizes.sum())
        return ClassAudit(
            left=Interval(*(value - n_now for value in (every.value, every.low, every.high))),
            found=Interval(*(_ratio(n_now, n) for n in (every.value, every.high, every.low))),
            prevalence=Interval(*(n / size for n in (every.value, every.low, every.high))),
            precision=self.precision(k, error),
            recall=self.recall(k, error),
        )

    def total(self, k: int, error: float = ERROR) -> Interval:
        """How many of the class had no label when the audit began."""
        count = self._count(k, np.ones(len(self.n_free)))
        known = int(self.known[:, k].sum())
        most = known + int(self.n_free.sum())
        ends = interval_of_count(count.game, known, most, error, UPPER_OF_COUNTS)
        return _within(count.now, *ends)

    def total_game(self, k: int) -> Game:
        """The game whose unknown is the total."""
        return self._count(k, np.ones(len(self.n_free))).game

    def precision(self, k: int, error: float = ERROR) -> Interval | None:
        """The share of the examples that are decided to be of the class and are."""
        if self._of_decisions is not None:
            return self._of_decisions.precision(k, error)
        is_decided, n_right = self.strata.decided == k, self.labeled.confusion[k, k]
        n_decided = self.labeled.n_decided(k) + is_decided @ self.strata.sizes
        if not n_decided:
            return None
        right = self._right_alone(k)
        sure = int(self.known[is_decided, k].sum())
        ends = interval_of_count(right.game, sure, sure + self._n_free(is_decided), error)
        return _within(*((n_right + number) / n_decided for number in (right.now, *ends)))

    def precision_game(self, k: int) -> Game:
        """The game whose unknown is how many of those decided without a label are of the class."""
        return self._right_alone(k).game

    def recall(self, k: int, error: float = ERROR) -> Interval:
        """The share of the examples of the class that are decided to be."""
        if self._of_decisions is not None:
            return self._of_decisions.recall(k, error)
        is_decided = self.strata.decided == k
        right, every = self._right_and_every(k)
        n_right, n_every = self.labeled.confusion[k, k], self.labeled.confusion[k].sum()
        sure_right = int(n_right + self.known[is_decided, k].sum())
        sure_missed = int(n_every - n_right + self.known[~is_decided, k].sum())
        more_right, more_missed = self._n_free(is_decided), self._n_free(~is_decided)
        least = sure_right / max(sure_right + sure_missed + more_missed, 1)
        most = _ratio(sure_right + more_right, sure_right + more_right + sure_missed)
        low, high = interval_of_share(self.recall_game(k), error, UPPER_OF_RECALL)
        low = min(max(low, least), most)
        value = _ratio(n_right + right.now, n_every + every.now)
        return _within(value, low, max(min(high, most), low))

    def recall_game(self, k: int) -> Game:
        """The game whose unknown is the recall."""
        right, every = self._right_and_every(k)
        n_right, n_every = self.labeled.confusion[k, k], self.labeled.confusion[k].sum()
        guess = _ratio(n_right + right.believed, n_every + every.believed)
        weights = (self.strata.decided == k) - guess[:, None]
        spread = self._all.spread(k, weights)
        return Game(n_right + right.values, n_every + every.values, right.outcomes, spread)

    def balanced_accuracy(self, error: float = ERROR) -> Interval:
        """The mean recall over the classes; each may be wrong with a part of the error."""
        if error not in self._balanced:
            self._balanced[error] = self._balanced_accuracy(error)
        return self._balanced[error]

    def _balanced_accuracy(self, error: float) -> Interval:
        n_classes = self.strata.expected.shape[1]
        recalls = [self.recall(k, error / n_classes) for k in range(n_classes)]
        return Interval(
            *(
                float(np.mean([getattr(recall, part) for recall in recalls]))
                for part in ("value", "low", "high")
            )
        )

    def _right_alone(self, k: int) -> _Count:
        weights = (self.strata.decided == k).astype(np.float64)
        return self._count(k, weights, is_alone=True)

    def _right_and_every(self, k: int) -> tuple[_Count, _Count]:
        weights = (self.strata.decided == k).astype(np.float64)
        return self._count(k, weights), self._count(k, np.ones(len(weights)))

    def _n_free(self, is_wanted: NDArray[np.bool_]) -> int:
        return int(self.n_free[is_wanted].sum())

    def _count(self, k: int, weights: Values, *, is_alone: bool = False) -> _Count:
        """Estimates of how many examples of a class weighted strata have.

        Parameters
        ----------
        is_alone
            Take only draws from the strata with a weight.
        """
        which = self._all.within(weights > 0) if is_alone else self._all
        values, believed = which.estimates(k, weights)
        draws = which.draws
        return _Count(
            values=values,
            outcomes=np.where(draws.classes == k, draws.strata, draws.strata + len(weights)),
            spread=which.spread(k, np.broadcast_to(weights, draws.n_free.shape)),
            believed=believed,
            now=float((self.known[:, k] + self.n_free * self._all.rates_now[:, k]) @ weights),
        )


@dataclass(frozen=True)
class _Count:
    """Estimates of a count.

    Parameters
    ----------
    values, outcomes, spread
        As of `Game`.
    believed
        Before each draw.
    now
        After the last.
    """

    values: Values
    outcomes: NDArray[np.intp]
    spread: Values
    believed: Values
    now: float

    @property
    def game(self) -> Game:
        """The game whose unknown is the count."""
        return Game(self.values, None, self.outcomes, self.spread)


@dataclass(frozen=True)
class _Believing:
    """Draws, and what was believed before each.

    Parameters
    ----------
    rates, rates_now
        The share of each class in each stratum, before each draw and after the last.
    n_draws
        Before each draw, how many there were from each stratum; from all if it is blind.
    """

    draws: Draws
    rates: Values
    rates_now: Values
    n_draws: Counts

    @classmethod
    def of(cls, draws: Draws, expected: Values) -> _Believing:
        n_draws, n_hits = draws.n_draws, draws.n_hits
        rates = believed(expected, n_hits, n_draws)
        before, n_before = rates[:-1], n_draws[:-1]
        if (is_blind := draws.is_blind) is not None:
            # What is believed of a draw may not come from strata that were made later.
            n_classes, n_all = expected.shape[1], n_before.sum(axis=1, keepdims=True)
            evenly = np.full((1, n_classes), 1 / n_classes)
            of_all = believed(evenly, n_hits[:-1].sum(axis=1, keepdims=True), n_all)
            before = np.where(is_blind[:, None, None], of_all, before)
            n_before = np.where(is_blind[:, None], n_all, n_before)
        return cls(draws, before, rates[-1], n_before)

    def within(self, is_wanted: NDArray[np.bool_]) -> _Believing:
        """The draws from some strata, as if there were no others."""
        rows = np.flatnonzero(is_wanted[self.draws.strata])
        draws = self.draws.within(is_wanted)
        return _Believing(draws, self.rates[rows], self.rates_now, self.n_draws[rows])

    def estimates(self, k: int, weights: Values) -> tuple[Values, Values]:
        """For each draw and each outcome, an estimate of a weighted count; and what was believed.

        What is believed of a draw is taken from what comes out, and its known mean is added again:
        the estimate stays right on average, and what was expected does not spread it.
        """
        draws, rates, times = self.draws, self.rates[:, :, k], self.draws.times
        believed = (draws.known[:, :, k] + draws.n_free * rates) @ weights
        hit = believed[:, None] + weights * (1 - rates) * times
        miss = believed[:, None] - weights * rates * times
        return np.concatenate([hit, miss], axis=1), believed

    def spread(self, k: int, weights: Values) -> Values:
        """The root of the mean square of weighted estimates, by what is believed."""
        unsure = 1 / (self.n_draws + 3)
        rates = np.clip(self.rates[:, :, k], unsure, 1 - unsure)
        squares = weights**2 * self.draws.n_free * self.draws.times * rates * (1 - rates)
        spread: Values = np.maximum(np.sqrt(squares.sum(axis=1)), 1e-12)
        return spread


def _ratio(above: Any, below: Any) -> Any:
    """The quotient, 1 if nothing is there."""
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    found = np.divide(above, below, out=np.ones_like(below), where=below > 0)
    return found if found.ndim else float(found)


def _within(value: float, low: float, high: float) -> Interval:
    return Interval(float(np.clip(value, low, high)), low, high)
