"""How well the people of a project agree, and what each of them is like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from galaxy_al.agreement.alpha import Estimate, agreement
from galaxy_al.agreement.dawid_skene import dawid_skene
from galaxy_al.agreement.votes import Votes

_FEW = 20  # shared examples, below which a person's figures are said to be uncertain
_ALWAYS = 10  # labels of one class and no other, from which a person always answers the same
_OFTEN = 0.05  # of the examples of a class, that a mistake is worth a word


@dataclass(frozen=True)
class PersonReport:
    """What is known of one person from the examples that others have labelled also.

    Parameters
    ----------
    n_shared
        How many such examples there are.
    accuracy
        How often they are right, on examples like these.
    confusion
        How often they label each class as each, by the names of the true and the given class.
    sentence
        The same in plain words.
    """

    name: str
    n_shared: int
    accuracy: float
    confusion: Mapping[str, Mapping[str, float]]
    sentence: str


@dataclass(frozen=True)
class AgreementReport:
    """How well people agree on the examples that several have labelled.

    Parameters
    ----------
    n_shared, n_disputed
        How many examples at least two people have labelled, and on how many they disagree.
    alpha
        Krippendorff's alpha; None if only one class was given.
    per_class
        When one person gives a class, how often another one gives it also.
    """

    n_shared: int
    n_disputed: int
    alpha: Estimate | None
    per_class: Mapping[str, Estimate]
    people: Sequence[PersonReport]

    def lines(self) -> list[str]:
        """The report in plain words.

        Examples
        --------
        >>> labels = [{"ann": "dent", "bob": "dent"}]
        >>> print(report_agreement(labels, ["dent", "fine"]).lines()[0])
        Agreement: 1 example labelled by several people, 0 with different labels.
        """
        examples = "1 example" if self.n_shared == 1 else f"{self.n_shared:,} examples"
        first = (
            f"Agreement: {examples} labelled by several people, "
            f"{self.n_disputed:,} with different labels."
        )
        if self.alpha is not None:
            first += f" Krippendorff's alpha: {_shown(self.alpha)}."
        classes = [
            f"If one person says {name!r}, another does in {_shown(estimate, percent=True)}."
            for name, estimate in self.per_class.items()
        ]
        return [first, *classes, *(person.sentence for person in self.people)]


def report_agreement(
    labels: Iterable[Mapping[str, str]], classes: Sequence[str]
) -> AgreementReport | None:
    """How well people agree; None if no example has the labels of two people.

    Parameters
    ----------
    labels
        Each person's label of each example.
    """
    shared = [given for given in labels if len(given) > 1]
    if not shared:
        return None
    people = sorted({who for given in shared for who in given})
    votes = Votes.of(shared, people, classes)
    found, model = agreement(votes), dawid_skene(votes)
    return AgreementReport(
        n_shared=len(shared),
        n_disputed=sum(len(set(given.values())) > 1 for given in shared),
        alpha=found.alpha,
        per_class={name: each for name, each in zip(classes, found.per_class) if each is not None},
        people=[
            _report_person(name, labels, confusion, model.class_priors, classes)
            for name, labels, confusion in zip(people, votes.by_person(), model.confusion)
        ],
    )


def _report_person(
    name: str,
    labels: NDArray[np.intp],
    confusion: NDArray[np.float64],
    class_priors: NDArray[np.float64],
    classes: Sequence[str],
) -> PersonReport:
    accuracy = float((confusion.diagonal() * class_priors).sum())
    table = {k: dict(zip(classes, row.tolist())) for k, row in zip(classes, confusion)}
    sentence = _sentence(name, labels, confusion, class_priors, classes)
    return PersonReport(name, len(labels), accuracy, table, sentence)


def _sentence(
    name: str,
    labels: NDArray[np.intp],
    confusion: NDArray[np.float64],
    class_priors: NDArray[np.float64],
    classes: Sequence[str],
) -> str:
    n_shared, given = len(labels), np.unique(labels)
    examples = "1 shared example" if n_shared == 1 else f"{n_shared:,} shared examples"
    is_one = len(given) == 1 and n_shared >= _ALWAYS
    if is_one and class_priors[given[0]] < 1 - _OFTEN:
        return (
            f"{name} always answers {classes[given[0]]!r} ({examples}): these answers do not "
            "tell the classes apart."
        )
    accuracy = float((confusion.diagonal() * class_priors).sum())
    sentence = f"{name} is right in about {accuracy:.0%} of {examples}"
    mistakes = confusion * (class_priors > 0)[:, None]
    np.fill_diagonal(mistakes, 0)
    true, wrong = map(int, np.unravel_index(mistakes.argmax(), mistakes.shape))
    if (seen := mistakes[true, wrong]) >= _OFTEN and n_shared >= _FEW:
        sentence += f", and takes {classes[true]!r} for {classes[wrong]!r} in about {seen:.0%}"
    return sentence + ("." if n_shared >= _FEW else ": too few to be sure.")


def _shown(estimate: Estimate, *, percent: bool = False) -> str:
    if percent:
        return f"{estimate.value:.0%} ({estimate.low:.0%} to {estimate.high:.0%})"
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"
