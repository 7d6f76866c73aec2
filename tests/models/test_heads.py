"""Heads by name, and a head from outside the package."""

import numpy as np
import pytest

from galaxy_al import Learner
from galaxy_al.models import heads
from galaxy_al.models.auto import AutoTrainer
from support.commands import read_csv
from support.plugins import command_with, write_plugin

NEAREST = """
from sklearn.neighbors import KNeighborsClassifier
from galaxy_al.models.heads import make_trainer


def nearest(*, n_classes, seed, needs):
    make = lambda seed: KNeighborsClassifier(1)
    return make_trainer(make, n_classes=n_classes, seed=seed, needs=needs)
"""


def test_the_built_in_names_are_those_of_the_documentation():
    assert list(heads.HEADS) == ["auto", "linear", "mlp", "resnet18"]
    assert isinstance(heads.make_trainer("auto", n_classes=2), AutoTrainer)


def test_an_unknown_head_is_refused_with_the_choice():
    with pytest.raises(ValueError, match=r"Unknown head 'lineer'. Choose from: auto, linear, mlp"):
        Learner(np.eye(4), 2, head="lineer")


def test_a_trainer_is_used_as_it_is_and_nonsense_is_refused():
    trainer = AutoTrainer(n_classes=2)
    assert heads.make_trainer(trainer, n_classes=2) is trainer
    with pytest.raises(ValueError, match="head must be a name, a classifier or make one, got 3"):
        heads.make_trainer(3, n_classes=2)


def test_a_head_of_a_plugin_is_used_in_a_project_and_cannot_be_saved(tmp_path):
    entry_points = {"galaxy_al.heads": {"nearest": "nearest"}}
    plugin = write_plugin(tmp_path / "plugin", "nearest_plugin", NEAREST, entry_points)
    command = command_with(plugin, tmp_path)
    np.save(tmp_path / "pool.npy", np.array([[0.0], [1.0], [9.0], [10.0]]))
    (tmp_path / "known.csv").write_text("id,label\n0,low\n1,low\n2,high\n3,high\n")
    options = ["--classes", "low", "--other", "high", "--import-labels", "known.csv"]
    done = command("init", "p", "--embeddings", "pool.npy", *options, "--head", "nearest")
    assert (done.returncode, done.stderr) == (0, "")
    assert command("export", "p", "--output", "out.csv").returncode == 0
    proba = [(row["p_low"], row["p_high"]) for row in read_csv(tmp_path / "out.csv")]
    assert proba == [("1.0", "0.0")] * 2 + [("0.0", "1.0")] * 2
    done = command("train", "p")
    wanted = "The head 'nearest' cannot be saved: only auto, linear, mlp and resnet18 can."
    assert (done.returncode, done.stderr) == (1, f"galaxy-al: {wanted}\n")
