"""Whether files are still what the manifest says; the workers read each of them once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from galaxy_al.cluster.parts import ClusterParts
from galaxy_al.data.shard_files import ShardFile
from galaxy_al.system.addresses import checksum_at, join


def changed_files(client: Any, folder: str, files: Sequence[ShardFile]) -> frozenset[str]:
    """The names of those of some files whose content has changed."""
    if not files:
        return frozenset()
    return ClusterParts.of(client, files).map(partial(_changed, folder)).reduce(_same, _joined)


def _changed(folder: str, file: ShardFile) -> frozenset[str]:
    is_same = checksum_at(join(folder, file.name)) == file.sha256
    return frozenset() if is_same else frozenset([file.name])


def _same(names: frozenset[str]) -> frozenset[str]:
    return names


def _joined(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    return one | other
