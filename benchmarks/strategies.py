"""What every strategy costs to pick a batch, beside public versions where there are some.

Run:  .venv/bin/python benchmarks/strategies.py                (about five minutes)
      .venv/bin/python benchmarks/strategies.py badge similar  (only some)

The public versions are installed by `make bench`.

The pool has N = 50,000 examples, d = 512, K = 10 and 500 labels, 100 of them of rare classes; a
batch is B = 100, asked and told one by one. Each row runs in a process of its own, after a warm-up
on a tiny pool. Times are the least of some repetitions. Memory is by how much the process's peak
lies above what it held when pool, scores and embeddings were there. The public versions get the
same pool in the same run; they are given scores and, for facility location, similarities, ready
made.
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
from galaxy_al.strategies import make_strategy
from galaxy_al.strategies.bait import Bait

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
    centres = rng.normal(size=(N_CLASSES, DIM)).astype(np.float32) * scale
    embeddings = (centres[truth] + 1.5 * rng.normal(size=(size, DIM))).astype(np.float32)
    weights = centres - centres.mean(axis=0)
    bias = -0.5 * (centres**2).sum(axis=1) + np.where(np.arange(N_CLASSES) == N_CLASSES - 1, 3, 0)
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


def measure(work: Callable[[], object], repeat: int) -> Cost:
    """The least time, and the peak of memory over the first run."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before must not count as there already
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before, seconds, megabytes = resident("VmRSS"), [], 0.0
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
        megabytes = megabytes or resident("VmHWM") - before
    return Cost(min(seconds), megabytes)


def resident(field: str) -> float:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(field))
    return int(line.split()[1]) / 1024


def ours(name, repeat):
    warm_up(lambda pool: ask_batch(make_strategy(name), pool))
    pool = make_pool()
    return measure(lambda: ask_batch(make_strategy(name), pool), repeat)


def cluster_margin_later():
    warm_up(lambda pool: ask_batch(make_strategy("cluster-margin"), pool))
    pool, strategy = make_pool(), make_strategy("cluster-margin")
    ask_batch(strategy, pool)
    return measure(lambda: ask_batch(strategy, pool), 5)


def s2_graph():
    warm_up(lambda pool: ask_batch(make_strategy("s2"), pool))
    pool, strategy = make_pool(), make_strategy("s2")
    return measure(lambda: strategy.prepare(pool.snapshot, rng=np.random.default_rng(0)), 1)


def s2_query():
    pool, strategy = make_pool(), make_strategy("s2")
    strategy.prepare(pool.snapshot, rng=np.random.default_rng(0))
    cost = measure(lambda: ask_batch(strategy, pool), 3)
    return Cost(cost.seconds / BATCH, cost.megabytes)


def wide_bait():
    pool = make_pool()
    return measure(lambda: ask_batch(Bait(dim=128), pool), 1)


def warm_up(work):
    work(make_pool(2000, 100, 20))


def skactiveml_labels(pool):
    return np.where(pool.snapshot.labels == UNLABELED, np.nan, pool.snapshot.labels)


def skactiveml_badge():
    from skactiveml.base import SkactivemlClassifier
    from skactiveml.pool import Badge

    class ReadyScores(SkactivemlClassifier):
        def fit(self, X, y, sample_weight=None):
            return self

        def predict_proba(self, X):
            return proba

    pool = make_pool()
    free = pool.snapshot.askable()
    proba = pool.snapshot.proba[free].astype(np.float64)
    embeddings, labels = pool.snapshot.embeddings, skactiveml_labels(pool)
    query = Badge(random_state=0).query
    scores = ReadyScores(classes=list(range(N_CLASSES)))
    return measure(lambda: query(embeddings, labels, scores, fit_clf=False, batch_size=BATCH), 1)


def skactiveml_coreset():
    from skactiveml.pool import CoreSet

    pool = make_pool()
    labels = skactiveml_labels(pool)
    query = CoreSet(random_state=0).query
    return measure(lambda: query(pool.snapshot.embeddings, labels, batch_size=BATCH), 1)


def submodlib_flqmi():
    from submodlib import FacilityLocationVariantMutualInformationFunction as Flqmi

    from galaxy_al.strategies.similar import _Similarity

    snapshot = make_pool().snapshot
    labeled, free = snapshot.labeled(), snapshot.askable()
    query = labeled[snapshot.labels[labeled] != snapshot.other]
    similarity = _Similarity(snapshot, query, free).rows(slice(None))

    def select():
        function = Flqmi(n=len(free), num_queries=len(query), query_sijs=similarity)
        return function.maximize(budget=BATCH, optimizer="LazyGreedy", show_progress=False)

    return measure(select, 1)


class Row(NamedTuple):
    method: str
    run: Callable[[], Cost]
    most_seconds: float
    most_megabytes: float
    public: str = ""
    public_run: Callable[[], Cost] | None = None


def quick(name):
    return Row(name, lambda: ours(name, 7), 0.2, 100)


ROWS = [
    quick("confidence"),
    quick("margin"),
    quick("entropy"),
    quick("most-likely-positive"),
    quick("base"),
    quick("direct"),
    quick("galaxy"),
    Row("badge", lambda: ours("badge", 3), 3, 300, "scikit-activeml Badge", skactiveml_badge),
    Row(
        "coreset", lambda: ours("coreset", 3), 3, 300, "scikit-activeml CoreSet", skactiveml_coreset
    ),
    Row("cluster-margin, first", lambda: ours("cluster-margin", 3), 3, 300),
    Row("cluster-margin, later", cluster_margin_later, 0.2, 300),
    Row("similar", lambda: ours("similar", 3), 5, 500, "submodlib FLQMI, lazy", submodlib_flqmi),
    Row("s2, graph", s2_graph, 60, 500),
    Row("s2, a query", s2_query, 0.02, 500),
    Row("bait, dim 64", lambda: ours("bait", 1), 60, 2048),
    Row("bait, dim 128", wide_bait, 60, 2048),
]


def run_row(number, public):
    row = ROWS[number]
    return row.public_run() if public else row.run()


def in_own_process(number, public=False):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(run_row, number, public).result()


def shown(seconds):
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def verdict(cost, row):
    fast, small = cost.seconds <= row.most_seconds, cost.megabytes <= row.most_megabytes
    return "met" if fast and small else "**missed**"


def main(wanted):
    columns = "method", "time", "at most", "memory", "at most", "target", "public version"
    columns += "its time", "its memory", "its time / ours"
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for number, row in enumerate(ROWS):
        if wanted and row.method.split(",")[0] not in wanted:
            continue
        cost = in_own_process(number)
        cells = [row.method, shown(cost.seconds), shown(row.most_seconds)]
        cells += [f"{cost.megabytes:,.0f} MB", f"{row.most_megabytes:,.0f} MB", verdict(cost, row)]
        if row.public_run:
            public = in_own_process(number, public=True)
            ratio = public.seconds / cost.seconds
            cells += [row.public, shown(public.seconds), f"{public.megabytes:,.0f} MB"]
            cells += [f"{ratio:,.1f}"]
        else:
            cells += [""] * 4
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", nargs="*", help="only these methods")
    sys.exit(main(parser.parse_args().method))
