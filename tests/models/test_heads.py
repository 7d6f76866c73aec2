"""Heads by name, and a head from outside the package."""

import importlib

import numpy as np
import pytest

from galaxy_al import Learner
from galaxy_al.models import heads
from galaxy_al.models.kernel import KernelTrainer
from galaxy_al.models.sklearn_head import HeadTrainer
from support.plugins import write_plugin

NEAREST = """
from sklearn.neighbors import KNeighborsClassifier
from galaxy_al.models.heads import make_trainer


def nearest(*, n_classes, seed, needs):
    make = lambda seed: KNeighborsClassifier(1)
    return make_trainer(make, n_classes=n_classes, seed=seed, needs=needs)
"""


def test_the_built_in_names_are_those_of_the_documentation():
    assert list(heads.HEADS) == ["auto", "linear", "mlp", "resnet18"]
    assert isinstance(heads.make_trainer("auto", n_classes=2), KernelTrainer)


def test_an_unknown_head_is_refused_with_the_choice():
    with pytest.raises(ValueError, match=r"Unknown head 'lineer'. Choose from: auto, linear, mlp"):
        Learner(np.eye(4), 2, head="lineer")


def test_a_trainer_is_used_as_it_is_and_nonsense_is_refused():
    trainer = KernelTrainer(n_classes=2)
    assert heads.make_trainer(trainer, n_classes=2) is trainer
    with pytest.raises(ValueError, match="head must be a name, a classifier or make one, got 3"):
        heads.make_trainer(3, n_classes=2)


def test_a_head_of_a_plugin_trains_in_a_learner(tmp_path, monkeypatch):
    entry_points = {"galaxy_al.heads": {"nearest": "nearest"}}
    monkeypatch.syspath_prepend(write_plugin(tmp_path, "nearest_plugin", NEAREST, entry_points))
    importlib.reload(heads)  # the registry looks for plugins once
    assert isinstance(heads.make_trainer("nearest", n_classes=2), HeadTrainer)
    monkeypatch.setattr("galaxy_al.learner.make_trainer", heads.make_trainer)
    points = np.array([[0.0], [1.0], [9.0], [10.0]])
    learner = Learner(points, 2, head="nearest", strategy="random")
    for _ in range(4):
        index = learner.ask()
        learner.tell(index, int(index > 1))
    learner.refit()
    assert learner.proba.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
