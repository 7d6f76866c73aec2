"""A labelling project: a folder with the settings, the log and the vectors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.cluster.sharded_pool import ShardedIds, ShardedPool
from galaxy_al.data.pool import Pool
from galaxy_al.data.shard_files import Manifest
from galaxy_al.data.sources import load_pool, read_labels
from galaxy_al.data.tables import is_unicode
from galaxy_al.errors import GalaxyError, InvalidArgument, NotFound
from galaxy_al.labelling.database import Database
from galaxy_al.labelling.log import IMPORTER, Entry
from galaxy_al.labelling.settings import ProjectSettings
from galaxy_al.learner import Learner
from galaxy_al.models.embedders import full_name, known_as, load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.models.protocols import Embedder
from galaxy_al.shards import sharded
from galaxy_al.snapshot import UNLABELED
from galaxy_al.system.addresses import absolute, is_remote
from galaxy_al.system.files import make_folder

SETTINGS_FILE, LOG_FILE, LOCK_FILE = "project.toml", "labels.sqlite", "lock"


@dataclass(frozen=True)
class Project:
    """An open project.

    Parameters
    ----------
    vectors
        One row per example, zeros where the example is bad; in an array or in shards.
    bad
        Why an example cannot be used, by index.
    """

    folder: Path
    settings: ProjectSettings
    pool: Pool | ShardedPool
    vectors: NDArray[np.floating[Any]]
    bad: dict[int, str]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, the majority class last."""
        return self.settings.classes

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.pool.ids)}

    def indices(self, ids: Iterable[str]) -> dict[str, int]:
        """The indices of those of some examples that the pool has."""
        if isinstance(self.pool, ShardedPool):
            return self.pool.ids.find(ids)
        return {id: self._index_of[id] for id in ids if id in self._index_of}

    def usable_indices(self, ids: Iterable[str]) -> dict[str, int]:
        """The indices of those of some examples that can be labelled."""
        return {id: index for id, index in self.indices(ids).items() if index not in self.bad}

    def find(self, id: str) -> int:
        """The index of an example; `NotFound` if the pool does not have it."""
        index = self.indices([id]).get(id)
        if index is None:
            raise NotFound(f"The pool has no example {id!r}.")
        return index

    def ids_of(self, indices: Iterable[int]) -> list[str]:
        """The ids of some examples."""
        ids = self.pool.ids
        return ids.at(indices) if isinstance(ids, ShardedIds) else [ids[i] for i in indices]

    def close(self) -> None:
        """Leave the cluster, if the pool is on one."""
        if isinstance(self.pool, ShardedPool):
            self.pool.close()


def create_project(
    folder: Path,
    pool: Path | str,
    *,
    kind: str | None = None,
    classes: Sequence[str],
    other: str,
    labels: Path | None = None,
    **options: Any,
) -> Project:
    """Create a project for a pool, embed the pool, and import existing labels.

    Parameters
    ----------
    pool
        As of `load_pool`, or the address of a `ShardedPool` if ``shards`` is set.
    kind
        What the pool holds; a pool in shards says so itself.
    classes, other
        The rare classes, and the majority class.
    labels
        A table with the columns ``id`` and ``label``.
    options
        Other `ProjectSettings`.
    """
    if (folder / SETTINGS_FILE).exists():
        raise GalaxyError(f"{folder} is already a project.")
    if not is_remote(str(pool)) and folder.resolve() == Path(pool).resolve():
        raise GalaxyError(f"{folder} is the pool. Give the project a folder of its own.")
    if options.get("shards"):
        pool = absolute(pool)
        kind = Manifest.read(str(pool)).kind
    if kind is None:
        raise InvalidArgument("Say what the pool holds: kind.")
    if options.get("embedder"):
        options["embedder"] = full_name(kind, options["embedder"])
    settings = ProjectSettings.create(
        path=_relative(pool, folder), kind=kind, classes=(*classes, other), **options
    )
    found = _load(folder, settings)
    make_folder(folder)
    try:
        project = _embed_pool(folder, settings, found)
        given = _given_labels(project, labels)
        _check_usable(project)
    except BaseException:
        if isinstance(found, ShardedPool):
            found.close()
        with suppress(OSError):
            folder.rmdir()  # only if it is empty: finished vectors are kept
        raise
    _import(project, given)
    settings.write(folder / SETTINGS_FILE)  # last: a project with settings is complete
    return project


def _check_usable(project: Project) -> None:
    """Refuse what a learner of the project would refuse, before there is a project."""
    settings, row = project.settings, project.vectors[[0]]
    pool: Any = row
    if isinstance(project.pool, ShardedPool):
        project.pool.check()
        pool = sharded(row, [0, 1])
    Learner(pool, len(settings.classes), strategy=settings.strategy, head=settings.head)


