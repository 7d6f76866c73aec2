"""One run of a suite, from its last round to its end."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.experiments.datasets import LabeledPool, load_labeled_pool
from galaxy_al.experiments.results import Asked, Results
from galaxy_al.experiments.suite import Head, Run
from galaxy_al.learner import Learner
from galaxy_al.models.heads import NETWORKS
from galaxy_al.models.protocols import AnyHead, TrainedModel, TrainsModels
from galaxy_al.simulation import Round, play_round
from galaxy_al.strategies import S2, make_strategy
from galaxy_al.system.extras import needs_extra


def complete_run(run: Run, rounds: int, path: Path) -> None:
    """Bring a run to ``rounds`` rounds or to the end of the pool; each round is stored at once.

    A run that was interrupted resumes, and gives exactly the same numbers.
    """
    gc.collect()  # the learner of the run before: it and its session refer to each other
    data = load_labeled_pool(run.setting, run.head.takes_images)
    results = Results(path)
    results.begin(run, n_examples=len(data.truth), n_rare=data.n_rare, data=data.source)
    for number, step, seconds in played_rounds(run, rounds, data, results.asked(run)):
        results.add(run, number, step, seconds)
    results.close()


def played_rounds(
    run: Run, rounds: int, data: LabeledPool, asked: Asked
) -> Iterator[tuple[int, Round, float]]:
    """The rounds of a run that are missing: the number, what it found, and the seconds it took."""
    n_done = len(asked.batches)
    if n_done >= rounds:
        return
    learner = _learner(run, data.items, int(data.truth.max()) + 1)
    if n_done:
        done = {index: data.answer(index) for batch in asked.batches for index in batch}
        learner.resume(done, asked.generator_state, random=asked.random)
    scores = _graph_scores if run.method.predictor == "graph" else None
    begin = time.perf_counter()
    for number in range(n_done + 1, rounds + 1):
        step = play_round(learner, data.truth, data.answer, scores)
        if step is None:
            return
        now = time.perf_counter()
        yield number, step, now - begin
        begin = now


@dataclass(frozen=True)
class ClusterRun:
    """A run for a worker of a cluster, and what it had asked before."""

    run: Run
    rounds: int
    asked: Asked


@dataclass(frozen=True)
class PlayedRound:
    """What a worker reports of a round; the rest is about the data of the run."""

    number: int
    step: Round
    seconds: float
    n_examples: int
    n_rare: int
    data: str


def play_on_worker(job: ClusterRun, report: Callable[[PlayedRound], None]) -> None:
    """Play the rounds of a run that are missing, and report each at once."""
    data = load_labeled_pool(job.run.setting, job.run.head.takes_images)
    about = len(data.truth), data.n_rare, data.source
    for played in played_rounds(job.run, job.rounds, data, job.asked):
        report(PlayedRound(*played, *about))


def _learner(run: Run, items: Any, n_classes: int) -> Learner:
    method = run.method
    head = make_head(run.head, n_classes, run.seed)
    if method.predictor == "graph":
        head = head if isinstance(head, str) else _Untrained(head)
    return Learner(
        items,
        n_classes,
        strategy=make_strategy(method.strategy, **method.options),
        head=head,
        batch_size=run.batch_size,
        seed=run.seed,
    )


def make_head(head: Head, n_classes: int, seed: int) -> AnyHead:
    """The head of a suite as a learner takes it."""
    if head.network not in NETWORKS:
        return head.network
    with needs_extra(f"The head {head.network!r}", "torch"):
        from galaxy_al.models.networks.training import RECIPES, Trainer

    given = {key: value for key, value in asdict(head).items() if value is not None}
    network = given.pop("network")
    others = {key: given.pop(key) for key in ("hidden", "weights", "precision") if key in given}
    recipe = replace(RECIPES[network], **given)
    return Trainer(network, n_classes=n_classes, recipe=recipe, seed=seed, **others)


class _Untrained:
    """A head that never learns, for runs whose predictions come from the graph."""

    def __init__(self, head: Any) -> None:
        self._head: TrainsModels = head
        self._model: TrainedModel | None = None

    def fit(self, pool: Any, labels: Mapping[int, int]) -> TrainedModel:
        self._model = self._model or self._head.fit(pool, {})
        return self._model


def _graph_scores(learner: Learner) -> NDArray[np.float32]:
    """1 for the class of the nearest label on the graph of S2."""
    strategy, labels = learner.strategy, learner.state.labels
    assert isinstance(strategy, S2)
    known = learner.snapshot.updated(labels, set())
    nearest = strategy.predict(known, rng=np.random.default_rng(len(labels)))
    return np.eye(learner.n_classes, dtype=np.float32)[nearest]
