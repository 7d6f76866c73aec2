"""How fast GALAXY selects: beside one argsort of each margin column and the naive reference.

Run:  .venv/bin/python benchmarks/selection.py        (about five minutes)
      .venv/bin/python benchmarks/selection.py --quick  (without the naive reference)

The work is what one round costs: check the score table, build the graphs, then 100 x (ask + tell).
Times are the least of several repetitions, ours and the argsorts' taken in turn; the machine may
be noisy, so look at the ratios. The pool is synthetic: rare classes of 1% each, and scores of a
model that has fitted its labelled examples, as the paper assumes. Memory is what Python and NumPy
allocate at the peak of the work, the table included.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

from galaxy_al import UNLABELED, Galaxy, Snapshot

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

QUERIES = 100


def make_pool(size, n_classes, n_labeled, dtype=np.float32, order="C", seed=0):
    """Scores, truth and labels: half of the labels random, half spread over the rare classes."""
    rng = np.random.default_rng(seed)
    rare = min(0.01, 0.5 / n_classes)
    truth = np.full(size, n_classes - 1, dtype=np.int16)
    draw = rng.random(size)
    truth[draw < rare * (n_classes - 1)] = (draw[draw < rare * (n_classes - 1)] / rare).astype(int)
    each = max(n_labeled // 2 // n_classes, 2)
    chosen = [rng.choice(np.flatnonzero(truth == k), each) for k in range(n_classes)]
    n_random = max(n_labeled - each * n_classes, 1)
    labeled = np.unique(np.concatenate([*chosen, rng.choice(size, n_random)]))
    fitted = np.zeros(size, dtype=bool)
    fitted[labeled] = True
    table = np.empty((size, n_classes), dtype=dtype, order=order)
    for start in range(0, size, 1 << 17):
        rows = slice(start, start + (1 << 17))
        here = truth[rows]
        logits = rng.normal(scale=1.5, size=(len(here), n_classes)).astype(np.float32)
        logits[:, -1] += 2
        logits[np.arange(len(here)), here] += np.where(fitted[rows], 8, 3)
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        table[rows] = logits / logits.sum(axis=1, keepdims=True)
    labels = np.full(size, UNLABELED, dtype=np.int16)
    labels[labeled] = truth[labeled]
    return table, truth, labels


def select(table, truth, labels):
    """The seconds to build the graphs, and for one ask and tell."""
    begin = time.perf_counter()
    session = Galaxy().start(Snapshot(table, labels), rng=np.random.default_rng(0))
    built = time.perf_counter()
    for _ in range(QUERIES):
        index = session.ask()
        session.tell(index, int(truth[index]))
    return built - begin, (time.perf_counter() - built) / QUERIES


def argsorts(table):
    """The seconds for one argsort of each margin column; making the columns is not counted."""
    top = np.concatenate([part.max(axis=1) for part in np.array_split(table, 64)])
    seconds = 0.0
    for k in range(table.shape[1]):
        column = table[:, k] - top
        begin = time.perf_counter()
        np.argsort(column)
        seconds += time.perf_counter() - begin
    return seconds


def naive(table, truth, labels, queries=2):
    """The seconds the tests' reference would take for the same work, from a few queries."""
    from support.naive_galaxy import NaiveGalaxy

    def rank(table, k):  # sorting by exact fractions would only flatter us
        top = table.max(axis=1)
        return np.lexsort((top, table[:, k] - top)).tolist()

    begin = time.perf_counter()
    paper = NaiveGalaxy(table, rank=rank)
    built = time.perf_counter()
    told = {int(i): int(labels[i]) for i in np.flatnonzero(labels != UNLABELED)}
    for _ in range(queries):
        allowed = paper.allowed(told)
        index = next(iter(set().union(*allowed.values())))
        told[index] = int(truth[index])
    return built - begin + (time.perf_counter() - built) / queries * QUERIES


def peak_memory(table, truth, labels):
    """The peak over the work as a multiple of the table, which is included."""
    tracemalloc.start()
    select(table, truth, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return 1 + peak / table.nbytes


def header(*columns):
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def row(*cells):
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def target_table(quick):
    times = "argsorts", "build", "ask + tell", "total / argsorts", "naive / ours"
    header("N", "K", "labelled", "type", *times, "peak memory / table")
    sizes = [(50_000, 10, 500, 15), (1_000_000, 10, 1000, 5), (10_000_000, 2, 1000, 2)]
    for size, n_classes, n_labeled, repeat in [*sizes, (1_000_000, 100, 1000, 1)]:
        for dtype in (np.float32, np.float64):
            pool = make_pool(size, n_classes, n_labeled, dtype)
            runs = [(argsorts(pool[0]), *select(*pool)) for _ in range(repeat)]
            baseline, build, each = (min(column) for column in zip(*runs))
            total = build + QUERIES * each
            against_naive = ""
            if size == 50_000 and not quick:
                against_naive = f"{naive(*pool) / total:,.0f}"
            row(
                f"{size:,}",
                n_classes,
                f"{n_labeled:,}",
                dtype.__name__,
                milliseconds(baseline),
                milliseconds(build),
                microseconds(each),
                f"{total / baseline:.2f}",
                against_naive,
                f"{peak_memory(*pool):.2f}",
            )


def growth_table():
    header("N", "K", "labelled", "ask + tell")
    cases = [(50_000, 500), (200_000, 500), (1_000_000, 500), (4_000_000, 500)]
    for size, n_labeled in [*cases, (1_000_000, 5_000), (1_000_000, 50_000)]:
        pool = make_pool(size, 10, n_labeled)
        each = min(select(*pool)[1] for _ in range(5))
        row(f"{size:,}", 10, f"{n_labeled:,}", microseconds(each))


def layout_table():
    header("table of 1,000,000 x 10", "build", "peak memory / table")
    for dtype in (np.float32, np.float64):
        for order in "CF":
            pool = make_pool(1_000_000, 10, 1000, dtype, order)
            layout_row(f"{dtype.__name__}, order {order}", pool)
    table, truth, labels = make_pool(1_000_000, 10, 1000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proba.npy"
        np.save(path, table)
        layout_row("float32, read-only memory map", (np.load(path, mmap_mode="r"), truth, labels))


def layout_row(name, pool):
    build = min(select(*pool)[0] for _ in range(5))
    row(name, milliseconds(build), f"{peak_memory(*pool):.2f}")


def milliseconds(seconds):
    return f"{seconds * 1e3:,.0f} ms"


def microseconds(seconds):
    return f"{seconds * 1e6:,.0f} µs"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the naive reference")
    quick = parser.parse_args().quick
    target_table(quick)
    growth_table()
    layout_table()
