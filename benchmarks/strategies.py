"""What every strategy costs to pick a batch, beside public versions where there are some.

Run:  .venv/bin/python benchmarks/strategies.py                (about five minutes)
      .venv/bin/python benchmarks/strategies.py badge similar  (only some)

The public versions are installed by `make bench`.

The pool has N = 50,000 examples, d = 512, K = 10 and 500 labels, 100 of them of rare classes; a
batch is B = 100, asked and told one by one. Every figure is from a process of its own, after a
warm-up on a tiny pool. Times are the least of up to five runs, for ten seconds. Memory is by how
much the process's peak lies above what it held when pool, scores and embeddings were there. The
public versions get the same pool in the same run; they are given scores and, for facility location,
similarities, ready made.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from galaxy_al import UNLABELED, Snapshot
from galaxy_al.strategies import (
    S2,
    Badge,
    Bait,
    BalancedSelection,
    ClusterMargin,
    Confidence,
    Coreset,
    Direct,
    Entropy,
    FairCuts,
    FindAll,
    Galaxy,
    Margin,
    MostLikelyPositive,
    Random,
    Similar,
    TypiClust,
)
from galaxy_al.strategies.similar import _Similarity

SIZE, DIM, N_CLASSES, N_LABELED, N_RARE_LABELED, BATCH = 50_000, 512, 10, 500, 100, 100


class Cost(NamedTuple):
    seconds: float
    megabytes: float


class Pool(NamedTuple):
    snapshot: Snapshot
    truth: np.ndarray


def make_pool(size=SIZE, n_labeled=N_LABELED, n_rare_labeled=N_RARE_LABELED):
    """Nine rare classes of 1% each, embeddings of unequal variance, a linear last layer."""
    rng = np.random.default_rng(0)
    truth = np.full(size, N_CLASSES - 1)
    each = size // 100
    for k in range(N_CLASSES - 1):
        truth[k * each : (k + 1) * each] = k
    scale = np.exp(-np.arange(DIM) / 100).astype(np.float32)
    centers = rng.normal(size=(N_CLASSES, DIM)).astype(np.float32) * scale
    embeddings = (centers[truth] + 1.5 * rng.normal(size=(size, DIM))).astype(np.float32)
    weights = centers - centers.mean(axis=0)
    bias = -0.5 * (centers**2).sum(axis=1) + np.where(np.arange(N_CLASSES) == N_CLASSES - 1, 3, 0)
    logits = 0.15 * (embeddings @ weights.T + bias)
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    labels = np.full(size, UNLABELED)
    is_rare = truth < N_CLASSES - 1
    rare = rng.choice(np.flatnonzero(is_rare), n_rare_labeled, replace=False)
    common = rng.choice(np.flatnonzero(~is_rare), n_labeled - n_rare_labeled, replace=False)
    labels[rare], labels[common] = truth[rare], truth[common]
    head = 0.15 * weights, 0.15 * bias
    return Pool(Snapshot(proba.astype(np.float32), labels, embeddings, head), truth)


def ask_batch(strategy, pool):
    session = strategy.start(pool.snapshot, rng=np.random.default_rng(0), budget=BATCH)
    for _ in range(BATCH):
        index = session.ask()
        session.tell(index, int(pool.truth[index]))


def measure(work: Callable[[], object]) -> Cost:
    """The least time of up to five runs, for ten seconds, and the peak of memory over the first."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before must not count as there already
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before, seconds, megabytes = resident("VmRSS"), [], 0.0
    while not seconds or (len(seconds) < 5 and sum(seconds) < 10):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
        megabytes = megabytes or resident("VmHWM") - before
    return Cost(min(seconds), megabytes)


def resident(field: str) -> float:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(field))
    return int(line.split()[1]) / 1024


def ours(make):
    ask_batch(make(), tiny_pool())
    pool = make_pool()
    return measure(lambda: ask_batch(make(), pool))


def cluster_margin_later():
    ask_batch(ClusterMargin(), tiny_pool())
    pool, strategy = make_pool(), ClusterMargin()
    ask_batch(strategy, pool)
    return measure(lambda: ask_batch(strategy, pool))


def s2_graph():
    ask_batch(S2(), tiny_pool())
    pool, strategy = make_pool(), S2()
    return measure(lambda: strategy.prepare(pool.snapshot, rng=np.random.default_rng(0)))


def s2_query():
    ask_batch(S2(), tiny_pool())
    pool, strategy = make_pool(), S2()
    strategy.prepare(pool.snapshot, rng=np.random.default_rng(0))
    cost = measure(lambda: ask_batch(strategy, pool))
    return Cost(cost.seconds / BATCH, cost.megabytes)


def tiny_pool():
    return make_pool(2000, 100, 20)


