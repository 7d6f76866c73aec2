"""Results of simulated runs: one SQLite file, added to after every round."""

from __future__ import annotations

import json
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.suite import Cell
from galaxy_al.simulation import Round
from galaxy_al.version import __version__

_SCHEMA = """
create table if not exists cells (
    key text primary key, setting text not null, label text not null, seed integer not null,
    batch_size integer not null, n_examples integer not null, n_rare integer not null,
    data text not null, config text not null, versions text not null
) strict;
create table if not exists rounds (
    key text not null references cells, round integer not null, n_labels integer not null,
    balanced_accuracy real not null, average_precision real not null, f1 real not null,
    rare_found integer not null, selection real not null, training real not null,
    scoring real not null, judging real not null, whole real not null,
    indices text not null, generator_state text not null,
    primary key (key, round)
) strict;
"""
_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    rounds: int
    n_labels: int
    balanced_accuracy: float
    n_examples: int

    def is_done(self, rounds: int) -> bool:
        """Whether it has so many rounds, or has labelled everything."""
        return self.rounds >= rounds or self.n_labels >= self.n_examples


class Results:
    """The results in one file; several processes may add to it at once."""

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.exists():
            raise GalaxyError(f"There are no results in {self.path}.")
        if not self.path.parent.is_dir():
            raise GalaxyError(f"There is no folder {self.path.parent} for {self.path.name}.")
        with self._naming():
            self._db = self._opened(is_read_only=must_exist)

    def _opened(self, is_read_only: bool) -> sqlite3.Connection:
        if is_read_only:
            place = f"{self.path.absolute().as_uri()}?mode=ro"
            db = sqlite3.connect(place, uri=True, timeout=60, isolation_level=None)
            db.execute("select indices, generator_state from rounds limit 1")
            return db
        db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.executescript(_SCHEMA)
        return db

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def begin(self, cell: Cell, *, n_examples: int, n_rare: int, data: str) -> None:
        """Note a run before its first round; one that has rounds stays as it is.

        Parameters
        ----------
        data
            Says which data it is; a run cannot go on with another.
        """
        self.check_data(cell, data)
        config = json.dumps(cell.config, sort_keys=True)
        row: tuple[Any, ...] = (cell.key, cell.setting, cell.contender.label, cell.seed)
        row += (cell.batch_size, n_examples, n_rare, data, config, json.dumps(_versions()))
        with self._naming():
            has_rounds = "select 1 from rounds where key = ?"
            if not self._db.execute(has_rounds, (cell.key,)).fetchone():
                self._db.execute(f"insert or replace into cells values ({_marks(row)})", row)

    def check_data(self, cell: Cell, data: str) -> None:
        """Refuse other data than that of a run's rounds so far."""
        query = "select data from cells join rounds using (key) where key = ? limit 1"
        with self._naming():
            found = self._db.execute(query, (cell.key,)).fetchone()
        if found and found[0] != data:
            raise GalaxyError(
                f"{self.path} has results of {cell.contender.label} on other data than there is "
                "now. Name another file by --results."
            )

    def add(self, cell: Cell, number: int, step: Round, whole: float) -> None:
        """Add a round; it is in the file when this returns.

        Parameters
        ----------
        number
            Of the round, from 1.
        whole
            Seconds taken by all of it.
        """
        row: tuple[Any, ...] = (cell.key, number, step.n_labels, step.balanced_accuracy)
        row += (step.average_precision, step.f1, step.rare_found, *astuple(step.seconds), whole)
        row += (json.dumps(step.indices), json.dumps(step.generator_state))
        with self._naming():
            self._db.execute(f"insert or ignore into rounds values ({_marks(row)})", row)

    def asked(self, cell: Cell) -> tuple[list[list[int]], dict[str, Any] | None]:
        """What a run has asked, round by round, and where its random choices stood then."""
        query = "select indices, generator_state from rounds where key = ? order by round"
        with self._naming():
            rows = self._db.execute(query, (cell.key,)).fetchall()
        state = json.loads(rows[-1][1]) if rows else None
        return [json.loads(indices) for indices, _ in rows], state

    def progress(self, most: int) -> dict[str, Progress]:
        """By key, how far each run is, of so many rounds at most."""
        query = """select key, round, n_labels, balanced_accuracy, n_examples
            from rounds join cells using (key)
            join (select key as its, max(round) as last from rounds where round <= ? group by key)
            on key = its and round = last"""
        with self._naming():
            rows = self._db.execute(query, (most,)).fetchall()
        return {key: Progress(*rest) for key, *rest in rows}

    def table(self) -> dict[str, list[Any]]:
        """All rounds as columns, with the run that each belongs to."""
        query = """select setting, label, seed, batch_size, n_examples, n_rare, rounds.*,
            config, versions from rounds join cells using (key)
            order by setting, label, seed, key, round"""
        with self._naming():
            cursor = self._db.execute(query)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        columns = zip(*rows) if rows else ([] for _ in names)
        return {name: list(values) for name, values in zip(names, columns)}

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = "it holds no results, or old ones" if "no such" in str(error) else error
            raise GalaxyError(f"{self.path}: {reason}.") from error


def _marks(row: tuple[Any, ...]) -> str:
    return ", ".join("?" * len(row))


def _versions() -> dict[str, str]:
    found = {"galaxy-al": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
