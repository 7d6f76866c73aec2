"""The words of texts beside their embeddings: one knows terms, the other knows meaning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import InvalidArgument
from galaxy_al.models.auto import AutoModel, AutoTrainer
from galaxy_al.models.log_odds import Table
from galaxy_al.models.protocols import weights_of

_COLUMNS = 1 << 20  # words and pairs of words share these
_TILT = 0.001  # by which equal probabilities are told apart


class WordTrainer:
    """Trains the default head, and a linear model of the words, and lets both rank the texts.

    The words are those of TF-IDF, single ones and pairs, and a support vector machine learns which
    of them speak for a rare class. The two rankings take turns: what either finds, both learn
    from. The probabilities are the head's, dealt out to the texts in the common order.

    Parameters
    ----------
    texts
        The texts of the pool, in its order.

    Examples
    --------
    >>> texts = ["gold rises", "corn falls", "price of corn", "price of gold", "rain"]
    >>> trainer = WordTrainer(AutoTrainer(n_classes=2), texts)
    >>> pool = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7], [0.2, 0.8], [0.9, 0.1]])
    >>> trainer.fit(pool, {0: 0, 1: 1}).proba(pool)[2:, 0].argsort().tolist()[::-1]
    [2, 1, 0]
    """

    def __init__(self, trainer: AutoTrainer, texts: Sequence[str]) -> None:
        self._trainer, self._texts = trainer, texts
        self._words: Any = None  # made when they are first needed

    def fit(self, pool: Table, labels: Mapping[int, int]) -> AutoModel:
        """Train on the labelled examples of a table of embeddings."""
        return self.fit_weighted(pool, labels, {})

    def fit_weighted(
        self, pool: Table, labels: Mapping[int, int], weights: Mapping[int, float]
    ) -> AutoModel:
        """Train on labels of which some count less than 1, by index."""
        if len(pool) != len(self._texts):
            raise InvalidArgument(
                f"texts must be as many as the pool has examples, {len(pool)}, "
                f"got {len(self._texts)}."
            )
        model = self._trainer.fit_weighted(pool, labels, weights)
        known = np.array(sorted(labels), dtype=np.intp)
        is_rare = np.array([labels[i] < model.n_classes - 1 for i in known.tolist()])
        if len(set(is_rare.tolist())) < 2:
            return model
        proba, free = model.proba(pool).copy(), np.delete(np.arange(len(pool)), known)
        scores = self._word_scores(known, is_rare, weights_of(known, weights))[free]
        # If there is a training after every label, each begins in turn.
        proba[free] = reordered(proba[free], scores, words_first=len(known) % 2 == 1)
        return replace(model, scored=(pool, proba))

    def _word_scores(
        self,
        known: NDArray[np.intp],
        is_rare: NDArray[np.bool_],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """How much the words of each text speak for a rare class."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        if self._words is None:
            self._words = word_table(self._texts)
        machine = LinearSVC(C=1.0, class_weight="balanced", random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # nearly there is good enough
            machine.fit(self._words[known], is_rare, weights)
        scores: NDArray[np.float64] = machine.decision_function(self._words)
        return scores


def word_table(texts: Sequence[str]) -> Any:
    """The words and pairs of words of each text by TF-IDF, a sparse table of unit rows."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    counter = HashingVectorizer(
        n_features=_COLUMNS, ngram_range=(1, 2), alternate_sign=False, norm=None
    )
    return TfidfTransformer(sublinear_tf=True).fit_transform(counter.transform(texts))


def reordered(proba: Table, scores: NDArray[np.float64], *, words_first: bool = False) -> Table:
    """Probabilities dealt out again: the likeliest, that of the best score, the next two, ...

    The probabilities of being rare stay the same to two digits, but other examples have them.
    Equal ones become slightly different: while the head knows nothing, all are equal. How the rare
    classes divide each among them stays as it is.

    Examples
    --------
    >>> proba = np.array([[0.1, 0.9], [0.3, 0.7], [0.2, 0.8]])
    >>> reordered(proba, np.array([2.0, 1.0, 0.0])).round(2).tolist()
    [[0.2, 0.8], [0.3, 0.7], [0.1, 0.9]]
    """
    rare = proba[:, :-1].sum(axis=1)
    by_head, by_words = _ranks(rare), _ranks(scores)
    order = np.lexsort([by_words if words_first else by_head, np.minimum(by_head, by_words)])
    dealt = np.empty_like(rare)
    dealt[order] = -np.sort(-rare) / (1 + _TILT * np.log1p(np.arange(len(rare))))
    among = np.full_like(proba[:, :-1], 1 / (proba.shape[1] - 1))
    np.divide(proba[:, :-1], rare[:, None], out=among, where=rare[:, None] > 0)
    return np.column_stack([among * dealt[:, None], 1 - dealt])


def _ranks(scores: NDArray[np.floating[Any]]) -> NDArray[np.intp]:
    """The place of each score, the largest first, ties by position."""
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return ranks
