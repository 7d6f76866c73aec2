"""What each ingredient of the default is worth: the default without it.

Run:  GALAXY_AL_DATA=FOLDER .venv/bin/python benchmarks/ablation.py      (about half an hour)

FOLDER is as for benchmarks/head.py. Prints the table of docs/appendix/default.md: areas under the
curves of balanced accuracy and average precision to 2,000 labels, mean and
standard error of 4 random starts.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

from galaxy_al.experiments.datasets import load_labeled_pool
from galaxy_al.experiments.runs import make_head
from galaxy_al.experiments.suite import Head
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.simulation import simulate
from galaxy_al.strategies import FairCuts
from galaxy_al.strategies.fair_cuts import FairCutsSession

SETTINGS = ("cifar10-2", "cifar100-3", "cifar100-10", "cifar100-3-thinned", "cifar10-3-noisy")
SEEDS = range(4)


class NarrowestFirst(FairCuts):
    """The class whose cut is narrowest gets the question, as in GALAXY; no turns."""

    def open_session(self, start):
        return NarrowestFirstSession(self, start)


class NarrowestFirstSession(FairCutsSession):
    def _in_turn(self, found):
        targets = [k for k in self._rare if k in found]
        if not targets:
            return None
        self._rank_classes()
        ends = {k: self._rankings[k].cut(self._rng) for k in targets}
        return min(targets, key=lambda k: ends[k][1] - ends[k][0])


class AnyCut(FairCuts):
    """Between any two labels that differ is a cut, as in GALAXY; the narrowest is asked at."""

    def open_session(self, start):
        return AnyCutSession(self, start)


class AnyCutSession(FairCutsSession):
    def _at_cut(self, target):
        if target not in self._rankings:
            self._rank_classes()
        labeled = self._rankings[target]
        ranks = [labeled.ranking.rank(place[-1]) for place in labeled.places]
        differ = np.flatnonzero(np.diff(np.array(labeled.is_target, dtype=int)))
        gaps = [(ranks[i + 1] - ranks[i], ranks[i]) for i in differ.tolist()]
        between = sorted(gap for gap in gaps if gap[0] > 1)
        for width, low in between:
            if self.state.is_free(node := labeled.ranking.node(low + width // 2)):
                return node
        return super()._at_cut(target)


class WithoutShares(AutoTrainer):
    """The frequencies of the classes among the labels, as they are."""

    def fit(self, pool, labels):
        model = super().fit(pool, labels)
        return replace(model, class_priors=np.zeros_like(model.class_priors))


VARIANTS = {
    "the default": (FairCuts(), "auto"),
    "without discovery": (FairCuts(discover=0), "auto"),
    "without a sample afterwards": (FairCuts(sample=0), "auto"),
    "without spreading": (FairCuts(spread=1), "auto"),
    "the narrowest cut of all classes, no turns": (NarrowestFirst(), "auto"),
    "a cut between any two labels that differ": (AnyCut(), "auto"),
    "galaxy": ("galaxy", "auto"),
    "head without the pool's class priors": (FairCuts(), "without priors"),
    "linear head, weight decay 0.01": (FairCuts(), "linear"),
}


def head_of(name, n_classes, seed):
    if name == "auto":
        return "auto"
    if name == "without priors":
        return WithoutShares(n_classes=n_classes, seed=seed)
    return make_head(Head("linear", weight_decay=0.01), n_classes, seed)


def areas(variant, setting, seed):
    """Mean balanced accuracy and average precision over the rounds of one run."""
    data = load_labeled_pool(setting, False)
    strategy, head = VARIANTS[variant]
    head = head_of(head, int(data.truth.max()) + 1, seed)
    history = simulate(
        data.items, data.truth, strategy, head, rounds=20, seed=seed, annotator=data.answer
    )
    return np.mean([(step.balanced_accuracy, step.average_precision) for step in history], axis=0)


def main():
    print(f"| variant | {' | '.join(SETTINGS)} |")
    print(f"|---|{'---|' * len(SETTINGS)}")
    with ProcessPoolExecutor() as processes:
        for variant in VARIANTS:
            cells = []
            for setting in SETTINGS:
                runs = processes.map(areas, *zip(*((variant, setting, seed) for seed in SEEDS)))
                found = np.array(list(runs))
                means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / len(SEEDS) ** 0.5
                both = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors)]
                cells.append(", ".join(both))
            print(f"| {variant} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
