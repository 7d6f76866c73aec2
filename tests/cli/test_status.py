"""`galaxy-al status` and the share that is wanted: what the page says, on the command line."""

import sqlite3

import numpy as np
import pytest

from galaxy_al.labelling.project import open_project
from galaxy_al.labelling.service import Service
from support.commands import init, run
from support.projects import blobs


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "pool.npy", blobs()[0])
    init(tmp_path)
    return tmp_path / "project"


def page_says(folder, n_labels=0):
    """Answer some questions, and what the page then says of the progress."""
    service, names = Service(open_project(folder)), blobs()[1]
    for _ in range(n_labels):
        id = service.next("ann").id
        service.label("ann", {id: names[int(id)]})
    service.wait()
    sentence = service.advice().sentence
    service.close()
    return sentence


def test_it_says_what_the_page_says_before_during_and_after_an_audit(folder):
    assert page_says(folder) in run("status", folder).output.splitlines()
    assert page_says(folder, 60) in run("status", folder).output.splitlines()
    run("audit", folder, "--labels", 30)
    during = page_says(folder, 10)
    assert "the audit has 10 of 30 labels" in during
    assert during in run("status", folder).output.splitlines()
    after = page_says(folder, 25)
    assert "by the audit" in after
    assert after in run("status", folder).output.splitlines()


def test_without_an_audit_the_pool_is_not_read(folder):
    sentence = page_says(folder, 30)
    before = (folder / "labels.sqlite").read_bytes()
    (folder.parent / "pool.npy").unlink()
    done = run("status", folder)
    assert sentence in done.output.splitlines()
    assert (folder / "labels.sqlite").read_bytes() == before


def test_an_audit_whose_pool_is_away_hides_nothing_else(folder):
    page_says(folder, 10)
    run("audit", folder, "--labels", 5)
    (folder.parent / "pool.npy").unlink()
    done = run("status", folder)
    assert "10 labels" in done.output
    assert "How many are left cannot be told: " in done.stderr


def test_a_project_whose_pool_was_never_counted_has_no_such_sentence(folder):
    sentence = page_says(folder, 10)
    with sqlite3.connect(folder / "labels.sqlite") as database:
        triggers = database.execute(
            "select name from sqlite_master where type = 'trigger' and tbl_name = 'pools'"
        )
        for (name,) in triggers.fetchall():
            database.execute(f"drop trigger {name}")
        database.execute("delete from pools")
    output = run("status", folder).output
    assert sentence not in output
    assert "10 labels" in output


def test_the_wanted_share_is_an_option(tmp_path):
    np.save(tmp_path / "pool.npy", blobs()[0])
    init(tmp_path, "--target-recall", 0.95)
    assert "target_recall = 0.95" in (tmp_path / "project" / "project.toml").read_text()
    done = init(tmp_path / "other", "--target-recall", 1, fails=True)
    assert "1 is not in the range 0<=x<1" in done.output.replace("1.0 is", "1 is")
