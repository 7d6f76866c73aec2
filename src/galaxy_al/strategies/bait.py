"""BAIT: Ash et al., Gone Fishing: Neural Active Learning with Fisher Embeddings, NeurIPS 2021.

The linear algebra is in `fisher.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.shards import row_blocks
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.base import Strategy
from galaxy_al.strategies.fisher import Design, Examples, Matrix, TraceForms, fisher_sum
from galaxy_al.strategies.scoring import ROWS_AT_ONCE, check_count
from galaxy_al.system.threads import n_threads

_MOST_WEIGHTS = 640  # K dim by default: the matrices then take 3 MB each, and fit the cache
_MOST_BYTES = 2 << 30


class Bait(Strategy):
    """Ask for the set whose Fisher information leaves least to know about the unlabelled pool.

    Minimises trace((lambda I + sum over L and the set of F)^-1 F_U), where F_U is the sum over
    the unlabelled pool: greedily adds examples to twice the budget, then greedily removes.

    Parameters
    ----------
    dim
        Embeddings are projected to this many dimensions, those in which the pool has the largest
        second moment (a PCA without centring, since F holds h h' as it is). By default as many
        as let K times ``dim`` be 640 at most, so that the matrices fit the cache, and one at
        least; memory and work grow with its square.
    candidates
        Look only at this many random unlabelled examples, at least twice the budget;
        by default at all. Each costs 16 K^2 + 8 ``dim`` bytes: where that comes to more than 2 GB
        you are asked to say.
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
            if value is not None:
                check_count(name, value)
        if not regularization > 0:
            raise InvalidArgument(f"regularization must be more than 0, got {regularization}.")
        self.dim, self.candidates, self.regularization = dim, candidates, regularization

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices in the order in which they were added."""
        embeddings, free = snapshot.required_embeddings, snapshot.askable()
        considered = self._draw_candidates(free, budget, rng)
        if budget >= len(considered):
            return considered
        dim = min(self.dim or max(_MOST_WEIGHTS // snapshot.n_classes, 1), embeddings.shape[1])
        _check_memory(len(considered), snapshot.n_classes, dim)
        axes = principal_axes(embeddings, dim)
        known = fisher_sum(snapshot, snapshot.labeled(), axes)
        known[np.diag_indices_from(known)] += self.regularization
        design = Design(known, fisher_sum(snapshot, free, axes))
        pool = Examples.of(snapshot, considered, axes)
        with _threads() as threads:
            chosen = _add(design, pool, min(2 * budget, len(considered)), threads)
            return considered[_remove(design, pool, chosen, budget, threads)]

    def _draw_candidates(
        self, free: NDArray[np.intp], budget: int, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        if self.candidates is None or self.candidates >= len(free):
            return free
        if self.candidates < 2 * budget:
            raise InvalidArgument(
                f"candidates must be at least twice the budget of {budget}, got {self.candidates}."
            )
        return np.sort(rng.choice(free, self.candidates, replace=False))


def _check_memory(n_candidates: int, n_classes: int, dim: int) -> None:
    each = 16 * n_classes**2 + 8 * dim
    needed = n_candidates * each + 32 * (n_classes * dim) ** 2
    if needed > _MOST_BYTES:
        raise InvalidArgument(
            f"bait would take {needed / 1e9:.1f} GB for {n_candidates} candidates, {n_classes} "
            f"classes and dim {dim}, more than {_MOST_BYTES / 1e9:.1f}: pass "
            f"Bait(candidates=..., dim=...)."
        )


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """One thread for each core, each with a linear algebra of one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads()) as threads:
        yield threads


def principal_axes(embeddings: NDArray[Any], dim: int) -> Matrix:
    """The ``dim`` directions, one per column, that keep most of the sum of h h'."""
    moment = np.zeros((embeddings.shape[1],) * 2)
    for low, high in row_blocks(len(embeddings), ROWS_AT_ONCE):
        block = embeddings[low:high].astype(np.float64)
        moment += block.T @ block
    axes: Matrix = np.linalg.eigh(moment)[1][:, ::-1][:, :dim]
    return np.ascontiguousarray(axes)


def _add(design: Design, pool: Examples, count: int, threads: ThreadPoolExecutor) -> list[int]:
    """The positions of the examples that each let the trace fall most."""
    forms, chosen = TraceForms(pool, design, threads), list[int]()
    while len(chosen) < count:
        best = forms.largest_fall(without=chosen)
        chosen.append(best)
        change = design.add(pool.proba[best], pool.embeddings[best])
        if len(chosen) < count:
            forms.update(*change)
    return chosen


def _remove(
    design: Design, pool: Examples, chosen: list[int], count: int, threads: ThreadPoolExecutor
) -> list[int]:
    """The ``count`` that are left when those without which the trace rises least are taken out."""
    examples, left = pool.take(chosen), np.arange(len(chosen))
    forms = TraceForms(examples, design, threads)
    while len(left) > count:
        forms.compute(left)
        least = forms.smallest_rise(left)
        left = left[left != least]
        design.remove(examples.proba[least], examples.embeddings[least])
    return [chosen[position] for position in left]
