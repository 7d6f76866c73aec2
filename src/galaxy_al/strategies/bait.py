"""BAIT: Ash et al., Gone Fishing: Neural Active Learning with Fisher Embeddings, NeurIPS 2021.

The Fisher information of an example about the last layer is F(x) = (diag p - p p') x h h', a
Kronecker product. It is written out only as a sum over many examples, a (K dim)^2 matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.ranking import n_threads
from galaxy_al.snapshot import Snapshot, row_blocks
from galaxy_al.strategies.base import ROWS_AT_ONCE, Strategy

Matrix = NDArray[np.float64]

_MOST_WEIGHTS = 640  # K dim by default: the matrices then take 3 MB each, and fit the cache
_MOST_BYTES = 2 << 30
_CELLS_AT_ONCE = 1 << 16
_FIRST_TRIED = 64


class Bait(Strategy):
    """Ask for the set whose Fisher information leaves least to know about the unlabelled pool.

    Minimises trace((lambda I + sum over L and the set of F)^-1 F_U), where F_U is the sum over
    the unlabelled pool: greedily adds examples to twice the budget, then greedily removes.

    Parameters
    ----------
    dim
        Embeddings are projected to this many dimensions, those in which the pool has the largest
        second moment (a PCA without centring, since F holds h h' as it is). By default as many
        as let K times ``dim`` be 640 at most; memory and work grow with its square.
    candidates
        Look only at this many unlabelled examples, drawn at random; by default at all. Each
        costs 16 K^2 bytes, and where that comes to more than 2 GB this must be said.
    regularization
        The paper's lambda.

    Examples
    --------
    >>> embeddings = np.array([[3.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> snapshot = Snapshot(np.full((3, 2), 0.5), None, embeddings)
    >>> Bait().rank(snapshot, 1, np.random.default_rng(0)).tolist()
    [0]
    """

    name = "bait"
    summary = "greatest gain in Fisher information about the pool"
    paper = "Ash et al., NeurIPS 2021"
    needs = ("embeddings",)

    def __init__(
        self,
        dim: int | None = None,
        candidates: int | None = None,
        regularization: float = 1.0,
    ) -> None:
        for name, value in (("dim", dim), ("candidates", candidates)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}.")
        if not regularization > 0:
            raise ValueError(f"regularization must be more than 0, got {regularization}.")
        self.dim, self.candidates, self.regularization = dim, candidates, regularization

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices in the order in which they were added, ties by index."""
        embeddings = snapshot.required_embeddings
        free, labeled = snapshot.askable(), snapshot.labeled()
        considered = free
        if self.candidates is not None and self.candidates < len(free):
            considered = np.sort(rng.choice(free, self.candidates, replace=False))
        if budget >= len(considered):
            return considered
        _check_memory(len(considered), snapshot.n_classes)
        dim = self.dim or max(_MOST_WEIGHTS // snapshot.n_classes, 1)
        axes = principal_axes(embeddings, min(dim, embeddings.shape[1]))
        known = _fisher_sum(_Examples.of(snapshot, labeled, axes))
        known[np.diag_indices_from(known)] += self.regularization
        pool = _Examples.of(snapshot, considered, axes)
        wanted = pool if considered is free else _Examples.of(snapshot, free, axes)
        design = _Design(known, _fisher_sum(wanted))
        chosen = _add(design, pool, min(2 * budget, len(considered)))
        return considered[_remove(design, pool, chosen, budget)]


def _check_memory(n_candidates: int, n_classes: int) -> None:
    each = 16 * n_classes**2
    if n_candidates * each > _MOST_BYTES:
        raise ValueError(
            f"bait would take {n_candidates * each / 1e9:.0f} GB for {n_candidates} candidates "
            f"and {n_classes} classes: pass Bait(candidates=...), {_MOST_BYTES // each} at most."
        )


def principal_axes(embeddings: NDArray[Any], dim: int) -> Matrix:
    """The ``dim`` directions, one a column, that keep most of the sum of h h'."""
    moment = np.zeros((embeddings.shape[1],) * 2)
    for low, high in row_blocks(len(embeddings), ROWS_AT_ONCE):
        block = embeddings[low:high].astype(np.float64)
        moment += block.T @ block
    axes: Matrix = np.linalg.eigh(moment)[1][:, ::-1][:, :dim]
    return np.ascontiguousarray(axes)


class _Examples:
    """Scores and projected embeddings of some examples, in double precision."""

    def __init__(self, proba: Matrix, embeddings: Matrix) -> None:
        self.proba, self.embeddings = proba, embeddings
        self.n_classes, self.dim = proba.shape[1], embeddings.shape[1]

    @classmethod
    def of(cls, snapshot: Snapshot, index: NDArray[np.intp], axes: Matrix) -> _Examples:
        """Examples of a pool, projected."""
        embeddings: Matrix = np.empty((len(index), axes.shape[1]))
        for low, high in row_blocks(len(index), ROWS_AT_ONCE):
            embeddings[low:high] = snapshot.required_embeddings[index[low:high]] @ axes
        proba: Matrix = snapshot.proba[index].astype(np.float64)
        # Rows that sum to more than 1 would have negative information.
        return cls(proba / proba.sum(axis=1, keepdims=True), embeddings)

    def __len__(self) -> int:
        return len(self.proba)

    def take(self, which: list[int]) -> _Examples:
        """Some of them."""
        return _Examples(self.proba[which], self.embeddings[which])


def _fisher_sum(examples: _Examples) -> Matrix:
    """The sum of F(x), from F(x) = diag(p) x h h' - (p x h)(p x h)'."""
    dim = examples.dim
    total = np.zeros((examples.n_classes * dim,) * 2)
    for low, high in row_blocks(len(examples), ROWS_AT_ONCE):
        h = examples.embeddings[low:high]
        weighted = (examples.proba[low:high, :, None] * h[:, None, :]).reshape(high - low, -1)
        total -= weighted.T @ weighted
        for start in range(0, len(total), dim):
            block = slice(start, start + dim)
            total[block, block] += weighted[:, block].T @ h
    return total


class _Design:
    """M^-1 for M = lambda I + the sum of F over L and the set, and G = M^-1 F_U M^-1."""

    def __init__(self, known: Matrix, wanted: Matrix) -> None:
        self.inverse: Matrix = np.asarray(np.linalg.inv(known), dtype=np.float64)
        self._wanted = wanted
        self.weighted: Matrix = self.inverse @ wanted @ self.inverse

    def update(self, p: Matrix, h: Matrix, sign: int) -> tuple[Matrix, Matrix]:
        """Add an example with scores p and embedding h (sign 1), or take it out (sign -1).

        Returns P and W: M^-1 has fallen by P P' and G by P W' + W P', times the sign.
        """
        values, vectors = np.linalg.eigh(np.diag(p) - np.outer(p, p))
        kept = values > values[-1] * 1e-14
        root = vectors[:, kept] * np.sqrt(values[kept])
        columns = self.inverse.reshape(-1, len(p), len(h)) @ h @ root
        inner = root.T @ np.einsum("f,kfr->kr", h, columns.reshape(len(p), len(h), -1))
        factor = np.linalg.cholesky(np.eye(len(inner)) + sign * inner)
        P = np.linalg.solve(factor, columns.T).T
        wanted_P = self._wanted @ P
        W = self.inverse @ wanted_P - (sign / 2) * (P @ (P.T @ wanted_P))
        self.inverse -= sign * (P @ P.T)
        change = P @ W.T
        self.weighted -= sign * (change + change.T)
        return P, W


class _Forms:
    """For each of some examples the K x K tables h' A h over the d x d blocks A of M^-1 and G.

    With S = diag p - p p' and these tables B and C, Woodbury's identity says how much
    trace(M^-1 F_U) falls when the example is added: trace((I + S B)^-1 S C).
    """

    def __init__(self, examples: _Examples, design: _Design) -> None:
        self.examples = examples
        shape = len(examples), examples.n_classes, examples.n_classes
        self._b, self._c = np.empty(shape), np.empty(shape)

        def fill(rows: slice) -> None:
            h = examples.embeddings[rows]
            self._b[rows] = _quadratic_forms(design.inverse, h)
            self._c[rows] = _quadratic_forms(design.weighted, h)

        self._for_blocks(fill, len(examples))

    def largest_change(self, without: list[int]) -> int:
        """Where the example stands whose adding lets the trace fall most, ties in order.

        Of many only those whose bound is high enough are computed.
        """
        left = np.delete(np.arange(len(self.examples)), without)
        if len(left) > _FIRST_TRIED:
            left = self._may_be_best(left)
        return int(left[self.changes(left, 1).argmax()])

    def _may_be_best(self, left: NDArray[np.intp]) -> NDArray[np.intp]:
        bounds = np.empty(len(self.examples))

        def fill(rows: slice) -> None:
            bounds[rows] = self._bounds(rows)

        self._for_blocks(fill, len(self.examples))
        first = left[np.argpartition(-bounds[left], _FIRST_TRIED)[:_FIRST_TRIED]]
        reached = self.changes(first, 1).max()
        # Bounds are rounded, too, and may lie a little below what they bound.
        slack = 1e-9 * (abs(reached) + np.abs(bounds[left]))
        kept: NDArray[np.intp] = left[bounds[left] + slack >= reached]
        return kept

    def changes(self, which: NDArray[np.intp], sign: int) -> NDArray[np.float64]:
        """How much the trace falls with each example (sign 1), or rises without (sign -1)."""
        changes = np.empty(len(which))

        def fill(block: slice) -> None:
            rows = which[block]
            p = self.examples.proba[rows]
            inner = np.eye(p.shape[1]) + sign * _times_covariance(p, self._b[rows])
            solved = np.linalg.solve(inner, _times_covariance(p, self._c[rows]))
            changes[block] = np.trace(solved, axis1=1, axis2=2)

        self._for_blocks(fill, len(which))
        return changes

    def update(self, P: Matrix, W: Matrix, sign: int) -> None:
        """Follow an update of the design."""
        n_classes, rank = self.examples.n_classes, P.shape[1]
        by_class = np.concatenate([P, W], axis=1).reshape(n_classes, -1, 2 * rank)
        both = by_class.transpose(1, 0, 2).reshape(-1, n_classes * 2 * rank)

        def follow(rows: slice) -> None:
            flat = self.examples.embeddings[rows] @ both
            products = flat.reshape(-1, n_classes, 2 * rank)
            left, right = sign * products[..., :rank], products.transpose(0, 2, 1)
            self._b[rows] -= left @ right[:, :rank]
            change = left @ right[:, rank:]
            self._c[rows] -= change
            self._c[rows] -= change.transpose(0, 2, 1)

        self._for_blocks(follow, len(self.examples))

    def _bounds(self, rows: slice) -> NDArray[np.float64]:
        """What the changes cannot exceed.

        With S = R R', A = R'BR and f its norm, (I + A)^-1 <= I - A / (1 + f), so the change is
        at most trace(SC) - trace(SBSC) / (1 + f).
        """
        p = self.examples.proba[rows]
        sb, sc = _times_covariance(p, self._b[rows]), _times_covariance(p, self._c[rows])
        turned = sb.transpose(0, 2, 1)
        norms = np.sqrt(np.einsum("nkl,nkl->n", sb, turned).clip(0))
        both: NDArray[np.float64] = np.einsum("nkl,nkl->n", turned, sc)
        bounds: NDArray[np.float64] = np.trace(sc, axis1=1, axis2=2) - both / (1 + norms)
        return bounds

    def _for_blocks(self, work: Callable[[slice], None], size: int) -> None:
        """Work on rows in blocks small enough for the cache, on all cores."""
        from threadpoolctl import threadpool_limits

        n_rows = max(_CELLS_AT_ONCE // self.examples.n_classes**2, 1)
        if size <= n_rows or n_rows == 1:
            for row in range(0, size, n_rows):
                work(slice(row, row + n_rows))
            return
        blocks = row_blocks(size, n_rows)
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads()) as threads:
            list(threads.map(lambda block: work(slice(*block)), blocks))


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


def _add(design: _Design, pool: _Examples, count: int) -> list[int]:
    """The positions of the examples that each let the trace fall most."""
    forms, chosen = _Forms(pool, design), list[int]()
    while len(chosen) < count:
        best = forms.largest_change(without=chosen)
        chosen.append(best)
        change = design.update(pool.proba[best], pool.embeddings[best], 1)
        if len(chosen) < count:
            forms.update(*change, 1)
    return chosen


def _remove(design: _Design, pool: _Examples, chosen: list[int], count: int) -> list[int]:
    """The ``count`` that are left when those without which the trace rises least are taken out."""
    examples, left = pool.take(chosen), np.arange(len(chosen))
    forms = _Forms(examples, design)
    while len(left) > count:
        least = left[forms.changes(left, -1).argmin()]
        left = left[left != least]
        forms.update(*design.update(examples.proba[least], examples.embeddings[least], -1), -1)
    return [chosen[position] for position in left]
