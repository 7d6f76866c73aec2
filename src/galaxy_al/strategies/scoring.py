"""Picking the examples of lowest score, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.snapshot import Snapshot, row_blocks
from galaxy_al.strategies.label_state import is_whole

ROWS_AT_ONCE = 1 << 12  # rows of embeddings per block: the temporaries stay small
_SCORES_AT_ONCE = 1 << 14


def lowest(
    snapshot: Snapshot, budget: int, score: Callable[[NDArray[np.floating[Any]]], NDArray[Any]]
) -> NDArray[np.intp]:
    """The ``budget`` askable indices of lowest score, ties by index.

    ``score`` turns rows of the score table into one number each, some thousand rows at a time.
    """
    candidates = snapshot.askable()
    blocks = row_blocks(len(candidates), _SCORES_AT_ONCE)
    scores = np.concatenate(
        [np.empty(0), *(score(snapshot.scores[candidates[low:high]]) for low, high in blocks)]
    )
    return candidates[smallest(scores, budget)]


def smallest(scores: NDArray[Any], count: int) -> NDArray[np.intp]:
    """The positions of the ``count`` smallest scores, the smallest first, ties by position."""
    if count >= len(scores):
        return np.argsort(scores, kind="stable")
    within = np.flatnonzero(scores <= np.partition(scores, count)[count])
    return within[np.argsort(scores[within], kind="stable")[:count]]


def check_count(name: str, value: object) -> None:
    """Refuse an argument that is not a whole number of at least 1."""
    if not (is_whole(value) and value >= 1):
        raise InvalidArgument(f"{name} must be a whole number of at least 1, got {value!r}.")
