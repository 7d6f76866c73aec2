"""Outliers that are read from the disk are those that would be found."""

import numpy as np
import pytest

from galaxy_al.graphs.local_outliers import local_outliers
from galaxy_al.labelling import exploring
from galaxy_al.labelling.exploring import explorer_of, remembered_outliers
from galaxy_al.strategies import Discovery, FairCuts, Galaxy


def pool(seed=0, size=300):
    return np.random.default_rng(seed).normal(size=(size, 5)).astype(np.float32)


def same(found, expected):
    names = ("indices", "factors", "scales", "points")
    return all(np.array_equal(getattr(found, name), getattr(expected, name)) for name in names)


def test_they_are_found_once_and_then_read(tmp_path, monkeypatch):
    expected = local_outliers(pool())
    assert same(remembered_outliers(pool(), tmp_path / "o.npz"), expected)
    monkeypatch.setattr(exploring, "local_outliers", None)  # would fail if it were called again
    assert same(remembered_outliers(pool(), tmp_path / "o.npz"), expected)


@pytest.mark.parametrize("change", ["pool", "size", "cut off", "empty", "something else"])
def test_anything_else_is_found_again(tmp_path, change):
    path = tmp_path / "o.npz"
    remembered_outliers(pool(), path)
    now = {"pool": pool(1), "size": pool(0, 299)}.get(change, pool())
    if change == "cut off":
        path.write_bytes(path.read_bytes()[:200])
    if change == "empty":
        path.write_bytes(b"")
    if change == "something else":
        np.savez(path, x=np.ones(3))
    assert same(remembered_outliers(now, path), local_outliers(now))
    assert same(remembered_outliers(now, path), local_outliers(now))


def test_outliers_that_cannot_be_kept_are_found_all_the_same(tmp_path):
    path = tmp_path / "gone" / "o.npz"
    assert same(remembered_outliers(pool(), path), local_outliers(pool()))
    assert not path.parent.exists()


def test_a_strategy_and_its_explorer_share_the_outliers(tmp_path):
    strategy = FairCuts()
    assert explorer_of(strategy, tmp_path) is strategy.discovery
    assert isinstance(explorer_of(Galaxy(), tmp_path), Discovery)
