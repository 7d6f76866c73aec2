"""In how many directions a pool varies: tables and pixels in few, embeddings in many."""

from __future__ import annotations

import numpy as np

from galaxy_al.models.log_odds import Table

_SAMPLE = 1000


def effective_rank(pool: Table, seed: int) -> float:
    """The number of equally strong, independent columns that would vary as much together.

    With C the correlations of the columns, it is the square of C's trace divided by the trace of
    its square. The latter is the mean squared product of two examples, from a sample.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> independent = rng.normal(size=(5000, 20))
    >>> round(effective_rank(independent, seed=0))
    20
    >>> copies = independent[:, [0] * 10 + [1] * 10]
    >>> round(effective_rank(copies, seed=0))
    2
    """
    order = np.random.default_rng(seed).permutation(len(pool))[:_SAMPLE]
    points = np.asarray(pool[np.sort(order)], dtype=np.float64)
    points -= points.mean(axis=0)
    points /= np.maximum(np.abs(points).max(axis=0), np.finfo(float).tiny)
    spread = points.std(axis=0)
    points /= np.where(spread > 0, spread, 1)
    products = points @ points.T
    np.fill_diagonal(products, 0)
    n_pairs = max(len(points) * (len(points) - 1), 1)
    together = float(np.square(products).sum()) / n_pairs
    n_varying = np.count_nonzero(spread)
    return min(n_varying**2 / together, float(n_varying)) if together > 0 else float(n_varying)
