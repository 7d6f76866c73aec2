"""From probabilities to decisions: thresholds for what a user wants, and other prevalences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.log_odds import Table
from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import reweighted

DEFAULT_RULE = "f1"
LIKELIEST = "likeliest"  # the rule of a model that was saved without one
GIVEN = "given"  # the rule of thresholds that a user gives
RULES = "f1, balanced, precision=P, recall=R or cost=MISSED:FALSE"
_ROWS_AT_ONCE = 1 << 16
_ROUNDING = 1e-9
_LEAST = 1e-12  # of a threshold: an example without any chance is never decided


@dataclass(frozen=True)
class Rule:
    """What decisions should be good at.

    Parameters
    ----------
    name
        ``"f1"``, ``"balanced"``, ``"precision"``, ``"recall"`` or ``"cost"``.
    value
        The precision or recall to reach; how many times as much a missed example costs as a
        false alarm.
    """

    name: str
    value: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule as a user writes it.

        Examples
        --------
        >>> Rule.parse("precision=0.9")
        Rule(name='precision', value=0.9)
        >>> Rule.parse("cost=10:1").value
        10.0
        >>> Rule.parse("recall=2")
        Traceback (most recent call last):
        ...
        galaxy_al.errors.InvalidArgument: recall must be above 0 and at most 1, got '2'.
        """
        name, _, value = text.strip().partition("=")
        if name in ("f1", "balanced") and not value:
            return cls(name)
        if name in ("precision", "recall"):
            return cls(name, _share(name, value))
        if name == "cost":
            return cls(name, _cost_ratio(value))
        raise InvalidArgument(f"Unknown rule {text!r}. Choose from: {RULES}.")


@dataclass(frozen=True)
class Decision:
    """How probabilities become classes.

    A rare class is decided where its probability reaches its threshold. If several reach theirs,
    the one that exceeds it the most times wins; if none does, the majority class.

    Parameters
    ----------
    rule
        The rule as the user wrote it.
    thresholds
        One per class. That of the majority class, the last, is 0 except for ``balanced``: there
        the class wins whose probability is the most times its threshold, the majority class too.

    Examples
    --------
    >>> Decision("f1", (0.3, 0.0)).classes(np.array([[0.4, 0.6], [0.2, 0.8]])).tolist()
    [0, 1]
    """

    rule: str
    thresholds: tuple[float, ...]

    @property
    def majority_is_the_rest(self) -> bool:
        """Whether the majority class has what no rare class reaches."""
        return not self.thresholds[-1]

    @property
    def depends_on_prevalence(self) -> bool:
        """Whether other examples should be decided for where classes are rarer or more frequent.

        What share of each class is found does not depend on how many examples it has.
        """
        return not self.rule.startswith(("balanced", "recall"))

    @property
    def limits(self) -> NDArray[np.float32]:
        """What the probabilities are divided by."""
        *rare, majority = self.thresholds
        return np.maximum([*rare, majority or 1.0], _LEAST).astype(np.float32)

    def classes(self, proba: Table) -> NDArray[np.intp]:
        """The class of each row."""
        decided = np.empty(len(proba), dtype=np.intp)
        for low, high in row_blocks(len(proba), _ROWS_AT_ONCE):
            times = proba[low:high].astype(np.float32) / self.limits
            if self.majority_is_the_rest:
                times[:, -1] = np.nextafter(np.float32(1), 0)  # a class at its threshold wins
            decided[low:high] = times.argmax(axis=1)
        return decided


def likeliest(n_classes: int) -> Decision:
    """Decide for the likeliest class."""
    return Decision(LIKELIEST, (1.0,) * n_classes)


def choose_thresholds(
    text: str,
    proba: Table,
    class_priors: Sequence[float] | NDArray[np.float64],
    classes: Sequence[str] = (),
) -> Decision:
    """The thresholds that serve a rule best in a pool with these probabilities.

    What a threshold gives is computed from the probabilities: of the examples above it, their
    mean is the precision, and their sum, divided by the sum over the pool, the recall.

    Parameters
    ----------
    text
        As `Rule.parse` takes it.
    proba
        Calibrated probabilities of a pool, N x K.
    classes
        Their names, for a message if a precision cannot be reached.
    """
    curves = (ThresholdCurve.of(column) for column in proba.T[:-1])
    return choose_from_curves(text, curves, class_priors, classes)


