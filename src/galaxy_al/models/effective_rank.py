"""In how many directions a pool varies: tables and pixels in few, embeddings in many."""

from __future__ import annotations

import numpy as np

from galaxy_al.models.log_odds import Table
from galaxy_al.shards import random_rows

_SAMPLE = 1000
_FARTHEST = 3.0  # median distances from the middle


def effective_rank(pool: Table, seed: int) -> float:
    """The number of equally strong, independent columns that would vary as much together.

    With C the covariances of the columns, it is the square of C's trace divided by the trace of its
    square. The latter is the mean squared product of two examples, from a sample. Examples far off
    count as nearer.

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
    order = random_rows(len(pool), _SAMPLE, np.random.default_rng(seed))
    points = np.asarray(pool[np.sort(order)], dtype=np.float64)
    points -= np.median(points, axis=0)
    points /= np.abs(points).max() or 1.0
    lengths = np.linalg.norm(points, axis=1)
    farthest = _FARTHEST * np.median(lengths)
    if farthest > 0:
        points *= (farthest / np.maximum(lengths, farthest))[:, None]
    points -= points.mean(axis=0)
    products = points @ points.T
    squared = float(np.square(products).sum() - np.square(products.diagonal()).sum())
    squared /= max(len(points) * (len(points) - 1), 1)
    trace = float(products.diagonal().mean())
    return trace**2 / squared if squared > 0 else 0.0
