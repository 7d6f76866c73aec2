"""Small pools with scores, embeddings and labels, without ties: definitions have one answer."""

import numpy as np
from hypothesis import strategies as st

from galaxy_al import UNLABELED, Snapshot


@st.composite
def embedded_pools(draw, max_size=24, max_classes=4, max_dim=4, min_free=1):
    size = draw(st.integers(min_free, max_size))
    n_classes = draw(st.integers(2, max_classes))
    dim = draw(st.integers(1, max_dim))
    n_labeled = draw(st.integers(0, size - min_free))
    n_skipped = draw(st.integers(0, size - min_free - n_labeled))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    embeddings = rng.normal(size=(size, dim)) + rng.normal(size=dim)
    head = rng.normal(size=(n_classes, dim)), rng.normal(size=n_classes)
    # Scores need not be those of the head: a strategy may not count on it.
    proba = rng.dirichlet(np.ones(n_classes), size=size)
    labels = np.full(size, UNLABELED)
    mixed = rng.permutation(size)
    labels[mixed[:n_labeled]] = rng.integers(0, n_classes, n_labeled)
    skipped = mixed[n_labeled : n_labeled + n_skipped]
    other = draw(st.integers(0, n_classes - 1))
    return Snapshot(proba, labels, embeddings, head, other, skipped)


def gradients(snapshot, labels):
    """The N x (K d) matrix of gradient embeddings, written out."""
    rows = []
    for p, h, label in zip(snapshot.proba, snapshot.embeddings, labels):
        onehot = np.zeros(len(p))
        onehot[label] = 1
        rows.append(np.outer(p - onehot, h).ravel())
    return np.array(rows)
