"""Trajectories of labels for stopping.py: which examples a strategy asks, and what its models say.

Making them takes about half an hour; they are kept in the folder GALAXY_AL_RUNS.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from galaxy_al.errors import PoolExhausted
from galaxy_al.goals import GOALS
from galaxy_al.learner import Learner
from galaxy_al.metrics import rare_average_precision
from galaxy_al.models.decisions import choose_thresholds
from galaxy_al.models.estimates import estimate_decisions, held_out_table
from galaxy_al.simulation import play_round
from pools import load as load_pool
from pools import thinned

RUNS = Path(os.environ.get("GALAXY_AL_RUNS", "runs"))
SEEDS = (0,)
BATCH_SIZE = {"find-all": 25, "classifier": 50}  # labels between two trainings
CHECK_EVERY = 50
MOST = {"find-all": 1500, "classifier": 1000}  # labels by the strategy
ENOUGH = 10  # found before that
DRY = 200  # questions that found at most one, after which find-all is not simulated further
PLANNED = 200
MOST_ROWS = 8_000


def _hidden(name, seed=0):
    """A pool in which 40 rare examples look like the majority: the vectors of these are theirs."""
    vectors, truth = load_pool(name)
    rng, vectors = np.random.default_rng(seed), vectors.copy()
    hidden = rng.choice(np.flatnonzero(truth == truth.max()), 40, replace=False)
    truth = truth.copy()
    truth[hidden] = 0
    return vectors, truth


def _joined(file, vectors, parts):
    """One rare class that is several classes of a file, each with its number of examples."""
    pieces = [thinned(file, vectors, [label], count) for label, count in parts]
    content = np.load(_folder() / file)
    everything = content[vectors].astype(np.float32)
    is_rare = np.isin(content["labels"], [label for label, _ in parts])
    rare = [part[truth == 0] for part, truth in pieces]
    rest = everything[~is_rare]
    truth = np.repeat([0, 1], [sum(map(len, rare)), len(rest)])
    return np.concatenate([*rare, rest]), truth


def _folder():
    return Path(os.environ.get("GALAXY_AL_DATA", "."))


# Settings were chosen on these.
CHOSEN = {
    "cifar100-3": partial(load_pool, "cifar100-3"),
    "svhn-seven": partial(thinned, "svhn-embeddings.npz", "embeddings", [7], 300),
    "banking77-3": partial(load_pool, "banking77-3"),
    "letters-3": partial(load_pool, "letters-3"),
    "letters-hidden": partial(_hidden, "letters-3", 1),
}
# Nothing was chosen by these.
JUDGED = {
    "cifar10-2": partial(load_pool, "cifar10-2"),
    "cifar100-2": partial(load_pool, "cifar100-2"),
    "cifar100-10": partial(load_pool, "cifar100-10"),
    "svhn-2": partial(thinned, "svhn-embeddings.npz", "embeddings", [0], 300),
    "banking77-1": partial(load_pool, "banking77-1"),
    "banking77-2": partial(load_pool, "banking77-others-2"),
    "letters-6": partial(load_pool, "letters-others-6"),
    "satellite-3": partial(load_pool, "satellite-3"),
    "banking77-hidden": partial(_hidden, "banking77-1"),
    "cifar100-parts": partial(
        _joined, "cifar100-embeddings.npz", "embeddings", [(0, 400), (50, 80)]
    ),
}
# How many rows are kept of pools that are larger.
ROWS = {"cifar10-2": 5_000, "cifar100-10": 5_000}


def load(name):
    """Vectors and truth, at most as many rows as can be simulated often, in random order."""
    vectors, truth = {**CHOSEN, **JUDGED}[name]()
    rows = np.random.default_rng(5).permutation(len(truth))[: ROWS.get(name, MOST_ROWS)]
    return vectors[rows], truth[rows]


@dataclass(frozen=True)
class Run:
    """A trajectory.

    Parameters
    ----------
    order
        All examples of the pool, in the order in which they are asked.
    is_random
        Which of them the strategy asked at random.
    n_simulated
        How many of them a strategy asked; all others are asked by the last model.
    n_labels, proba, planned, precision, counts
        At each checkpoint: the labels so far; the probability of being rare of all examples; what
        the strategy would ask next; the average precision; by class, the value, low and high of
        its count by the model.
    """

    truth: np.ndarray
    order: np.ndarray
    is_random: np.ndarray
    n_simulated: int
    n_labels: np.ndarray
    proba: np.ndarray
    planned: np.ndarray
    precision: np.ndarray
    counts: np.ndarray

    @property
    def is_rare(self):
        return self.truth < self.truth.max()


def run(name, goal, seed):
    """A trajectory, from its file if there is one."""
    path = RUNS / f"{name}-{goal}-{seed}.npz"
    if not path.exists():
        RUNS.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **vars(_simulated(name, goal, seed)))
    content = np.load(path)
    return Run(**{key: content[key] for key in content.files})


def _simulated(name, goal, seed):
    vectors, truth = load(name)
    n_classes = int(truth.max()) + 1
    # A project with the goal find-all trains more often at first; that would take hours here.
    strategy = GOALS[goal].strategy
    learner = Learner(vectors, n_classes, strategy=strategy, batch_size=BATCH_SIZE[goal], seed=seed)
    order, found, random, checkpoints = [], [], set(), []
    most = min(MOST[goal], len(truth) // 3)
    while len(order) < most and not (
        goal == "find-all" and sum(found) >= ENOUGH and sum(found[-DRY:]) <= 1
    ):
        step = play_round(learner, truth)
        order += step.indices
        found += (truth[list(step.indices)] < n_classes - 1).tolist()
        random |= set(step.random)
        last = checkpoints[-1][0] if checkpoints else 0
        if len(order) >= last + CHECK_EVERY and not learner.is_exploring:
            checkpoints.append((len(order), *_checkpoint(learner, truth)))
    rest = np.setdiff1d(np.arange(len(truth)), order)
    rest = rest[np.argsort(learner.proba[rest, -1], kind="stable")]
    whole = np.append(order, rest)
    parts = [np.array(part) for part in zip(*checkpoints)]
    return Run(truth, whole, np.isin(whole, list(random)), len(order), *parts)


def _checkpoint(learner, truth):
    table = np.asarray(learner.proba)
    rare = (1 - table[:, -1].astype(np.float64)).astype(np.float32)
    precision = rare_average_precision(truth, table, learner.n_classes - 1)
    return rare, _planned(learner), precision, _counts(learner, table)


def _planned(learner):
    session, planned = learner.session_copy(), []
    try:
        while len(planned) < PLANNED:
            planned.append(session.ask())
    except PoolExhausted:
        planned += [-1] * (PLANNED - len(planned))
    return planned


def _counts(learner, table):
    model = learner.model
    table = held_out_table(table, model.held_out)
    decision = choose_thresholds("f1", table, model.class_priors)
    classes = estimate_decisions(table, model.held_out, decision).classes
    return [(c.count.value, c.count.low, c.count.high) for c in classes]


if __name__ == "__main__":
    for each in SEEDS:
        for wanted in ("find-all", "classifier"):
            for pool in (*CHOSEN, *JUDGED):
                made = run(pool, wanted, each)
                print(pool, wanted, each, len(made.truth), made.is_rare.sum(), end=" ")
                found = made.is_rare[made.order[: made.n_simulated]].sum()
                print(made.n_simulated, found, flush=True)
