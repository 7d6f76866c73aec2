"""Simulated people who label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Annotator = Callable[[int], int]
"""Answers an index with a label."""


def noisy_annotator(
    truth: Sequence[int] | NDArray[np.integer[Any]],
    flip_rate: float,
    rng: np.random.Generator,
    n_classes: int | None = None,
) -> Annotator:
    """Somebody who answers some examples, drawn at random, with a wrong class.

    All wrong classes are as likely. Asked again about an example, the answer is the same.

    Parameters
    ----------
    flip_rate
        The chance of each example to be answered wrongly, 0 to 1.
    n_classes
        The number of classes; by default as many as ``truth`` has.

    Examples
    --------
    >>> annotator = noisy_annotator([0, 1, 1, 2], 1.0, np.random.default_rng(0))
    >>> [annotator(index) != label for index, label in enumerate([0, 1, 1, 2])]
    [True, True, True, True]
    """
    right = np.asarray(truth)
    if right.ndim != 1 or not len(right) or right.dtype.kind not in "iu" or right.min() < 0:
        raise ValueError(
            f"truth must be a list of classes, 0 or more, got {right.dtype} of shape {right.shape}."
        )
    n_classes = int(right.max()) + 1 if n_classes is None else n_classes
    if not 0 <= flip_rate <= 1:
        raise ValueError(f"flip_rate must be between 0 and 1, got {flip_rate}.")
    if n_classes < 2 or n_classes <= right.max():
        raise ValueError(
            f"n_classes must be at least 2 and more than the largest class, got {n_classes}."
        )
    away = rng.integers(1, n_classes, size=len(right))
    answers = np.where(rng.random(len(right)) < flip_rate, (right + away) % n_classes, right)
    return lambda index: int(answers[index])
