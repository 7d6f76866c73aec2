"""A pool in shards: the vectors stay where they are, and what is shown of an example is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, overload

from galaxy_al.cluster.connecting import connected
from galaxy_al.data.modalities import MODALITIES, Modality
from galaxy_al.data.shard_files import Manifest, Shard
from galaxy_al.shards import LocalParts, Parts, ShardedTable
from galaxy_al.system.addresses import absolute, files_in

_REMEMBERED = 100_000  # ids


class ShardedPool:
    """A pool whose vectors lie in shards, as `galaxy-al embed` makes it.

    Parameters
    ----------
    folder
        Its folder, at any address that fsspec knows.
    scheduler
        The address of a dask scheduler whose workers do the work, or ``"local"`` for processes on
        this machine. By default this process does it.

    Attributes
    ----------
    vectors
        The vectors, for a `Learner`.

    Examples
    --------
    ``Learner(ShardedPool("shards"), n_classes=2)`` asks about a pool as large as your disk.
    """

    def __init__(self, folder: str | Path, *, scheduler: str | None = None) -> None:
        self.folder = absolute(folder)
        self.manifest = Manifest.read(self.folder)
        found = files_in(self.folder)
        self.manifest.check_files(self.folder, found)
        shards = self.manifest.shards_in(self.folder, found)
        self._stack = ExitStack()
        parts: Parts[Shard] = LocalParts(shards)
        if scheduler is not None:
            from galaxy_al.cluster.parts import ClusterParts

            client = self._stack.enter_context(connected(scheduler))
            parts = ClusterParts.of(client, shards)
        starts = self.manifest.starts
        dtype: Any = self.manifest.dtype
        self.vectors = ShardedTable(parts, starts, self.manifest.width, dtype)
        self.ids = ShardedIds(self.vectors)
        self.items = _items(self)

    @property
    def kind(self) -> str:
        """What the examples are."""
        return self.manifest.kind

    @property
    def modality(self) -> Modality:
        """What knows how to show and export the examples."""
        return MODALITIES[self.kind]

    @property
    def bad(self) -> dict[int, str]:
        """Why examples have no vector, by index."""
        return {
            start + int(row): reason
            for start, shard in zip(self.manifest.starts, self.manifest.shards)
            for row, reason in shard.bad.items()
        }

    def __len__(self) -> int:
        return len(self.vectors)

    def check(self) -> None:
        """Read all files once; one that has changed is an error that names it."""
        self.vectors.parts.reduce(_check, _nothing)

    def ids_of_shard(self, number: int) -> list[str]:
        """The ids of a shard; they are not remembered."""
        low, high = self.vectors.starts[number : number + 2].tolist()
        return _names(self.vectors, "id", range(low, high))

    def close(self) -> None:
        """Leave the cluster."""
        self._stack.close()

    def __enter__(self) -> ShardedPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ShardedIds(Sequence[str]):
    """The ids of a pool in shards; those that were asked for last are remembered."""

    def __init__(self, vectors: ShardedTable) -> None:
        self._vectors, self._lock = vectors, Lock()
        self._by_index: dict[int, str] = {}
        self._by_id: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._vectors)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.at(range(*index.indices(len(self))))
        return self.at([range(len(self))[index]])[0]

    def at(self, indices: Iterable[int]) -> list[str]:
        """The ids of some examples."""
        wanted = [int(index) for index in indices]
        known = self._by_index
        found = {index: known[index] for index in wanted if index in known}
        new = [index for index in wanted if index not in found]
        found |= self._remember(dict(zip(new, _names(self._vectors, "id", new))))
        return [found[index] for index in wanted]

    def find(self, ids: Iterable[str]) -> dict[str, int]:
        """The indices of those ids that the pool has."""
        wanted, known = list(ids), self._by_id
        found = {id: known[id] for id in wanted if id in known}
        new = [id for id in wanted if id not in found]
        if new:
            more = self._vectors.parts.reduce(partial(_find, new), _joined)
            self._remember({index: id for id, index in more.items()})
            found |= more
        return {id: found[id] for id in wanted if id in found}

    def _remember(self, new: dict[int, str]) -> dict[int, str]:
        """Keep some ids, and forget all others if they become too many."""
        with self._lock:
            if len(self._by_index) + len(new) > _REMEMBERED:
                self._by_index, self._by_id = {}, {}
            if len(new) <= _REMEMBERED:
                self._by_index.update(new)
                self._by_id.update((id, index) for index, id in new.items())
        return new


def _names(table: ShardedTable, column: str, indices: Sequence[int]) -> list[str]:
    """The ids, texts or paths of some examples, in their order."""
    numbers = table.starts.searchsorted(indices, side="right") - 1
    by_shard: dict[int, list[int]] = {}
    for number, index in zip(numbers.tolist(), indices):
        by_shard.setdefault(number, []).append(index)
    found: dict[int, str] = {}
    answers = table.parts.some(partial(_names_of, column), by_shard)
    for own, values in zip(by_shard.values(), answers):
        found.update(zip(own, values))
    return [found[index] for index in indices]


def _check(shard: Shard) -> None:
    shard.check()


def _nothing(one: None, other: None) -> None:
    return None


def _names_of(column: str, shard: Shard, indices: list[int]) -> list[str]:
    return shard.names_of(column, indices)


def _find(ids: list[str], shard: Shard) -> dict[str, int]:
    return shard.find(ids)


def _joined(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return one | other


class _Texts:
    """The texts of a pool in shards."""

    def __init__(self, vectors: ShardedTable) -> None:
        self._vectors = vectors

    def __len__(self) -> int:
        return len(self._vectors)

    def __getitem__(self, index: int) -> str:
        return _names(self._vectors, "text", [index])[0]


class _Paths(Sequence[Path]):
    """The files of a pool in shards."""

    def __init__(self, folder: Path, vectors: ShardedTable) -> None:
        self._folder, self._vectors = folder, vectors

    def __len__(self) -> int:
        return len(self._vectors)

    def __getitem__(self, index: Any) -> Any:
        return self._folder / _names(self._vectors, "path", [index])[0]


def _items(pool: ShardedPool) -> Any:
    if pool.kind == "texts":
        return _Texts(pool.vectors)
    if pool.kind == "images":
        from galaxy_al.data.modalities.images import ImageFiles

        return ImageFiles(_Paths(Path(pool.manifest.source), pool.vectors))
    return pool.vectors
