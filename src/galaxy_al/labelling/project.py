"""A labelling project: a folder with its settings, its log and its vectors."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.pool import Pool, check_classes
from galaxy_al.data.sources import import_labels, load_pool
from galaxy_al.data.tables import is_unicode
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.labelling.database import Database
from galaxy_al.labelling.log import Entry
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.snapshot import UNLABELED
from galaxy_al.strategies import DEFAULT_STRATEGY, make_strategy
from galaxy_al.system.files import read_toml, writing

SETTINGS_FILE, LOG_FILE, LOCK_FILE = "project.toml", "labels.sqlite", "lock"
IMPORTER = "import"  # who is named in the log for labels that existed


@dataclass(frozen=True)
class ProjectSettings:
    """What ``project.toml`` says.

    Parameters
    ----------
    path
        Where the pool is, from the project's folder.
    kind, column, id_column
        As of `load_pool`.
    classes
        Names, the big one last.
    embedder
        Makes the vectors of images and texts; empty is the offline default.
    strategy
        What asks when two classes are known.
    batch_size
        How many labels are given between two trainings.
    """

    path: str
    kind: str
    classes: tuple[str, ...]
    column: str = ""
    id_column: str = ""
    embedder: str = ""
    strategy: str = DEFAULT_STRATEGY
    batch_size: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        check_classes(self.classes)
        for text in (self.path, *self.classes):
            if not is_unicode(text):
                raise InvalidArgument(f"{text!r} is no valid Unicode.")
        if len(self.classes) < 2 or "" in self.classes:
            raise InvalidArgument(
                "A project needs the names of two classes, one rare one at least."
            )
        if self.batch_size < 1:
            raise InvalidArgument(f"batch_size must be at least 1, got {self.batch_size}.")
        make_strategy(self.strategy)

    def write(self, path: Path) -> None:
        """Write them as TOML, of which JSON's texts and lists are a part."""
        values = {
            name: json.dumps(value, ensure_ascii=False) for name, value in asdict(self).items()
        }
        lines = [f"{name} = {value}\n" for name, value in values.items()]
        with writing(path) as part:
            part.write_text("".join(lines).replace("\x7f", "\\u007f"), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> ProjectSettings:
        """Read them; an error names the file and the key."""
        found = read_toml(path)
        kinds = {field.name: field.type for field in fields(cls)}
        wrong = found.keys() - kinds.keys()
        if wrong:
            names = ", ".join(kinds)
            raise GalaxyError(f"{path}: unknown key {min(wrong)!r}. Choose from: {names}.")
        try:
            return cls(**{**found, "classes": tuple(found["classes"])})
        except (KeyError, TypeError, ValueError) as error:
            raise GalaxyError(f"{path}: {error}") from error


@dataclass(frozen=True)
class Project:
    """An open project.

    Parameters
    ----------
    vectors
        One row an example; zeros for those that are bad.
    bad
        Why examples cannot be used, by index.
    """

    folder: Path
    settings: ProjectSettings
    pool: Pool
    vectors: NDArray[np.floating[Any]]
    bad: dict[int, str]

    @property
    def classes(self) -> tuple[str, ...]:
        """Names, the big one last."""
        return self.settings.classes

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Where the examples are in the pool, by id."""
        return {name: index for index, name in enumerate(self.pool.ids)}

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
    """Make a project of a pool, embed it, and take in the labels that exist.

    Parameters
    ----------
    classes, other
        The rare classes, and the big one.
    labels
        A table with the columns ``id`` and ``label``.
    options
        Any of the other settings.
    """
    if (folder / SETTINGS_FILE).exists():
        raise GalaxyError(f"{folder} is a project already.")
    if folder.resolve() == pool.resolve():
        raise GalaxyError(f"{folder} is the pool: give the project a folder of its own.")
    place = os.path.relpath(pool.resolve(), folder.resolve())
    settings = ProjectSettings(path=place, kind=kind, classes=(*classes, other), **options)
    found = _load(folder, settings)
    known = import_labels(found, labels, classes=settings.classes) if labels else found
    folder.mkdir(parents=True, exist_ok=True)
    try:
        project = _embedded(folder, settings, known)
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # if it is empty: vectors that were made are kept
        raise
    _import(project, known)
    settings.write(folder / SETTINGS_FILE)  # last: what is there is whole
    return project


def open_project(folder: Path) -> Project:
    """A project that was made; images and texts that are new are embedded."""
    settings = read_settings(folder)
    return _embedded(folder, settings, _load(folder, settings))


def read_settings(folder: Path) -> ProjectSettings:
    """The settings of a project."""
    if not (folder / SETTINGS_FILE).exists():
        raise GalaxyError(f"{folder} is no project: galaxy-al init makes one.")
    return ProjectSettings.read(folder / SETTINGS_FILE)


def pool_path(folder: Path, settings: ProjectSettings) -> Path:
    """Where the pool of a project is."""
    return Path(os.path.normpath(folder.resolve() / settings.path))


def check_output(folder: Path, output: Path) -> None:
    """Refuse to write over a project's own files, or over its pool."""
    settings = read_settings(folder)
    own = {folder, folder / SETTINGS_FILE, folder / LOG_FILE, pool_path(folder, settings)}
    if output.resolve() in {path.resolve() for path in own}:
        raise GalaxyError(f"{output} belongs to the project and is not written over.")


def open_log(folder: Path) -> Database:
    """The log of a project."""
    return Database(folder / LOG_FILE)


def _load(folder: Path, settings: ProjectSettings) -> Pool:
    return load_pool(
        pool_path(folder, settings),
        kind=settings.kind,
        column=settings.column or None,
        id_column=settings.id_column or None,
        classes=settings.classes,
    )


def _embedded(folder: Path, settings: ProjectSettings, pool: Pool) -> Project:
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
        i: f"{name!r} is no valid Unicode."
        for i, name in enumerate(pool.ids)
        if not is_unicode(name)
    }
    return Project(folder, settings, pool, found.vectors, {**found.bad, **unnamed})


def _import(project: Project, known: Pool) -> None:
    """Log the labels that the pool has."""
    entries = [
        Entry(IMPORTER, "label", known.ids[i], known.classes[known.labels[i]], source="import")
        for i in np.flatnonzero(known.labels != UNLABELED).tolist()
    ]
    database = open_log(project.folder)
    database.add(entries)
    database.close()
