"""How reliable each person is, and how probable each class of an example (Dawid and Skene, 1979).

The true classes are not known. Given how often each person takes one class for another, the labels
say how probable each class of an example is; given these, they say how reliable each person is.
The two steps are repeated until nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from galaxy_al.agreement.votes import Votes

# A person of whom nothing is known is believed to be right this often, as after so many labels of
# each class: docs/appendix/agreement.md.
BELIEVED_RIGHT, BELIEVED_LABELS = 0.9, 5.0
_LEAST = 1e-10


@dataclass(frozen=True)
class DawidSkene:
    """The fitted model.

    Parameters
    ----------
    proba
        How probable each class is, n_examples x K.
    class_priors
        How frequent each class is among the examples.
    confusion
        How often each person labels an example of one class as another, people x K x K; the
        second axis is the true class.
    """

    proba: NDArray[np.float64]
    class_priors: NDArray[np.float64]
    confusion: NDArray[np.float64]


def dawid_skene(
    votes: Votes,
    *,
    believed_labels: float = BELIEVED_LABELS,
    max_steps: int = 200,
    tolerance: float = 1e-4,
) -> DawidSkene:
    """Fit the model by expectation maximization, from how often each class was given.

    Parameters
    ----------
    believed_labels
        How many labels of each class a person is believed to have given beside those they gave,
        most of them right. It keeps few labels from being certain; 0 is the plain method.
    tolerance
        Stop when no probability changes by more.

    Examples
    --------
    >>> labels = [{"ann": "dent", "bob": "dent"}] * 5 + [{"ann": "fine", "bob": "fine"}] * 20
    >>> found = dawid_skene(Votes.of(labels, ["ann", "bob"], ["dent", "fine"]))
    >>> found.proba[0].round(2).tolist()
    [1.0, 0.0]
    """
    proba = votes.counts()
    proba /= proba.sum(axis=1, keepdims=True)
    believed = believed_labels * _believed_confusion(votes.n_classes)
    for _ in range(max_steps):
        before = proba
        class_priors, confusion = _maximize(votes, proba, believed)
        proba = _expect(votes, class_priors, confusion)
        if np.abs(proba - before).max(initial=0.0) <= tolerance:
            break
    return DawidSkene(proba, *_maximize(votes, proba, believed))


def _believed_confusion(n_classes: int) -> NDArray[np.float64]:
    wrong = (1 - BELIEVED_RIGHT) / max(n_classes - 1, 1)
    found = np.full((n_classes, n_classes), wrong)
    np.fill_diagonal(found, BELIEVED_RIGHT)
    return found


def _maximize(
    votes: Votes, proba: NDArray[np.float64], believed: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The class priors and the confusions that fit the probabilities best."""
    n_people, n_classes = votes.n_people, votes.n_classes
    answers = votes.people * n_classes + votes.labels
    sums = _sums(answers, proba[votes.examples], n_people * n_classes)
    by_label = sums.reshape(n_people, n_classes, n_classes)
    confusion = np.maximum(by_label.transpose(0, 2, 1) + believed, _LEAST)
    return proba.mean(axis=0), confusion / confusion.sum(axis=2, keepdims=True)


def _expect(
    votes: Votes, class_priors: NDArray[np.float64], confusion: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How probable each class of each example is, given the priors and the confusions."""
    chances = np.log(confusion)[votes.people, :, votes.labels]
    logs = _sums(votes.examples, chances, votes.n_examples)
    logs += np.log(np.maximum(class_priors, _LEAST))
    logs -= logs.max(axis=1, keepdims=True)
    proba: NDArray[np.float64] = np.exp(logs)
    proba /= proba.sum(axis=1, keepdims=True)
    return proba


def _sums(
    groups: NDArray[np.intp], rows: NDArray[np.float64], n_groups: int
) -> NDArray[np.float64]:
    """The sum of the rows of each group."""
    return np.stack([np.bincount(groups, column, n_groups) for column in rows.T], axis=1)
