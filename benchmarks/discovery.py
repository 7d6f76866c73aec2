"""Labels until the first rare example and until every class was seen: at random, and by discovery.

Run:  GALAXY_AL_DATA=FOLDER GALAXY_AL_HELD_OUT=POOLS .venv/bin/python benchmarks/discovery.py [POOL]

About 40 minutes for all pools. FOLDER and POOLS are as for benchmarks/held_out.py. Prints the table
of docs/appendix/discovery.md: means of ten random starts and the ratio to chance. *Discovery* needs
no model: it is what asks on the page until two classes are known. *The default* is fair-cuts with
the default head, trained after every 50 labels. A run that has not seen every class after 3,000
labels counts as 3,000. With "speed" instead of pools it measures how long the outliers of a million
examples take, beside one product with 2,000 columns.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

if sys.argv[1:] != ["speed"]:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from galaxy_al import Learner, Snapshot
from galaxy_al.experiments.datasets import load_labeled_pool
from galaxy_al.graphs.local_outliers import local_outliers
from galaxy_al.shards import row_blocks
from galaxy_al.strategies import Discovery
from galaxy_al.system.threads import run_in_threads
from pools import HELD_OUT, OTHERS, PACKAGED, load

MOST, BATCH_SIZE, STARTS = 3000, 50, 10
CHOSEN_BY = ("banking77-3", "letters-9", "satellite-3", "dino-2", "penbased-2", "fashion-3")
CHOSEN_BY += ("cifar10-3-thinned", "cifar100-10", "reuters-3", "cifar100-3-thinned")
JUDGED_BY = ("cifar10-2-thinned", "cifar100-2-thinned", "cifar100-10-thinned", "svhn-2-thinned")
JUDGED_BY += ("svhn-3-thinned", "news-2", "newstest-2", "sms-1", "photos10-2", "photos100-3")
JUDGED_BY += ("solar-1", "segment-2", "texture-3", "optdigits-2", "page-blocks0-1", "phoneme-1")
JUDGED_BY += ("banking77-others-2", "dino-others-2", "clothes-2", "digits-1")


def pool_of(name):
    if name in {**OTHERS, **PACKAGED, **HELD_OUT}:
        vectors, truth = load(name)
        return np.asarray(vectors, np.float32), truth
    data = load_labeled_pool(name, False)
    return data.items, data.truth


def seen_after(order, truth):
    """After how many labels the first rare example and the last rare class are seen."""
    first = {}
    for n, index in enumerate(order[:MOST], 1):
        first.setdefault(int(truth[index]), n)
    rare = [first.get(k, MOST) for k in range(int(truth.max()))]
    return min(rare), max(rare)


def by_chance(vectors, truth, seed):
    return np.random.default_rng(seed).permutation(len(truth)).tolist()


def by_discovery(vectors, truth, seed):
    snapshot = Snapshot(np.full((len(truth), 2), 0.5, np.float32), embeddings=vectors)
    session = Discovery().start(snapshot, rng=np.random.default_rng(seed), budget=BATCH_SIZE)
    order, majority = [], int(truth.max())
    while len(order) < min(MOST, len(truth)) and len(set(truth[order]) - {majority}) < majority:
        order.append(session.ask())
        session.tell(order[-1], 1)  # as if nothing rare had been found: all answers are alike
    return order


def by_default(vectors, truth, seed):
    majority = int(truth.max())
    learner = Learner(vectors, majority + 1, batch_size=BATCH_SIZE, seed=seed)
    order = []
    while len(order) < min(MOST, len(truth)) and len(set(truth[order]) - {majority}) < majority:
        if order and len(order) % BATCH_SIZE == 0:
            learner.refit()
        order.append(learner.ask())
        learner.tell(order[-1], int(truth[order[-1]]))
    return order


RULES = {"chance": by_chance, "discovery": by_discovery, "the default": by_default}


def row(name):
    vectors, truth = pool_of(name)
    counts = np.bincount(truth)
    rarest = f"{counts[:-1].min():,} of {len(truth):,}"
    means = {
        rule: np.mean([seen_after(order(vectors, truth, s), truth) for s in range(STARTS)], axis=0)
        for rule, order in RULES.items()
    }
    cells = [f"{means[rule][which]:,.0f}" for which in (0, 1) for rule in RULES]
    ratios = [means[rule][1] / means["chance"][1] for rule in list(RULES)[1:]]
    return name, len(counts) - 1, rarest, cells, ratios


def speed(size=1_000_000, width=64):
    vectors = np.random.default_rng(0).normal(size=(size, width)).astype(np.float32)
    columns = vectors[:2000].T.copy()

    def multiply(bounds):
        vectors[slice(*bounds)] @ columns

    for _ in range(2):
        begin = time.perf_counter()
        run_in_threads(multiply, row_blocks(size, 4096))
        product = time.perf_counter() - begin
        begin = time.perf_counter()
        local_outliers(vectors)
        outliers = time.perf_counter() - begin
        ratio = outliers / product
        print(f"{size:,} x {width}: {outliers:.1f} s, {ratio:.2f} products of {product:.1f} s")


def main():
    if sys.argv[1:] == ["speed"]:
        speed()
        return
    names = sys.argv[1:] or [*CHOSEN_BY, *JUDGED_BY]
    print("| pool | rare classes | rarest | first: chance | discovery | the default | ", end="")
    print("all: chance | discovery | the default | ratio, discovery | ratio, the default |")
    print(f"|{'---|' * 11}")
    ratios = {}
    with ProcessPoolExecutor() as processes:
        for name, n_rare, rarest, cells, found in processes.map(row, names):
            ratios[name] = found
            shown = " | ".join([*cells, *(f"{ratio:.2f}" for ratio in found)])
            print(f"| {name} | {n_rare} | {rarest} | {shown} |", flush=True)
    for title, group in (("chosen by", CHOSEN_BY), ("judged by", JUDGED_BY)):
        mine = np.array([ratios[name] for name in group if name in ratios])
        if len(mine):
            middle = np.exp(np.log(mine).mean(axis=0))
            print(f"Pools {title}: geometric mean of the ratios {middle[0]:.2f}, {middle[1]:.2f}")


if __name__ == "__main__":
    main()
