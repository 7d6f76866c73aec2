"""A labelling project: a folder with the settings, the log and the vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.pool import Pool
from galaxy_al.data.sources import import_labels, load_pool
from galaxy_al.data.tables import is_unicode
from galaxy_al.errors import GalaxyError, NotFound
from galaxy_al.labelling.database import Database
from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.settings import ProjectSettings
from galaxy_al.models.embedders import full_name, load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.models.heads import make_trainer
from galaxy_al.snapshot import UNLABELED
from galaxy_al.system.files import make_folder

SETTINGS_FILE, LOG_FILE, LOCK_FILE = "project.toml", "labels.sqlite", "lock"
IMPORTER = "import"  # the annotator of imported labels


@dataclass(frozen=True)
class Project:
    """An open project.

    Parameters
    ----------
    vectors
        One row per example, zeros where the example is bad.
    bad
        Why an example cannot be used, by index.
    """

    folder: Path
    settings: ProjectSettings
    pool: Pool
    vectors: NDArray[np.floating[Any]]
    bad: dict[int, str]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, the majority class last."""
        return self.settings.classes

    @cached_property
    def index_of(self) -> dict[str, int]:
        """The index of each example in the pool, by id."""
        return {name: index for index, name in enumerate(self.pool.ids)}

    def find(self, id: str) -> int:
        """The index of an example; `NotFound` if the pool does not have it."""
        index = self.index_of.get(id)
        if index is None:
            raise NotFound(f"The pool has no example {id!r}.")
        return index

    @cached_property
    def usable(self) -> set[str]:
        """The ids of the examples that can be labelled."""
        return self.index_of.keys() - {self.pool.ids[index] for index in self.bad}


def create_project(
    folder: Path,
    pool: Path,
    *,
    kind: str,
    classes: Sequence[str],
    other: str,
    labels: Path | None = None,
    **options: Any,
) -> Project:
    """Create a project for a pool, embed the pool, and import existing labels.

    Parameters
    ----------
    classes, other
        The rare classes, and the majority class.
    labels
        A table with the columns ``id`` and ``label``.
    options
        Other `ProjectSettings`.
    """
    if (folder / SETTINGS_FILE).exists():
        raise GalaxyError(f"{folder} is already a project.")
    if folder.resolve() == pool.resolve():
        raise GalaxyError(f"{folder} is the pool. Give the project a folder of its own.")
    relative = os.path.relpath(pool.resolve(), folder.resolve())
    if options.get("embedder"):
        options["embedder"] = full_name(kind, options["embedder"])
    settings = ProjectSettings.create(
        path=relative, kind=kind, classes=(*classes, other), **options
    )
    found = _load(folder, settings)
    known = import_labels(found, labels, classes=settings.classes) if labels else found
    make_folder(folder)
    try:
        project = _embed_pool(folder, settings, known)
        trainer = make_trainer(settings.head, n_classes=len(settings.classes))
        trainer.fit(project.vectors[:1], {})  # a head that cannot be used is refused here
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # only if it is empty: finished vectors are kept
        raise
    _import(project, known)
    settings.write(folder / SETTINGS_FILE)  # last: a project with settings is complete
    return project


def open_project(folder: Path) -> Project:
    """Open a project, and embed the images or texts that are new."""
    settings = read_settings(folder)
    return _embed_pool(folder, settings, _load(folder, settings))


def read_settings(folder: Path) -> ProjectSettings:
    """Read the settings of a project."""
    if not (folder / SETTINGS_FILE).exists():
        raise GalaxyError(f"{folder} is not a galaxy-al project. Create one with `galaxy-al init`.")
    return ProjectSettings.read(folder / SETTINGS_FILE)


def pool_path(folder: Path, settings: ProjectSettings) -> Path:
    """The path of the pool of a project."""
    return Path(os.path.normpath(folder.resolve() / settings.path))


def check_output(folder: Path, output: Path) -> None:
    """Refuse to overwrite the files of a project, or its pool."""
    settings = read_settings(folder)
    own = {folder, folder / SETTINGS_FILE, folder / LOG_FILE, pool_path(folder, settings)}
    if output.resolve() in {path.resolve() for path in own}:
        raise GalaxyError(f"{output} belongs to the project and must not be overwritten.")


def open_log(folder: Path, *, read_only: bool = False) -> Database:
    """Open the log of a project, as `Database` does."""
    return Database(folder / LOG_FILE, read_only=read_only)


def _load(folder: Path, settings: ProjectSettings) -> Pool:
    return load_pool(
        pool_path(folder, settings),
        kind=settings.kind,
        column=settings.column or None,
        id_column=settings.id_column or None,
        classes=settings.classes,
    )


def _embed_pool(folder: Path, settings: ProjectSettings, pool: Pool) -> Project:
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


def _import(project: Project, known: Pool) -> None:
    """Write the labels of the pool to the log."""
    entries = [
        Entry(IMPORTER, "label", known.ids[i], known.classes[known.labels[i]], source="import")
        for i in np.flatnonzero(known.labels != UNLABELED).tolist()
    ]
    database = open_log(project.folder)
    database.add(entries)
    database.close()
