"""Squared Euclidean distances, in blocks and without losing digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.shards import row_blocks

Table = NDArray[np.floating[Any]]

_ROWS_AT_ONCE = 1 << 12


def squared_distances(rows: Table, columns: Table) -> NDArray[np.float64]:
    """The squared distance of every row to every column, N x M; both are tables of points.

    Points are moved so that the columns are around the origin, in double precision: with an
    offset that is large beside the distances, their products would not show the distances.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> squared_distances(points, points + 1e6).tolist()
    [[2000000000000.0, 2000014000025.0], [1999986000025.0, 2000000000000.0]]
    """
    return Columns(columns).squared_distances(rows)


def squared_distances_to(rows: Table, point: Table) -> Table:
    """The squared distance of every row to one point, in the precision of the rows.

    Examples
    --------
    >>> squared_distances_to(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0.0, 0.0])).tolist()
    [0.0, 25.0]
    """
    distances = np.empty(len(rows), rows.dtype)
    apart = np.empty((min(len(rows), _ROWS_AT_ONCE), rows.shape[1]), rows.dtype)
    own = point.astype(rows.dtype)
    for low, high in row_blocks(len(rows), _ROWS_AT_ONCE):
        here = np.subtract(rows[low:high], own, out=apart[: high - low])
        np.einsum("ij,ij->i", here, here, out=distances[low:high])
    return distances


class Columns:
    """Points that many others are compared with: the columns of `squared_distances`."""

    def __init__(self, points: Table) -> None:
        self._middle = points.mean(axis=0, dtype=np.float64)
        self._around = points - self._middle
        self._squares = squares(self._around)
        for array in (self._middle, self._around, self._squares):
            array.flags.writeable = False  # copies of a session share them

    def squared_distances(self, rows: Table) -> NDArray[np.float64]:
        """The squared distance of every row to every point."""
        distances = np.empty((len(rows), len(self._around)))
        for low, high in row_blocks(len(rows), _ROWS_AT_ONCE):
            points = rows[low:high] - self._middle
            products = points @ self._around.T
            distances[low:high] = combine(products, squares(points)[:, None], self._squares)
        return distances


def squares(points: Table) -> Table:
    """The squared length of each point."""
    lengths: Table = np.square(points).sum(axis=-1)
    return lengths


def combine(products: Table, of_rows: Table, of_columns: Table) -> Table:
    """Squared distances in place of the products of rows and columns, from the squares of both."""
    products *= -2
    products += of_rows
    products += of_columns
    return np.maximum(products, 0, out=products)
