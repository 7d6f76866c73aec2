"""The paper's theorems, simulated: how balanced the labels are that GALAXY asks for.

The setting is the paper's: two classes, ID (rare, 0) and OOD (the rest, 1), in a ranking that
separates them, with a labelled example at each end. The first ``z`` steps of bisection all meet
OOD, ``n'`` examples are left, and of these a number uniform in 1, ..., n' - 1 are ID.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log2
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from galaxy_al.snapshot import UNLABELED, Snapshot
from galaxy_al.strategies import Confidence, Galaxy

ID, OOD = 0, 1
Statement = Literal["bisection", "batched", "uncertainty", "noise"]


@dataclass(frozen=True)
class Batch:
    """The labels that one batch got: how many of each class, and whether the cut was found."""

    n_id: int
    n_ood: int
    found_cut: bool


@dataclass(frozen=True)
class Check:
    """A statement of the paper at one point of a grid, measured.

    Parameters
    ----------
    n_left
        The paper's n'.
    extra
        The paper's B': questions after the bisection.
    delta
        The failure probability that the noise theorem allows.
    ratio, error
        E[m_ID] / E[m_OOD] over the draws, and its standard error.
    bound
        The smallest ratio that the paper allows.
    found
        The share of the draws in which bisection found the true cut.
    """

    statement: Statement
    z: int
    n_left: int
    extra: int
    delta: float
    ratio: float
    error: float
    bound: float
    found: float
    draws: int

    @property
    def holds(self) -> bool:
        """Whether the measurement agrees with the bound within three standard errors."""
        if self.statement == "uncertainty":
            return self.ratio == 0
        spread = 3 * np.sqrt(self.found * (1 - self.found) / self.draws)
        is_found = self.statement != "noise" or self.found + spread >= 1 - self.delta
        return is_found and self.ratio + 3 * self.error >= self.bound


def region_size(z: int, n_left: int) -> int:
    """The size of a region of which z steps into its lower half leave n'."""
    size = n_left
    for _ in range(z):
        size = 2 * size + 1
    return size


def bisect(size: int, n_id: int, rng: np.random.Generator) -> Batch:
    """The paper's definition of bisection, literally: the first ``n_id`` examples are ID."""
    low, high, counts = 1, size, [0, 0]
    while low <= high:
        m = high - low + 1
        i = low - 1 + (m // 2 + 1 if rng.random() < 0.5 else -(-m // 2))
        if i <= n_id:
            counts[ID] += 1
            low = i + 1
        else:
            counts[OOD] += 1
            high = i - 1
    return Batch(counts[ID], counts[OOD], found_cut=low == n_id + 1)


def galaxy_batch(
    size: int, n_id: int, budget: int, rng: np.random.Generator, flip_rate: float = 0.0
) -> Batch:
    """A batch of GALAXY on such a ranking; some answers may be flipped."""
    snapshot = _ranking(size, threshold=0.5)
    session = Galaxy().start(snapshot, rng=rng)
    counts, found_cut = [0, 0], False
    for step in range(budget):
        index = session.ask()
        truth = ID if index <= n_id else OOD
        counts[truth] += 1
        session.tell(index, OOD - truth if rng.random() < flip_rate else truth)
        if step == _steps(size) - 1:
            told = session.state.labels
            found_cut = (told.get(n_id), told.get(n_id + 1)) == (ID, OOD)
    return Batch(counts[ID], counts[OOD], found_cut)


def confidence_batch(size: int, n_id: int, budget: int, threshold: float) -> Batch:
    """A batch of uncertainty sampling by a model whose 0.5 is not at the cut."""
    snapshot = _ranking(size, threshold)
    picked = Confidence().rank(snapshot, budget, np.random.default_rng(0))
    found = int(np.count_nonzero(picked <= n_id))
    return Batch(found, budget - found, found_cut=True)


def _ranking(size: int, threshold: float) -> Snapshot:
    """Scores that rise along the ranking, 0.5 at ``threshold``; the ends are labelled."""
    place = np.linspace(0, 1, size + 2)
    ood = np.where(
        place < threshold,
        place / (2 * threshold),
        0.5 + (place - threshold) / (2 * (1 - threshold)),
    )
    labels = np.full(size + 2, UNLABELED)
    labels[[0, -1]] = ID, OOD
    return Snapshot(np.stack([1 - ood, ood], axis=1), labels)


def _steps(size: int) -> int:
    return ceil(log2(size + 1))


def check(
    statement: Statement,
    *,
    z: int,
    n_left: int,
    extra: int = 0,
    delta: float = 0.0,
    draws: int = 400,
    seed: int = 0,
) -> Check:
    """Measure one statement at one point.

    Examples
    --------
    >>> check("bisection", z=2, n_left=15, draws=50).holds
    True
    """
    rng = np.random.default_rng([seed, z, n_left, extra, round(1000 * delta)])
    size = region_size(z, n_left)
    run, bound = _experiment(statement, size, z, n_left, extra, delta, rng)
    draws *= 20 if statement == "bisection" else 1  # each takes microseconds
    batches = [run(int(rng.integers(1, n_left))) for _ in range(draws)]
    kept = [batch for batch in batches if batch.found_cut or statement != "noise"]
    ratio, error = _ratio(np.array([[b.n_id, b.n_ood] for b in kept], dtype=np.float64))
    found = float(np.mean([batch.found_cut for batch in batches]))
    return Check(statement, z, n_left, extra, delta, ratio, error, bound, found, draws)


def _experiment(
    statement: Statement,
    size: int,
    z: int,
    n_left: int,
    extra: int,
    delta: float,
    rng: np.random.Generator,
) -> tuple[Callable[[int], Batch], float]:
    """The experiment for a given number of ID examples, and the paper's bound."""
    half = log2(n_left) / 2
    if statement == "bisection":
        return lambda n_id: bisect(size, n_id, rng), half / (z + half)
    budget = extra + _steps(size)
    if statement == "batched":
        y = max(extra // 4, half)
        return lambda n_id: galaxy_batch(size, n_id, budget, rng), y / (budget - y)
    if statement == "uncertainty":
        threshold = 1 - 1 / (2 * size)  # the worst case: the model calls nearly all of it ID
        return lambda n_id: confidence_batch(size, n_id, n_left - 1, threshold), 0.0
    rate = delta / ceil(log2(size))
    return lambda n_id: galaxy_batch(size, n_id, budget, rng, rate), half / (budget - half)


def _ratio(counts: NDArray[np.float64]) -> tuple[float, float]:
    """The ratio of the two means and its standard error by the delta method."""
    mean_id, mean_ood = counts.mean(axis=0)
    ratio = mean_id / mean_ood
    residual = counts[:, 0] - ratio * counts[:, 1]
    return float(ratio), float(residual.std(ddof=1) / mean_ood / np.sqrt(len(counts)))


def grid(draws: int = 400, seed: int = 0) -> Iterator[Check]:
    """All statements over a grid of z, n', B' and delta."""
    for z in (1, 2, 4, 6):
        for n_left in (3, 7, 31, 127, 511):
            point = {"z": z, "n_left": n_left, "draws": draws, "seed": seed}
            yield check("bisection", **point)
            yield check("uncertainty", **point)
            for extra in (4, 16, 64):
                if extra < n_left:
                    yield check("batched", extra=extra, **point)
            for delta in (0.05, 0.1, 0.3):
                yield check("noise", extra=min(8, n_left - 1), delta=delta, **point)
