"""Pools with scores of a fair model, and how much of the rare classes a strategy finds in one."""

import numpy as np

from galaxy_al import UNLABELED, Snapshot
from galaxy_al.simulation import noisy_annotator


def scored_pool(seed, n_classes=2, size=10_000, n_rare=100):
    """Each class but the last has ``n_rare`` examples."""
    rng = np.random.default_rng(seed)
    truth = np.minimum(np.arange(size) // n_rare, n_classes - 1)
    logits = rng.normal(size=(size, n_classes)) + 4 * np.eye(n_classes)[truth]
    logits[:, -1] += 2
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True), truth


def rare_found(strategy, flip_rate, seed, n_classes=2, budget=100):
    """Rare examples in one batch, after two labels of each and 20 of the majority class."""
    proba, truth = scored_pool(seed, n_classes)
    rng = np.random.default_rng(seed)
    annotator = noisy_annotator(truth, flip_rate, rng)
    labels = np.full(len(truth), UNLABELED)
    for k in range(n_classes):
        n_first = 20 if k == n_classes - 1 else 2
        for index in rng.choice(np.flatnonzero(truth == k), n_first, replace=False):
            labels[index] = annotator(index)
    session = strategy.start(Snapshot(proba, labels), rng=rng, budget=budget)
    asked = []
    for _ in range(budget):
        asked.append(session.ask())
        session.tell(asked[-1], annotator(asked[-1]))
    return np.count_nonzero(truth[asked] < n_classes - 1)
