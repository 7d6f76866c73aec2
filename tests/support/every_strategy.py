"""A pool that every strategy can ask about."""

import numpy as np
import pytest

from galaxy_al import STRATEGIES, UNLABELED

every_strategy = pytest.mark.parametrize("name", sorted(STRATEGIES))


def some_pool(size=60, n_classes=3, dtype=np.float64, n_labeled=10, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, size)
    raw = rng.random((size, n_classes)) + 2 * (truth[:, None] == np.arange(n_classes))
    raw[1::7] = raw[0]
    proba = (raw / raw.sum(axis=1, keepdims=True)).astype(dtype)
    labels = np.full(size, UNLABELED)
    known = rng.choice(size, n_labeled, replace=False)
    labels[known] = truth[known]
    return proba, truth, labels


def last_layer(proba, seed=0, dim=4):
    """Embeddings, with rows that are equal or 0, and a head that goes with them in shape."""
    rng = np.random.default_rng(seed)
    embeddings = rng.normal(size=(len(proba), dim)).astype(proba.dtype)
    embeddings[1::5] = embeddings[0]
    embeddings[2::11] = 0
    return embeddings, (rng.normal(size=(proba.shape[1], dim)), rng.normal(size=proba.shape[1]))
