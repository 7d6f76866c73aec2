"""A user's own pool: a folder of images, a table, an array."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.pool import ImageFiles, Items, Kind, Pool, check_classes, label_codes
from galaxy_al.data.tables import TABLE_SUFFIXES, Table, read_table
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.system.files import digest, file_state, reading

IMAGE_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
ARRAY_SUFFIXES = (".npy", ".npz")

_USUAL_COLUMNS: dict[Kind, tuple[str, ...]] = {
    "texts": ("text",),
    "images": ("image", "path", "file"),
    "embeddings": ("embedding", "embeddings", "vector"),
}


def load_pool(
    path: str | Path,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    classes: Sequence[str] | None = None,
) -> Pool:
    """A pool from whatever there is.

    Parameters
    ----------
    path
        A folder of images, nested as it may be; a table of texts, of image files or of vectors
        (``.csv``, ``.jsonl``, ``.parquet``); or an array of embeddings (``.npy``, ``.npz``).
    kind, column
        What a table holds and in which column. By default ``text``, or ``image``, ``path``,
        ``file``, or ``embedding``, ``embeddings``, ``vector``, the first that it has.
    id_column
        By default ``id``, if there is one, or else the rows are numbered.
    label_column
        Labels that are known already, by the names of the classes; empty is unknown.
    classes
        The names of the classes, the big one last. By default those that occur, in order, with
        the most frequent one last.

    Notes
    -----
    Ids of images in a folder are their paths within it. Paths in a table are relative to it.
    """
    path = Path(path)
    if classes is not None:
        check_classes(classes)
    if not path.exists():
        raise GalaxyError(f"There is no {path}.")
    _check_kind(path, kind)
    if path.is_dir() or path.suffix.lower() in ARRAY_SUFFIXES:
        if any(option is not None for option in (column, id_column, label_column)):
            raise GalaxyError(f"{path} is no table and has no columns; import_labels takes one.")
        return _image_folder(path, classes) if path.is_dir() else _array(path, classes)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        known = ", ".join((*TABLE_SUFFIXES, *ARRAY_SUFFIXES))
        raise GalaxyError(f"{path} is neither a folder of images nor one of: {known}.")
    table = read_table(path)
    kind, column = _content_column(table, kind, column)
    items = _items(table, kind, column)
    labels, names = _labels(table, label_column, classes)
    content = _content(items, file_state(path), column)
    return Pool(_ids(table, id_column), kind, items, names, labels, content)


def _check_kind(path: Path, kind: Kind | None) -> None:
    if kind is not None and kind not in _USUAL_COLUMNS:
        raise InvalidArgument(f"Unknown kind {kind!r}. Choose from: {', '.join(_USUAL_COLUMNS)}.")
    only = "images" if path.is_dir() else "embeddings"
    is_table = path.is_file() and path.suffix.lower() not in ARRAY_SUFFIXES
    if kind is not None and kind != only and not is_table:
        raise GalaxyError(f"{path} holds {only}, not {kind}.")


def _content(items: Items, state: str, column: str) -> str:
    """Texts and files are known by themselves, embeddings by the table they are in."""
    if isinstance(items, ImageFiles):
        return items.fingerprint()
    return digest(items if isinstance(items, list) else [state, column])


def import_labels(
    pool: Pool,
    path: str | Path,
    *,
    id_column: str = "id",
    label_column: str = "label",
    classes: Sequence[str] | None = None,
) -> Pool:
    """The pool with labels from a table of ids and names of classes.

    An example that the table does not name keeps the label it has.
    """
    table = read_table(Path(path))
    position = {name: i for i, name in enumerate(pool.ids)}
    rows = {}
    for row, name in enumerate(table.texts(id_column)):
        if name not in position:
            raise GalaxyError(f"{table.where(row)}: the pool has no example {name!r}.")
        if name in rows:
            raise GalaxyError(f"{table.where(row)}: {name!r} is there a second time.")
        rows[name] = row
    new, names = _labels(table, label_column, classes or pool.classes or None)
    if pool.classes and tuple(names) != pool.classes:
        raise GalaxyError(f"The pool's classes are {pool.classes}, those of {path} {names}.")
    labels = pool.labels.copy()
    for name, row in rows.items():
        if new[row] >= 0:
            labels[position[name]] = new[row]
    return replace(pool, labels=labels, classes=tuple(names))


def _image_folder(folder: Path, classes: Sequence[str] | None) -> Pool:
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in IMAGE_SUFFIXES
        and not path.name.startswith(".")
        and not path.is_dir()
    ]
    if not found:
        raise GalaxyError(f"{folder} holds no image: no {', '.join(IMAGE_SUFFIXES)}.")
    names = sorted(path.relative_to(folder).as_posix() for path in found)
    images = ImageFiles([folder / name for name in names])
    ids = [os.fsencode(name).decode(errors="backslashreplace") for name in names]
    return Pool(ids, "images", images, tuple(classes or ()), content=images.fingerprint())


def _array(path: Path, classes: Sequence[str] | None) -> Pool:
    arrays = _read_arrays(path)
    if "embeddings" not in arrays:
        raise GalaxyError(f"{path} has no array 'embeddings', but: {', '.join(arrays)}.")
    embeddings = arrays["embeddings"]
    if embeddings.ndim != 2 or embeddings.dtype.kind not in "fiu" or not len(embeddings):
        raise GalaxyError(
            f"{path}: embeddings must be a table of numbers, got shape {embeddings.shape} of "
            f"{embeddings.dtype}."
        )
    ids = _texts(arrays.get("ids", np.arange(len(embeddings))))
    try:
        labels, names = _array_labels(arrays, len(embeddings), classes)
        return Pool(ids, "embeddings", embeddings, names, labels, digest([file_state(path)]))
    except (ValueError, GalaxyError) as error:
        raise GalaxyError(f"{path}: {error}") from error


def _array_labels(
    arrays: dict[str, NDArray[Any]], size: int, classes: Sequence[str] | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels by number, or by name."""
    names = tuple(classes or _texts(arrays.get("classes", np.empty(0, dtype=str))))
    found = arrays.get("labels")
    if found is None:
        return np.full(size, -1), names
    if found.dtype.kind in "US":
        texts = _texts(found)
        names = names or _by_frequency(texts)
        return label_codes(texts, names, lambda row: f"label {row}"), names
    if found.dtype.kind not in "iu":
        raise GalaxyError(f"labels must be whole numbers or names, got {found.dtype}.")
    labels = found.astype(np.int64)
    if not names and len(labels) and labels.max() >= 0:
        names = tuple(map(str, range(int(labels.max()) + 1)))
    return labels, names


