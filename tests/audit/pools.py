"""Pools to audit, and audits of them with the truth at hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from galaxy_al.audit.draws import Draws
from galaxy_al.audit.measures import Audit, Labeled
from galaxy_al.audit.sampling import Strata, believed, chances


@dataclass
class Simulation:
    """An audit of strata whose contents are known.

    Parameters
    ----------
    contents
        How many examples of each stratum (row) and class (column) there are.
    """

    strata: Strata
    contents: NDArray[np.int64]
    labeled: Labeled
    rows: list[tuple[int, int, NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        self.left = self.contents.copy()
        self.known = np.zeros_like(self.contents)
        self.n_draws = np.zeros(len(self.contents), dtype=np.int64)
        self.hits = np.zeros_like(self.contents)

    def copy(self) -> Simulation:
        other = Simulation(self.strata, self.contents, self.labeled, list(self.rows))
        for name in ("left", "known", "n_draws", "hits"):
            setattr(other, name, getattr(self, name).copy())
        return other

    @property
    def n_free(self) -> NDArray[np.int64]:
        return self.left.sum(axis=1)

    def chances(self) -> NDArray[np.float64]:
        rates = believed(self.strata.expected, self.hits, self.n_draws)
        return chances(self.n_free, rates, self.n_draws)

    def draw(self, stratum: int, label: int) -> None:
        """What came out of the next draw."""
        self.rows.append((stratum, label, self.n_free, self.chances(), self.known.copy()))
        self.n_draws[stratum] += 1
        self.hits[stratum, label] += 1
        self.label(stratum, label)

    def label(self, stratum: int, label: int) -> None:
        """An example gets a label, whether it was drawn or not."""
        self.left[stratum, label] -= 1
        self.known[stratum, label] += 1

    def draw_at_random(self, rng: np.random.Generator) -> None:
        stratum = int(rng.choice(len(self.left), p=self.chances()))
        rates = self.left[stratum] / self.left[stratum].sum()
        self.draw(stratum, int(rng.choice(len(rates), p=rates)))

    def audit(self) -> Audit:
        n_strata, n_classes = self.contents.shape
        if self.rows:
            draws = Draws(*(np.array(part) for part in zip(*self.rows)))
        else:
            draws = Draws(
                np.zeros(0, dtype=np.intp),
                np.zeros(0, dtype=np.intp),
                np.zeros((0, n_strata), dtype=np.int64),
                np.zeros((0, n_strata)),
                np.zeros((0, n_strata, n_classes), dtype=np.int64),
            )
        return Audit(self.strata, self.labeled, draws, self.n_free, self.known)

    def true_recall(self, k: int) -> float:
        decided = self.strata.decided == k
        right = self.labeled.confusion[k, k] + self.contents[decided, k].sum()
        return float(right / (self.labeled.confusion[k].sum() + self.contents[:, k].sum()))

    def true_precision(self, k: int) -> float:
        decided = self.strata.decided == k
        right = self.labeled.confusion[k, k] + self.contents[decided, k].sum()
        return float(right / (self.labeled.confusion[:, k].sum() + self.contents[decided].sum()))


def simulation_of(contents, decided, expected=None, confusion=None) -> Simulation:
    """An audit of a pool with these contents."""
    contents = np.asarray(contents, dtype=np.int64)
    sizes = contents.sum(axis=1)
    n_classes = contents.shape[1]
    if expected is None:
        expected = contents / sizes[:, None]
    if confusion is None:
        confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    strata = Strata(
        np.repeat(np.arange(len(sizes)), sizes),
        np.asarray(decided, dtype=np.intp),
        np.asarray(expected, dtype=np.float64),
    )
    return Simulation(strata, contents, Labeled(np.asarray(confusion, dtype=np.int64)))
