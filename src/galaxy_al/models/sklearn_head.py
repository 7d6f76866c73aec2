"""Classifiers on top of fixed embeddings: the frozen path, seconds on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.models.log_odds import LOGIT_WITHOUT_LABELS
from galaxy_al.models.protocols import Head, MakeHead, weights_of
from galaxy_al.snapshot import Snapshot, reweighted


class HeadTrainer:
    """Trains scikit-learn classifiers on embeddings.

    Parameters
    ----------
    make_head
        Makes a new classifier from a seed, for every training.
    keep_features
        Snapshots get the inputs of the last layer, which may be large; otherwise the embeddings.
    """

    def __init__(
        self, make_head: MakeHead, *, n_classes: int, seed: int = 0, keep_features: bool = True
    ) -> None:
        self._make_head, self._seed = make_head, seed
        self._n_classes, self._keep_features = n_classes, keep_features

    def fit(self, pool: Any, labels: Mapping[int, int]) -> HeadModel:
        """Train on the labelled examples of a table of embeddings."""
        return self.fit_weighted(pool, labels, {})

    def fit_weighted(
        self, pool: Any, labels: Mapping[int, int], weights: Mapping[int, float]
    ) -> HeadModel:
        """Train on labels of which some count less than 1, if the classifier takes weights."""
        head, class_priors = self._make_head(self._seed), None
        is_trained = len(set(labels.values())) > 1
        if is_trained:
            indices = sorted(labels)
            targets = np.array([labels[i] for i in indices])
            arguments = _class_weights(head, targets)
            if (counts := weights_of(np.array(indices), weights)) is not None:
                arguments = {name: found * counts for name, found in arguments.items()}
            head.fit(pool[indices], targets, **arguments)
            if arguments:
                class_priors = np.bincount(targets, minlength=self._n_classes) / len(targets)
        return HeadModel(head, self._n_classes, self._keep_features, is_trained, class_priors)


@dataclass(frozen=True)
class HeadModel:
    """A trained scikit-learn classifier.

    A class that had no label gets probability 0. While only one class had labels there was
    nothing to learn, and all classes are equally likely.

    Parameters
    ----------
    class_priors
        The share of each class in the labels, if the classifier was trained to count all classes
        the same; its probabilities are multiplied by it.
    """

    head: Head
    n_classes: int
    keep_features: bool
    is_trained: bool
    class_priors: NDArray[np.float64] | None = None

    def snapshot(self, pool: Any, labels: NDArray[Any] | None = None) -> Snapshot:
        """Scores of a table of embeddings, and what else strategies need."""
        if not self.is_trained:
            return self._untrained_snapshot(pool, labels)
        features, final = _last_stage(self.head, pool)
        proba: NDArray[np.floating[Any]] = np.zeros((len(pool), self.n_classes))
        proba[:, final.classes_] = final.predict_proba(features)
        priors = self.class_priors
        if priors is not None:
            proba = reweighted(proba, priors)
        if not self.keep_features:
            return Snapshot(proba, labels, pool, class_priors=priors)
        layer = last_layer(final, self.n_classes)
        return Snapshot(proba, labels, _dense(features), layer, class_priors=priors)

    def _untrained_snapshot(self, pool: Any, labels: NDArray[Any] | None) -> Snapshot:
        proba = np.full((len(pool), self.n_classes), 1 / self.n_classes)
        if not _is_linear(_stages(self.head)[-1]):
            return Snapshot(proba, labels, pool)
        nothing = np.zeros((self.n_classes, pool.shape[1])), np.zeros(self.n_classes)
        return Snapshot(proba, labels, pool, nothing)


def _class_weights(head: Head, targets: NDArray[np.integer[Any]]) -> dict[str, NDArray[Any]]:
    """The paper's weights 1 / N_k(L) as an argument of fit, if the classifier takes such.

    One that has class weights of its own keeps them.
    """
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    final, path = head, list[str]()
    while isinstance(final, Pipeline):
        step, final = final.steps[-1]
        path.append(step)
    if getattr(final, "class_weight", None) or not has_fit_parameter(final, "sample_weight"):
        return {}
    weights = 1 / np.bincount(targets)[targets]
    return {"__".join([*path, "sample_weight"]): weights * len(targets) / weights.sum()}


def _stages(head: Head) -> list[Any]:
    """A head's transformers and, last, its classifier; pipelines may hold pipelines."""
    from sklearn.pipeline import Pipeline

    if not isinstance(head, Pipeline):
        return [head]
    *transformers, final = (step for _, step in head.steps)
    return [*transformers, *_stages(final)]


def _last_stage(head: Head, embeddings: NDArray[Any]) -> tuple[Any, Head]:
    *transformers, final = _stages(head)
    features = embeddings
    for transformer in transformers:
        if transformer is not None and transformer != "passthrough":
            features = transformer.transform(features)
    return features, final


def _dense(features: Any) -> NDArray[np.floating[Any]]:
    table = features.toarray() if hasattr(features, "toarray") else np.asarray(features)
    return table if table.dtype.kind == "f" else table.astype(np.float64)


def _is_linear(head: Head) -> bool:
    from sklearn.linear_model import LogisticRegression

    return isinstance(head, LogisticRegression)


def last_layer(head: Any, n_classes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The weights, K x d, and biases of a linear classifier; none of any other."""
    if not _is_linear(head):
        return None
    weights, bias = head.coef_, head.intercept_
    if len(head.classes_) == 2:  # one row for two classes: the difference of their logits
        weights, bias = np.concatenate([-weights, weights]) / 2, np.append(-bias, bias) / 2
    all_weights = np.zeros((n_classes, weights.shape[1]))
    all_bias = np.full(n_classes, LOGIT_WITHOUT_LABELS)
    all_weights[head.classes_], all_bias[head.classes_] = weights, bias
    return all_weights, all_bias
