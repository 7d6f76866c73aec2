"""What the paper says of GALAXY, held against the results of a setting.

A difference between two methods is confirmed or refuted by Student's t over the random starts, on
one side, with 5% of error. Everything in between is not decidable with so many starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from galaxy_al.experiments.curves import WINDOW, Curve, moving_average

Verdict = Literal["confirmed", "not confirmed", "not decidable"]
Values = NDArray[np.float64]

_GALAXY = "galaxy"
_BASELINES = (
    "similar",
    "cluster-margin",
    "base",
    "badge",
    "bait",
    "confidence",
    "most-likely-positive",
    "random",
)
_SEARCH = ("similar", "most-likely-positive")  # which the paper says find more, and learn less
_ERROR = 0.05


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what was found, and whether that confirms it."""

    statement: str
    found: str
    verdict: Verdict


@dataclass(frozen=True)
class Difference:
    """By how much one method is ahead of another.

    Parameters
    ----------
    needed
        How many standard errors tell it from 0.
    """

    rival: str
    mean: float
    error: float
    needed: float

    @property
    def sign(self) -> int:
        """1 if it is ahead, -1 if it is behind, 0 if that cannot be told."""
        if np.isnan(self.error) or abs(self.mean) <= self.needed * self.error:
            return 0
        return int(np.sign(self.mean))


def difference(rival: str, ours: Values, theirs: Values) -> Difference:
    """Of two methods' values, one per start; paired if both have the same starts.

    Examples
    --------
    >>> difference("random", np.array([0.8, 0.9, 0.7]), np.array([0.7, 0.8, 0.6])).sign
    1
    >>> difference("random", np.array([0.8]), np.array([0.7])).sign
    0
    """
    from scipy.stats import t

    mean = float(ours.mean() - theirs.mean())
    fewest = min(len(ours), len(theirs))
    if fewest < 2:
        return Difference(rival, mean, np.nan, np.nan)
    if len(ours) == len(theirs):
        error = (ours - theirs).std(ddof=1) / np.sqrt(fewest)
    else:
        error = np.sqrt(sum(values.var(ddof=1) / len(values) for values in (ours, theirs)))
    return Difference(rival, mean, float(error), float(t.ppf(1 - _ERROR, fewest - 1)))


def claims_of(curves: Mapping[str, Mapping[str, Curve]]) -> list[Claim]:
    """The paper's claims that the results of a setting can be held against.

    Parameters
    ----------
    curves
        By measure, by label, all of the same length.
    """
    accuracy, found = curves["balanced_accuracy"], curves["rare_found"]
    return [*_of_galaxy(accuracy, found), *_of_others(accuracy)] if _GALAXY in accuracy else []


def _of_galaxy(accuracy: Mapping[str, Curve], found: Mapping[str, Curve]) -> Iterator[Claim]:
    rivals = [label for label in _BASELINES if label in accuracy]
    others = [label for label in rivals if label not in _SEARCH]
    search = [label for label in rivals if label in _SEARCH]
    if rivals:
        yield _ahead_of_all("GALAXY is the most accurate (Figure 4)", rivals, _areas(accuracy), 3)
        yield _labels_saved(accuracy, rivals)
    if others:
        statement = "GALAXY finds more rare examples than the methods that do not search (Figure 5)"
        yield _ahead_of_all(statement, others, _last(found), 0)
    if search:
        verbs = ("finds", "is") if len(search) == 1 else ("find", "are")
        statement = f"{_listed(search)} {verbs[0]} more rare examples than GALAXY (Figure 5)"
        behind = {label: -values for label, values in _last(found).items()}
        yield _ahead_of_all(statement, search, behind, 0)
        statement = f"{_listed(search)} {verbs[1]} less accurate than GALAXY (Figure 5)"
        yield _ahead_of_all(statement, search, _areas(accuracy), 3)
    graphs = [label for label in accuracy if label.startswith("s2")]
    if graphs:
        yield _ahead_of_all(
            "GALAXY is more accurate than S2 (Figure 6)", graphs, _areas(accuracy), 3
        )


def _of_others(accuracy: Mapping[str, Curve]) -> Iterator[Claim]:
    areas = _areas(accuracy)
    diverse = [label for label in ("badge", "bait") if label in accuracy]
    for label in ("cluster-margin", "base"):
        if label in accuracy and diverse:
            statement = f"{label} is more accurate than {_listed(diverse)}"
            yield _ahead_of_all(statement, diverse, areas, 3, ours=label)


def _ahead_of_all(
    statement: str,
    rivals: Sequence[str],
    values: Mapping[str, Values],
    digits: int,
    ours: str = _GALAXY,
) -> Claim:
    """Confirmed if one is ahead of all, refuted if it is behind any; both beyond the error."""
    found = [difference(rival, values[ours], values[rival]) for rival in rivals]
    closest = min(found, key=lambda each: each.mean)
    return Claim(statement, _shown(closest, digits), _verdict([each.sign for each in found]))


def _verdict(signs: Sequence[int]) -> Verdict:
    if all(sign > 0 for sign in signs):
        return "confirmed"
    return "not confirmed" if any(sign < 0 for sign in signs) else "not decidable"


def _labels_saved(accuracy: Mapping[str, Curve], rivals: Sequence[str]) -> Claim:
    """How many labels fewer GALAXY needs for what the best other method ends with, by start."""
    best = max(rivals, key=lambda label: accuracy[label].mean(WINDOW)[-1])
    ours, theirs = accuracy[_GALAXY], accuracy[best]
    n_starts = min(len(ours.runs), len(theirs.runs))
    levels = moving_average(theirs.runs, WINDOW)[:n_starts, -1]
    needed = _first_reached(ours, levels), _first_reached(theirs, levels)
    saved = difference(best, -needed[0] / needed[1], -np.ones(n_starts))
    error = "" if np.isnan(saved.error) else f" ± {saved.error:.0%}"
    shown = f"{saved.mean:+.0%}{error} for the {levels.mean():.3f} that {best} ends with"
    return Claim("GALAXY saves labels, up to 30% (Figure 4)", shown, _verdict([saved.sign]))


def _first_reached(curve: Curve, levels: Values) -> Values:
    """How many labels the smoothed run of each start takes to its level; all and more if never."""
    never = 2 * curve.n_labels[-1] - curve.n_labels[-2 if len(curve.n_labels) > 1 else -1]
    reached = moving_average(curve.runs, WINDOW)[: len(levels)] >= levels[:, None]
    found: Values = np.where(reached, curve.n_labels, never).min(axis=1).astype(np.float64)
    return found


def _areas(curves: Mapping[str, Curve]) -> dict[str, Values]:
    return {label: curve.areas() for label, curve in curves.items()}


def _last(curves: Mapping[str, Curve]) -> dict[str, Values]:
    return {label: curve.runs[:, -1] for label, curve in curves.items()}


def _shown(closest: Difference, digits: int) -> str:
    error = "" if np.isnan(closest.error) else f" ± {closest.error:.{digits}f}"
    return f"{closest.mean:+.{digits}f}{error} ({closest.rival})"


def _listed(labels: Sequence[str]) -> str:
    return " and ".join(labels)