def open_project(folder: Path, scheduler: str | None = None) -> Project:
    """Open a project, and embed the images or texts that are new.

    Parameters
    ----------
    scheduler
        Takes the place of the one in the settings, once it was reached; empty is this process.
    """
    settings = before = read_settings(folder)
    if scheduler is not None:
        if not settings.shards:
            raise GalaxyError(f"The pool of {folder} is not in shards and needs no scheduler.")
        settings = before.model_copy(update={"scheduler": scheduler})
    pool = _load(folder, settings)
    if settings != before:
        settings.write(folder / SETTINGS_FILE)
    return _embed_pool(folder, settings, pool)


def read_settings(folder: Path) -> ProjectSettings:
    """Read the settings of a project."""
    if not (folder / SETTINGS_FILE).exists():
        raise GalaxyError(f"{folder} is not a galaxy-al project. Create one with `galaxy-al init`.")
    return ProjectSettings.read(folder / SETTINGS_FILE)


def pool_address(folder: Path, settings: ProjectSettings) -> str:
    """The address of the pool of a project."""
    if is_remote(settings.path):
        return settings.path
    return os.path.normpath(folder.resolve() / settings.path)


def _relative(pool: Path | str, folder: Path) -> str:
    if is_remote(str(pool)):
        return str(pool)
    return os.path.relpath(Path(pool).resolve(), folder.resolve())


def check_output(folder: Path, output: Path) -> None:
    """Refuse to overwrite the files of a project, or its pool."""
    settings = read_settings(folder)
    pool = Path(pool_address(folder, settings)).resolve()
    own = {folder, folder / SETTINGS_FILE, folder / LOG_FILE, pool}
    is_shard = settings.shards and output.resolve().parent == pool
    if is_shard or output.resolve() in {path.resolve() for path in own}:
        raise GalaxyError(f"{output} belongs to the project and must not be overwritten.")


def open_log(folder: Path, *, read_only: bool = False) -> Database:
    """Open the log of a project, as `Database` does."""
    return Database(folder / LOG_FILE, read_only=read_only)


def embedder_of_pool(project: Project) -> Embedder | None:
    """What has made the vectors of a project, for new examples; None if that is not known."""
    pool, records = project.pool, project.folder / "embeddings"
    if not pool.modality.is_embedded:
        return None
    if not isinstance(pool, ShardedPool):
        return load_embedder(pool.kind, project.settings.embedder or None, records=records)
    if not pool.manifest.embedder:
        return None
    embedder = load_embedder(pool.kind, pool.manifest.embedder, records=records)
    if known_as(embedder.name, embedder.version) != pool.manifest.model:
        raise GalaxyError(
            f"The shards were made by {pool.manifest.model!r}, and here is {embedder.version!r}."
        )
    return embedder


def _load(folder: Path, settings: ProjectSettings) -> Pool | ShardedPool:
    address = pool_address(folder, settings)
    if settings.shards:
        return ShardedPool(address, scheduler=settings.scheduler or None)
    return load_pool(
        address,
        kind=settings.kind,
        column=settings.column or None,
        id_column=settings.id_column or None,
        classes=settings.classes,
    )


def _embed_pool(folder: Path, settings: ProjectSettings, pool: Pool | ShardedPool) -> Project:
    if isinstance(pool, ShardedPool):
        vectors: Any = pool.vectors
        return Project(folder, settings, pool, vectors, pool.bad)
    if not pool.modality.is_embedded:
        bad = pool.problems()
        vectors = pool.modality.vectors(pool.items)
        if bad:
            vectors = np.array(vectors)
            vectors[list(bad)] = 0
        return Project(folder, settings, pool, vectors, bad)
    cache = folder / "embeddings"
    embedder = load_embedder(settings.kind, settings.embedder or None, records=cache)
    found = embed(pool, embedder, cache=cache)
    unnamed = {
        i: f"{name!r} is not valid Unicode."
        for i, name in enumerate(pool.ids)
        if not is_unicode(name)
    }
    return Project(folder, settings, pool, found.vectors, {**found.bad, **unnamed})


def _given_labels(project: Project, path: Path | None) -> dict[str, str]:
    """The labels that came with the pool, and those in a table; names of classes by id."""
    given: dict[str, str] = {}
    if isinstance(pool := project.pool, Pool):
        for index in np.flatnonzero(pool.labels != UNLABELED).tolist():
            given[pool.ids[index]] = pool.classes[pool.labels[index]]
    if path is not None:
        labels, names = read_labels(path, project.indices, classes=project.classes)
        given.update((id, names[label]) for id, label in labels.items())
    return given


def _import(project: Project, labels: Mapping[str, str]) -> None:
    """Write labels to the log."""
    database = open_log(project.folder)
    database.add(
        [Entry(IMPORTER, "label", id, name, source="import") for id, name in labels.items()]
    )
    database.close()
