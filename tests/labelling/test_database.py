"""The database: what is written stays, and files of older versions are migrated."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling import database as module
from galaxy_al.labelling.audit_records import AuditRecord, DrawRecord, PlanRecord
from galaxy_al.labelling.database import MIGRATIONS, Database, RoundRecord
from galaxy_al.labelling.log import Entry
from support.projects import OLD_PROJECT


def test_entries_come_back_as_they_were_written(tmp_path):
    database = Database(tmp_path / "labels.sqlite")
    first, second = database.add(
        [
            Entry("ann", "label", "x'\"<b>.jpg", "dent", round=3, is_random=True, source="found"),
            Entry("bob", "cannot tell", "y"),
        ]
    )
    assert (first.number, second.number) == (1, 2)
    assert first.created_at.endswith("+00:00")
    (third,) = database.add([Entry("ann", "undo", "x'\"<b>.jpg", undoes=1)])
    database.close()
    again = Database(tmp_path / "labels.sqlite")
    assert list(again.entries()) == [first, second, third]


def test_audits_come_back_as_they_were_written_and_stay(tmp_path):
    database = Database(tmp_path / "labels.sqlite")
    audit = database.add_audit(
        AuditRecord(("a, b", "c"), 5, "ab", 7, 3, b"\x00\x01", (0, 1), ((0.25, 0.75),))
    )
    plan = database.add_plan(PlanRecord(audit.number, 30, 0.5))
    draw = database.add_draw(DrawRecord(audit.number, "x.jpg", 1, (4, 0), (0.1, 0.9), 8))
    database.close()
    again = Database(tmp_path / "labels.sqlite")
    assert (again.audits(), again.plans(), again.draws()) == ([audit], [plan], [draw])
    again.close()
    for table in ("audits", "plans", "draws"):
        other = sqlite3.connect(tmp_path / "labels.sqlite")
        with closing(other), pytest.raises(sqlite3.IntegrityError, match="what is written stays"):
            other.execute(f"delete from {table}")


@pytest.mark.parametrize("verb", ["update entries set label = 'fine'", "delete from entries"])
def test_nothing_in_the_log_can_be_changed(tmp_path, verb):
    database = Database(tmp_path / "labels.sqlite")
    database.add([Entry("ann", "label", "a", "dent")])
    other = sqlite3.connect(tmp_path / "labels.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match="what is written stays"):
        other.execute(verb)
    other.close()
    assert next(database.entries()).label == "dent"


def test_several_entries_are_written_all_or_none(tmp_path):
    database = Database(tmp_path / "labels.sqlite")
    with pytest.raises(GalaxyError, match=r"labels\.sqlite: CHECK constraint failed"):
        database.add([Entry("ann", "label", "a", "dent"), Entry("ann", "guess", "b")])
    assert list(database.entries()) == []


def test_rounds_are_kept(tmp_path):
    database = Database(tmp_path / "labels.sqlite")
    database.add_round(RoundRecord(1, 20, 3, 0.8, 0.7, 0.9, 1.5))
    database.add_round(RoundRecord(2, 40, 5, None, None, None, 1.5))
    assert [record.number for record in database.rounds()] == [1, 2]
    assert database.rounds()[1].accuracy is None


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "labels.sqlite").write_text(
        "this is no database, but long enough to be read as one" * 9
    )
    with pytest.raises(GalaxyError, match=r"labels\.sqlite: file is not a database"):
        Database(tmp_path / "labels.sqlite")


OLD = "select annotator, kind, example, label, undoes, round, drawn, how, at, number from entries"


@pytest.fixture
def old(tmp_path):
    """A database as commit 21ab5eb wrote it."""
    return shutil.copy(OLD_PROJECT / "project" / "labels.sqlite", tmp_path / "labels.sqlite")


def query(path, sql):
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def columns_of_old(entries):
    """What version 1 of the schema kept of entries; the rest must be empty."""
    values = [tuple(vars(entry).values()) for entry in entries]
    assert {row[-1] for row in values} == {None}
    return [row[:-1] for row in values]


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_old_database_is_migrated_with_every_entry_and_round(old):
    rows, rounds = query(old, OLD), query(old, "select * from rounds")
    with closing(Database(old)) as database:
        found, found_rounds = list(database.entries()), database.rounds()
    assert columns_of_old(found) == rows
    assert any(entry.is_random is True for entry in found)
    assert all(record.insight == "" for record in found_rounds)
    values = [vars(record) for record in found_rounds]
    assert [tuple(v for k, v in row.items() if k != "insight") for row in values] == rounds
    assert query(old, "pragma user_version") == [(len(MIGRATIONS),)]


def test_a_migrated_database_has_the_schema_of_a_new_one_and_cannot_be_changed(old, tmp_path):
    Database(old).close()
    Database(tmp_path / "new.sqlite").close()
    schema = "select type, name, sql from sqlite_master order by name"
    of_old, of_new = (
        [(type, name, "".join((sql or "").split())) for type, name, sql in query(path, schema)]
        for path in (old, tmp_path / "new.sqlite")
    )
    assert of_old == of_new
    with pytest.raises(sqlite3.IntegrityError, match="what is written stays"):
        query(old, "update entries set source = 'found'")


def test_a_second_open_changes_nothing(old):
    Database(old).close()
    before = old.read_bytes()
    Database(old).close()
    assert old.read_bytes() == before
    assert [path.name for path in old.parent.iterdir()] == ["labels.sqlite"]


def test_reading_an_old_database_leaves_its_files_as_they_are(old):
    before, rows = files_in(old.parent), query(old, OLD)
    with closing(Database(old, read_only=True)) as database:
        assert columns_of_old(database.entries()) == rows
    assert files_in(old.parent) == before


def test_a_database_that_is_read_cannot_be_written(tmp_path):
    path = tmp_path / "labels.sqlite"
    with closing(Database(path)) as database:
        database.add([Entry("ann", "label", "a", "dent")])
    with closing(Database(path, read_only=True)) as database:
        assert [entry.label for entry in database.entries()] == ["dent"]
        with pytest.raises(GalaxyError, match="readonly database"):
            database.add([Entry("ann", "label", "b", "dent")])


def test_a_reader_sees_what_a_writer_has_not_closed_yet(tmp_path):
    path = tmp_path / "labels.sqlite"
    with closing(Database(path)) as writer:
        writer.add([Entry("ann", "label", "a", "dent")])
        with closing(Database(path, read_only=True)) as reader:
            assert [entry.label for entry in reader.entries()] == ["dent"]
        writer.add([Entry("ann", "label", "b", "dent")])


@pytest.mark.parametrize("is_old", [True, False])
def test_a_database_in_a_folder_that_cannot_be_written_is_read(old, monkeypatch, is_old):
    if not is_old:
        Database(old).close()
    before = files_in(old.parent)
    monkeypatch.setattr(module.os, "access", lambda path, mode: mode != os.W_OK)
    with closing(Database(old, read_only=True)) as database:
        assert len(list(database.entries())) == 33
    assert files_in(old.parent) == before


def test_a_database_that_is_not_there_is_read_as_an_empty_one(tmp_path):
    with closing(Database(tmp_path / "labels.sqlite", read_only=True)) as database:
        assert list(database.entries()) == []
        assert database.rounds() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_database_is_refused_in_one_line(tmp_path, read_only):
    path = tmp_path / "labels.sqlite"
    Database(path).close()
    query(path, f"pragma user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    with pytest.raises(GalaxyError, match="written by a newer galaxy-al") as refused:
        Database(path, read_only=read_only)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_a_migration_that_fails_changes_nothing(old, monkeypatch):
    before = query(old, OLD), query(old, "select sql from sqlite_master")
    broken = (*MIGRATIONS[1], "alter table entries rename column missing to other")
    monkeypatch.setattr(module, "MIGRATIONS", (MIGRATIONS[0], broken))
    with pytest.raises(GalaxyError, match=r"labels\.sqlite: no such column"):
        Database(old)
    assert (query(old, OLD), query(old, "select sql from sqlite_master")) == before
    assert query(old, "pragma user_version") == [(0,)]


KILLED = """
import functools, os, signal, sqlite3, sys
from pathlib import Path
from galaxy_al.labelling.database import Database

class Dying(sqlite3.Connection):
    left = int(sys.argv[2])

    def execute(self, *arguments):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return super().execute(*arguments)

sqlite3.connect = functools.partial(sqlite3.connect, factory=Dying)
Database(Path(sys.argv[1])).close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_a_process_killed_at_any_statement_of_a_migration_loses_nothing(tmp_path):
    source = OLD_PROJECT / "project" / "labels.sqlite"
    rows = query(shutil.copy(source, tmp_path / "kept.sqlite"), OLD)
    versions = []
    for n_statements in range(50):
        path = shutil.copy(source, tmp_path / f"{n_statements}.sqlite")
        done = subprocess.run([sys.executable, "-c", KILLED, path, str(n_statements)], check=False)
        versions += query(path, "pragma user_version")[0]
        with closing(Database(path)) as database:
            assert columns_of_old(database.entries()) == rows
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert n_statements > sum(map(len, MIGRATIONS))
    assert set(versions) == {0, len(MIGRATIONS)}
