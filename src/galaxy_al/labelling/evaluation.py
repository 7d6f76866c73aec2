"""How good the model is, by cross-validation, with a band that says how much is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.kernel import KernelModel, KernelTrainer

_FOLDS = 5
_DRAWS = 4000
_BAND = (0.025, 0.975)


@dataclass(frozen=True)
class Quality:
    """Balanced accuracy, and where it is with a probability of 95%."""

    accuracy: float
    low: float
    high: float


def cross_validated(
    pool: NDArray[np.floating[Any]],
    labels: Mapping[int, int],
    drawn: Collection[int],
    model: KernelModel,
    n_classes: int,
) -> Quality | None:
    """Balanced accuracy of a model as on examples it has not seen; None if nothing can be said.

    Labels were chosen where the model is unsure, so that it does worse on them than on the pool.
    The big class is therefore judged by those of its labels that were ``drawn`` by chance, as
    soon as there are some. The rare ones have too few of these and are judged by all of theirs:
    for them the estimate is on the careful side.

    The share r of a class that is right, c of n by cross-validation, is as likely as Jeffreys'
    prior says, Beta(c + 1/2, n - c + 1/2); the mean over the classes follows from that. A class
    without any label can be anything, and the band shows it.
    """
    known = np.array(sorted(labels), dtype=np.intp)
    targets = np.array([labels[i] for i in known.tolist()], dtype=np.int64)
    if len(np.unique(targets)) < 2:
        return None
    right = _predicted(pool[known], targets, model, n_classes) == targets
    is_drawn = np.isin(known, list(drawn))
    counts = []
    for k in range(n_classes):
        judged = targets == k
        if k == n_classes - 1 and (judged & is_drawn).any():
            judged &= is_drawn
        counts.append((int(right[judged].sum()), int(judged.sum())))
    return band(counts)


def band(counts: list[tuple[int, int]]) -> Quality:
    """The mean over the classes of the share that is right, from how many of how many are.

    Examples
    --------
    >>> found = band([(90, 100), (50, 100)])
    >>> found.accuracy
    0.7
    >>> 0.63 < found.low < 0.65 and 0.74 < found.high < 0.77
    True
    """
    rng = np.random.default_rng(0)
    draws = np.mean([rng.beta(c + 0.5, n - c + 0.5, size=_DRAWS) for c, n in counts], axis=0)
    low, high = np.quantile(draws, _BAND)
    middle = float(np.mean([c / n if n else 0.5 for c, n in counts]))
    # As usual with Jeffreys' prior, all right or all wrong is within the band.
    return Quality(middle, min(float(low), middle), max(float(high), middle))


def _predicted(
    rows: NDArray[np.floating[Any]],
    targets: NDArray[np.int64],
    model: KernelModel,
    n_classes: int,
) -> NDArray[np.intp]:
    """The class of each labelled example by a model trained without it.

    It decides with the class priors of the pool, which the whole model knows.
    """
    rng = np.random.default_rng(0)
    folds = np.empty(len(rows), dtype=np.int64)
    for k in np.unique(targets):  # each class evenly over the folds
        members = rng.permutation(np.flatnonzero(targets == k))
        folds[members] = (np.arange(len(members)) + rng.integers(_FOLDS)) % _FOLDS
    predicted = np.empty(len(rows), dtype=np.intp)
    trainer = KernelTrainer(n_classes=n_classes, space=model.space)
    for fold in np.unique(folds):
        inside = folds == fold
        kept = {i: int(targets[i]) for i in np.flatnonzero(~inside).tolist()}
        seen = np.isin(np.arange(n_classes), list(kept.values()))
        part = trainer.fit(rows, kept).with_class_priors(np.where(seen, model.class_priors, 0))
        predicted[inside] = part.proba(rows)[inside].argmax(axis=1)
    return predicted
