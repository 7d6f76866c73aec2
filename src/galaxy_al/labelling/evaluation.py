"""The accuracy of the model by cross-validation, with an interval that shows how sure it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.kernel import KernelModel, KernelTrainer

_FOLDS = 5
_SAMPLES = 4000
_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Evaluation:
    """Balanced accuracy with an approximate 95% interval."""

    accuracy: float
    low: float
    high: float


def cross_validate(
    pool: NDArray[np.floating[Any]],
    labels: Mapping[int, int],
    random_sample: Collection[int],
    model: KernelModel,
    n_classes: int,
) -> Evaluation | None:
    """Estimate the balanced accuracy of a model on new examples; None if there is only one class.

    The strategy asks where the model is unsure, so the model does worse on the labels than on the
    pool. The majority class is therefore evaluated on those of its labels that were sampled at
    random, once there are any. The rare classes have too few of these and are evaluated on all of
    their labels, so the estimate can be off by more than the interval.

    If cross-validation predicts c of n labels of a class correctly, its accuracy is distributed
    as Beta(c + 1/2, n - c + 1/2), by Jeffreys' prior. The distribution of the mean over the
    classes follows. A class without labels can have any accuracy, which widens the interval.

    Parameters
    ----------
    random_sample
        The examples that were asked at random.
    """
    known = np.array(sorted(labels), dtype=np.intp)
    targets = np.array([labels[i] for i in known.tolist()], dtype=np.int64)
    if len(np.unique(targets)) < 2:
        return None
    is_correct = _predict_held_out(pool[known], targets, model, n_classes) == targets
    is_random = np.isin(known, list(random_sample))
    counts = []
    for k in range(n_classes):
        evaluated = targets == k
        if k == n_classes - 1 and (evaluated & is_random).any():
            evaluated &= is_random
        counts.append((int(is_correct[evaluated].sum()), int(evaluated.sum())))
    return accuracy_interval(counts)


def accuracy_interval(counts: list[tuple[int, int]]) -> Evaluation:
    """The balanced accuracy from (correct, all) of each class.

    Examples
    --------
    >>> found = accuracy_interval([(90, 100), (50, 100)])
    >>> found.accuracy
    0.7
    >>> 0.63 < found.low < 0.65 and 0.74 < found.high < 0.77
    True
    """
    rng = np.random.default_rng(0)
    samples = np.mean([rng.beta(c + 0.5, n - c + 0.5, size=_SAMPLES) for c, n in counts], axis=0)
    low, high = np.quantile(samples, _QUANTILES)
    middle = float(np.mean([c / n if n else 0.5 for c, n in counts]))
    # As usual with Jeffreys' prior, the interval contains all correct and all wrong.
    return Evaluation(middle, min(float(low), middle), max(float(high), middle))


def _predict_held_out(
    rows: NDArray[np.floating[Any]],
    targets: NDArray[np.int64],
    model: KernelModel,
    n_classes: int,
) -> NDArray[np.intp]:
    """Predict the class of each labelled example with a model that was trained without it.

    These models use the class priors of the pool, as estimated by the whole model.
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
