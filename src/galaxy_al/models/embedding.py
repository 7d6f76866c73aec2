"""Embedding a pool by a pretrained network, into a cache that survives a kill."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument, one_line
from galaxy_al.models.images import read_image
from galaxy_al.system.files import locked
from galaxy_al.system.folders import home_folder
from galaxy_al.system.threads import n_threads

Vectors = NDArray[np.float32]

_DONE, _BAD = 1, 2  # 0 is still to do


class Embedder(Protocol):
    """Turns examples into vectors.

    Parameters
    ----------
    kind
        ``"images"`` or ``"texts"``.
    name
        By which it can be had again.
    version
        Other whenever its vectors would be; they are kept by it.
    width
        The length of a vector.
    batch_size
        How many examples it likes to take at once.
    side
        Images may be given to `prepare` as small as this; None is as they are.
    preprocessing
        What is done to an example before the network, for the card of an exported model.
    """

    kind: str
    name: str
    version: str
    width: int
    batch_size: int
    side: int | None
    preprocessing: dict[str, Any]

    def prepare(self, item: Any) -> Any:
        """What the model takes of one example; run in threads."""

    def embed(self, batch: Sequence[Any]) -> Vectors:
        """The vectors of prepared examples."""


@dataclass(frozen=True)
class Embedded:
    """The vectors of a pool.

    Parameters
    ----------
    vectors
        One row an example, mapped from the cache; zeros for those that are bad.
    bad
        Why examples could not be embedded, by index.
    """

    vectors: Vectors
    bad: dict[int, str]

    def good(self) -> NDArray[np.intp]:
        """The indices of the examples that have a vector."""
        return np.setdiff1d(np.arange(len(self.vectors)), list(self.bad))


def embed(
    pool: Any,
    embedder: Embedder,
    *,
    cache: str | Path | None = None,
    batch_size: int | None = None,
    show_progress: bool = True,
) -> Embedded:
    """Embed a pool, or go on where an earlier run stopped.

    Vectors are kept by the content of the pool and the model, in ``cache`` or the folder
    ``embeddings`` of ``GALAXY_AL_HOME``. An example that cannot be read is noted and left out.
    """
    size = embedder.batch_size if batch_size is None else batch_size
    if size < 1:
        raise InvalidArgument(f"batch_size must be at least 1, got {batch_size}.")
    if pool.kind != embedder.kind:
        raise InvalidArgument(f"{embedder.name} embeds {embedder.kind}, got a pool of {pool.kind}.")
    place = home_folder() / "embeddings" if cache is None else Path(cache)
    folder = place / _key(pool.content, len(pool), embedder.version)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GalaxyError(f"Cannot keep vectors in {folder}: {error.strerror}.") from error
    with locked(folder / "lock"):  # two runs at once do the work once
        store = _Store(folder, len(pool), embedder)
        todo = store.todo()
        done = _prepared(pool.items, embedder, todo, size)
        for indices, batch, problems in _with_progress(done, len(todo), show_progress):
            store.write(*_embedded(embedder, indices, batch, problems))
        return store.result()


def _embedded(
    embedder: Embedder, indices: list[int], batch: list[Any], bad: dict[int, str]
) -> tuple[list[int], Vectors, dict[int, str]]:
    """The vectors of a batch; if the model fails at it, those it can make one by one."""
    if not batch:
        return [], np.empty((0, embedder.width), dtype=np.float32), bad
    try:
        return indices, embedder.embed(batch), bad
    except GalaxyError:  # the model cannot be had at all
        raise
    except Exception as error:
        if len(batch) == 1:
            return _embedded(embedder, [], [], {**bad, indices[0]: one_line(error)})
    ones = [_embedded(embedder, [i], [item], {}) for i, item in zip(indices, batch)]
    good = [index for one in ones for index in one[0]]
    found = {index: why for one in ones for index, why in one[2].items()}
    return good, np.concatenate([one[1] for one in ones]), {**bad, **found}


def _key(content: str, size: int, version: str) -> str:
    if not content:
        raise InvalidArgument("The pool has no content to keep its vectors by.")
    return hashlib.blake2b(f"{content} {size} {version}".encode(), digest_size=12).hexdigest()


Prepared = tuple[list[int], list[Any], dict[int, str]]


def _prepared(
    items: Any, embedder: Embedder, todo: Sequence[int], batch_size: int
) -> Iterator[Prepared]:
    """Batches of examples made ready by threads while the network works on those before."""

    def ready(index: int) -> tuple[Any, str | None]:
        try:
            if embedder.kind == "images":
                return embedder.prepare(read_image(items, index, embedder.side)), None
            return embedder.prepare(items[index]), None
        except Exception as error:  # one bad example never ends a run
            return None, one_line(error)

    with ThreadPoolExecutor(n_threads()) as threads:
        batches = [todo[i : i + batch_size] for i in range(0, len(todo), batch_size)]
        ahead: list[tuple[Sequence[int], Any]] = []
        for batch in [*batches, *[[]] * 2]:
            if batch:
                ahead.append((batch, [threads.submit(ready, index) for index in batch]))
            if ahead and (len(ahead) > 2 or not batch):
                indices, futures = ahead.pop(0)
                yield _sorted_out(indices, [future.result() for future in futures])


def _sorted_out(indices: Sequence[int], made: Iterable[tuple[Any, str | None]]) -> Prepared:
    good: dict[int, Any] = {}
    bad: dict[int, str] = {}
    for index, (item, problem) in zip(indices, made):
        if problem is None:
            good[index] = item
        else:
            bad[index] = problem
    return list(good), list(good.values()), bad


def _with_progress(done: Iterator[Prepared], total: int, show: bool) -> Iterator[Prepared]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    rate = TextColumn("{task.fields[rate]}")
    columns = (
        TextColumn("Embedding"),
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        TimeRemainingColumn(),
    )
    with Progress(*columns, disable=not show or not total, transient=True) as bar:
        task = bar.add_task("", total=total, rate="")
        for indices, batch, bad in done:
            yield indices, batch, bad
            speed = bar.tasks[0].speed
            bar.update(task, advance=len(indices) + len(bad), rate=f"{speed or 0:,.0f}/s")


class _Store:
    """Vectors in a file of their own, and which of them are there."""

    def __init__(self, folder: Path, size: int, embedder: Embedder) -> None:
        self._folder = folder
        shape, paths = (size, embedder.width), [folder / "vectors.npy", folder / "states.npy"]
        with self._naming():
            if not _is_whole(paths[0], shape) or not _is_whole(paths[1], (size,)):
                for path in paths:
                    path.unlink(missing_ok=True)
            self._vectors = _mapped(paths[0], shape, np.dtype(np.float32))
            self._states = _mapped(paths[1], (size,), np.dtype(np.uint8))
            about = {"model": embedder.name, "examples": size}
            (folder / "about.json").write_text(json.dumps(about, indent=2))

    def todo(self) -> list[int]:
        """The examples that are not there, and those that were bad: they may be mended."""
        todo: list[int] = np.flatnonzero(self._states != _DONE).tolist()
        if todo:
            (self._folder / "bad.jsonl").unlink(missing_ok=True)
        return todo

    def write(self, indices: list[int], vectors: NDArray[Any], bad: dict[int, str]) -> None:
        """Keep some vectors. They are on the disk before they are said to be."""
        self._vectors[indices] = vectors
        self._vectors.flush()
        if bad:
            with self._naming(), (self._folder / "bad.jsonl").open("a") as file:
                file.writelines("\n" + json.dumps([index, why]) for index, why in bad.items())
        self._states[indices] = _DONE
        self._states[list(bad)] = _BAD
        self._states.flush()

    def result(self) -> Embedded:
        """All vectors, to be read only."""
        vectors = np.load(self._folder / "vectors.npy", mmap_mode="r")
        return Embedded(vectors, self._bad())

    def _bad(self) -> dict[int, str]:
        path, reasons = self._folder / "bad.jsonl", dict[int, str]()
        for line in path.read_text().splitlines() if path.exists() else []:
            with suppress(ValueError, TypeError):  # a line that a kill has cut off
                index, reasons[index] = json.loads(line)
        bad = np.flatnonzero(self._states == _BAD).tolist()
        return {index: reasons.get(index, "It could not be read.") for index in bad}

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = f"Cannot keep vectors in {self._folder}: {error.strerror}."
            raise GalaxyError(reason) from error


def _is_whole(path: Path, shape: tuple[int, ...]) -> bool:
    try:
        found: tuple[int, ...] = np.load(path, mmap_mode="r").shape
        return found == shape
    except (OSError, ValueError, EOFError):  # not there, or cut off
        return False


def _mapped(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.memmap[Any, Any]:
    """A mapped array with all its space taken, so that a full disk is an error here and now."""
    if not path.exists():
        part = path.with_suffix(".part")
        np.lib.format.open_memmap(part, mode="w+", dtype=dtype, shape=shape).flush()
        if hasattr(os, "posix_fallocate"):
            with part.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, part.stat().st_size)
        part.replace(path)
    return np.lib.format.open_memmap(path, mode="r+")
