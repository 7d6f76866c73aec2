import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galaxy_al import Snapshot
from galaxy_al.strategies import coreset
from galaxy_al.strategies.coreset import Coreset
from support.embedded_pools import embedded_pools


@pytest.mark.slow
@settings(max_examples=200)
@given(embedded_pools(), st.integers(1, 30), st.integers(0, 99))
def test_each_choice_is_the_farthest_from_all_before(snapshot, budget, seed):
    h, free = snapshot.embeddings, snapshot.askable().tolist()
    chosen = Coreset().rank(snapshot, budget, np.random.default_rng(seed)).tolist()
    assert len(chosen) == min(budget, len(free))
    centers = snapshot.labeled().tolist()
    for index in chosen:
        left = [i for i in free if i not in centers]
        if centers:  # else the first one is random
            farthest = max(left, key=lambda i: min(np.linalg.norm(h[i] - h[c]) for c in centers))
            assert index == farthest
        centers.append(index)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_that_is_large_beside_the_spread_changes_nothing(dtype):
    rng = np.random.default_rng(0)
    points = rng.integers(-50, 50, size=(60, 4)).astype(dtype)
    embeddings = np.repeat(points, 5, axis=0) + dtype(10_000)
    snapshot = Snapshot(np.full((300, 2), 0.5), [0] + [-1] * 299, embeddings)
    chosen = Coreset().rank(snapshot, 50, rng)
    assert len(set((chosen // 5).tolist())) == 50


def test_nothing_is_chosen_of_nothing():
    snapshot = Snapshot(np.full((5, 2), 0.5), None, np.eye(5))
    assert len(Coreset().rank(snapshot, 0, np.random.default_rng(0))) == 0


def test_the_first_is_uniform_while_nothing_is_labelled():
    snapshot = Snapshot(np.full((5, 2), 0.5), None, np.arange(5.0)[:, None], skipped=[2])
    rng = np.random.default_rng(0)
    counts = np.bincount([Coreset().rank(snapshot, 1, rng)[0] for _ in range(4000)], minlength=5)
    assert counts[2] == 0
    assert (((counts[[0, 1, 3, 4]] - 1000) ** 2) / 1000).sum() < 21  # 3 degrees: 1 in 10,000


@pytest.mark.parametrize("front", [1024, 3])
def test_what_is_kept_between_batches_changes_no_choice(front, monkeypatch):
    monkeypatch.setattr(coreset, "_FRONT", front)
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(200, 3)).astype(np.float32)
    embeddings[100:120] = embeddings[:20]  # copies
    proba, labels, kept = np.full((200, 2), 0.5), np.full(200, -1), Coreset()
    labels[:3] = 1
    for batch in range(8):
        snapshot = Snapshot(proba, labels, embeddings)
        asked = kept.rank(snapshot, 10, np.random.default_rng(batch))
        fresh = Coreset().rank(snapshot, 10, np.random.default_rng(batch))
        np.testing.assert_array_equal(asked, fresh)
        labels = labels.copy()
        labels[asked] = 0
        if batch == 3:
            labels[asked[:4]] = -1  # labels that were taken back
        if batch == 5:
            embeddings = rng.normal(size=(200, 3)).astype(np.float32)
