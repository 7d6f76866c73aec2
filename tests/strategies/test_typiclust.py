"""TypiClust against its definition on clusters that are far apart."""

import numpy as np
import pytest

from galaxy_al import Snapshot
from galaxy_al.strategies import TypiClust


def islands(sizes, seed=0):
    rng = np.random.default_rng(seed)
    where = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(where), 3)) + 100 * np.eye(len(sizes), 3)[where], where


def naive_typicality(points):
    """The mean distance to the 20 nearest others."""
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    return np.sort(apart, axis=1)[:, 1:21].mean(axis=1)


def chosen(embeddings, labels, budget, **options):
    proba = np.full((len(embeddings), 2), 0.5)
    snapshot = Snapshot(proba, labels, embeddings)
    return TypiClust(**options).rank(snapshot, budget, np.random.default_rng(0)).tolist()


def test_every_cluster_gives_its_most_typical_example_the_largest_first():
    embeddings, where = islands([60, 40, 30])
    picked = chosen(embeddings, None, 3)
    assert where[picked].tolist() == [0, 1, 2]
    for k, index in enumerate(picked):
        inside = np.flatnonzero(where == k)
        assert index == inside[naive_typicality(embeddings[inside]).argmin()]


def test_a_cluster_with_a_label_comes_last():
    embeddings, where = islands([60, 40, 30])
    labels = np.full(len(where), -1)
    labels[5] = 0  # in the largest one
    assert where[chosen(embeddings, labels, 2)].tolist() == [1, 2]


def test_when_all_clusters_are_covered_it_goes_on():
    embeddings, _ = islands([3, 2])
    assert sorted(chosen(embeddings, None, 5)) == [0, 1, 2, 3, 4]


def test_a_large_pool_is_sampled_at_random():
    embeddings, where = islands([600, 400, 300])
    picked = chosen(embeddings, None, 3, candidates=200)
    assert sorted(where[picked].tolist()) == [0, 1, 2]


def test_more_may_be_wanted_than_there_are():
    embeddings, _ = islands([60, 40, 30])
    assert sorted(chosen(embeddings, None, 500, candidates=20)) == list(range(130))
    snapshot = Snapshot(np.full((130, 2), 0.5), embeddings=embeddings)
    session = TypiClust(candidates=20).start(snapshot, rng=np.random.default_rng(0), budget=500)
    assert len({session.ask() for _ in range(130)}) == 130


def test_candidates_are_counted():
    with pytest.raises(ValueError, match="candidates must be a whole number of at least 1, got 0"):
        TypiClust(candidates=0)
