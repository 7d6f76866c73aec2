"""The labels that several people gave to the same examples, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Votes:
    """One row per label; the three arrays have the same length.

    Parameters
    ----------
    examples, people, labels
        The numbers of the example, of the person, and of the class they gave it.
    n_examples, n_people, n_classes
        How many there are of each.
    """

    examples: NDArray[np.intp]
    people: NDArray[np.intp]
    labels: NDArray[np.intp]
    n_examples: int
    n_people: int
    n_classes: int

    @classmethod
    def of(
        cls,
        labels: Sequence[Mapping[str, str]],
        people: Sequence[str],
        classes: Sequence[str],
    ) -> Votes:
        """The labels of each example by person, in numbers.

        Examples
        --------
        >>> votes = Votes.of([{"ann": "dent", "bob": "fine"}], ["ann", "bob"], ["dent", "fine"])
        >>> votes.counts().tolist()
        [[1.0, 1.0]]
        """
        person = {name: number for number, name in enumerate(people)}
        class_index = {name: number for number, name in enumerate(classes)}
        rows = [
            (number, person[who], class_index[name])
            for number, given in enumerate(labels)
            for who, name in given.items()
        ]
        examples, given_by, names = np.array(rows, dtype=np.intp).reshape(-1, 3).T
        return cls(examples, given_by, names, len(labels), len(people), len(classes))

    def by_person(self) -> list[NDArray[np.intp]]:
        """The labels that each person gave."""
        return [self.labels[self.people == number] for number in range(self.n_people)]

    def counts(self) -> NDArray[np.float64]:
        """How many people gave each example each class."""
        found = np.zeros((self.n_examples, self.n_classes))
        np.add.at(found, (self.examples, self.labels), 1)
        return found
