"""Places in a class's ranking: margins, ties and their exact order."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from galaxy_al.graphs.sort_keys import Floats
from galaxy_al.shards import row_blocks

Nodes = NDArray[np.integer[Any]]
Number = TypeVar("Number", float, Floats)

# (margin rounded to double, what the rounding lost, max p, pool index): compares like the ranking.
Place = tuple[float, float, float, int]

MANY_ROWS = 4096  # fewer are all sampled, looked through one by one, scored at once


def place_of(row: list[float], target: int, node: int) -> Place:
    """The place of a node with these probabilities, as a tuple that compares like the ranking."""
    top = max(row)
    return (*_difference(row[target], top), top, node)


def exact_order(p: Floats, top: Floats, nodes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The order of ascending nodes in a ranking."""
    margin = p - top
    order = margin.argsort(kind="stable")
    ascending = margin[order]
    tied = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(tied):
        lost = _difference(p, top)[1]
        finer = np.stack([lost, top])[:, order]
        if (finer[:, tied] != finer[:, tied + 1]).any():
            order = np.lexsort((nodes, top, lost, margin))
    return order


def scores_of(
    proba: Floats, nodes: NDArray[np.intp], target: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p_k and max p of some nodes, in double precision."""
    p, top = np.empty((2, len(nodes)))
    for start, stop in row_blocks(len(nodes), MANY_ROWS):
        block = np.ascontiguousarray(proba[nodes[start:stop]].T)
        p[start:stop] = block[target]
        block.max(axis=0, out=top[start:stop])
    return p, top


def _difference(p: Number, top: Number) -> tuple[Number, Number]:
    """P - top, rounded, and the error of the rounding, exact (Knuth's two-sum)."""
    rounded = p - top
    back = rounded - p
    return rounded, (p - (rounded - back)) - (top + back)
