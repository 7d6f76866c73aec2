"""Classifiers on top of fixed embeddings: the frozen path, seconds on a CPU."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Head(Protocol):
    """What a head must be able to do; any scikit-learn classifier with `predict_proba` can."""

    classes_: NDArray[Any]

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Any:
        """Learn from labelled embeddings."""

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities of the classes in ``classes_``."""


def kernel_head(seed: int) -> Head:
    """Logistic regression on random radial-basis features, each class weighted by 1 / N_k(L).

    The weights are the paper's (up to a common factor, scikit-learn calls them "balanced").
    """
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    features = RBFSampler(gamma="scale", n_components=500, random_state=seed)
    head: Head = make_pipeline(features, LogisticRegression(class_weight="balanced", max_iter=1000))
    return head


def fit_proba(
    head: Head, embeddings: NDArray[Any], labels: dict[int, int], n_classes: int
) -> NDArray[np.float64]:
    """Train a head on the labelled examples and score the whole pool, N x K.

    A class that has no label yet gets probability 0. While only one class has labels there is
    nothing to learn, and all classes are equally likely.
    """
    proba = np.zeros((len(embeddings), n_classes))
    if len(set(labels.values())) < 2:
        proba[:] = 1 / n_classes
        return proba
    indices = sorted(labels)
    head.fit(embeddings[indices], np.array([labels[i] for i in indices]))
    proba[:, head.classes_] = head.predict_proba(embeddings)
    return proba
