"""The accuracy of the model by cross-validation, with an interval that shows how sure it is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from galaxy_al.models.auto import AutoModel
from galaxy_al.snapshot import balanced_proba

_SAMPLES = 4000
_TRUST = 0.75  # labels are predicted by few models: they tell less than as many alone would
_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Evaluation:
    """Balanced accuracy with an approximate 95% interval."""

    accuracy: float
    low: float
    high: float


def cross_validate(model: AutoModel, random_sample: Collection[int]) -> Evaluation | None:
    """Estimate the balanced accuracy of a model on new examples; None if there is only one class.

    Each label is predicted as if the model had not been trained on it.

    The strategy asks where the model is unsure, so the model does worse on the labels than on the
    pool. The majority class is therefore evaluated on those of its labels that were sampled at
    random, once there are any. The rare classes have too few of these and are evaluated on all of
    their labels, so the estimate can be off by more than the interval.

    If cross-validation predicts c of n labels of a class correctly, its accuracy is distributed
    as Beta(c + 1/2, n - c + 1/2), by Jeffreys' prior, with c and n a quarter smaller than they
    are: all labels of a fold are predicted by one model. The distribution of the mean over the
    classes follows. A class without labels can have any accuracy, which widens the interval.

    Parameters
    ----------
    random_sample
        The examples that were asked at random.
    """
    held_out = model.held_out
    if held_out is None or len(np.unique(held_out.targets)) < 2:
        return None
    targets, n_classes = held_out.targets, model.n_classes
    predicted = balanced_proba(held_out.proba, model.class_priors).argmax(axis=1)
    is_correct = predicted == targets
    is_random = np.isin(held_out.indices, list(random_sample))
    counts = []
    for k in range(n_classes):
        evaluated = targets == k
        if k == n_classes - 1 and (evaluated & is_random).any():
            evaluated &= is_random
        counts.append((_TRUST * is_correct[evaluated].sum(), _TRUST * evaluated.sum()))
    return accuracy_interval(counts)


def accuracy_interval(counts: Sequence[tuple[float, float]]) -> Evaluation:
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
