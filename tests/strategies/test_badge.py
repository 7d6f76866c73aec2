"""BADGE against k-means++ on the gradient matrix written out."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.strategies.badge import Badge
from support.embedded_pools import embedded_pools, gradients


def probabilities_of_batches(snapshot, budget):
    """Of every sequence of centres, by D squared sampling after the longest gradient."""
    matrix = gradients(snapshot, snapshot.proba.argmax(axis=1))
    free = snapshot.askable().tolist()
    first = max(free, key=lambda i: np.linalg.norm(matrix[i]))
    chances = {}
    for rest in permutations([i for i in free if i != first], budget - 1):
        chance, centres = 1.0, [first]
        for index in rest:
            weight = {i: min(sum((matrix[i] - matrix[c]) ** 2) for c in centres) for i in free}
            chance *= weight[index] / sum(weight.values())
            centres.append(index)
        chances[tuple(centres)] = chance
    return chances


@pytest.mark.slow
def test_batches_come_as_often_as_d_squared_sampling_says():
    rng = np.random.default_rng(0)
    proba, embeddings = rng.dirichlet(np.ones(3), size=9), rng.normal(size=(9, 4))
    labels = np.array([0, -1, -1, -1, -1, -1, -1, -1, 2])
    n_runs, badge = 20_000, Badge()
    for precision in (np.float32, np.float64):
        snapshot = Snapshot(proba, labels, embeddings.astype(precision), skipped=[3])
        expected = probabilities_of_batches(snapshot, 3)
        assert len(expected) == 5 * 4
        counts = Counter(tuple(badge.rank(snapshot, 3, rng).tolist()) for _ in range(n_runs))
        assert counts.keys() <= expected.keys()
        chi_squared = sum(
            (counts[batch] - n_runs * chance) ** 2 / (n_runs * chance)
            for batch, chance in expected.items()
        )
        assert chi_squared < 50  # 19 degrees of freedom: 1 in 10,000 lies above 50


@settings(max_examples=100)
@given(embedded_pools(), st.integers(0, 99))
def test_the_longest_gradient_comes_first_and_the_whole_pool_in_the_end(snapshot, seed):
    matrix = gradients(snapshot, snapshot.proba.argmax(axis=1))
    free = snapshot.askable()
    chosen = Badge().rank(snapshot, snapshot.size, np.random.default_rng(seed)).tolist()
    assert chosen[0] == free[np.linalg.norm(matrix[free], axis=1).argmax()]
    assert sorted(chosen) == free.tolist()


def test_copies_of_a_centre_are_not_taken_while_there_is_anything_else():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(4, 3))
    snapshot = Snapshot(np.full((40, 2), 0.5), None, np.repeat(few, 10, axis=0))
    for seed in range(20):
        chosen = Badge().rank(snapshot, 4, np.random.default_rng(seed))
        assert sorted(chosen // 10) == [0, 1, 2, 3]
