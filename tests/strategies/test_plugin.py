"""A strategy from outside the package, used from the command line."""

import numpy as np
import pytest

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


@pytest.mark.slow
def test_a_strategy_of_a_plugin_is_listed_and_asks_in_a_project_and_a_suite(tmp_path):
    entry_points = {"galaxy_al.strategies": {"last-first": "LastFirst"}}
    plugin = write_plugin(tmp_path / "plugin", "last_first", LAST_FIRST, entry_points)
    run = command_with(plugin, tmp_path)
    assert "last-first" in run("strategies").stdout
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [10, 50])
    embeddings = (rng.normal(size=(60, 2)) + 3 * truth[:, None]).astype(np.float32)
    np.savez(tmp_path / "pool.npz", embeddings=embeddings, labels=truth)
    classes = ["--classes", "0", "--other", "1"]
    made = run("init", "p", "--embeddings", "pool.npz", *classes, "--strategy", "last-first")
    assert made.returncode == 0, made.stderr
    assert 'strategy = "last-first"' in (tmp_path / "p" / "project.toml").read_text()
    wrong = run("init", "q", "--embeddings", "pool.npz", *classes, "--strategy", "first-last")
    assert wrong.returncode == 1
    assert "Unknown strategy 'first-last'. Choose from:" in wrong.stderr
    assert "last-first" in wrong.stderr
