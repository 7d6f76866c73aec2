"""The SQLite file of a project: every entry and every round, added and never changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.audit_records import (
    AuditRecord,
    DrawRecord,
    PlanRecord,
    from_columns,
    to_columns,
)
from galaxy_al.labelling.log import Entry
from galaxy_al.system.migrations import migrate, refuse_newer, schema_version

_Record = TypeVar("_Record", AuditRecord, DrawRecord, PlanRecord, "PoolRecord")


def _never_changed(*tables: str) -> tuple[str, ...]:
    return tuple(
        f"create trigger if not exists {table}_are_not_{verb}d before {verb} on {table} "
        "begin select raise(abort, 'what is written stays'); end"
        for table in tables
        for verb in ("update", "delete")
    )


# Number n of these leads to version n of the schema. The first also accepts the files that were
# written before versions were counted. Add new ones at the end, and never change one.
# Renaming a column is not an update of rows, so the triggers allow it.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        create table if not exists entries (
            annotator text not null,
            kind text not null check (kind in ('label', 'skip', 'cannot tell', 'undo')),
            example text not null,
            label text,
            undoes integer references entries (number),
            round integer not null,
            drawn integer not null,
            how text not null,
            at text not null,
            number integer primary key autoincrement
        ) strict
        """,
        """
        create table if not exists rounds (
            number integer primary key, n_labels integer not null, rare_found integer not null,
            accuracy real, low real, high real, seconds real not null, at text not null
        ) strict
        """,
        *_never_changed("entries", "rounds"),
    ),
    (
        "alter table entries rename column drawn to is_random",
        "alter table entries rename column how to source",
        "alter table entries rename column at to created_at",
        "alter table rounds rename column at to created_at",
    ),
    (
        """
        create table audits (
            classes text not null, size integer not null, digest text not null,
            after integer not null, random_after integer not null, strata blob not null,
            decided text not null, expected text not null,
            created_at text not null, number integer primary key autoincrement
        ) strict
        """,
        """
        create table draws (
            audit integer not null references audits (number), example text not null,
            stratum integer not null, n_free text not null, chances text not null,
            after integer not null, created_at text not null,
            number integer primary key autoincrement
        ) strict
        """,
        """
        create table plans (
            audit integer not null references audits (number), n_wanted integer not null,
            share real not null, created_at text not null,
            number integer primary key autoincrement
        ) strict
        """,
        *_never_changed("audits", "draws", "plans"),
    ),
    ("alter table entries add column probability real",),
    (
        "alter table rounds add column insight text not null default ''",
        """
        create table pools (
            size integer not null, n_usable integer not null, after integer not null,
            created_at text not null, number integer primary key autoincrement
        ) strict
        """,
        *_never_changed("pools"),
    ),
)


@dataclass(frozen=True)
class RoundRecord:
    """A training.

    Parameters
    ----------
    n_labels, rare_found
        The labels, and those of a rare class.
    accuracy, low, high
        The balanced accuracy by random labels; None if it cannot be estimated.
    insight
        An `Insight` as text; empty if there is none.
    """

    number: int
    n_labels: int
    rare_found: int
    accuracy: float | None
    low: float | None
    high: float | None
    seconds: float
    insight: str = ""
    created_at: str = ""


@dataclass(frozen=True)
class PoolRecord:
    """The pool as it was when the project was opened.

    Parameters
    ----------
    size, n_usable
        All examples, and those that can be labelled.
    after
        The number of the last entry in the log before it.
    """

    size: int
    n_usable: int
    after: int
    created_at: str = ""
    number: int = 0


