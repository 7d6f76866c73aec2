"""A suite on a cluster has the numbers of one in local processes, also if a worker is killed."""

import json
import os
import signal
import sqlite3
import threading

import numpy as np
import pytest

from support.commands import run

SUITE = """
title = "Small"
figure = "none"
settings = [{setting}]
strategies = ["fair-cuts", "random"]
seeds = [0, 1]
batch_size = 20
rounds = {rounds}

[frozen]
head = {{ network = "auto" }}
"""


@pytest.fixture
def own_pool(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 400, p=[0.05, 0.1, 0.85])
    vectors = (rng.normal(size=(400, 6)) + 2 * np.eye(3, 6)[labels]).astype(np.float32)
    np.savez(tmp_path / "pool.npz", embeddings=vectors, labels=labels)
    setting = json.dumps("pool:" + json.dumps({"path": str(tmp_path / "pool.npz")}))
    for rounds in (1, 3):
        (tmp_path / f"suite{rounds}.toml").write_text(SUITE.format(setting=setting, rounds=rounds))
    return tmp_path


def rounds_of(path):
    """Everything but the seconds."""
    query = """select key, round, n_labels, balanced_accuracy, average_precision, f1, log_loss,
        indices, random, generator_state, data, n_examples, n_rare, config
        from rounds join runs using (key) order by key, round"""
    with sqlite3.connect(path) as db:
        return db.execute(query).fetchall()


def test_the_numbers_are_the_same_and_a_killed_worker_changes_nothing(client, own_pool, tmp_path):
    suite = own_pool / "suite3.toml"
    run("bench", "run", suite, "--results", tmp_path / "local.sqlite")
    expected = rounds_of(tmp_path / "local.sqlite")
    assert len(expected) == 3 * 4

    def kill():
        os.kill(min(client.run(os.getpid, on_error="ignore").values()), signal.SIGKILL)

    timer = threading.Timer(1.0, kill)
    timer.start()
    on_cluster = ("--scheduler", client.scheduler.address, "--results", tmp_path / "c.sqlite")
    run("bench", "run", suite, *on_cluster)
    timer.join()
    assert rounds_of(tmp_path / "c.sqlite") == expected


def test_rounds_that_are_stored_are_not_played_again(client, own_pool, tmp_path):
    on_cluster = ("--scheduler", client.scheduler.address, "--results", tmp_path / "r.sqlite")
    run("bench", "run", own_pool / "suite1.toml", *on_cluster)
    first = rounds_of(tmp_path / "r.sqlite")
    assert {row[1] for row in first} == {1}
    run("bench", "run", own_pool / "suite3.toml", *on_cluster)
    run("bench", "run", own_pool / "suite3.toml", "--results", tmp_path / "local.sqlite")
    assert rounds_of(tmp_path / "r.sqlite") == rounds_of(tmp_path / "local.sqlite")