def public(prepare):
    """What a public version costs; ``prepare`` turns a pool into a function that selects."""
    prepare(tiny_pool())()
    return measure(prepare(make_pool()))


def skactiveml_badge(pool):
    from skactiveml.base import SkactivemlClassifier
    from skactiveml.pool import Badge

    class ReadyScores(SkactivemlClassifier):
        def fit(self, X, y, sample_weight=None):
            return self

        def predict_proba(self, X):
            return proba

    proba = pool.snapshot.proba[pool.snapshot.askable()].astype(np.float64)
    embeddings, labels = pool.snapshot.embeddings, skactiveml_labels(pool)
    scores = ReadyScores(classes=list(range(N_CLASSES)))
    query = Badge(random_state=0).query
    return lambda: query(embeddings, labels, scores, fit_clf=False, batch_size=BATCH)


def skactiveml_coreset(pool):
    from skactiveml.pool import CoreSet

    labels = skactiveml_labels(pool)
    query = CoreSet(random_state=0).query
    return lambda: query(pool.snapshot.embeddings, labels, batch_size=BATCH)


def skactiveml_typiclust(pool):
    from skactiveml.pool import TypiClust as Public

    labels = skactiveml_labels(pool)
    query = Public(random_state=0).query
    return lambda: query(pool.snapshot.embeddings, labels, batch_size=BATCH)


def skactiveml_labels(pool):
    return np.where(pool.snapshot.labels == UNLABELED, np.nan, pool.snapshot.labels)


def submodlib_flqmi(pool):
    from submodlib import FacilityLocationVariantMutualInformationFunction as Flqmi

    snapshot = pool.snapshot
    labeled, free = snapshot.labeled(), snapshot.askable()
    query = labeled[snapshot.labels[labeled] != snapshot.other]
    similarity = _Similarity(snapshot, query, free).rows(slice(None))

    def select():
        function = Flqmi(n=len(free), num_queries=len(query), query_sijs=similarity)
        return function.maximize(budget=BATCH, optimizer="LazyGreedy", show_progress=False)

    return select


class Row(NamedTuple):
    method: str
    run: Callable[[], Cost]
    most_seconds: float
    most_megabytes: float
    public: str = ""
    prepare: Callable[[Pool], Callable[[], object]] | None = None


def row(strategy, *rest, method=None):
    return Row(method or strategy.name, lambda: ours(strategy), *rest)


ROWS = [
    *(row(s, 0.2, 100) for s in (Random, Confidence, Margin, Entropy, MostLikelyPositive)),
    *(row(s, 0.2, 100) for s in (BalancedSelection, Direct, Galaxy, FairCuts, FindAll)),
    row(Badge, 3, 300, "scikit-activeml Badge", skactiveml_badge),
    row(Coreset, 3, 300, "scikit-activeml CoreSet", skactiveml_coreset),
    row(TypiClust, 3, 300, "scikit-activeml TypiClust", skactiveml_typiclust),
    row(ClusterMargin, 3, 300, method="cluster-margin, first"),
    Row("cluster-margin, later", cluster_margin_later, 0.2, 300),
    row(Similar, 5, 500, "submodlib FLQMI, lazy", submodlib_flqmi),
    Row("s2, graph", s2_graph, 60, 500),
    Row("s2, a query", s2_query, 0.02, 500),
    row(Bait, 60, 2048, method="bait, dim 64"),
]


def run_row(number, of_public):
    row = ROWS[number]
    return public(row.prepare) if of_public else row.run()


def in_own_process(number, of_public=False):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(run_row, number, of_public).result()


def shown(seconds):
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def verdict(cost, row):
    fast, small = cost.seconds <= row.most_seconds, cost.megabytes <= row.most_megabytes
    target = f"{shown(row.most_seconds)}, {row.most_megabytes:,.0f} MB"
    return f"{target}: {'met' if fast and small else '**missed**'}"


def public_cells(number, cost):
    name = ROWS[number].public
    try:
        theirs = in_own_process(number, of_public=True)
    except ImportError:
        return [name, "not installed", "", ""]
    ratio = theirs.seconds / cost.seconds
    return [name, shown(theirs.seconds), f"{theirs.megabytes:,.0f} MB", f"{ratio:,.1f}"]


def main(wanted):
    columns = "method", "time", "memory", "target", "public version"
    columns += "its time", "its memory", "its time / ours"
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for number, row in enumerate(ROWS):
        if wanted and row.method.split(",")[0] not in wanted:
            continue
        cost = in_own_process(number)
        cells = [row.method, shown(cost.seconds), f"{cost.megabytes:,.0f} MB", verdict(cost, row)]
        cells += public_cells(number, cost) if row.prepare else [""] * 4
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", nargs="*", help="only these methods")
    sys.exit(main(parser.parse_args().method))
