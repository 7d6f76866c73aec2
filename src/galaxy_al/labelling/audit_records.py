"""What a project keeps of its audits: enough to compute every result again."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.audit.draws import Counts, Values
from galaxy_al.audit.sampling import Strata


@dataclass(frozen=True)
class AuditRecord:
    """How an audit began.

    Parameters
    ----------
    classes
        The names of the classes, the majority class last.
    size, digest
        The number of examples in the pool, and the digest of their ids.
    after
        The number of the last entry in the log before it.
    random_after
        The number of the entry after which the strategy drew random examples from this pool: it
        was smaller before.
    strata
        The stratum of each example, compressed; also of those with a label.
    decided, expected
        As of `Strata`.
    """

    classes: tuple[str, ...]
    size: int
    digest: str
    after: int
    random_after: int
    strata: bytes
    decided: tuple[int, ...]
    expected: tuple[tuple[float, ...], ...]
    created_at: str = ""
    number: int = 0

    def unpacked(self) -> Strata:
        """The strata as arrays."""
        of = np.frombuffer(zlib.decompress(self.strata), dtype="<i2")
        return Strata(of.astype(np.intp), np.array(self.decided), np.array(self.expected))


@dataclass(frozen=True)
class PlanRecord:
    """How many draws an audit is to have; the last plan counts.

    Parameters
    ----------
    n_wanted
        The number of draws since the audit began.
    share
        The share of the questions that are draws until then; the strategy asks the others.
    """

    audit: int
    n_wanted: int
    share: float
    created_at: str = ""
    number: int = 0


@dataclass(frozen=True)
class DrawRecord:
    """One draw.

    Parameters
    ----------
    example
        Its id.
    n_free, chances
        As of `Draws`, before it.
    after
        The number of the last entry in the log before it.
    """

    audit: int
    example: str
    stratum: int
    n_free: tuple[int, ...]
    chances: tuple[float, ...]
    after: int
    created_at: str = ""
    number: int = 0


def packed(of: NDArray[np.intp]) -> bytes:
    """Strata of examples, for an `AuditRecord`."""
    return zlib.compress(of.astype("<i2").tobytes(), 6)


def as_tuples(table: Values | Counts) -> Any:
    """An array as tuples of Python's numbers."""
    listed = table.tolist()
    return tuple(tuple(row) if isinstance(row, list) else row for row in listed)


def to_columns(values: dict[str, Any]) -> dict[str, Any]:
    """A record as a row of the database: tuples become JSON."""
    return {
        name: json.dumps(value) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def from_columns(row: dict[str, Any], lists: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a record from a row of the database."""

    def tuples(value: Any) -> Any:
        return tuple(map(tuples, value)) if isinstance(value, list) else value

    return {name: tuples(json.loads(v)) if name in lists else v for name, v in row.items()}
