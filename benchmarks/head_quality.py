"""head="auto" against a grid of fixed heads, on labels chosen at random and by GALAXY.

Run:  GALAXY_AL_DATA=FOLDER .venv/bin/python benchmarks/head.py      (about half an hour)

FOLDER holds the embeddings cifar10-embeddings.npz, cifar100-embeddings.npz and svhn-embeddings.npz.
Prints the table of docs/appendix/default.md: how far the head is
from the best of the grid, which is chosen by the truth,
for every row and each of the two measures.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import numpy as np

from galaxy_al.experiments.datasets import load_labeled_pool
from galaxy_al.metrics import balanced_accuracy, rare_average_precision
from galaxy_al.models.kernel import KernelTrainer
from galaxy_al.models.networks.training import RECIPES, Trainer
from galaxy_al.simulation import simulate

SETTINGS = ("cifar10-2", "cifar10-3", "cifar100-2", "cifar100-3", "cifar100-10", "svhn-2", "svhn-3")
COUNTS = (200, 500, 1000, 2000)
SEEDS = (0, 1)
MEASURES = ("balanced accuracy", "average precision")
GRID = [("linear", decay) for decay in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)]
GRID += [("mlp", decay) for decay in (1e-3, 1e-2, 1e-1)]


def fixed(network, weight_decay, n_classes):
    recipe = replace(RECIPES[network], weight_decay=weight_decay)
    return Trainer(network, n_classes=n_classes, recipe=recipe)


def orders(data, seed):
    """In which order examples were labelled, at random and by GALAXY."""
    head = fixed("linear", 1e-2, int(data.truth.max()) + 1)
    history = simulate(data.items, data.truth, "galaxy", head, rounds=20, seed=seed)
    by_galaxy = [index for step in history for index in step.indices]
    at_random = np.random.default_rng(seed).permutation(len(data.truth))[: max(COUNTS)]
    return {"random": at_random.tolist(), "galaxy": by_galaxy}


def judged(trainer, data, labels):
    """Balanced accuracy, average precision and the seconds of training and scoring."""
    begin = time.perf_counter()
    proba = trainer.fit(data.items, labels).proba(data.items)
    seconds = time.perf_counter() - begin
    other = proba.shape[1] - 1
    accuracy = balanced_accuracy(data.truth, proba.argmax(axis=1))
    return accuracy, rare_average_precision(data.truth, proba, other), seconds


def row(cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def with_best(scores):
    """The head's score, and the best of the grid's with its name."""
    network, decay = GRID[scores[1:].argmax()]
    return [f"{scores[0]:.3f}", f"{scores[1:].max():.3f}, {network} {decay:g}"]


def compare(data, labels_of):
    """Means over the seeds: measures and seconds of the head, and of each of the grid.

    The last are the head's seconds in a loop, which has trained it with 100 labels fewer before.
    """
    n_classes = int(data.truth.max()) + 1
    runs = []
    for labels in labels_of:
        heads = [KernelTrainer(n_classes=n_classes), *(fixed(*entry, n_classes) for entry in GRID)]
        in_a_loop = KernelTrainer(n_classes=n_classes)
        in_a_loop.fit(data.items, dict(list(labels.items())[:-100]))
        runs.append([judged(head, data, labels) for head in (*heads, in_a_loop)])
    return np.mean(runs, axis=0).T


def main():
    measures = [[measure, "best of grid"] for measure in MEASURES]
    times = ["time of an MLP's", "in a loop"]
    row(["setting", "labels by", "labels", *measures[0], *measures[1], *times])
    row(["---"] * 9)
    gaps = []
    for setting in SETTINGS:
        data = load_labeled_pool(setting, False)
        chosen = [orders(data, seed) for seed in SEEDS]
        for by, count in product(("random", "galaxy"), COUNTS):
            labels_of = [{i: int(data.truth[i]) for i in order[by][:count]} for order in chosen]
            *scores, seconds = compare(data, labels_of)
            accuracy, precision = (score[:-1] for score in scores)
            gaps.append([scores[0] - scores[1:].max() for scores in (accuracy, precision)])
            times = [f"{seconds[at] / seconds[len(GRID)]:.2f}" for at in (0, -1)]
            row(
                [
                    setting,
                    by,
                    f"{count:,}",
                    *with_best(accuracy),
                    *with_best(precision),
                    *times,
                ]
            )
    for measure, gap in zip(MEASURES, np.transpose(gaps)):
        print(
            f"\n{measure.capitalize()} less the best of the grid: mean {gap.mean():+.3f}, "
            f"least {gap.min():+.3f}, "
            f"more than 0.02 below in {(gap < -0.02).sum()} of {len(gap)} lines."
        )


if __name__ == "__main__":
    main()
