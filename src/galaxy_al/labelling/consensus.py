"""What several people's labels of one example amount to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from galaxy_al.agreement.dawid_skene import dawid_skene
from galaxy_al.agreement.votes import Votes

_TIE = 1e-9


@dataclass(frozen=True)
class Consensus:
    """The label that counts, and how probable it is that it is right."""

    label: str
    probability: float


def find_consensus(labels: Mapping[str, Mapping[str, str]]) -> dict[str, Consensus]:
    """The most probable of the labels that each example was given; of equals the earliest.

    Whose label is more probable follows from the examples that several people have labelled, by
    `dawid_skene`. It is never a class that no person has given the example.

    Parameters
    ----------
    labels
        Each person's label by example, in the order of the log.

    Examples
    --------
    >>> find_consensus({"a.jpg": {"ann": "dent", "bob": "fine", "eve": "fine"}})["a.jpg"].label
    'fine'
    """
    if not labels:
        return {}
    people = sorted({who for given in labels.values() for who in given})
    classes = sorted({name for given in labels.values() for name in given.values()})
    proba = dawid_skene(Votes.of(list(labels.values()), people, classes)).proba
    return {
        example: _most_probable(given, dict(zip(classes, row)))
        for (example, given), row in zip(labels.items(), proba)
    }


def _most_probable(given: Mapping[str, str], proba: Mapping[str, np.float64]) -> Consensus:
    best, *others = dict.fromkeys(given.values())
    for name in others:
        if proba[name] > proba[best] + _TIE:
            best = name
    return Consensus(best, float(proba[best]))
