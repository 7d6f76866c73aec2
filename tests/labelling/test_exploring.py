"""The first questions that are read from the disk are those that would be asked."""

import numpy as np
import pytest

from galaxy_al.labelling.exploring import RememberedTypiClust
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies import TypiClust


def snapshot_of(seed=0, labels=None):
    embeddings = np.random.default_rng(seed).normal(size=(300, 5))
    return Snapshot(np.full((300, 2), 0.5), labels, embeddings)


def test_it_asks_what_typiclust_asks_and_leaves_the_generator_there(tmp_path, monkeypatch):
    plain, first, again = (np.random.default_rng(3) for _ in range(3))
    expected = TypiClust().rank(snapshot_of(), 20, plain)
    made = RememberedTypiClust(tmp_path / "x.json").rank(snapshot_of(), 20, first)
    monkeypatch.setattr(TypiClust, "rank", None)  # would fail if it were called again
    read = RememberedTypiClust(tmp_path / "x.json").rank(snapshot_of(), 20, again)
    assert made.tolist() == read.tolist() == expected.tolist()
    assert plain.random() == first.random() == again.random()


@pytest.mark.parametrize("content", ["[]", "3", "null"])
def test_a_file_of_something_else_is_written_again(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    found = RememberedTypiClust(path).rank(snapshot_of(), 20, np.random.default_rng(3))
    assert found.tolist() == TypiClust().rank(snapshot_of(), 20, np.random.default_rng(3)).tolist()
    assert path.read_text().startswith("{")


def test_a_ranking_that_cannot_be_kept_is_asked_all_the_same(tmp_path):
    path = tmp_path / "gone" / "x.json"
    found = RememberedTypiClust(path).rank(snapshot_of(), 20, np.random.default_rng(3))
    assert found.tolist() == TypiClust().rank(snapshot_of(), 20, np.random.default_rng(3)).tolist()
    assert not path.parent.exists()


@pytest.mark.parametrize("change", ["pool", "labels", "budget", "generator", "cut off"])
def test_anything_that_changes_the_ranking_makes_it_again(tmp_path, change):
    path = tmp_path / "x.json"
    RememberedTypiClust(path).rank(snapshot_of(), 20, np.random.default_rng(3))
    labels = np.full(300, -1)
    labels[:3] = 1
    snapshot = {"pool": snapshot_of(1), "labels": snapshot_of(0, labels)}.get(change, snapshot_of())
    budget, seed = 25 if change == "budget" else 20, 4 if change == "generator" else 3
    if change == "cut off":
        path.write_text(path.read_text()[:50])
    found = RememberedTypiClust(path).rank(snapshot, budget, np.random.default_rng(seed))
    expected = TypiClust().rank(snapshot, budget, np.random.default_rng(seed))
    assert found.tolist() == expected.tolist()
