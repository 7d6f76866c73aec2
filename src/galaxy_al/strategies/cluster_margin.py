"""Cluster-Margin: Citovsky et al., Batch Active Learning at Scale, NeurIPS 2021."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.snapshot import Snapshot, View
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.margin import Margin
from galaxy_al.strategies.scoring import check_count

_MARGIN_SHARE = 1.25  # the paper's 125 smallest margins for a batch of 100


class ClusterMargin(Strategy):
    """Ask about small margins, from all clusters in turn, the smallest clusters first.

    The pool is clustered once, by `prepare` or with the first batch, and the clusters are kept:
    an object of this class belongs to one pool. A pool of another size is clustered again;
    another one of the same size must be prepared.

    Parameters
    ----------
    n_clusters
        How many clusters; the paper has 50.
    sample_size
        How many random examples are clustered by average linkage; each of the others
        belongs to the cluster with the nearest center.

    Examples
    --------
    >>> snapshot = Snapshot([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]], None, np.eye(3))
    >>> sorted(ClusterMargin().rank(snapshot, 2, np.random.default_rng(0)).tolist())
    [0, 1]
    """

    name = "cluster-margin"
    summary = "small margins, from clusters of the embeddings in turn"
    paper = "Citovsky et al., NeurIPS 2021"
    needs = ("embeddings",)
    view: View = "pool"

    def __init__(self, n_clusters: int = 50, sample_size: int = 1000) -> None:
        check_count("sample_size", sample_size)
        check_count("n_clusters", n_clusters)
        if not n_clusters <= sample_size:
            raise InvalidArgument(
                f"n_clusters must be 1 to sample_size = {sample_size}, got {n_clusters}."
            )
        self.n_clusters, self.sample_size = n_clusters, sample_size
        self._clusters = np.empty(0, dtype=np.intp)

    def prepare(self, snapshot: Snapshot, *, rng: np.random.Generator) -> None:
        """Cluster the pool, by a generator of its own: the questions do not depend on when."""
        embeddings, sampler = snapshot.required_embeddings, rng.spawn(1)[0]
        self._clusters = average_linkage_clusters(
            embeddings, self.n_clusters, self.sample_size, sampler
        )

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` of the 1.25 ``budget`` askable indices with the smallest margins."""
        if len(self._clusters) != snapshot.size:
            self.prepare(snapshot, rng=rng)
        closest = Margin().rank(snapshot, math.ceil(_MARGIN_SHARE * budget), rng)
        sizes = np.bincount(self._clusters)
        members: dict[int, list[int]] = {}
        for index in rng.permutation(closest).tolist():
            members.setdefault(int(self._clusters[index]), []).append(index)
        in_turn = deque(members[c] for c in sorted(members, key=lambda c: (sizes[c], c)))
        chosen: list[int] = []
        while in_turn and len(chosen) < budget:
            cluster = in_turn.popleft()
            chosen.append(cluster.pop())
            if cluster:
                in_turn.append(cluster)
        return np.array(chosen, dtype=np.intp)


def average_linkage_clusters(
    embeddings: NDArray[Any], n_clusters: int, sample_size: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The cluster of each example: by average linkage in a sample, by the nearest mean elsewhere.

    A pool of no more than ``n_clusters`` examples has one cluster for each.
    """
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import pairwise_distances_argmin

    size = len(embeddings)
    if size <= n_clusters:
        return np.arange(size)
    if n_clusters == 1:
        return np.zeros(size, dtype=np.intp)
    sample = rng.choice(size, min(sample_size, size), replace=False)
    rows = embeddings[sample].astype(np.float64)
    found = AgglomerativeClustering(n_clusters=n_clusters, linkage="average").fit_predict(rows)
    centers = np.stack([rows[found == k].mean(axis=0) for k in range(n_clusters)])
    clusters = pairwise_distances_argmin(embeddings, centers.astype(embeddings.dtype))
    clusters[sample] = found
    return np.asarray(clusters, dtype=np.intp)
