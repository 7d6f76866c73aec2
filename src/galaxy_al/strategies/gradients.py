"""Gradient embeddings of the last layer, factored.

The gradient of the loss by the last layer's weights is (p - onehot(label)) x h, a K x d table.
Its norm is the product of the two factors' norms, and the dot product of two such tables the
product of the factors' dot products: the N x (K d) matrix is never needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def residuals(proba: NDArray[Any], labels: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """The first factor, p - onehot(label), of some rows of scores."""
    table = proba.astype(np.float64)
    table[np.arange(len(table)), labels] -= 1
    return table


def squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The squared norm of each row."""
    sums: NDArray[Any] = np.einsum("ij,ij->i", rows, rows)
    return sums.astype(np.float64)


def unit_rows(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The rows scaled to norm 1; a zero stays zero, for it points nowhere."""
    table = rows.astype(np.float64)
    norms = np.sqrt(squared_norms(table))
    norms[norms == 0] = 1
    table /= norms[:, None]
    return table
