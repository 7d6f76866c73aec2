"""The examples nearest to a point: by looking at all of them, or by an index if that takes long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import one_line
from galaxy_al.free_examples import FreeExamples
from galaxy_al.graphs.distances import squared_distances, squared_distances_to
from galaxy_al.shards import HasRows, Parts, Rows, Table, parts_of, random_rows, row_blocks
from galaxy_al.strategies.scoring import lowest_among
from galaxy_al.system.floats import at_least_single

_LOGGER = logging.getLogger(__name__)
_PATIENCE = 2.0
_MORE, _FEW = 2, 16  # candidates for each example that is wanted, and in any case
_TRAINED_ON = 1 << 16
_CELLS, _PROBED = 1024, 64
_MOST_COLUMNS = 64  # of the vectors in an index: a byte for each
_ROWS = 1 << 14

Vectors = NDArray[np.floating[Any]]


class Nearest:
    """Finds the examples nearest to a point.

    A search that looks at all examples and takes longer than it should starts an index. Searches
    use it as soon as it is complete, if faiss is installed.

    Parameters
    ----------
    patience
        How many seconds a search should take at most.
    """

    def __init__(self, vectors: Table, patience: float = _PATIENCE) -> None:
        self._vectors, self._patience = vectors, patience
        self._index: VectorIndex | None = None
        self._building: threading.Thread | None = None

    def __call__(self, query: Vectors, count: int, without: Collection[int] = ()) -> list[int]:
        """The examples nearest to a point, the nearest first."""
        if self._index is not None:
            return self._index.nearest(query, count, without)
        begin = time.perf_counter()
        found = nearest(self._vectors, query, count, without)
        if time.perf_counter() - begin > self._patience:
            self._start()
        return found

    def wait(self) -> None:
        """Return when no index is being built."""
        if self._building is not None:
            self._building.join()

    def _start(self) -> None:
        if self._building is None and find_spec("faiss") is not None:
            self._building = threading.Thread(target=self._build, daemon=True)
            self._building.start()

    def _build(self) -> None:
        try:
            self._index = VectorIndex.of(self._vectors)
        except Exception as error:
            _LOGGER.warning("Cannot build an index of the vectors: %s", one_line(error))


def nearest(table: Table, query: Vectors, count: int, without: Collection[int] = ()) -> list[int]:
    """The examples nearest to a point, the nearest first, by looking at all."""
    free = FreeExamples(len(table), without)
    score = partial(_distances, query)
    return _exact(table, query, lowest_among(table, free, _MORE * count + _FEW, score), count)


def _distances(query: Vectors, rows: Vectors) -> Vectors:
    return squared_distances_to(at_least_single(rows), query)


def _exact(table: Table, query: Vectors, nodes: NDArray[np.intp], count: int) -> list[int]:
    """The nearest of some examples, by distances in double precision."""
    nodes = np.sort(nodes)
    apart = squared_distances(table[nodes].astype(np.float64), query[None])[:, 0]
    found: list[int] = nodes[apart.argsort(kind="stable")[:count]].tolist()
    return found


class VectorIndex:
    """An index of the vectors of a pool, made by faiss; each part of the pool keeps its own.

    It compares a query with the examples in the 64 cells nearest to it, out of 1,024, by a byte for
    each of at most 64 columns. What it finds is then sorted by the exact distances.
    """

    def __init__(self, table: Table, parts: Parts[IndexedRows]) -> None:
        self._table, self._parts = table, parts

    @classmethod
    def of(cls, table: Table) -> VectorIndex:
        """Build the index of a table where its rows are."""
        import faiss

        rows = np.sort(random_rows(len(table), _TRAINED_ON, np.random.default_rng(0)))
        sample = at_least_single(table[rows]).astype(np.float32)
        cells = min(_CELLS, max(len(sample) // 39, 1))  # faiss wants 39 examples for each
        reduced = f"PCAR{_MOST_COLUMNS}," if sample.shape[1] > _MOST_COLUMNS else ""
        trained = faiss.index_factory(sample.shape[1], f"{reduced}IVF{cells},SQ8")
        trained.train(sample)
        parts = parts_of(table).map(partial(_indexed, faiss.serialize_index(trained)))
        parts.reduce(_n_rows, max)  # returns when all are there
        return cls(table, parts)

    def nearest(self, query: Vectors, count: int, without: Collection[int] = ()) -> list[int]:
        """The examples nearest to a point, as far as the index can tell."""
        left_out = np.sort(np.fromiter(without, np.int64, len(without)))
        work = partial(_search, query.astype(np.float32), _MORE * count + _FEW, left_out)
        nodes, apart = self._parts.reduce(work, _both)
        best = nodes[apart.argsort(kind="stable")[: _MORE * count + _FEW]]
        return _exact(self._table, query, best, count)


class IndexedRows(NamedTuple):
    """The index of a part of a pool, and where the part starts."""

    start: int
    index: Any


def _indexed(trained: NDArray[np.uint8], part: HasRows) -> IndexedRows:
    import faiss

    rows: Rows = part.open()
    index = faiss.deserialize_index(trained)
    for low, high in row_blocks(len(rows.values), _ROWS):
        index.add(at_least_single(rows.values[low:high]).astype(np.float32))
    return IndexedRows(rows.start, index)


def _n_rows(part: IndexedRows) -> int:
    return int(part.index.ntotal)


def _search(
    query: Vectors, count: int, left_out: NDArray[np.int64], part: IndexedRows
) -> tuple[NDArray[np.intp], Vectors]:
    """The examples of a part nearest to a point, and their squared distances."""
    import faiss

    start, index = part
    own = left_out[slice(*left_out.searchsorted([start, start + index.ntotal]))]
    kept = faiss.IDSelectorNot(faiss.IDSelectorBatch(own - start))
    options = faiss.SearchParametersIVF(sel=kept, nprobe=_PROBED)
    if isinstance(index, faiss.IndexPreTransform):
        options = faiss.SearchParametersPreTransform(index_params=options)
    apart, rows = index.search(query[None], count, params=options)
    is_found = rows[0] >= 0
    return rows[0][is_found] + start, apart[0][is_found]


def _both(
    one: tuple[NDArray[np.intp], Vectors], other: tuple[NDArray[np.intp], Vectors]
) -> tuple[NDArray[np.intp], Vectors]:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])
