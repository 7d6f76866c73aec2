"""Results of simulated runs: one SQLite file that grows after every round."""

from __future__ import annotations

import json
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.suite import DETAILS, MEASURES, Run, config_key
from galaxy_al.simulation import Round
from galaxy_al.system.migrations import migrate, refuse_newer, schema_version
from galaxy_al.version import __version__

_FIRST_SCHEMA = (
    """create table if not exists cells (
    key text primary key, setting text not null, label text not null, seed integer not null,
    batch_size integer not null, n_examples integer not null, n_rare integer not null,
    data text not null, config text not null, versions text not null
) strict""",
    """create table if not exists rounds (
    key text not null references cells, round integer not null, n_labels integer not null,
    balanced_accuracy real not null, average_precision real not null, f1 real not null,
    rare_found integer not null, selection real not null, training real not null,
    scoring real not null, judging real not null, whole real not null,
    indices text not null, generator_state text not null,
    primary key (key, round)
) strict""",
)
_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


def _rename_methods(db: sqlite3.Connection) -> None:
    """Cells are called runs and contenders methods since; keys follow from the config."""
    db.execute("alter table cells rename to runs")
    for key, text in db.execute("select key, config from runs").fetchall():
        config = json.loads(text)
        config["method"] = config.pop("contender")
        new = config_key(config)
        row = (new, json.dumps(config, sort_keys=True), key)
        db.execute("update runs set key = ?, config = ? where key = ?", row)
        db.execute("update rounds set key = ? where key = ?", (new, key))


_DETAILS = tuple(f"alter table rounds add column {name} real" for name in DETAILS)
_RANDOM = ("alter table rounds add column random text not null default '[]'",)
_STEPS = (_FIRST_SCHEMA, _rename_methods, _DETAILS, _RANDOM)


@dataclass(frozen=True)
class Asked:
    """What a run has asked: what it needs to resume.

    Parameters
    ----------
    batches
        The indices, round by round.
    random
        Those that were asked at random.
    generator_state
        After the last round.
    """

    batches: list[list[int]]
    random: list[int]
    generator_state: dict[str, Any] | None


@dataclass(frozen=True)
class RunProgress:
    """How much of a run is done."""

    rounds: int
    n_labels: int
    balanced_accuracy: float
    n_examples: int

    def is_done(self, rounds: int) -> bool:
        """Whether it has this many rounds, or has labelled everything."""
        return self.rounds >= rounds or self.n_labels >= self.n_examples


class Results:
    """The results in one file; several processes may add to it at once."""

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.exists():
            raise GalaxyError(f"There is no results file {self.path}.")
        if not self.path.parent.is_dir():
            raise GalaxyError(f"There is no folder {self.path.parent} for {self.path.name}.")
        with self._naming():
            place = f"{self.path.absolute().as_uri()}?mode={'ro' if must_exist else 'rwc'}"
            self._db = _connect(place)
            if must_exist:
                self._read_only()
            else:
                migrate(self._db, _STEPS, self.path)
                self._db.execute("pragma journal_mode = wal")
                self._db.execute("pragma synchronous = normal")

    def _read_only(self) -> None:
        """Leave the file as it is; an older schema is migrated in a copy in memory."""
        self._db.execute("select indices, generator_state from rounds limit 1")
        refuse_newer(self._db, len(_STEPS), self.path)
        if schema_version(self._db) < len(_STEPS):
            file, self._db = self._db, _connect(":memory:")
            file.backup(self._db)
            file.close()
            migrate(self._db, _STEPS, self.path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def begin(self, run: Run, *, n_examples: int, n_rare: int, data: str) -> None:
        """Record a run before its first round; a run that has rounds stays as it is.

        Parameters
        ----------
        data
            Identifies the data; a run cannot resume on other data.
        """
        self.check_data(run, data)
        config = json.dumps(run.config, sort_keys=True)
        row: dict[str, Any] = {"key": run.key, "setting": run.setting, "label": run.method.label}
        row |= {"seed": run.seed, "batch_size": run.batch_size, "n_examples": n_examples}
        row |= {"n_rare": n_rare, "data": data, "config": config}
        row["versions"] = json.dumps(_versions())
        with self._naming():
            has_rounds = "select 1 from rounds where key = ?"
            if not self._db.execute(has_rounds, (run.key,)).fetchone():
                self._insert("or replace into runs", row)

    def check_data(self, run: Run, data: str) -> None:
        """Refuse data that differs from the data of the run's earlier rounds."""
        query = "select data from runs join rounds using (key) where key = ? limit 1"
        with self._naming():
            found = self._db.execute(query, (run.key,)).fetchone()
        if found and found["data"] != data:
            raise GalaxyError(
                f"{self.path} has results of {run.method.label} on other data: the data has "
                "changed since. Name another file with --results."
            )

    def add(self, run: Run, number: int, step: Round, whole: float) -> None:
        """Add a round; it is in the file when this method returns.

        Parameters
        ----------
        number
            Of the round, from 1.
        whole
            Seconds that the whole round took.
        """
        row: dict[str, Any] = {"key": run.key, "round": number, "n_labels": step.n_labels}
        row |= {measure: getattr(step, measure) for measure in (*MEASURES, *DETAILS)}
        row |= {**asdict(step.seconds), "whole": whole, "indices": json.dumps(step.indices)}
        row["random"] = json.dumps(step.random)
        row["generator_state"] = json.dumps(step.generator_state)
        with self._naming():
            self._insert("or ignore into rounds", row)

    def _insert(self, place: str, row: dict[str, Any]) -> None:
        columns, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        self._db.execute(f"insert {place} ({columns}) values ({marks})", row)

    def asked(self, run: Run) -> Asked:
        """What a run has asked."""
        query = "select indices, random, generator_state from rounds where key = ? order by round"
        with self._naming():
            rows = self._db.execute(query, (run.key,)).fetchall()
        state = json.loads(rows[-1]["generator_state"]) if rows else None
        random = [index for row in rows for index in json.loads(row["random"])]
        return Asked([json.loads(row["indices"]) for row in rows], random, state)

    def progress(self, most: int) -> dict[str, RunProgress]:
        """By key, the progress of each run, not counting rounds after ``most``."""
        query = """select key, round as rounds, n_labels, balanced_accuracy, n_examples
            from rounds join runs using (key)
            join (select key as its, max(round) as last from rounds where round <= ? group by key)
            on key = its and round = last"""
        with self._naming():
            rows = self._db.execute(query, (most,)).fetchall()
        names = RunProgress.__dataclass_fields__
        return {row["key"]: RunProgress(**{name: row[name] for name in names}) for row in rows}

    def table(self) -> dict[str, list[Any]]:
        """All rounds as columns, with the run that each belongs to."""
        query = """select setting, label, seed, batch_size, n_examples, n_rare, rounds.*,
            config, versions from rounds join runs using (key)
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
            reason = "this is not a results file" if "no such" in str(error) else error
            raise GalaxyError(f"{self.path}: {reason}.") from error


def _versions() -> dict[str, str]:
    found = {"galaxy-al": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _connect(place: str) -> sqlite3.Connection:
    db = sqlite3.connect(place, uri=True, timeout=60, isolation_level=None)
    db.row_factory = sqlite3.Row
    return db
