"""SIMILAR against the greedy maximum of FLQMI on the gradient matrix written out."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.strategies import embedding_cosines, similar
from galaxy_al.strategies.similar import Similar
from support.embedded_pools import embedded_pools, gradients


@pytest.fixture(params=[1024, 2])
def front(request, monkeypatch):
    """Small pools fit into the front: let it also be smaller."""
    monkeypatch.setattr(similar, "_FRONT", request.param)


def cosines(snapshot):
    """By (rare labelled example, any example)."""
    labeled = snapshot.labeled()
    query = labeled[snapshot.labels[labeled] != snapshot.other]
    hypothesised = snapshot.proba.argmax(axis=1)
    pool, known = gradients(snapshot, hypothesised), gradients(snapshot, snapshot.labels)
    return {
        (q, a): known[q] @ pool[a] / (np.linalg.norm(known[q]) * np.linalg.norm(pool[a]))
        for q in query.tolist()
        for a in snapshot.askable().tolist()
    }


def flqmi(chosen, query, s, eta):
    cover = sum(max(s[q, a] for a in chosen) for q in query)
    return cover + eta * sum(max(s[q, a] for q in query) for a in chosen)


@pytest.mark.slow
@pytest.mark.usefixtures("front")
@settings(max_examples=200)
@given(embedded_pools(), st.integers(1, 12), st.sampled_from([1.0, 0.0, 0.3]))
def test_each_choice_adds_most_to_flqmi(snapshot, budget, eta):
    s, free = cosines(snapshot), snapshot.askable().tolist()
    query = sorted({q for q, _ in s})
    assume(query)
    chosen = Similar(eta).rank(snapshot, budget, np.random.default_rng(0)).tolist()
    assert len(chosen) == len(set(chosen)) == min(budget, len(free))
    for n in range(len(chosen)):
        values = {a: flqmi([*chosen[:n], a], query, s, eta) for a in free if a not in chosen[:n]}
        assert values[chosen[n]] == pytest.approx(max(values.values()), abs=1e-9)


def test_the_query_set_has_the_rare_examples_of_all_rounds():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [10, 10, 180])
    embeddings = rng.normal(size=(200, 6)) + 4 * np.eye(6)[truth]
    proba = rng.dirichlet(np.ones(3), size=200) + 2 * np.eye(3)[truth]
    proba /= proba.sum(axis=1, keepdims=True)
    labels = np.full(200, -1)
    labels[[0, 11, 50]] = truth[[0, 11, 50]]
    session = Similar().start(
        Snapshot(proba, labels, embeddings), rng=np.random.default_rng(0), budget=3
    )
    found = []
    for _ in range(12):
        index = session.ask()
        session.tell(index, truth[index])
        found.append(truth[index])
    assert {0, 1} <= set(found)
    assert found.count(2) <= 3


def test_while_no_rare_example_is_known_it_asks_at_random():
    snapshot = Snapshot(np.full((6, 2), 0.5), [1, 1, -1, -1, -1, -1], np.eye(6))
    asked = [Similar().rank(snapshot, 1, np.random.default_rng(seed))[0] for seed in range(60)]
    assert set(asked) == {2, 3, 4, 5}


def test_examples_without_a_gradient_are_like_nothing():
    proba = [[0.6, 0.4], [1.0, 0.0], [0.6, 0.4]]
    embeddings = np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.1]])
    snapshot = Snapshot(proba, [0, -1, -1], embeddings)
    assert Similar().rank(snapshot, 2, np.random.default_rng(0)).tolist() == [1, 2]


def test_a_negative_eta_is_refused():
    with pytest.raises(ValueError, match="eta must be a number of at least 0, got -1"):
        Similar(eta=-1)


@pytest.mark.usefixtures("front")
@pytest.mark.parametrize("room", [10**9, 0])
def test_what_is_kept_between_batches_changes_no_choice(room, monkeypatch):
    monkeypatch.setattr(embedding_cosines, "_KEPT_BYTES", room)
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 150, p=[0.2, 0.2, 0.6])
    embeddings = (rng.normal(size=(150, 5)) + np.eye(3, 5)[truth]).astype(np.float32)
    labels, kept = np.full(150, -1), Similar()
    labels[:20] = truth[:20]
    for batch in range(7):
        proba = rng.dirichlet(np.ones(3), size=150)
        snapshot = Snapshot(proba, labels, embeddings)
        asked = kept.rank(snapshot, 8, np.random.default_rng(batch))
        fresh = Similar().rank(snapshot, 8, np.random.default_rng(batch))
        np.testing.assert_array_equal(asked, fresh)
        labels = labels.copy()
        labels[asked] = truth[asked]
        if batch == 2:
            labels[np.flatnonzero(labels == 0)[:3]] = 1  # corrected
            labels[np.flatnonzero(labels == 0)[:2]] = -1  # taken back
        if batch == 4:
            embeddings = rng.normal(size=(150, 5)).astype(np.float32)
