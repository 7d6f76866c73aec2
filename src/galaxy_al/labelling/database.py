"""The SQLite file of a project: every label and every round, added and never changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime, timezone
from pathlib import Path

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.log import Entry

_SCHEMA = """
create table if not exists entries (
    annotator text not null,
    kind text not null check (kind in ('label', 'skip', 'cannot tell', 'undo')),
    example text not null,
    label text,
    undoes integer references entries (number),
    round integer not null,
    is_random integer not null,
    source text not null,
    created_at text not null,
    number integer primary key autoincrement
) strict;
create table if not exists rounds (
    number integer primary key, n_labels integer not null, rare_found integer not null,
    accuracy real, low real, high real, seconds real not null, created_at text not null
) strict;
"""
_STAYS = """
create trigger if not exists {table}_are_not_{verb}d before {verb} on {table}
begin select raise(abort, 'what is written stays'); end;
"""


@dataclass(frozen=True)
class RoundRecord:
    """A training: with how many labels, how good by cross-validation, and how long it took."""

    number: int
    n_labels: int
    rare_found: int
    accuracy: float | None
    low: float | None
    high: float | None
    seconds: float
    created_at: str = ""


class Database:
    """The log on disk. What `add` has returned for survives a crash of process and machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._naming():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = full")
            self._db.executescript(_SCHEMA)
            for table in ("entries", "rounds"):
                for verb in ("update", "delete"):
                    self._db.executescript(_STAYS.format(table=table, verb=verb))

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def add(self, entries: Sequence[Entry]) -> list[Entry]:
        """Write entries, all or none; they come back with their numbers and the time."""
        now = _now()
        written = []
        names = [field.name for field in fields(Entry) if field.name != "number"]
        columns, marks = ", ".join(names), ", ".join("?" * len(names))
        with self._naming(), self._transaction():
            for entry in entries:
                timed = entry if entry.created_at else replace(entry, created_at=now)
                done = self._db.execute(
                    f"insert into entries ({columns}) values ({marks})", astuple(timed)[:-1]
                )
                written.append(replace(timed, number=int(done.lastrowid or 0)))
        return written

    def entries(self) -> Iterator[Entry]:
        """All entries in order."""
        names = ", ".join(field.name for field in fields(Entry))
        with self._naming():
            for row in self._db.execute(f"select {names} from entries order by number"):
                entry = Entry(*row)
                yield replace(entry, is_random=bool(entry.is_random))

    def add_round(self, record: RoundRecord) -> None:
        """Write a round."""
        row = astuple(replace(record, created_at=record.created_at or _now()))
        with self._naming():
            self._db.execute(f"insert into rounds values ({', '.join('?' * len(row))})", row)

    def rounds(self) -> list[RoundRecord]:
        """All rounds in order."""
        with self._naming():
            rows = self._db.execute("select * from rounds order by number").fetchall()
        return [RoundRecord(*row) for row in rows]

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


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
