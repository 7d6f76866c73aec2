"""Outliers against their definition written naively."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.graphs.local_outliers import choose_references, local_outliers
from galaxy_al.strategies import Outliers
from galaxy_al.strategies.copying import fork


def pool_of(embeddings, labels=None, skipped=()):
    return Snapshot(np.full((len(embeddings), 2), 0.5), labels, embeddings, skipped=skipped)


def naive_ranking(embeddings, busy, budget):
    """Greedily the largest factor, times the share of its scale to the nearest busy example."""
    found = local_outliers(embeddings)
    factor = dict(zip(found.indices.tolist(), found.factors.tolist()))
    scale = dict(zip(found.indices.tolist(), found.scales.tolist()))
    busy, chosen = list(busy), []
    while len(chosen) < min(budget, len(embeddings) - len(busy)):

        def value(i):
            known = [*busy, *chosen]
            near = min((np.linalg.norm(embeddings[i] - embeddings[j]) for j in known), default=9e9)
            return factor[i] * (min(near / scale[i], 1) if scale[i] else 1)

        left = [i for i in range(len(embeddings)) if i not in busy and i not in chosen]
        chosen.append(max(left, key=value))
    return chosen


@given(st.integers(3, 40), st.integers(0, 1000), st.integers(1, 12))
def test_the_ranking_is_that_of_the_definition(size, seed, budget):
    rng = np.random.default_rng(seed)
    embeddings = rng.normal(size=(size, 2)).round(3)
    labels = np.where(rng.random(size) < 0.2, 1, -1)
    skipped = np.flatnonzero((labels == -1) & (rng.random(size) < 0.1))
    busy = {*np.flatnonzero(labels == 1).tolist(), *skipped.tolist()}
    ranked = Outliers().rank(pool_of(embeddings, labels, skipped), budget, rng).tolist()
    assert ranked == naive_ranking(embeddings, busy, budget)


def test_it_asks_for_outliers_of_different_places():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(500, 2))
    far = np.setdiff1d(np.arange(500), choose_references(500))[:9]
    places = np.repeat([[40.0, 0], [0, 40], [-40, 0]], 3, axis=0)
    embeddings[far] = places + rng.normal(size=(9, 2)) / 100
    ranked = Outliers().rank(pool_of(embeddings), 3, rng)
    assert sorted(np.searchsorted(far, ranked) // 3) == [0, 1, 2]
    assert set(ranked) < set(far)


def test_what_is_left_when_all_outliers_are_asked_is_random(monkeypatch):
    monkeypatch.setattr("galaxy_al.graphs.local_outliers._KEPT", 5)
    embeddings = np.random.default_rng(0).normal(size=(50, 2))
    first = local_outliers(embeddings).indices
    orders = {
        tuple(Outliers().rank(pool_of(embeddings), 50, np.random.default_rng(seed)).tolist())
        for seed in range(4)
    }
    assert len(orders) == 4
    assert all(set(order[:5]) == set(first.tolist()) for order in orders)
    assert all(sorted(order) == list(range(50)) for order in orders)


def test_outliers_are_computed_once_even_if_a_copy_of_the_session_asks_first(monkeypatch):
    calls = []

    def counted(embeddings):
        calls.append(len(embeddings))
        return local_outliers(embeddings)

    monkeypatch.setattr("galaxy_al.strategies.outliers.local_outliers", counted)
    embeddings = np.random.default_rng(0).normal(size=(60, 2))
    session = Outliers().start(pool_of(embeddings), rng=np.random.default_rng(0), budget=1)
    fork(session).ask()
    for _ in range(3):
        session.tell(session.ask(), 1)
    assert calls == [60]


def test_another_pool_has_other_outliers():
    strategy, rng = Outliers(), np.random.default_rng(0)
    for size in (30, 40):
        embeddings = rng.normal(size=(size, 2))
        embeddings[size // 2] = 99
        assert strategy.rank(pool_of(embeddings), 1, rng).tolist() == [size // 2]


def test_embeddings_of_copies_are_asked_all_the_same():
    snapshot = pool_of(np.ones((30, 2)))
    assert len(set(Outliers().rank(snapshot, 30, np.random.default_rng(0)).tolist())) == 30


@pytest.mark.parametrize("budget", [0, 1, 100])
def test_one_example(budget):
    ranked = Outliers().rank(pool_of(np.ones((1, 2))), budget, np.random.default_rng(0))
    assert ranked.tolist() == [0][:budget]
