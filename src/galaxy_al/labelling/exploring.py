"""The outliers of a project, kept on the disk: finding them takes longer than all the rest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from galaxy_al.errors import GalaxyError
from galaxy_al.graphs.local_outliers import LocalOutliers, Table, local_outliers
from galaxy_al.strategies import Discovery, Strategy
from galaxy_al.system.files import digest, writing

OUTLIERS_FILE = "outliers.npz"
_SAMPLE = 1000  # embeddings by which a pool is known


def explorer_of(strategy: Strategy, folder: Path) -> Discovery:
    """What asks until two classes are known; its outliers are kept in the folder."""
    explorer = strategy.explorer
    discovery = explorer if isinstance(explorer, Discovery) else Discovery()
    discovery.outliers.find_with(lambda pool: remembered_outliers(pool, folder / OUTLIERS_FILE))
    return discovery


def remembered_outliers(embeddings: Table, path: Path) -> LocalOutliers:
    """The outliers of a pool, from the file if it has those of the same pool."""
    key = _key(embeddings)
    with suppress(OSError, ValueError, KeyError, EOFError, BadZipFile):
        return _read(path, key, embeddings)
    found = local_outliers(embeddings)
    with suppress(GalaxyError):  # on a full disk they are found again
        _write(path, key, found)
    return found


def _read(path: Path, key: str, embeddings: Table) -> LocalOutliers:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
        if str(kept["key"]) != key:
            raise KeyError(key)
        indices, factors, scales = kept["indices"], kept["factors"], kept["scales"]
    return LocalOutliers(indices, factors, scales, np.asarray(embeddings[indices]))


def _write(path: Path, key: str, found: LocalOutliers) -> None:
    tables = {"indices": found.indices, "factors": found.factors, "scales": found.scales}
    with writing(path) as part, part.open("wb") as file:  # a path would get another suffix
        np.savez(file, allow_pickle=False, key=np.array(key), **tables)


def _key(embeddings: Table) -> str:
    """What the outliers depend on; of the embeddings their shape and about `_SAMPLE` rows."""
    rows = np.arange(0, len(embeddings), max(len(embeddings) // _SAMPLE, 1))
    sample = np.ascontiguousarray(embeddings[rows])
    return digest([str(embeddings.shape), sample.tobytes()])
