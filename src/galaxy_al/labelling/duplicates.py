"""The labelled examples of a project that are nearly the same and have different labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.pool import Pool
from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.project import Project
from galaxy_al.models.auto import FEW_DIRECTIONS
from galaxy_al.models.effective_rank import effective_rank
from galaxy_al.second_look.duplicates import (
    NEAR,
    SAME_LOOK,
    near_pairs,
    typical_distance,
)
from galaxy_al.shards import random_rows

Look = NDArray[np.float32]

_SAMPLE = 1000  # examples that tell how near neighbors usually are


@dataclass(frozen=True)
class Duplicate:
    """Two examples that are nearly the same, or byte for byte, by their ids."""

    one: str
    other: str
    is_exact: bool


class Duplicates:
    """Finds the pairs of labelled examples that are nearly the same.

    Embeddings find what a network takes for the same; thumbnails find images that were scaled or
    compressed. Tables vary in few directions, where many rows are near each other: of these only
    equal rows count.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._look_of: dict[int, Look] = {}  # files are read once

    def find(self, labels: Mapping[int, int]) -> list[Duplicate]:
        """The pairs of examples with different labels.

        Parameters
        ----------
        labels
            The class index of each labelled example.
        """
        known = np.array(sorted(labels), dtype=np.intp)
        targets = np.array([labels[index] for index in known.tolist()], dtype=np.int64)
        if len(np.unique(targets)) < 2:
            return []
        vectors = np.asarray(self._project.vectors[known])
        pairs = dict.fromkeys(near_pairs(vectors, targets, self._distance))
        if (looks := self._looks(known.tolist())) is not None:
            pairs |= dict.fromkeys(near_pairs(looks, targets, SAME_LOOK))
        return [self._duplicate(*known[list(pair)].tolist()) for pair in sorted(pairs)]

    def _duplicate(self, one: int, other: int) -> Duplicate:
        ids = self._project.ids_of([one, other])
        return Duplicate(ids[0], ids[1], self._are_equal(one, other))

    def _are_equal(self, one: int, other: int) -> bool:
        pool, vectors = self._project.pool, self._project.vectors
        if not isinstance(pool, Pool):
            return bool((vectors[one] == vectors[other]).all())
        try:
            first, second = (pool.modality.bytes_of(pool.items, index) for index in (one, other))
        except GalaxyError:  # a file is gone
            return False
        return first == second

    @cached_property
    def _distance(self) -> float:
        """Up to which distance two vectors are nearly the same."""
        project = self._project
        vectors = project.vectors
        if effective_rank(vectors, project.settings.seed) <= FEW_DIRECTIONS:
            return 0.0
        rows = random_rows(len(vectors), _SAMPLE, np.random.default_rng(0))
        usable = np.sort(rows[~np.isin(rows, list(project.bad))])
        return NEAR * typical_distance(np.asarray(vectors[usable]).astype(np.float64))

    def _looks(self, indices: Sequence[int]) -> Look | None:
        """What examples look like, one row each; None if they are not images in files."""
        pool = self._project.pool
        if not isinstance(pool, Pool):
            return None
        for index in indices:
            if index not in self._look_of:
                look = pool.modality.look(pool.items, index)
                if look is None:
                    return None
                self._look_of[index] = look
        return np.stack([self._look_of[index] for index in indices])
