"""A strategy from outside the package, used from the command line."""

import time

import numpy as np
import pytest

from galaxy_al.client import Client
from support.plugins import command_with, write_plugin

LAST_FIRST = """
from galaxy_al import Strategy

class LastFirst(Strategy):
    name = "last-first"
    summary = "the largest index first"
    paper = "none: a test"

    def rank(self, snapshot, budget, rng):
        return snapshot.askable()[::-1][:budget]
"""


SUITE = """
title = "Tiny"
figure = "none"
settings = ["cifar10-2"]
strategies = ["last-first"]
seeds = [0]
batch_size = 10
rounds = 2

[frozen]
head = { network = "auto" }
"""


@pytest.mark.slow
def test_a_strategy_of_a_plugin_is_listed_and_asks_in_a_project_and_a_suite(tmp_path, monkeypatch):
    entry_points = {"galaxy_al.strategies": {"last-first": "LastFirst"}}
    plugin = write_plugin(tmp_path / "plugin", "last_first", LAST_FIRST, entry_points)
    run = command_with(plugin, tmp_path)
    assert "last-first" in run("strategies").stdout
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [10, 50])
    embeddings = (rng.normal(size=(60, 2)) + 3 * truth[:, None]).astype(np.float32)
    np.save(tmp_path / "pool.npy", embeddings)
    classes = ["--classes", "0", "--other", "1"]
    made = run("init", "p", "--embeddings", "pool.npy", *classes, "--strategy", "last-first")
    assert made.returncode == 0, made.stderr
    with run.label("p") as address:
        client = Client(address, "ann")
        client.label_many({"0": "0", "59": "1"})
        first = client.next()["id"]  # asked by the strategy that explores; it stays the question
        client.train()
        deadline = time.monotonic() + 60
        while client.status()["round"] == 0 or client.status()["training"]["is_running"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        asked = [client.next()["id"]]
        for _ in range(3):
            asked.append(client.label(asked[-1], "1")["id"])
        assert client.status()["strategy"] == "last-first"
    assert asked == [first, "58", "57", "56"]
    (tmp_path / "tiny.toml").write_text(SUITE)
    np.savez(tmp_path / "cifar10-embeddings.npz", embeddings=embeddings, labels=truth)
    monkeypatch.setenv("GALAXY_AL_DATA", str(tmp_path))
    done = command_with(plugin, tmp_path)("bench", "run", "tiny.toml")
    assert "1 of 1 runs are done" in done.stdout, done.stderr
    wrong = run("init", "q", "--embeddings", "pool.npy", *classes, "--strategy", "first-last")
    assert wrong.returncode == 1
    assert "Unknown strategy 'first-last'. Choose from:" in wrong.stderr
    assert "last-first" in wrong.stderr
