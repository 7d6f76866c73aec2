"""Fisher information of the last layer: its sum over examples, and how one example changes a trace.

The information of one example is F(x) = (diag p - p p') x h h', a Kronecker product. It is
written out only as a sum over many examples, a (K dim)^2 matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.scoring import ROWS_AT_ONCE

Matrix = NDArray[np.float64]

_CELLS_AT_ONCE = 1 << 16
_FIRST_TRIED = 64
_UPDATES_PER_INVERSION = 32
_LOST_DIGITS = 1e-6  # tables that have shrunk so much by subtraction are computed again


class Examples:
    """Scores and projected embeddings of some examples, in double precision."""

    def __init__(self, proba: Matrix, embeddings: Matrix) -> None:
        self.proba, self.embeddings = proba, embeddings
        self.n_classes, self.dim = proba.shape[1], embeddings.shape[1]

    @classmethod
    def of(cls, snapshot: Snapshot, index: NDArray[np.intp], axes: Matrix) -> Examples:
        """Examples of a pool, projected."""
        embeddings: Matrix = np.empty((len(index), axes.shape[1]))
        for low, high in row_blocks(len(index), ROWS_AT_ONCE):
            embeddings[low:high] = snapshot.required_embeddings[index[low:high]] @ axes
        proba: Matrix = snapshot.scores[index].astype(np.float64)
        # Rows that sum to more than 1 would have negative information.
        return cls(proba / proba.sum(axis=1, keepdims=True), embeddings)

    def __len__(self) -> int:
        return len(self.proba)

    def take(self, which: list[int]) -> Examples:
        """Some of them."""
        return Examples(self.proba[which], self.embeddings[which])


def fisher_sum(snapshot: Snapshot, index: NDArray[np.intp], axes: Matrix) -> Matrix:
    """The sum of F(x), from F(x) = diag(p) x h h' - (p x h)(p x h)'."""
    dim = axes.shape[1]
    total = np.zeros((snapshot.n_classes * dim,) * 2)
    for low, high in row_blocks(len(index), ROWS_AT_ONCE):
        block = Examples.of(snapshot, index[low:high], axes)
        weighted = block.proba[:, :, None] * block.embeddings[:, None, :]
        rows = weighted.reshape(len(block), -1)
        total -= rows.T @ rows
        for k in range(snapshot.n_classes):
            here = slice(k * dim, (k + 1) * dim)
            total[here, here] += weighted[:, k].T @ block.embeddings
    return total


class Design:
    """M = lambda I + the sum of F over L and the set, its inverse, and F_U."""

    def __init__(self, known: Matrix, wanted: Matrix) -> None:
        self._known, self._wanted = known, wanted
        self._n_updates = 0
        self._invert()

    def weighted(self) -> Matrix:
        """G = M^-1 F_U M^-1, from scratch: small differences of it would drown in rounding."""
        product: Matrix = self.inverse @ self._wanted @ self.inverse
        return product

    def add(self, p: Matrix, h: Matrix) -> tuple[Matrix, Matrix]:
        """Add an example with scores p and embedding h.

        Returns P and W: M^-1 has fallen by P P' and G by P W' + W P'.
        """
        root = _covariance_root(p)
        columns = self.inverse.reshape(-1, len(p), len(h)) @ h @ root
        inner = root.T @ np.einsum("f,kfr->kr", h, columns.reshape(len(p), len(h), -1))
        P = np.linalg.solve(np.linalg.cholesky(np.eye(len(inner)) + inner), columns.T).T
        wanted_P = self._wanted @ P
        W = self.inverse @ wanted_P - P @ (P.T @ wanted_P) / 2
        self._known += _fisher(p, h)
        self._n_updates += 1
        if self._n_updates % _UPDATES_PER_INVERSION:
            self.inverse -= P @ P.T
        else:
            self._invert()
        return np.asarray(P, dtype=np.float64), W

    def remove(self, p: Matrix, h: Matrix) -> None:
        """Take an example out."""
        self._known -= _fisher(p, h)
        self._invert()

    def _invert(self) -> None:
        self.inverse: Matrix = np.asarray(np.linalg.inv(self._known), dtype=np.float64)


def _fisher(p: Matrix, h: Matrix) -> Matrix:
    matrix: Matrix = np.asarray(np.kron(np.diag(p) - np.outer(p, p), np.outer(h, h)))
    return matrix


def _covariance_root(p: Matrix) -> Matrix:
    """R with R R' = diag p - p p', K x (K - 1), for one row or several."""
    values, vectors = np.linalg.eigh(p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :]))
    root: Any = vectors * np.sqrt(values.clip(0))[..., None, :]
    kept: Matrix = root[..., 1:]  # the smallest eigenvalue is 0
    return kept


class TraceForms:
    """For each of some examples the K x K tables h' A h over the d x d blocks A of M^-1 and G.

    With S = diag p - p p' and these tables B and C, Woodbury's identity says how much
    trace(M^-1 F_U) falls when the example is added: trace((I + S B)^-1 S C).
    """

    def __init__(self, examples: Examples, design: Design, threads: ThreadPoolExecutor) -> None:
        self.examples, self._design, self._threads = examples, design, threads
        shape = len(examples), examples.n_classes, examples.n_classes
        self._b, self._c = np.empty(shape), np.empty(shape)
        self._size_when_computed = np.empty(len(examples))
        self.compute(np.arange(len(examples)))

    def compute(self, which: NDArray[np.intp]) -> None:
        """The tables of some examples from the design as it is."""
        inverse, weighted = self._design.inverse, self._design.weighted()

        def fill(block: slice) -> None:
            rows = which[block]
            h, p = self.examples.embeddings[rows], self.examples.proba[rows]
            self._b[rows] = _quadratic_forms(inverse, h)
            self._c[rows] = _quadratic_forms(weighted, h)
            sc = _times_covariance(p, self._c[rows])
            self._size_when_computed[rows] = np.trace(sc, axis1=1, axis2=2)

        self._for_blocks(fill, len(which))

    def largest_fall(self, without: list[int]) -> int:
        """The position of the example that lowers the trace most when it is added.

        Of many only those whose bound is high enough are computed.
        """
        left = np.delete(np.arange(len(self.examples)), without)
        if len(left) > _FIRST_TRIED:
            left = self._may_be_best(left)
        else:
            self.compute(left)
        return int(left[self._falls(left).argmax()])

    def smallest_rise(self, left: NDArray[np.intp]) -> int:
        """Which of some examples lets the trace rise least when it is taken out.

        With A = R'BR for S = R R', the rise is trace((I - A)^-1 R'CR).
        """
        root = _covariance_root(self.examples.proba[left])
        turned = root.transpose(0, 2, 1)
        values, vectors = np.linalg.eigh(turned @ self._b[left] @ root)
        c = (vectors.transpose(0, 2, 1) @ turned) @ self._c[left] @ (root @ vectors)
        remaining = (1 - values).clip(np.finfo(float).eps)
        rises = (np.diagonal(c, axis1=1, axis2=2) / remaining).sum(axis=1)
        return int(left[rises.argmin()])

    def update(self, P: Matrix, W: Matrix) -> None:
        """Follow an example that was added to the design."""
        n_classes, rank = self.examples.n_classes, P.shape[1]
        by_class = np.concatenate([P, W], axis=1).reshape(n_classes, self.examples.dim, 2 * rank)
        both = by_class.transpose(1, 0, 2).reshape(-1, n_classes * 2 * rank)

        def follow(rows: slice) -> None:
            flat = self.examples.embeddings[rows] @ both
            products = flat.reshape(-1, n_classes, 2 * rank)
            left, right = products[..., :rank], products.transpose(0, 2, 1)
            self._b[rows] -= left @ right[:, :rank]
            change = left @ right[:, rank:]
            self._c[rows] -= change
            self._c[rows] -= change.transpose(0, 2, 1)

        self._for_blocks(follow, len(self.examples))

    def _may_be_best(self, left: NDArray[np.intp]) -> NDArray[np.intp]:
        bounds, sizes = self._bounds()
        worn = left[sizes[left] < _LOST_DIGITS * self._size_when_computed[left]]
        if len(worn):
            self.compute(worn)
            bounds, sizes = self._bounds()
        first = left[np.argpartition(-bounds[left], _FIRST_TRIED)[:_FIRST_TRIED]]
        reached = self._falls(first).max()
        # Bounds are rounded as well and may lie a little below what they bound.
        slack = 1e-9 * (abs(reached) + np.abs(bounds[left])) + 1e-12 * sizes[left]
        return np.union1d(first, left[bounds[left] + slack >= reached])

    def _bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What the falls cannot exceed, and trace(SC).

        With S = R R', A = R'BR and f its norm, (I + A)^-1 <= I - A / (1 + f), so the fall is at
        most trace(SC) - trace(SBSC) / (1 + f).
        """
        bounds, sizes = np.empty((2, len(self.examples)))

        def fill(rows: slice) -> None:
            p = self.examples.proba[rows]
            sb, sc = _times_covariance(p, self._b[rows]), _times_covariance(p, self._c[rows])
            turned = sb.transpose(0, 2, 1)
            norms = np.sqrt(np.einsum("nkl,nkl->n", sb, turned).clip(0))
            sizes[rows] = np.trace(sc, axis1=1, axis2=2)
            bounds[rows] = sizes[rows] - np.einsum("nkl,nkl->n", turned, sc) / (1 + norms)

        self._for_blocks(fill, len(self.examples))
        return bounds, sizes

    def _falls(self, which: NDArray[np.intp]) -> NDArray[np.float64]:
        """How much the trace falls when each of some examples is added."""
        falls = np.empty(len(which))

        def fill(block: slice) -> None:
            rows = which[block]
            p = self.examples.proba[rows]
            inner = np.eye(p.shape[1]) + _times_covariance(p, self._b[rows])
            solved = np.linalg.solve(inner, _times_covariance(p, self._c[rows]))
            falls[block] = np.trace(solved, axis1=1, axis2=2)

        self._for_blocks(fill, len(which))
        return falls

    def _for_blocks(self, work: Callable[[slice], None], size: int) -> None:
        """Work on rows in blocks small enough for the cache, on all cores."""
        blocks = row_blocks(size, max(_CELLS_AT_ONCE // self.examples.n_classes**2, 1))
        list(self._threads.map(lambda block: work(slice(*block)), blocks))


def _times_covariance(p: Matrix, tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Diag p - p p' times each table."""
    product = p[:, :, None] * tables
    product -= p[:, :, None] * product.sum(axis=1, keepdims=True)
    return product


def _quadratic_forms(matrix: Matrix, h: Matrix) -> NDArray[np.float64]:
    """For each row h the K x K table of h' A h over the d x d blocks A of a matrix."""
    dim = h.shape[1]
    n_classes = len(matrix) // dim
    blocks = matrix.reshape(n_classes, dim, n_classes, dim).transpose(1, 0, 2, 3)
    right = (h @ blocks.reshape(dim, -1)).reshape(len(h), n_classes**2, dim)
    forms: NDArray[np.float64] = (right @ h[:, :, None]).reshape(len(h), n_classes, n_classes)
    return forms
