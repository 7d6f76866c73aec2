"""The inverse of a triangular matrix by matrix products.

SciPy's routines for it let no other thread run meanwhile; the labelling server trains in one thread
and answers in another.
"""

from __future__ import annotations

import numpy as np

from galaxy_al.models.log_odds import Table

_SMALL = 128


def triangular_inverse(lower: Table) -> Table:
    """The inverse of a lower triangular matrix.

    Examples
    --------
    >>> triangular_inverse(np.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    size = len(lower)
    if size <= _SMALL:
        return np.tril(np.linalg.inv(lower))
    half = size // 2
    first, last = triangular_inverse(lower[:half, :half]), triangular_inverse(lower[half:, half:])
    inverse = np.zeros_like(lower)
    inverse[:half, :half], inverse[half:, half:] = first, last
    inverse[half:, :half] = -(last @ (lower[half:, :half] @ first))
    return inverse
