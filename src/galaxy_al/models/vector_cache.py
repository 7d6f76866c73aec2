"""Vectors on the disk, and which of them are there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.models.protocols import Embedder, Vectors

_DONE, _BAD = 1, 2  # 0 is still to do


def cache_folder(place: Path, content: str, size: int, version: str) -> Path:
    """The folder for the vectors of a pool by a model."""
    if not content:
        raise InvalidArgument("The pool has no content to keep its vectors by.")
    key = hashlib.blake2b(f"{content} {size} {version}".encode(), digest_size=12).hexdigest()
    return place / key


def make_cache_folder(folder: Path) -> None:
    """Make the folder for vectors if it is not there."""
    with _naming(folder):
        folder.mkdir(parents=True, exist_ok=True)


class VectorCache:
    """The vectors of a pool by one model."""

    def __init__(self, folder: Path, size: int, embedder: Embedder) -> None:
        self._folder = folder
        shape, paths = (size, embedder.width), [folder / "vectors.npy", folder / "states.npy"]
        with _naming(folder):
            if not _has_shape(paths[0], shape) or not _has_shape(paths[1], (size,)):
                for path in paths:
                    path.unlink(missing_ok=True)
            self._vectors = _open_mapped(paths[0], shape, np.dtype(np.float32))
            self._states = _open_mapped(paths[1], (size,), np.dtype(np.uint8))
            about = {"model": embedder.name, "examples": size}
            (folder / "about.json").write_text(json.dumps(about, indent=2))

    def todo(self) -> list[int]:
        """The examples that are missing, and those that were bad: they may be mended."""
        todo: list[int] = np.flatnonzero(self._states != _DONE).tolist()
        if todo:
            (self._folder / "bad.jsonl").unlink(missing_ok=True)
        return todo

    def write(self, vectors: Mapping[int, Vectors], bad: Mapping[int, str]) -> None:
        """Keep some vectors by index. They are on the disk before they count as done."""
        if vectors:
            self._vectors[list(vectors)] = np.stack(list(vectors.values()))
            self._vectors.flush()
        if bad:
            with _naming(self._folder), (self._folder / "bad.jsonl").open("a") as file:
                file.writelines("\n" + json.dumps([index, why]) for index, why in bad.items())
        self._states[list(vectors)] = _DONE
        self._states[list(bad)] = _BAD
        self._states.flush()

    def vectors(self) -> Vectors:
        """All vectors, read-only; zeros where there is none."""
        vectors: Vectors = np.load(self._folder / "vectors.npy", mmap_mode="r")
        return vectors

    def bad(self) -> dict[int, str]:
        """Why examples have no vector, by index."""
        path, reasons = self._folder / "bad.jsonl", dict[int, str]()
        for line in path.read_text().splitlines() if path.exists() else []:
            with suppress(ValueError, TypeError):  # a line that a kill has cut off
                index, reasons[index] = json.loads(line)
        bad = np.flatnonzero(self._states == _BAD).tolist()
        return {index: reasons.get(index, "It could not be read.") for index in bad}


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GalaxyError(f"Cannot keep vectors in {folder}: {error.strerror}.") from error


def _has_shape(path: Path, shape: tuple[int, ...]) -> bool:
    try:
        found: tuple[int, ...] = np.load(path, mmap_mode="r").shape
        return found == shape
    except (OSError, ValueError, EOFError):  # not there, or cut off
        return False


def _open_mapped(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.memmap[Any, Any]:
    """A mapped array with all its space taken, so that a full disk is an error here and now."""
    if not path.exists():
        part = path.with_suffix(".part")
        np.lib.format.open_memmap(part, mode="w+", dtype=dtype, shape=shape).flush()
        if hasattr(os, "posix_fallocate"):
            with part.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, part.stat().st_size)
        part.replace(path)
    return np.lib.format.open_memmap(path, mode="r+")
