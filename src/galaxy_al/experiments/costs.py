"""What a suite with the paper's network will cost: images, hours and memory, before it is run.

A round trains on all labels from the beginning, for so many epochs, and scores the whole pool. Both
are timed here, on the device that would run it; the rest is arithmetic. What the strategies
themselves take is not counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from galaxy_al.errors import GalaxyError
from galaxy_al.experiments.datasets import pool_size
from galaxy_al.experiments.results import RunProgress
from galaxy_al.experiments.runs import make_head
from galaxy_al.experiments.suite import Head, Run, Suite
from galaxy_al.system.extras import needs_extra

_SIDE = 32  # of the images of the settings; those of PathMNIST are a little smaller
_WIDTH = 512  # of a ResNet-18's embeddings
_STEPS, _SCORED = 6, 2048
_BYTES_PER_WEIGHT = 5 * 4  # the weight itself, its copy, its gradient, and two moments of Adam
_BYTES_OF_ACTIVATIONS = 4_000_000  # per image of 32 x 32 in a step
_BYTES_OF_PROCESS = 1_000_000_000  # Python, torch and what the allocator keeps: fitted to a run


@dataclass(frozen=True)
class Speed:
    """Images per second of one process, and the memory that its network takes."""

    training: float
    scoring: float
    n_weights: int


@dataclass(frozen=True)
class Cost:
    """What is left to do of a setting.

    Parameters
    ----------
    trained, scored
        Images, each as often as it is trained on or scored.
    seconds
        Of one process that does it all.
    memory
        Bytes that a process takes at most.
    """

    setting: str
    runs: int
    rounds: int
    trained: int
    scored: int
    seconds: float
    memory: int


def measure_speed(head: Head, n_classes: int = 2) -> Speed:
    """Time some steps of training and some scoring with random images, with one thread as a job."""
    if not head.takes_images:
        raise GalaxyError("Costs are computed for networks that take images: use --size paper.")
    with needs_extra(f"The head {head.network!r}", "torch"):
        from galaxy_al.models.networks.devices import one_thread
    with one_thread():
        return _timed(head, n_classes)


def _timed(head: Head, n_classes: int) -> Speed:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(_SCORED, _SIDE, _SIDE, 3), dtype=np.uint8)
    # The weights make no difference to the time, and need not be there yet.
    trainer: Any = make_head(replace(head, weights=None), n_classes, seed=0)
    batch = trainer.recipe.batch_size
    labels = {index: index % n_classes for index in range(batch)}

    def train(steps: int) -> float:
        trainer.recipe = replace(trainer.recipe, epochs=steps, steps=None)
        begin = time.perf_counter()
        trainer.fit(images, labels)
        return time.perf_counter() - begin

    train(1)
    each = (train(1 + _STEPS) - train(1)) / _STEPS
    model = trainer.fit(images, labels)
    model.proba(images[:256])
    begin = time.perf_counter()
    model.proba(images)
    scoring = time.perf_counter() - begin
    n_weights = sum(parameter.numel() for parameter in model.network.parameters())
    return Speed(batch / max(each, 1e-9), _SCORED / scoring, n_weights)


def costs_of(suite: Suite, progress: dict[str, RunProgress], speed: Speed) -> list[Cost]:
    """What is left of each setting of a suite."""
    return [
        _cost(
            suite, setting, [run for run in suite.runs() if run.setting == setting], progress, speed
        )
        for setting in suite.settings
    ]


def _cost(
    suite: Suite, setting: str, runs: list[Run], progress: dict[str, RunProgress], speed: Speed
) -> Cost:
    size = pool_size(setting)
    rounds = min(suite.rounds, -(-size // suite.batch_size))
    trainer: Any = make_head(replace(suite.head, weights=None), 2, 0)
    recipe = trainer.recipe
    left = [number for run in runs for number in range(_rounds_done(run, progress) + 1, rounds + 1)]
    labels = [min(number * suite.batch_size, size) for number in left]
    trained = sum(count * recipe.epochs_for(count) for count in labels)
    scored = size * len(left)
    return Cost(
        setting=setting,
        runs=sum(_rounds_done(run, progress) < rounds for run in runs),
        rounds=len(left),
        trained=trained,
        scored=scored,
        seconds=trained / speed.training + scored / speed.scoring,
        memory=_memory(size, recipe.batch_size, speed.n_weights),
    )


def _rounds_done(run: Run, progress: dict[str, RunProgress]) -> int:
    return progress[run.key].rounds if run.key in progress else 0


def _memory(size: int, batch: int, n_weights: int) -> int:
    """The images, their embeddings, the network with its optimizer, and a step's activations."""
    per_example = 3 * _SIDE**2 + 4 * _WIDTH
    of_network = n_weights * _BYTES_PER_WEIGHT + batch * _BYTES_OF_ACTIVATIONS
    return _BYTES_OF_PROCESS + size * per_example + of_network
