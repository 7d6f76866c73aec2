"""The main job on data that scikit-learn brings: rare digits among common ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from galaxy_al.experiments.curves import Curve
from galaxy_al.simulation import Round, simulate

STRATEGIES_SHOWN = ("fair-cuts", "galaxy", "most-likely-positive", "confidence", "random")
SEEDS = tuple(range(6))
BATCH_SIZE, ROUNDS = 20, 12
RARE_DIGITS = (3, 8, 9)
RARE_SHARE = 0.02


@dataclass(frozen=True)
class DemoPool:
    """Embeddings and classes; the last class is everything that is not rare."""

    embeddings: NDArray[np.float64]
    truth: NDArray[np.int64]

    @property
    def n_rare(self) -> int:
        """How many examples are of a rare class."""
        return int(np.count_nonzero(self.truth < len(RARE_DIGITS)))


@dataclass(frozen=True)
class DemoRun:
    """One strategy with one seed."""

    strategy: str
    seed: int
    history: list[Round]


def digits_pool() -> DemoPool:
    """scikit-learn's digits, three of them made rare: about 2% of the pool each.

    Examples
    --------
    >>> pool = digits_pool()
    >>> len(pool.truth), pool.n_rare
    (1341, 81)
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    rng = np.random.default_rng(0)
    common = np.flatnonzero(~np.isin(digits.target, RARE_DIGITS))
    share = RARE_SHARE / (1 - RARE_SHARE * len(RARE_DIGITS))
    n_each = round(share * len(common))
    rare = [
        rng.choice(np.flatnonzero(digits.target == digit), n_each, replace=False)
        for digit in RARE_DIGITS
    ]
    kept = rng.permutation(np.concatenate([common, *rare]))
    classes = {digit: k for k, digit in enumerate(RARE_DIGITS)}
    truth = np.array([classes.get(digit, len(RARE_DIGITS)) for digit in digits.target[kept]])
    return DemoPool(digits.data[kept] / digits.data.max(), truth)


def run_demo(pool: DemoPool, strategies: Sequence[str] = STRATEGIES_SHOWN) -> Iterator[DemoRun]:
    """Every strategy with every seed, in parallel, as they finish."""
    with ProcessPoolExecutor(initializer=_use_one_thread) as processes:
        futures = [
            processes.submit(_run, pool, strategy, seed)
            for seed in SEEDS
            for strategy in strategies
        ]
        for future in as_completed(futures):
            yield future.result()


def demo_curves(
    runs: list[DemoRun], measure: str, strategies: Sequence[str] = STRATEGIES_SHOWN
) -> dict[str, Curve]:
    """By strategy, a measure after each round."""
    curves = {}
    for strategy in strategies:
        histories = [run.history for run in runs if run.strategy == strategy]
        values = [[getattr(step, measure) for step in history] for history in histories]
        n_labels = [step.n_labels for step in histories[0]]
        curves[strategy] = Curve(np.array(n_labels), np.array(values, dtype=np.float64))
    return curves


def _run(pool: DemoPool, strategy: str, seed: int) -> DemoRun:
    history = simulate(
        pool.embeddings, pool.truth, strategy, batch_size=BATCH_SIZE, rounds=ROUNDS, seed=seed
    )
    return DemoRun(strategy, seed, history)


def _use_one_thread() -> None:
    """More threads than cores would slow each other down."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
