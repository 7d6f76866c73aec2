"""What several people's labels of one example amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Consensus:
    """The label that counts, and how probable it is."""

    label: str
    probability: float


def find_consensus(labels: Mapping[str, Mapping[str, str]]) -> dict[str, Consensus]:
    """The consensus of each example: the label of most people, and the earlier one of equals.

    Parameters
    ----------
    labels
        Each person's label by example, in the order of the log.

    Examples
    --------
    >>> find_consensus({"a.jpg": {"ann": "dent", "bob": "fine", "eve": "fine"}})["a.jpg"].label
    'fine'
    """
    found = {}
    for example, given in labels.items():
        label, count = Counter(given.values()).most_common(1)[0]
        found[example] = Consensus(label, count / len(given))
    return found
