"""What the strategies find: all of them on the demo's digits, and two of them with wrong labels.

Run:  .venv/bin/python benchmarks/methods.py      (about two minutes)

Prints the tables of docs/strategies.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from galaxy_al import STRATEGIES, Galaxy
from galaxy_al.experiments.demo import SEEDS, demo_curves, digits_pool, run_demo
from galaxy_al.strategies import Direct

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

FLIP_RATES = (0.0, 0.05, 0.1, 0.2)
N_POOLS = 20


def digits_table():
    pool, names = digits_pool(), list(STRATEGIES)
    runs = list(run_demo(pool, names))
    measures = ("rare_found", "balanced_accuracy", "average_precision")
    columns = {measure: demo_curves(runs, measure, names) for measure in measures}
    print(f"\nRare digits, {len(SEEDS)} seeds, {runs[0].history[-1].n_labels} labels")
    print(f"| strategy | rare found, of {pool.n_rare} | balanced accuracy | average precision |")
    print("|---|---|---|---|")
    accuracy = columns["balanced_accuracy"]
    for name in sorted(names, key=lambda name: -accuracy[name].mean()[-1]):
        found, *rest = (
            (curve.mean()[-1], curve.error()[-1]) for curve in (columns[m][name] for m in measures)
        )
        cells = [f"{found[0]:.1f} ± {found[1]:.1f}", *(f"{m:.3f} ± {e:.3f}" for m, e in rest)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def noise_table():
    from support.noisy_pools import rare_found

    print(
        f"\nRare examples in a batch of 100, mean of {N_POOLS} pools, by the rate of wrong labels"
    )
    print(f"| classes | strategy | {' | '.join(f'{rate:.0%}' for rate in FLIP_RATES)} |")
    print(f"|---|---|{'---|' * len(FLIP_RATES)}")
    strategies = {"galaxy": Galaxy(), "direct, 20": Direct(20), "direct, 1": Direct(1)}
    for n_classes in (2, 3, 10):
        for name, strategy in strategies.items():
            cells = []
            for rate in FLIP_RATES:
                found = [rare_found(strategy, rate, seed, n_classes) for seed in range(N_POOLS)]
                error = np.std(found, ddof=1) / np.sqrt(N_POOLS)
                cells.append(f"{np.mean(found):.1f} ± {error:.1f}")
            print(f"| {n_classes} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    noise_table()
    digits_table()
