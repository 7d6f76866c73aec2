"""Results files of every version: old ones are migrated and resume, newer ones are refused."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from galaxy_al import GalaxyError
from galaxy_al.experiments import datasets
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.runs import complete_run
from galaxy_al.experiments.suite import DETAILS, config_key, load_suite
from galaxy_al.system.migrations import migrate, schema_version

OLD = Path(__file__).parents[1] / "fixtures" / "results-21ab5eb"


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Two of four rounds, as commit 21ab5eb stored them."""
    folder = shutil.copytree(OLD, tmp_path / "old")
    monkeypatch.setenv("GALAXY_AL_DATA", str(folder))
    datasets.load_labeled_pool.cache_clear()
    return folder / "results.sqlite"


def rows(path, query):
    with sqlite3.connect(path) as db:
        return db.execute(query).fetchall()


def test_an_old_file_is_read_with_every_number_it_had(old):
    columns = "round, n_labels, balanced_accuracy, average_precision, f1, rare_found, indices"
    query = f"select label, seed, {columns} from rounds join {{}} using (key) order by 1, 2, 3"
    before = rows(old, query.format("cells"))
    assert len(before) == 12
    content = old.read_bytes()
    results = Results(old, must_exist=True)
    assert len(results.table()["key"]) == 12
    results.close()
    assert old.read_bytes() == content  # to read is not to write
    Results(old).close()
    assert rows(old, query.format("runs")) == before


def write_what_the_head_of_today_asks(old, new):
    """Write the rounds of a new file over those of an old one, which had another head."""
    columns = "n_labels, balanced_accuracy, average_precision, f1, rare_found, indices"
    columns += ", generator_state"
    with sqlite3.connect(old) as db:
        db.execute("attach ? as new", [str(new)])
        db.execute(
            f"""update rounds set ({columns}) = (
                select {columns} from new.rounds as made join new.runs as run using (key)
                join main.cells as cell on (cell.label, cell.seed) = (run.label, run.seed)
                where cell.key = rounds.key and made.round = rounds.round
            )"""
        )


@pytest.mark.slow
def test_an_old_file_resumes_to_the_numbers_of_a_run_that_never_stopped(old, tmp_path):
    suite = load_suite(old.with_name("small.toml"), "frozen")
    for run in suite.runs():
        complete_run(run, suite.rounds, tmp_path / "new.sqlite")
    # The first batch is sampled at random, and so are all of "random".
    without_head = """select label, seed, round, n_labels, rare_found, indices, generator_state
        from rounds join {} using (key) where round = 1 or (label = 'random' and round <= 2)
        order by 1, 2, 3"""
    before = rows(old, without_head.format("cells"))
    assert len(before) == 8
    assert rows(tmp_path / "new.sqlite", without_head.format("runs")) == before
    write_what_the_head_of_today_asks(old, tmp_path / "new.sqlite")
    assert {run.key for run in suite.runs()} == set(Results(old).progress(99))
    for run in suite.runs():
        complete_run(run, suite.rounds, old)
    resumed, new = Results(old).table(), Results(tmp_path / "new.sqlite").table()
    assert resumed["key"] == new["key"]
    assert len(new["key"]) == 6 * 4
    for column in ("round", "n_labels", "indices", "rare_found"):
        assert resumed[column] == new[column]
    for table in (resumed, new):  # what an old file does not say was not chosen
        assert [config_key(json.loads(text)) for text in table["config"]] == new["key"]
    assert resumed["f1"] == pytest.approx(new["f1"])
    for column in DETAILS:  # which the old file had not
        found = zip(resumed["round"], resumed[column], new[column])
        assert all(value is None if number <= 2 else value == made for number, value, made in found)


def test_a_newer_file_is_refused_in_one_line_and_stays_as_it_is(old):
    with sqlite3.connect(old) as db:
        db.execute("pragma user_version = 99")
    content = old.read_bytes()
    for must_exist in (True, False):
        with pytest.raises(GalaxyError, match=r"results.sqlite was written by a newer galaxy-al"):
            Results(old, must_exist=must_exist)
    assert old.read_bytes() == content


def test_a_migration_that_fails_changes_nothing(tmp_path):
    db = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    migrate(db, [["create table a (x)"]], tmp_path / "a.sqlite")

    def fail(db):
        db.execute("insert into a values (1, 2)")
        raise KeyError("broken")

    with pytest.raises(KeyError):
        migrate(db, [[], ["alter table a add y", "create table b (z)"], fail], Path())
    assert schema_version(db) == 1
    assert db.execute("select sql from sqlite_master").fetchall() == [("CREATE TABLE a (x)",)]
    assert db.execute("select * from a").fetchall() == []
    db.close()


def test_columns_are_read_by_name(old):
    Results(old).close()
    with sqlite3.connect(old) as db:  # as a later version might
        db.execute("alter table rounds add column hours real")
        db.execute("alter table runs add column note text")
    suite = load_suite(old.with_name("small.toml"), "frozen")
    run = suite.runs()[0]
    complete_run(run, 3, old)
    assert Results(old).progress(99)[run.key].rounds == 3
    table = Results(old).table()
    assert json.loads(table["config"][0])["method"]["strategy"] == "galaxy"
