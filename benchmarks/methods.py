"""What the strategies find: all of them on the demo's digits, and two of them with wrong labels.

Run:  .venv/bin/python benchmarks/methods.py      (about five minutes)

Prints the tables of docs/methods.md.
"""

from __future__ import annotations

import numpy as np

from galaxy_al import STRATEGIES, UNLABELED, Galaxy, Snapshot
from galaxy_al.annotators import noisy_annotator
from galaxy_al.experiments.demo import SEEDS, digits_pool, run_demo, summary
from galaxy_al.strategies import Direct

FLIP_RATES = (0.0, 0.05, 0.1, 0.2)
N_POOLS = 20


def digits_table():
    pool, names = digits_pool(), list(STRATEGIES)
    runs = list(run_demo(pool, names))
    measures = ("rare_found", "balanced_accuracy", "average_precision")
    columns = {measure: summary(runs, measure, names) for measure in measures}
    print(f"\nRare digits, {len(SEEDS)} seeds, {runs[0].history[-1].n_labels} labels")
    print(f"| strategy | rare found, of {pool.n_rare} | balanced accuracy | average precision |")
    print("|---|---|---|---|")
    accuracy = columns["balanced_accuracy"]
    for name in sorted(names, key=lambda name: -accuracy[name][0][-1]):
        found, *rest = (
            (mean[-1], error[-1]) for mean, error in (columns[m][name] for m in measures)
        )
        cells = [f"{found[0]:.1f} ± {found[1]:.1f}", *(f"{m:.3f} ± {e:.3f}" for m, e in rest)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def scored_pool(seed, n_classes, size=10_000, n_rare=100):
    """Scores of a fair model: each class but the last has ``n_rare`` examples."""
    rng = np.random.default_rng(seed)
    truth = np.minimum(np.arange(size) // n_rare, n_classes - 1)
    logits = rng.normal(size=(size, n_classes)) + 4 * np.eye(n_classes)[truth]
    logits[:, -1] += 2
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True), truth


def rare_found(strategy, n_classes, flip_rate, seed, budget=100):
    """Examples of rare classes in one batch, after two labels of each and 20 of the big one."""
    proba, truth = scored_pool(seed, n_classes)
    rng = np.random.default_rng(seed)
    annotator = noisy_annotator(truth, flip_rate, rng)
    n_first = [2] * (n_classes - 1) + [20]
    first = [rng.choice(np.flatnonzero(truth == k), n) for k, n in enumerate(n_first)]
    labels = np.full(len(truth), UNLABELED)
    for index in np.concatenate(first):
        labels[index] = annotator(index)
    session = strategy.start(Snapshot(proba, labels), rng=rng, budget=budget)
    asked = []
    for _ in range(budget):
        asked.append(session.ask())
        session.tell(asked[-1], annotator(asked[-1]))
    return np.count_nonzero(truth[asked] < n_classes - 1)


def noise_table():
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
                found = [rare_found(strategy, n_classes, rate, s) for s in range(N_POOLS)]
                error = np.std(found, ddof=1) / np.sqrt(N_POOLS)
                cells.append(f"{np.mean(found):.1f} ± {error:.1f}")
            print(f"| {n_classes} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    noise_table()
    digits_table()