class Database:
    """The log on disk. Once `add` has returned, its entries survive a crash or a power cut.

    Parameters
    ----------
    read_only
        Leave the file as it is. An older schema is then migrated in a copy in memory.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        with self._naming():
            self._db = _read_only(path) if read_only else _connect(path)
            try:
                self._open(read_only)
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def add(self, entries: Sequence[Entry]) -> list[Entry]:
        """Write entries, all or none, and return them with their numbers and times."""
        now, written = _now(), []
        with self._naming(), self._transaction():
            for entry in entries:
                timed = entry if entry.created_at else replace(entry, created_at=now)
                values = asdict(timed)
                del values["number"]
                written.append(replace(timed, number=self._insert("entries", values)))
        return written

    def entries(self) -> Iterator[Entry]:
        """All entries in order."""
        for row in self._rows("entries", Entry):
            yield Entry(**{**row, "is_random": bool(row["is_random"])})

    def add_round(self, record: RoundRecord) -> RoundRecord:
        """Write a round, and return it with its time."""
        timed = replace(record, created_at=record.created_at or _now())
        with self._naming():
            self._insert("rounds", asdict(timed))
        return timed

    def rounds(self) -> list[RoundRecord]:
        """All rounds in order."""
        return [RoundRecord(**row) for row in self._rows("rounds", RoundRecord)]

    def add_audit(self, record: AuditRecord) -> AuditRecord:
        """Write how an audit began, and return it with its number and time."""
        return self._numbered("audits", record)

    def audits(self) -> list[AuditRecord]:
        """All audits in order."""
        lists = ("classes", "decided", "expected")
        return [
            AuditRecord(**from_columns(row, lists)) for row in self._rows("audits", AuditRecord)
        ]

    def add_draw(self, record: DrawRecord) -> DrawRecord:
        """Write a draw of an audit, and return it with its number and time."""
        return self._numbered("draws", record)

    def draws(self) -> list[DrawRecord]:
        """The draws of all audits in order."""
        lists = ("n_free", "chances")
        return [DrawRecord(**from_columns(row, lists)) for row in self._rows("draws", DrawRecord)]

    def add_plan(self, record: PlanRecord) -> PlanRecord:
        """Write a plan of an audit, and return it with its number and time."""
        return self._numbered("plans", record)

    def plans(self) -> list[PlanRecord]:
        """The plans of all audits in order."""
        return [PlanRecord(**row) for row in self._rows("plans", PlanRecord)]

    def add_pool(self, record: PoolRecord) -> PoolRecord:
        """Write how large the pool is, and return it with its number and time."""
        return self._numbered("pools", record)

    def pools(self) -> list[PoolRecord]:
        """The sizes of the pool in order."""
        return [PoolRecord(**row) for row in self._rows("pools", PoolRecord)]

    def _numbered(self, table: str, record: _Record) -> _Record:
        timed = replace(record, created_at=record.created_at or _now())
        values = to_columns(asdict(timed))
        del values["number"]
        with self._naming():
            return replace(timed, number=self._insert(table, values))

    def _open(self, read_only: bool) -> None:
        refuse_newer(self._db, len(MIGRATIONS), self._path)
        if not read_only:
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = full")
        elif schema_version(self._db) < len(MIGRATIONS):
            file, self._db = self._db, _connect(":memory:")
            file.backup(self._db)
            file.close()
        migrate(self._db, MIGRATIONS, self._path)

    def _insert(self, table: str, values: dict[str, Any]) -> int:
        columns, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        done = self._db.execute(f"insert into {table} ({columns}) values ({marks})", values)
        return int(done.lastrowid or 0)

    def _rows(self, table: str, kind: type[Any]) -> Iterator[dict[str, Any]]:
        names = [field.name for field in fields(kind)]
        with self._naming():
            for row in self._db.execute(f"select {', '.join(names)} from {table} order by number"):
                yield dict(row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise GalaxyError(f"{self._path}: {error}.") from error


def _connect(path: Path | str, *, is_uri: bool = False) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, uri=is_uri)
    db.row_factory = sqlite3.Row
    return db


def _read_only(path: Path) -> sqlite3.Connection:
    """The file for reading only, or an empty database if there is none."""
    if not path.exists():
        return _connect(":memory:")
    if os.access(path.parent, os.W_OK):
        db = _connect(path)  # a connection that may not write leaves SQLite's own files behind
        db.execute("pragma query_only = on")
        return db
    # SQLite has two files beside one that is in use. It cannot create them here, and does not
    # need them if nothing is using the file.
    is_in_use = path.with_name(path.name + "-wal").exists()
    mode = "mode=ro" if is_in_use else "mode=ro&immutable=1"
    return _connect(f"{path.resolve().as_uri()}?{mode}", is_uri=True)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