def _texts(array: NDArray[Any]) -> list[str]:
    values = array.tolist()
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name; one alone is the embeddings."""
    with reading(path):
        if path.suffix.lower() == ".npy":
            return {"embeddings": np.load(path, mmap_mode="r", allow_pickle=False)}
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = dict(content)
    return {"embeddings": next(iter(arrays.values()))} if len(arrays) == 1 else arrays


def _content_column(table: Table, kind: Kind | None, column: str | None) -> tuple[Kind, str]:
    kinds: tuple[Kind, ...] = (kind,) if kind else tuple(_USUAL_COLUMNS)
    for possible in kinds:
        for name in (column,) if column else _USUAL_COLUMNS[possible]:
            if name in table.columns and (kind or not column or name in _USUAL_COLUMNS[possible]):
                return possible, name
    if column:
        table.column(column)
        raise GalaxyError(f"Say what the column {column!r} of {table.path} holds, by its kind.")
    usual = [name for possible in kinds for name in _USUAL_COLUMNS[possible]]
    raise GalaxyError(
        f"{table.path} has none of the columns {', '.join(usual)}. "
        f"Its columns are: {', '.join(table.columns)}. Say which one to take."
    )


def _items(table: Table, kind: Kind, column: str) -> Items:
    if kind == "texts":
        return table.texts(column)
    if kind == "embeddings":
        return table.vectors(column)
    return ImageFiles([table.path.parent / name for name in table.texts(column)])


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
    return label_codes(names, classes, table.where), tuple(classes)


def _by_frequency(names: Sequence[str | None]) -> tuple[str, ...]:
    """The classes that occur, in order, the most frequent one last."""
    counts = Counter(name for name in names if name)
    biggest = max(counts, key=lambda name: (counts[name], name), default="")
    return (*sorted(counts.keys() - {biggest}), *([biggest] if counts else []))
