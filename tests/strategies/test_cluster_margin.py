"""Cluster-Margin against SciPy's average linkage and the round robin dealt by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from galaxy_al import Snapshot
from galaxy_al.strategies.cluster_margin import ClusterMargin, average_linkage_clusters
from support.embedded_pools import embedded_pools


def partition(clusters):
    return {frozenset(np.flatnonzero(clusters == c).tolist()) for c in set(clusters.tolist())}


@settings(max_examples=50)
@given(st.integers(2, 40), st.integers(1, 8), st.integers(0, 99))
def test_a_pool_that_fits_into_the_sample_is_clustered_by_average_linkage(size, n_clusters, seed):
    rng = np.random.default_rng(seed)
    embeddings = rng.normal(size=(size, 3))
    found = average_linkage_clusters(embeddings, n_clusters, 1000, rng)
    expected = fcluster(linkage(embeddings, "average"), n_clusters, "maxclust")
    assert partition(found) == partition(expected)


def test_examples_outside_the_sample_go_to_the_nearest_mean():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(300, 2)) + 8 * rng.integers(0, 2, size=(300, 2))
    found = average_linkage_clusters(embeddings, 4, 60, np.random.default_rng(1))
    sample = np.random.default_rng(1).choice(300, 60, replace=False)
    means = [embeddings[[i for i in sample if found[i] == c]].mean(axis=0) for c in range(4)]
    for i in set(range(300)) - set(sample.tolist()):
        assert found[i] == np.argmin([np.linalg.norm(embeddings[i] - mean) for mean in means])


@pytest.mark.slow
@settings(max_examples=200)
@given(embedded_pools(max_size=40), st.integers(1, 30), st.integers(0, 99))
def test_small_margins_are_dealt_from_the_clusters_in_turn(snapshot, budget, seed):
    strategy = ClusterMargin(n_clusters=5)
    chosen = strategy.rank(snapshot, budget, np.random.default_rng(seed)).tolist()
    clusters = average_linkage_clusters(
        snapshot.embeddings, 5, 1000, np.random.default_rng(seed).spawn(1)[0]
    )
    free = snapshot.askable().tolist()
    lead = {i: np.sort(snapshot.proba[i])[-1] - np.sort(snapshot.proba[i])[-2] for i in free}
    closest = sorted(free, key=lead.get)[: math.ceil(1.25 * budget)]
    assert set(chosen) <= set(closest)
    left = {c: sum(clusters[i] == c for i in closest) for c in set(clusters[closest].tolist())}
    by_size = sorted(left, key=lambda c: (np.count_nonzero(clusters == c), c))
    dealt = []
    while len(dealt) < min(budget, len(free)):
        for c in by_size:
            if left[c] and len(dealt) < budget:
                left[c] -= 1
                dealt.append(c)
    assert [clusters[i] for i in chosen] == dealt


def test_the_clusters_are_kept_between_rounds_and_made_again_for_another_pool():
    rng = np.random.default_rng(0)
    proba, embeddings = rng.dirichlet(np.ones(3), size=200), rng.normal(size=(200, 4))
    strategy = ClusterMargin()
    strategy.rank(Snapshot(proba, None, embeddings), 10, rng)
    first = strategy._clusters
    strategy.rank(Snapshot(proba, None, -(embeddings**3)), 10, rng)
    assert strategy._clusters is first
    strategy.rank(Snapshot(proba[:150], None, embeddings[:150]), 10, rng)
    assert len(strategy._clusters) == 150


def test_of_a_cluster_a_random_example_is_taken():
    snapshot = Snapshot(np.full((8, 2), 0.5), None, np.eye(8))
    strategy = ClusterMargin(n_clusters=1)
    counts = np.zeros(8)
    for seed in range(1000):
        counts[strategy.rank(snapshot, 4, np.random.default_rng(seed))] += 1
    # The five smallest margins, which all tie, are the first five.
    assert counts[5:].sum() == 0
    assert ((counts[:5] - 800) ** 2 / 800).sum() < 24  # 4 degrees: 1 in 10,000


def test_more_clusters_than_the_sample_has_examples_are_refused():
    with pytest.raises(ValueError, match="n_clusters must be 1 to sample_size = 10, got 11"):
        ClusterMargin(n_clusters=11, sample_size=10)
