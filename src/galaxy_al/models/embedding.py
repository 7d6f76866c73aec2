"""Embedding a pool with a pretrained network, by way of a cache that survives a kill."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument, one_line
from galaxy_al.models.images import read_item
from galaxy_al.models.protocols import Embedder, Encoder, Vectors
from galaxy_al.models.vector_cache import VectorCache, cache_folder, make_cache_folder
from galaxy_al.system.files import locked
from galaxy_al.system.folders import home_folder
from galaxy_al.system.threads import n_threads

_BATCHES_AHEAD = 2  # prepared while the network works on the one before


@dataclass(frozen=True)
class Embedded:
    """The vectors of a pool.

    Parameters
    ----------
    vectors
        One row per example, mapped from the cache; zeros for those that are bad.
    bad
        Why examples could not be embedded, by index.
    """

    vectors: Vectors
    bad: dict[int, str]

    def good(self) -> NDArray[np.intp]:
        """The indices of the examples that have a vector."""
        return np.setdiff1d(np.arange(len(self.vectors)), list(self.bad))


class _Batch(NamedTuple):
    """Prepared examples by index, and why others could not be prepared."""

    prepared: dict[int, Any]
    bad: dict[int, str]


def embed(
    pool: Any,
    embedder: Embedder,
    *,
    cache: str | Path | None = None,
    batch_size: int | None = None,
    show_progress: bool = True,
) -> Embedded:
    """Embed a pool, or resume where an earlier run stopped.

    Vectors are kept by the content of the pool and the model, in ``cache`` or the folder
    ``embeddings`` of ``GALAXY_AL_HOME``. An example that cannot be read is noted and left out.
    """
    from rich.progress import track

    size = embedder.batch_size if batch_size is None else batch_size
    if size < 1:
        raise InvalidArgument(f"batch_size must be at least 1, got {batch_size}.")
    if pool.kind != embedder.kind:
        raise InvalidArgument(f"{embedder.name} embeds {embedder.kind}, got a pool of {pool.kind}.")
    place = home_folder() / "embeddings" if cache is None else Path(cache)
    folder = cache_folder(place, pool.content, len(pool), embedder.version)
    if not folder.exists():
        _load_encoder(embedder)  # a model that cannot be loaded leaves no folder behind
        make_cache_folder(folder)
    with locked(folder / "lock"):  # two runs at once do the work once
        kept = VectorCache(folder, len(pool), embedder)
        if todo := kept.todo():
            batches, total = (
                embedded_batches(pool.items, todo, embedder, size),
                -(-len(todo) // size),
            )
            hidden = not show_progress
            for found in track(batches, "Embedding", total, transient=True, disable=hidden):
                kept.write(*found)
        return Embedded(kept.vectors(), kept.bad())


def embedded_batches(
    items: Any, todo: Sequence[int], embedder: Embedder, batch_size: int
) -> Iterator[tuple[dict[int, Vectors], dict[int, str]]]:
    """The vectors of some items by index, and why others have none, batch by batch."""
    encoder = _load_encoder(embedder)
    prepare = partial(_prepare, items, encoder, embedder.side)
    for batch in _prepare_ahead(prepare, todo, batch_size):
        vectors, bad = _embed_batch(encoder, batch.prepared)
        yield vectors, batch.bad | bad


def _load_encoder(embedder: Embedder) -> Encoder:
    """What prepares and embeds. Threads must not load it: one example would be blamed."""
    encoder: Encoder = getattr(embedder, "encoder", embedder)
    return encoder


def _prepare(items: Any, encoder: Encoder, side: int | None, index: int) -> Any:
    return encoder.prepare(read_item(items, index, side))


def _prepare_ahead(prepare: Any, todo: Sequence[int], batch_size: int) -> Iterator[_Batch]:
    """Batches of examples, prepared by threads while the network works on those before."""
    with ThreadPoolExecutor(n_threads()) as threads:
        waiting: deque[dict[int, Future[Any]]] = deque()
        for start in range(0, len(todo), batch_size):
            indices = todo[start : start + batch_size]
            waiting.append({index: threads.submit(prepare, index) for index in indices})
            if len(waiting) > _BATCHES_AHEAD:
                yield _collect(waiting.popleft())
        while waiting:
            yield _collect(waiting.popleft())


def _collect(futures: dict[int, Future[Any]]) -> _Batch:
    batch = _Batch({}, {})
    for index, future in futures.items():
        try:
            batch.prepared[index] = future.result()
        except Exception as error:  # one bad example never ends a run
            batch.bad[index] = one_line(error)
    return batch


def _embed_batch(
    encoder: Encoder, prepared: dict[int, Any]
) -> tuple[dict[int, Vectors], dict[int, str]]:
    """The vectors of a batch by index; if the model fails at it, of each example by itself."""
    if not prepared:
        return {}, {}
    try:
        return dict(zip(prepared, encoder.embed(list(prepared.values())), strict=True)), {}
    except GalaxyError:  # the model cannot be used at all
        raise
    except Exception as error:
        if len(prepared) == 1:
            return {}, dict.fromkeys(prepared, one_line(error))
    vectors: dict[int, Vectors] = {}
    bad: dict[int, str] = {}
    for index, item in prepared.items():
        one = _embed_batch(encoder, {index: item})
        vectors |= one[0]
        bad |= one[1]
    return vectors, bad
