"""A pool of your own: a folder, a table or an array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.modalities import MODALITIES, Modality, Source
from galaxy_al.data.modalities.vectors import SUFFIXES as ARRAY_SUFFIXES
from galaxy_al.data.modalities.vectors import as_texts
from galaxy_al.data.pool import Pool, check_classes, class_indices
from galaxy_al.data.tables import TABLE_SUFFIXES, Table, read_table
from galaxy_al.errors import GalaxyError
from galaxy_al.system.files import file_state


def load_pool(
    path: str | Path,
    *,
    kind: str | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    classes: Sequence[str] | None = None,
) -> Pool:
    """A pool from a folder, a table or an array.

    Parameters
    ----------
    path
        A folder of images, with any folders in it; a table of texts, of image files or of vectors
        (``.csv``, ``.jsonl``, ``.parquet``); or an array of embeddings (``.npy``, ``.npz``).
    kind, column
        What the path holds, a name from `MODALITIES`, and the column of a table. By default the
        first column of the table that is usual for a kind: ``image``, ``path``, ``file``;
        ``text``; ``embedding``, ``embeddings``, ``vector``.
    id_column
        By default ``id``, if there is one; otherwise the rows are numbered.
    label_column
        Labels that are known already, by the names of the classes; empty is unknown.
    classes
        The names of the classes, the majority class last. By default those that occur, in order,
        with the most frequent one last.

    Notes
    -----
    Ids of images in a folder are their paths within it. Paths in a table are relative to it.
    """
    path = Path(path)
    if classes is not None:
        check_classes(classes)
    if not path.exists():
        raise GalaxyError(f"There is no {path}.")
    given = None if kind is None else MODALITIES[kind]
    if not path.is_file() or path.suffix.lower() not in TABLE_SUFFIXES:
        if any(option is not None for option in (column, id_column, label_column)):
            raise GalaxyError(f"{path} is not a table and has no columns; import_labels takes one.")
        modality = _modality_of(path, given)
        return _whole_pool(path, modality, modality.read(path), classes)
    table = read_table(path)
    modality, column = _content_column(table, given, column)
    items = modality.read_column(table, column)
    labels, names = _labels(table, label_column, classes)
    content = modality.content(items, file_state(path), column)
    return Pool(_ids(table, id_column), modality.name, items, names, labels, content)


def _modality_of(path: Path, given: Modality | None) -> Modality:
    """The modality that reads a folder, or a file that is not a table."""
    if given is not None and given.reads(path):
        return given
    found = next((each for each in MODALITIES.values() if each.reads(path)), None)
    if found is None:
        known = ", ".join((*TABLE_SUFFIXES, *ARRAY_SUFFIXES))
        raise GalaxyError(f"{path} is neither a folder of images nor one of: {known}.")
    if given is not None:
        raise GalaxyError(f"{path} holds {found.name}, not {given.name}.")
    return found


def _whole_pool(
    path: Path, modality: Modality, source: Source, classes: Sequence[str] | None
) -> Pool:
    try:
        labels, names = _source_labels(source, classes)
        return Pool(source.ids, modality.name, source.items, names, labels, source.content)
    except GalaxyError as error:
        raise GalaxyError(f"{path}: {error}") from error


def _source_labels(
    source: Source, classes: Sequence[str] | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels by number, or by name."""
    names, found = tuple(classes or source.classes), source.labels
    if found is None:
        return np.full(len(source.ids), -1), names
    if found.dtype.kind in "US":
        texts = as_texts(found)
        names = names or _by_frequency(texts)
        return class_indices(texts, names, lambda row: f"label {row}"), names
    if found.dtype.kind not in "iu":
        raise GalaxyError(f"labels must be whole numbers or names, got {found.dtype}.")
    labels = found.astype(np.int64)
    if not names and len(labels) and labels.max() >= 0:
        names = tuple(map(str, range(int(labels.max()) + 1)))
    return labels, names


def import_labels(
    pool: Pool,
    path: str | Path,
    *,
    id_column: str = "id",
    label_column: str = "label",
    classes: Sequence[str] | None = None,
) -> Pool:
    """The pool with labels from a table of ids and names of classes.

    An example that is not in the table keeps the label it has.
    """
    position = {name: i for i, name in enumerate(pool.ids)}
    given, names = read_labels(
        path,
        lambda ids: {id: position[id] for id in ids if id in position},
        id_column=id_column,
        label_column=label_column,
        classes=classes or pool.classes or None,
    )
    if pool.classes and names != pool.classes:
        raise GalaxyError(f"The pool's classes are {pool.classes}, those of {path} {names}.")
    labels = pool.labels.copy()
    for id, label in given.items():
        labels[position[id]] = label
    return replace(pool, labels=labels, classes=names)


def read_labels(
    path: str | Path,
    find: Callable[[Sequence[str]], Mapping[str, int]],
    *,
    id_column: str = "id",
    label_column: str = "label",
    classes: Sequence[str] | None = None,
) -> tuple[dict[str, int], tuple[str, ...]]:
    """The class of each id in a table, and the names of the classes.

    Parameters
    ----------
    find
        Finds those of some ids that the pool has; another one is an error.
    """
    table = read_table(Path(path))
    ids = table.texts(id_column)
    known, seen = find(ids), set[str]()
    for row, id in enumerate(ids):
        if id not in known:
            raise GalaxyError(f"{table.where(row)}: the pool has no example {id!r}.")
        if id in seen:
            raise GalaxyError(f"{table.where(row)}: {id!r} occurs a second time.")
        seen.add(id)
    labels, names = _labels(table, label_column, classes)
    return {id: label for id, label in zip(ids, labels.tolist()) if label >= 0}, tuple(names)


def _content_column(
    table: Table, given: Modality | None, column: str | None
) -> tuple[Modality, str]:
    """What a table holds, and in which column."""
    if given is not None and column is not None:
        table.column(column)
        return given, column
    usual: list[str] = []
    for modality in MODALITIES.values() if given is None else [given]:
        for name in modality.columns:
            if name in table.columns and column in (None, name):
                return modality, name
        usual += modality.columns
    if column is not None:
        table.column(column)
        kinds = ", ".join(MODALITIES)
        raise GalaxyError(f"What does the column {column!r} of {table.path} hold? Kinds: {kinds}.")
    raise GalaxyError(
        f"{table.path} has none of the columns {', '.join(usual)}. "
        f"Its columns are: {', '.join(table.columns)}. Choose one with `column` or `--column`."
    )


def _ids(table: Table, id_column: str | None) -> list[str]:
    if id_column is None and "id" not in table.columns:
        return [str(row) for row in range(len(table))]
    ids = table.texts(id_column or "id")
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name in seen:
            raise GalaxyError(
                f"{table.where(row)}: the id {name!r} is already that of line "
                f"{table.lines[seen[name]]}."
            )
        seen[name] = row
    return ids


def _labels(
    table: Table, column: str | None, classes: Sequence[str] | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if column is None:
        return np.full(len(table), -1), tuple(classes or ())
    names = table.names(column)
    classes = _by_frequency(names) if classes is None else classes
    return class_indices(names, classes, table.where), tuple(classes)


def _by_frequency(names: Sequence[str | None]) -> tuple[str, ...]:
    """The classes that occur, in order, the most frequent one last."""
    counts = Counter(name for name in names if name)
    biggest = max(counts, key=lambda name: (counts[name], name), default="")
    return (*sorted(counts.keys() - {biggest}), *([biggest] if counts else []))
