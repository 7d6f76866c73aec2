"""BAIT against Fisher matrices written out as Kronecker products and inverted whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Snapshot
from galaxy_al.strategies import bait
from galaxy_al.strategies import fisher as linear_algebra
from galaxy_al.strategies.bait import Bait
from support.embedded_pools import embedded_pools


def fisher(p, h):
    return np.kron(np.diag(p) - np.outer(p, p), np.outer(h, h))


def naive_bait(snapshot, embeddings, budget, lam, considered=None):
    """Greedily to twice the budget and back, every trace computed again."""
    free = snapshot.askable().tolist()
    information = [fisher(p, h) for p, h in zip(snapshot.proba, embeddings)]
    wanted = sum(information[i] for i in free)
    start = lam * np.eye(len(wanted)) + sum(information[i] for i in snapshot.labeled())

    def uncertainty(chosen):
        return np.trace(np.linalg.solve(start + sum(information[i] for i in chosen), wanted))

    considered = free if considered is None else considered
    chosen = []
    while len(chosen) < min(2 * budget, len(considered)):
        left = [i for i in considered if i not in chosen]
        chosen.append(min(left, key=lambda i: uncertainty([*chosen, i])))
    while len(chosen) > budget:
        chosen.remove(min(chosen, key=lambda i: uncertainty([j for j in chosen if j != i])))
    return chosen


@pytest.mark.slow
@settings(max_examples=150)
@given(embedded_pools(max_size=14, max_dim=3, min_free=2), st.data())
def test_the_batch_is_that_of_dense_matrices(snapshot, data):
    budget = data.draw(st.integers(1, len(snapshot.askable()) - 1))
    lam = data.draw(st.sampled_from([1.0, 0.01, 100.0]))
    chosen = Bait(regularization=lam).rank(snapshot, budget, np.random.default_rng(0)).tolist()
    assert chosen == naive_bait(snapshot, snapshot.embeddings, budget, lam)


def wide_pool(size, n_classes, dim, seed):
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(size) < 10, rng.integers(0, n_classes, size), UNLABELED)
    embeddings = rng.normal(size=(size, dim)) * 3 + 1
    return Snapshot(rng.dirichlet(np.ones(n_classes), size=size), labels, embeddings)


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_that_save_work_on_large_pools_lose_nothing(seed, monkeypatch):
    monkeypatch.setattr(linear_algebra, "_CELLS_AT_ONCE", 200)  # many blocks
    monkeypatch.setattr(linear_algebra, "_FIRST_TRIED", 3)
    snapshot = wide_pool(100, 3, 3, seed)
    chosen = Bait().rank(snapshot, 5, np.random.default_rng(0)).tolist()
    assert chosen == naive_bait(snapshot, snapshot.embeddings, 5, 1.0)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_dim_projects_to_the_directions_of_the_largest_second_moment(dim):
    snapshot = wide_pool(40, 3, 5, 0)
    axes = np.linalg.svd(snapshot.embeddings)[2][:dim].T
    chosen = Bait(dim=dim).rank(snapshot, 4, np.random.default_rng(0)).tolist()
    assert chosen == naive_bait(snapshot, snapshot.embeddings @ axes, 4, 1.0)


def test_all_dimensions_are_the_same_as_no_projection():
    snapshot = wide_pool(40, 3, 5, 1)
    chosen = Bait(dim=5).rank(snapshot, 4, np.random.default_rng(0)).tolist()
    assert chosen == naive_bait(snapshot, snapshot.embeddings, 4, 1.0)


def test_fewer_candidates_are_sampled_only_if_asked_for():
    snapshot = wide_pool(60, 2, 2, 0)
    free = snapshot.askable()
    sample = np.sort(np.random.default_rng(7).choice(free, 20, replace=False)).tolist()
    chosen = Bait(candidates=20).rank(snapshot, 6, np.random.default_rng(7)).tolist()
    assert chosen == naive_bait(snapshot, snapshot.embeddings, 6, 1.0, sample)
    with pytest.raises(
        ValueError, match="candidates must be at least twice the budget of 6, got 2"
    ):
        Bait(candidates=2).rank(snapshot, 6, np.random.default_rng(7))


def test_more_memory_than_is_decent_must_be_asked_for(monkeypatch):
    monkeypatch.setattr(bait, "_MOST_BYTES", (16 * 9 + 8 * 2) * 30 + 32 * 6**2)
    snapshot = wide_pool(60, 3, 2, 0)
    with pytest.raises(ValueError, match=r"50 candidates, 3 classes and dim 2.*candidates="):
        Bait().rank(snapshot, 5, np.random.default_rng(0))
    assert len(Bait(candidates=30).rank(snapshot, 5, np.random.default_rng(0))) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, "dim must be a whole number of at least 1, got 0"),
        ({"candidates": 0}, "candidates must be a whole number of at least 1, got 0"),
        ({"regularization": 0}, "regularization must be more than 0, got 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Bait(**arguments)


@pytest.mark.parametrize("size", [30, 90])
@pytest.mark.parametrize("scale", [1e-3, 1e2, 1e4])
def test_embeddings_of_any_size_give_the_batch_of_dense_matrices(size, scale):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(3, 0.3), size=size) + 1e-9
        proba /= proba.sum(axis=1, keepdims=True)
        snapshot = Snapshot(proba, None, scale * rng.normal(size=(size, 3)))
        chosen = Bait().rank(snapshot, 4, rng).tolist()
        assert chosen == naive_bait(snapshot, snapshot.embeddings, 4, 1.0)


def test_examples_the_model_is_certain_of_have_no_information_and_come_last():
    rng = np.random.default_rng(0)
    proba = np.repeat([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]], [20, 5], axis=0)
    snapshot = Snapshot(proba, None, rng.normal(size=(25, 3)))
    assert set(Bait().rank(snapshot, 5, rng).tolist()) == set(range(20, 25))
    assert len(set(Bait().rank(snapshot, 12, rng).tolist())) == 12


def test_rows_that_do_not_quite_sum_to_one_count_as_if_they_did():
    rng = np.random.default_rng(0)
    proba, embeddings = rng.dirichlet(np.ones(3), size=40), 100 * rng.normal(size=(40, 3))
    stretched = proba * (1 + 9e-4 * np.sign(rng.normal(size=(40, 1))))
    chosen = [
        Bait().rank(Snapshot(p, None, embeddings), 6, rng).tolist() for p in (proba, stretched)
    ]
    assert chosen[0] == chosen[1]
