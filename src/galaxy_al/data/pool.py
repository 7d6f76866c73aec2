"""A pool: examples with lasting ids, of one modality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.modalities import MODALITIES, Items, Modality
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.snapshot import UNLABELED
from galaxy_al.system.files import digest


@dataclass(frozen=True)
class Pool:
    """Examples, the labels known of them and the classes there are.

    Parameters
    ----------
    ids
        A name for each example that is the same in every run.
    kind
        A name from `MODALITIES`: ``"images"``, ``"texts"``, ``"embeddings"`` or a plugin's.
    items
        The examples themselves, by index.
    classes
        Names, the majority class last.
    labels
        The class of each example, ``-1`` where it is unknown.
    content
        Changes when the examples do; caches are kept by it.
    """

    ids: Sequence[str]
    kind: str
    items: Items
    classes: tuple[str, ...] = ()
    labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    content: str = ""

    def __post_init__(self) -> None:
        if not len(self.labels):
            object.__setattr__(self, "labels", np.full(len(self.ids), UNLABELED))
        if not len(self.ids) == len(self.items) == len(self.labels):
            raise InvalidArgument(
                f"A pool must have as many ids, items and labels, got {len(self.ids)}, "
                f"{len(self.items)} and {len(self.labels)}."
            )
        _check_distinct(self.ids)
        check_classes(self.classes)
        wrong = (self.labels < UNLABELED) | (self.labels >= max(len(self.classes), 1))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidArgument(
                f"The label of example {row} is {self.labels[row]}: there are "
                f"{len(self.classes)} classes, and {UNLABELED} is unknown."
            )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def modality(self) -> Modality:
        """What knows how to read, check, show, search and export the examples."""
        return MODALITIES[self.kind]

    def take(self, kept: NDArray[np.intp]) -> Pool:
        """Some of the examples, in this order."""
        return replace(
            self,
            ids=[self.ids[i] for i in kept],
            items=self.modality.take(self.items, kept),
            labels=self.labels[kept],
            content=digest([self.content, kept.tobytes()]),
        )

    def problems(self) -> dict[int, str]:
        """Why examples cannot be used, by index; files are all read for this."""
        return self.modality.problems(self.items, self.ids)

    def without_problems(self) -> tuple[Pool, dict[int, str]]:
        """The pool without the examples that have a problem, and `problems`."""
        bad = self.problems()
        return (self.take(np.setdiff1d(np.arange(len(self)), list(bad))) if bad else self), bad


def check_classes(classes: Sequence[str]) -> None:
    """Refuse names of classes that are not distinct."""
    if isinstance(classes, str):
        raise InvalidArgument(f"classes must be a list of names, got the text {classes!r}.")
    twice = [name for name in set(classes) if list(classes).count(name) > 1]
    if twice:
        raise InvalidArgument(f"Two classes are called {twice[0]!r}.")


def class_indices(
    names: Sequence[str | None], classes: Sequence[str], where: Callable[[int], str]
) -> NDArray[np.int64]:
    """The indices of class names; None or an empty text is unknown.

    Parameters
    ----------
    where
        Says where the i-th name is, for the error about a name that is not a class.
    """
    index_of = {name: class_index for class_index, name in enumerate(classes)}
    indices = np.full(len(names), UNLABELED)
    for i, name in enumerate(names):
        if name is None or name == "":
            continue
        if name not in index_of:
            raise GalaxyError(
                f"{where(i)}: unknown class {name!r}. The classes are: {', '.join(classes)}."
            )
        indices[i] = index_of[name]
    return indices


def _check_distinct(ids: Sequence[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for position, name in enumerate(ids):
        if name in seen:
            raise GalaxyError(
                f"Two examples have the id {name!r}: numbers {seen[name]} and {position}."
            )
        seen[name] = position
