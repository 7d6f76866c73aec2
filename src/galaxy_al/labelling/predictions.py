"""Predict the classes of new data with a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.pool import Pool
from galaxy_al.data.tables import write_table
from galaxy_al.errors import GalaxyError
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.models.saving import SavedModel


@dataclass(frozen=True)
class Predictions:
    """The class probabilities of a pool by a saved model.

    Parameters
    ----------
    ids
        The examples that could be read.
    proba
        Their class probabilities.
    bad
        Why the others could not be read.
    """

    ids: list[str]
    classes: tuple[str, ...]
    proba: NDArray[np.floating[Any]]
    bad: list[str]

    def write(self, path: Path) -> None:
        """Write a table: the id, the most likely class and the probability of each class."""
        likely = [self.classes[k] for k in self.proba.argmax(axis=1).tolist()]
        columns = {f"p_{name}": self.proba[:, k] for k, name in enumerate(self.classes)}
        write_table(path, {"id": self.ids, "class": likely, **columns})


def predict(saved: SavedModel, pool: Pool) -> Predictions:
    """Predict the classes of a pool, after embedding it if the model needs that."""
    inputs, bad = _inputs(saved, pool)
    good = np.setdiff1d(np.arange(len(pool)), list(bad)).tolist()
    ids = [pool.ids[i] for i in good]
    return Predictions(ids, saved.classes, saved.model.proba(inputs), list(bad.values()))


def _inputs(saved: SavedModel, pool: Pool) -> tuple[Any, dict[int, str]]:
    """The model's inputs for the examples that can be read, and why the others cannot."""
    is_ready = not pool.modality.is_embedded and saved.width is not None
    if pool.kind != saved.kind and not is_ready:
        raise GalaxyError(f"The model takes {saved.kind}, but the pool contains {pool.kind}.")
    if is_ready:
        vectors = pool.modality.vectors(pool.items)
        if vectors.shape[1] != saved.width:
            raise GalaxyError(f"The model takes {saved.width} features, got {vectors.shape[1]}.")
        return vectors, {}
    if saved.embedder is None:
        return pool.without_problems()
    embedder = load_embedder(saved.kind, saved.embedder)
    if embedder.version != saved.version:
        raise GalaxyError(f"{saved.embedder} has changed since the model was trained.")
    found = embed(pool, embedder)
    return found.vectors[found.good()] if found.bad else found.vectors, found.bad
