"""Predict the classes of new data with a saved model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.data.pool import Pool
from galaxy_al.data.tables import write_table
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.auto import AutoModel
from galaxy_al.models.decisions import GIVEN, Decision, shifted
from galaxy_al.models.embedders import known_as, load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.models.saving import SavedModel


@dataclass(frozen=True)
class Predictions:
    """The class probabilities of a pool by a saved model, and what it decides.

    Parameters
    ----------
    ids
        The examples that could be read.
    proba
        Their class probabilities.
    decided
        The class that the model decides for each.
    bad
        Why the others could not be read.
    """

    ids: list[str]
    classes: tuple[str, ...]
    proba: NDArray[np.floating[Any]]
    decided: list[str]
    bad: list[str]

    def write(self, path: Path) -> None:
        """Write a table: the id, the decision and the probability of each class."""
        write_table(path, self.columns)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of that table."""
        proba = {f"p_{name}": self.proba[:, k] for k, name in enumerate(self.classes)}
        return {"id": self.ids, "decision": self.decided, **proba}


def predict(
    saved: SavedModel,
    pool: Pool,
    *,
    thresholds: Mapping[str, float] | None = None,
    prevalence: Mapping[str, float] | None = None,
) -> Predictions:
    """Predict the classes of a pool, after embedding it if the model needs that.

    Parameters
    ----------
    thresholds
        Decide for these rare classes from these probabilities on, instead of the model's own.
    prevalence
        How frequent these rare classes are in the pool, if not as in the one it was trained with.
        The probabilities follow it, and so do the decisions, except those for the best balanced
        accuracy or for a recall: what is found of a class does not depend on its prevalence.
    """
    decision = check_options(saved, thresholds or {}, prevalence or {})
    inputs, bad = _inputs(saved, pool)
    good = np.setdiff1d(np.arange(len(pool)), list(bad)).tolist()
    ids = [pool.ids[i] for i in good]
    in_training = saved.model.proba(inputs)
    proba = _with_prevalence(saved, in_training, prevalence or {})
    decided = decision.classes(proba if decision.depends_on_prevalence else in_training)
    names = [saved.classes[k] for k in decided.tolist()]
    return Predictions(ids, saved.classes, proba, names, list(bad.values()))


def predicted_shards(
    saved: SavedModel,
    pool: ShardedPool,
    *,
    thresholds: Mapping[str, float] | None = None,
    prevalence: Mapping[str, float] | None = None,
) -> Iterator[Predictions]:
    """As `predict`, shard by shard: a pool in shards may have more examples than fit here."""
    decision = check_options(saved, thresholds or {}, prevalence or {})
    if not isinstance(saved.model, AutoModel):
        raise GalaxyError("Only a model with the head auto can predict a pool in shards.")
    vectors: Any = pool.vectors
    if vectors.shape[1] != saved.width:
        raise GalaxyError(f"The model takes {saved.width} features, got {vectors.shape[1]}.")
    made_by, wanted = pool.manifest.model, known_as(saved.embedder or "", saved.version or "")
    if made_by and wanted and made_by != wanted:
        raise GalaxyError(f"The shards were made by {made_by!r}, and the model takes {wanted!r}.")
    table: Any = saved.model.proba(vectors)
    for number, (low, shard) in enumerate(zip(pool.manifest.starts, pool.manifest.shards)):
        good = np.setdiff1d(np.arange(shard.rows), [int(row) for row in shard.bad])
        ids = pool.ids_of_shard(number)
        in_training = table.shard(number)[good]
        proba = _with_prevalence(saved, in_training, prevalence or {})
        decided = decision.classes(proba if decision.depends_on_prevalence else in_training)
        names = [saved.classes[k] for k in decided.tolist()]
        bad = [f"Row {low + int(row)}: {reason}" for row, reason in shard.bad.items()]
        yield Predictions([ids[row] for row in good.tolist()], saved.classes, proba, names, bad)


def check_options(
    saved: SavedModel, thresholds: Mapping[str, float], prevalence: Mapping[str, float]
) -> Decision:
    """Refuse thresholds and prevalences that make no sense, and return the decisions to make."""
    _with_prevalence(saved, np.full((1, len(saved.classes)), 0.5), prevalence)
    return _with_thresholds(saved, thresholds)


def _with_prevalence(
    saved: SavedModel, proba: NDArray[np.floating[Any]], prevalence: Mapping[str, float]
) -> NDArray[np.floating[Any]]:
    by_index = _by_index(saved, prevalence)
    if not by_index:
        return proba
    if saved.class_priors is None:
        raise GalaxyError("The model does not say how frequent the classes were: train it again.")
    return shifted(proba, saved.class_priors, by_index)


def _with_thresholds(saved: SavedModel, thresholds: Mapping[str, float]) -> Decision:
    """The decisions of a model, with other thresholds for some rare classes."""
    given = _by_index(saved, thresholds)
    if not given:
        return saved.decision
    for value in given.values():
        if not 0 < value <= 1:
            raise InvalidArgument(f"A threshold must be above 0 and at most 1, got {value:g}.")
    values = list(saved.decision.thresholds)
    values[-1] = 0.0  # from here on the majority class has what is left
    for k, value in given.items():
        values[k] = value
    return Decision(GIVEN, tuple(values))


def _by_index(saved: SavedModel, by_name: Mapping[str, float]) -> dict[int, float]:
    rare = saved.classes[:-1]
    for name in by_name:
        if name not in rare:
            raise InvalidArgument(f"{name!r} is not a rare class. Choose from: {', '.join(rare)}.")
    return {rare.index(name): value for name, value in by_name.items()}


def _inputs(saved: SavedModel, pool: Pool) -> tuple[Any, dict[int, str]]:
    """The model's inputs for the examples that can be read, and why the others cannot."""
    is_ready = not pool.modality.is_embedded and saved.width is not None
    if pool.kind != saved.kind and not is_ready:
        raise GalaxyError(f"The model takes {saved.kind}, but the pool contains {pool.kind}.")
    if is_ready:
        usable, bad = pool.without_problems()
        vectors = usable.modality.vectors(usable.items)
        if vectors.shape[1] != saved.width:
            raise GalaxyError(f"The model takes {saved.width} features, got {vectors.shape[1]}.")
        return vectors, bad
    if saved.embedder is None:
        return pool.without_problems()
    embedder = load_embedder(saved.kind, saved.embedder)
    if embedder.version != saved.version:
        raise GalaxyError(f"{saved.embedder} has changed since the model was trained.")
    found = embed(pool, embedder)
    return found.vectors[found.good()] if found.bad else found.vectors, found.bad
