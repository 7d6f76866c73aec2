"""What labels are for: the goal decides which strategy asks and when the model is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from galaxy_al.errors import InvalidArgument
from galaxy_al.strategies import DEFAULT_STRATEGY, FindAll

DEFAULT_GOAL = "classifier"

# Labels per new label at which a model is trained again: docs/appendix/find-all.md.
_LABELS_PER_NEW = 40


@dataclass(frozen=True)
class Goal:
    """What labels are for.

    Parameters
    ----------
    strategy
        The strategy that asks unless you choose another.
    summary
        In plain words, for people who label.
    is_eager
        Whether the model is trained after every few labels at first.
    """

    name: str
    strategy: str
    summary: str
    is_eager: bool

    def next_batch(self, n_labels: int, batch_size: int) -> int:
        """How many labels to collect between a training on ``n_labels`` and the next one.

        If the goal is eager: one at first, then one for every 40 labels there are, and at most
        ``batch_size``. Few labels change the model much, many do not.

        Examples
        --------
        >>> [GOALS["find-all"].next_batch(n, 50) for n in (2, 25, 300, 4000)]
        [1, 1, 7, 50]
        >>> GOALS["classifier"].next_batch(2, 50)
        50
        """
        if not self.is_eager:
            return batch_size
        return min(max(n_labels // _LABELS_PER_NEW, 1), batch_size)


GOALS: Mapping[str, Goal] = MappingProxyType(
    {
        goal.name: goal
        for goal in (
            Goal(
                DEFAULT_GOAL,
                DEFAULT_STRATEGY,
                "a classifier for the rare classes.",
                is_eager=False,
            ),
            Goal(
                FindAll.name,
                FindAll.name,
                "find all rare examples, the most likely first.",
                is_eager=True,
            ),
        )
    }
)


def find_goal(name: str) -> Goal:
    """The goal of this name; any other name is refused."""
    if name not in GOALS:
        raise InvalidArgument(f"Unknown goal {name!r}. Choose from: {', '.join(GOALS)}.")
    return GOALS[name]
