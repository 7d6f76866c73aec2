"""BASE against the distance to a hyperplane by its foot point, and the shares dealt by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.strategies.balanced_selection import BalancedSelection, boundary_distances
from support.embedded_pools import embedded_pools


def distance_to_boundary(h, head, a, b):
    weights, bias = head
    normal, offset = weights[a] - weights[b], bias[a] - bias[b]
    step = (normal @ h + offset) / (normal @ normal)
    foot = h - step * normal
    assert normal @ foot + offset == pytest.approx(0, abs=1e-9 * (1 + abs(normal) @ abs(foot)))
    return np.linalg.norm(h - foot)


def distance_to_class(snapshot, index, k):
    h, p = snapshot.embeddings[index], snapshot.proba[index]
    predicted = int(p.argmax())
    if predicted != k:
        return distance_to_boundary(h, snapshot.head, predicted, k)
    others = [j for j in range(len(p)) if j != k]
    return min(distance_to_boundary(h, snapshot.head, k, j) for j in others)


@settings(max_examples=200)
@given(embedded_pools(), st.integers(1, 30))
def test_each_class_takes_its_share_of_the_nearest(snapshot, budget):
    free = snapshot.askable().tolist()
    budget, n_classes = min(budget, len(free)), snapshot.n_classes
    expected, left = [], set(free)
    for k in range(n_classes):
        share = budget // n_classes + (1 if k < budget % n_classes else 0)
        nearest = sorted(left, key=lambda i: distance_to_class(snapshot, i, k))[:share]
        left -= set(nearest)
        expected.append(nearest)
    chosen = BalancedSelection().rank(snapshot, budget, np.random.default_rng(0)).tolist()
    assert sorted(chosen) == sorted(i for nearest in expected for i in nearest)
    # The classes' nearest come first, then their second nearest.
    in_turn = [
        nearest[turn] for turn in range(budget) for nearest in expected if turn < len(nearest)
    ]
    assert chosen == in_turn


def test_a_class_without_a_boundary_gets_random_examples():
    rng, size = np.random.default_rng(0), 1000
    embeddings = rng.normal(size=(size, 3))
    head = np.zeros((2, 3)), np.array([1.0, -300.0])
    snapshot = Snapshot(np.tile([1.0, 0.0], (size, 1)), None, embeddings, head)
    asked = [
        BalancedSelection().rank(snapshot, 2, np.random.default_rng(seed)) for seed in range(200)
    ]
    # The mean of 400 draws from 0 to 999 has a standard deviation of 14.4.
    assert np.mean(asked) == pytest.approx(499.5, abs=60)


@settings(max_examples=100)
@given(embedded_pools())
def test_distances_are_those_to_the_foot_points(snapshot):
    free = snapshot.askable()
    for single, tolerance in ((np.float64, 1e-9), (np.float32, 1e-3)):
        same = Snapshot(
            snapshot.proba, snapshot.labels, snapshot.embeddings.astype(single), snapshot.head
        )
        expected = [[distance_to_class(same, i, k) for k in range(same.n_classes)] for i in free]
        np.testing.assert_allclose(
            boundary_distances(same)[free], expected, rtol=tolerance, atol=tolerance
        )


def test_two_classes_with_the_same_weights_have_no_boundary_between_them():
    head = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 1.0, 0.0])
    snapshot = Snapshot([[0.1, 0.8, 0.1]], None, np.array([[2.0, 1.0]]), head)
    distances = boundary_distances(snapshot)[0]
    assert distances[0] == np.inf
    assert distances[1] == distances[2] == pytest.approx(2 / np.sqrt(2))
