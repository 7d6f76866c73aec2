"""What the labels that a strategy asked at random say, alone or before the draws of an audit.

A question counts as random only if that was decided before anyone looked at its example, and if the
example was then drawn uniformly from all without a label. So it is a draw whose chances are the
sizes of the strata. Labels that were chosen otherwise are never draws: they are known, and leave.

Two assumptions are needed:

- Answers are listed in the order of their questions. An example that another annotator was
  answering could not be drawn. If it is listed later than the draw, the count that the draw
  estimates is one too small, at most, for each such example.
- Strata are made later, by a model that has learned from these labels. How many there are of a
  class does not depend on them: such draws are judged without them. Precision and recall do. For
  these the strata of labelled examples must come from models that did not know their labels, and
  the labels must be so many that one more or less changes few decisions. An audit does not need
  that: see `continued`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from galaxy_al.audit.draws import CANNOT_TELL, Counts, Draws, Values
from galaxy_al.audit.measures import Audit, Labeled
from galaxy_al.audit.sampling import Strata, believed
from galaxy_al.models.estimates import Interval

HALF_WIDTH = 0.1  # of an interval that is narrow enough to show
_MORE = (10, 30, 100, 300)  # random labels that are imagined: more take as long as a training
MOST_IMAGINED = _MORE[-1]


class Answer(NamedTuple):
    """What was answered about an example of the pool: a class index or `CANNOT_TELL`."""

    example: int
    class_index: int
    is_random: bool


@dataclass(frozen=True)
class Accuracy:
    """The balanced accuracy to show.

    Parameters
    ----------
    interval
        At 95%, at every moment.
    n_more
        About how many more random labels make it as narrow as `HALF_WIDTH`: 0 if it is, None if
        even `MOST_IMAGINED` do not.
    """

    interval: Interval
    n_more: int | None

    def __str__(self) -> str:
        value, low, high = (
            f"{getattr(self.interval, part):.0%}" for part in ("value", "low", "high")
        )
        if self.n_more == 0:
            return f"{value} ({low} to {high})"
        more = f"more than {MOST_IMAGINED}" if self.n_more is None else f"about {self.n_more:,}"
        return f"not enough random labels yet ({low} to {high}): {more} more give ±10"


def random_audit(
    answers: Sequence[Answer], strata: Strata, labeled: Labeled | None = None
) -> Audit:
    """The audit that began with the first answer and whose draws are the random ones.

    Parameters
    ----------
    answers
        In the order of the questions.
    strata
        Of all examples that had no label before the answers, also of those that have one now.
    labeled
        What was labelled before the answers, by default nothing.

    Examples
    --------
    >>> strata = Strata(np.zeros(100, dtype=np.intp), np.array([1]), np.array([[0.1, 0.9]]))
    >>> answers = [Answer(i, int(i > 1), is_random=i > 0) for i in range(50)]
    >>> audit = random_audit(answers, strata)
    >>> len(audit.draws), audit.known.tolist()
    (49, [[2, 48]])
    """
    n_strata, n_classes = strata.expected.shape
    if labeled is None:
        labeled = Labeled(np.zeros((n_classes, n_classes), dtype=np.int64))
    n_free, known = strata.sizes.copy(), np.zeros((n_strata, n_classes), dtype=np.int64)
    rows: list[tuple[int, int, Counts, Counts]] = []
    for answer in answers:
        stratum = int(strata.of[answer.example])
        if answer.is_random:
            rows.append((stratum, answer.class_index, n_free.copy(), known.copy()))
        n_free[stratum] -= 1
        if answer.class_index != CANNOT_TELL:
            known[stratum, answer.class_index] += 1
    draws = _uniform_draws(
        np.array([row[0] for row in rows], dtype=np.intp),
        np.array([row[1] for row in rows], dtype=np.intp),
        np.array([row[2] for row in rows], dtype=np.int64).reshape(-1, n_strata),
        np.array([row[3] for row in rows], dtype=np.int64).reshape(-1, n_strata, n_classes),
    )
    return Audit(strata, labeled, draws, n_free, known)


def _uniform_draws(
    strata: NDArray[np.intp], classes: NDArray[np.intp], n_free: Counts, known: Counts
) -> Draws:
    chances = n_free / n_free.sum(axis=1, keepdims=True)
    is_blind = np.ones(len(strata), dtype=np.bool_)
    return Draws(strata, classes, n_free, chances, known, is_blind)


def continued(before: Audit, since: Audit) -> Audit:
    """An audit whose draws follow random labels, with these as its first draws.

    They say how many examples of a class there are. They do not say how good the decisions are: the
    model has learned from them, and it decides an example differently if it learns from it. So for
    precision and recall what was labelled before is known, as all else that was not drawn since.

    Parameters
    ----------
    before
        From `random_audit` of all answers before the other audit began.
    since
        The other audit, with the same strata but only of what had no label when it began.
    """
    then = replace(since.draws, known=since.draws.known + before.known)
    known = before.known + since.known
    draws = _joined(before.draws, then)
    of_decisions = Audit(since.strata, _labeled(before), since.draws, since.n_free, since.known)
    return Audit(before.strata, before.labeled, draws, since.n_free, known, of_decisions)


def _labeled(before: Audit) -> Labeled:
    """The examples that had a label before an audit, by the class that is decided."""
    confusion = before.labeled.confusion.copy()
    decided, known = before.strata.decided, before.known
    np.add.at(confusion.T, decided, known)
    n_cannot_tell = np.zeros(len(confusion), dtype=np.int64)
    np.add.at(n_cannot_tell, decided, before.strata.sizes - before.n_free - known.sum(axis=1))
    return Labeled(confusion, n_cannot_tell)


def _joined(first: Draws, then: Draws) -> Draws:
    def both(part: str) -> Any:
        return np.concatenate([getattr(first, part), getattr(then, part)])

    return Draws(
        strata=both("strata"),
        classes=both("classes"),
        n_free=both("n_free"),
        chances=both("chances"),
        known=both("known"),
        is_blind=np.concatenate([_is_blind(first), _is_blind(then)]),
    )


def _is_blind(draws: Draws) -> NDArray[np.bool_]:
    return np.zeros(len(draws), dtype=np.bool_) if draws.is_blind is None else draws.is_blind


def strata_of_decisions(decided: NDArray[np.intp], proba: Values) -> Strata:
    """A stratum per class that is decided, of a whole pool.

    Parameters
    ----------
    decided, proba
        Of labelled examples by models that did not know their labels.
    """
    classes = np.unique(decided)
    expected = np.stack([proba[decided == k].mean(axis=0, dtype=np.float64) for k in classes])
    return Strata(np.searchsorted(classes, decided), classes.astype(np.intp), expected)


def accuracy_of(audit: Audit, rng: np.random.Generator) -> Accuracy:
    """The balanced accuracy by an audit of any kind, and what more random labels would give."""
    interval = audit.balanced_accuracy()
    widths = [_half_width(interval)]
    sizes = [0]
    for n_more in _MORE:
        if widths[-1] <= HALF_WIDTH or n_more > audit.n_free.sum():
            break
        sizes.append(n_more)
        widths.append(_half_width(_imagined(audit, n_more, rng).balanced_accuracy()))
    return Accuracy(interval, _place_of(HALF_WIDTH, sizes, widths))


def _place_of(width: float, sizes: list[int], widths: list[float]) -> int | None:
    """Between which two sizes it is narrow enough, by the square roots."""
    if widths[-1] > width:
        return None
    if len(sizes) == 1:
        return 0
    low, high = np.sqrt(sizes[-2:])
    share = (widths[-2] - width) / (widths[-2] - widths[-1])
    return int(np.ceil((low + share * (high - low)) ** 2))


def _half_width(interval: Interval) -> float:
    return (interval.high - interval.low) / 2


def _imagined(audit: Audit, n_more: int, rng: np.random.Generator) -> Audit:
    """The audit after more uniform draws that bring what is believed now."""
    rates = believed(audit.strata.expected, audit.draws.n_hits[-1], audit.draws.n_draws[-1])
    places = rng.choice(int(audit.n_free.sum()), size=n_more, replace=False)
    strata = np.searchsorted(np.cumsum(audit.n_free), places, side="right")
    ends = np.cumsum(rates / rates.sum(axis=1, keepdims=True), axis=1)[strata, :-1]
    classes = (rng.random(n_more)[:, None] >= ends).sum(axis=1)
    hits = np.zeros((n_more + 1, *rates.shape), dtype=np.int64)
    hits[np.arange(n_more) + 1, strata, classes] = 1
    hits = hits.cumsum(axis=0)
    n_free, known = audit.n_free - hits.sum(axis=2), audit.known + hits
    draws = _joined(audit.draws, _uniform_draws(strata, classes, n_free[:-1], known[:-1]))
    return Audit(audit.strata, audit.labeled, draws, n_free[-1], known[-1])