def choose_from_curves(
    text: str,
    curves: Iterable[ThresholdCurve],
    class_priors: Sequence[float] | NDArray[np.float64],
    classes: Sequence[str] = (),
) -> Decision:
    """As `choose_thresholds`, from the curve of each rare class."""
    rule = Rule.parse(text)
    priors = np.asarray(class_priors, dtype=np.float64)
    if rule.name == "balanced":
        return Decision(text, tuple(np.maximum(priors, _LEAST).tolist()))
    if rule.name == "cost":
        return Decision(text, (*[1 / (1 + rule.value)] * (len(priors) - 1), 0.0))
    thresholds = np.ones(len(priors))
    thresholds[-1] = 0
    for k, curve in enumerate(curves):
        if not priors[k] > 0:
            continue
        if rule.name == "precision" and curve.precision.max() < rule.value - _ROUNDING:
            raise GalaxyError(curve.best_precision(rule, classes[k] if classes else f"class {k}"))
        thresholds[k] = curve.threshold(rule)
    return Decision(text, tuple(thresholds.tolist()))


@dataclass(frozen=True)
class ThresholdCurve:
    """What each threshold of one class gives, from the highest threshold to the lowest."""

    thresholds: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]

    @classmethod
    def of(cls, proba: Table, counts: NDArray[np.int64] | None = None) -> ThresholdCurve:
        """The curve of one class's probabilities in a pool; each row stands for so many."""
        if counts is None:
            heights = np.sort(proba.astype(np.float64))[::-1]
            total, n_above = np.cumsum(heights), np.arange(1, len(heights) + 1)
        else:
            order = np.argsort(proba)[::-1]
            heights = proba[order].astype(np.float64)
            total, n_above = np.cumsum(heights * counts[order]), np.cumsum(counts[order])
        last_of_ties = np.append(heights[1:] != heights[:-1], True)
        found = total[last_of_ties]
        precision, recall = found / n_above[last_of_ties], found / max(total[-1], _LEAST)
        return cls(heights[last_of_ties], precision, recall)

    @property
    def f1(self) -> NDArray[np.float64]:
        """The harmonic mean of precision and recall at each threshold."""
        return 2 * self.precision * self.recall / (self.precision + self.recall + _LEAST)

    def threshold(self, rule: Rule) -> float:
        """The threshold that serves a rule best, half way between two probabilities.

        On an example's own probability, rounding would decide about that example.
        """
        if rule.name == "f1":
            at = int(self.f1.argmax())
        else:
            wanted = self.precision if rule.name == "precision" else self.recall
            reached = np.flatnonzero(wanted >= rule.value - _ROUNDING)
            # Of a recall the highest threshold that reaches it, of a precision the lowest.
            at = int(reached[0 if rule.name == "recall" else -1])
        return float(self.thresholds[at : at + 2].mean())

    def best_precision(self, rule: Rule, name: str) -> str:
        """Say that a precision cannot be reached, and what can."""
        best = self.precision.argmax()
        return (
            f"precision={rule.value:g} cannot be reached for {name}: the best is "
            f"{self.precision[best]:.3f}, with a recall of {self.recall[best]:.3f}."
        )


def shifted(
    proba: Table, class_priors: NDArray[np.float64], prevalence: Mapping[int, float]
) -> Table:
    """Probabilities for data in which classes are rarer or more frequent than in the pool.

    Parameters
    ----------
    prevalence
        The share of some rare classes in the new data. The others keep theirs, and the majority
        class has what is left.

    Examples
    --------
    >>> priors = np.array([0.1, 0.9])
    >>> shifted(np.array([[0.5, 0.5]]), priors, {0: 0.01}).round(3).tolist()
    [[0.083, 0.917]]
    """
    wanted = class_priors.copy()
    for k, share in prevalence.items():
        if not class_priors[k] > 0:
            raise GalaxyError("A class that had no labels cannot be given a prevalence.")
        wanted[k] = share
    wanted[-1] = 1 - wanted[:-1].sum()
    if not (wanted[-1] > 0 and all(0 < share < 1 for share in prevalence.values())):
        raise InvalidArgument(
            "A prevalence must be above 0 and below 1, and those of all rare classes together "
            f"below 1, got {', '.join(f'{share:g}' for share in prevalence.values())}."
        )
    factors = np.zeros_like(wanted)
    np.divide(wanted, class_priors, out=factors, where=class_priors > 0)
    return reweighted(proba, factors)


def _share(name: str, value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = np.nan
    if not 0 < share <= 1:
        raise InvalidArgument(f"{name} must be above 0 and at most 1, got {value!r}.")
    return share


def _cost_ratio(value: str) -> float:
    missed, _, false = value.partition(":")
    try:
        ratio = float(missed) / float(false or "1")
    except (ValueError, ZeroDivisionError):
        ratio = np.nan
    if not 0 < ratio < np.inf:
        raise InvalidArgument(
            f"cost must be two numbers above 0, as in cost=10:1 if a missed example costs ten "
            f"times as much as a false alarm, got {value!r}."
        )
    return ratio
