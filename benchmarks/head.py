"""What one training of head="auto" costs, beside the matrix product it cannot do without.

Run:  .venv/bin/python benchmarks/head.py [--sizes 100000,1000000,10000000]    (about ten minutes)

A pool of N x d in single precision lies on disk and is memory-mapped. Training and scoring the
whole pool is compared with one product of N x d x min(L, 1000), computed in the same blocks, plus
reading the pool once. "Later" is the third training, with 100 labels more than the second: what
is kept is kept from the second on.
Memory is the peak of the process beyond what it held before the training, less the pages of the
pool. Every line is from its own process. Prints the table of docs/appendix/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from galaxy_al.models.auto import AutoTrainer
from galaxy_al.shards import row_blocks
from galaxy_al.system.threads import run_in_threads

WIDTHS = {100_000: 256, 1_000_000: 256, 10_000_000: 64}
CLASSES = (2, 10)
LABELS = (200, 1000, 5000)
NEW = 100
LOOKED_AT = 40  # examples for each label
PRODUCT_COLUMNS = 1000
ROWS = 1 << 12


def make_pool(path, size, width):
    """Points around 50 centres, written block by block."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(50, width)).astype(np.float32)
    pool = np.lib.format.open_memmap(path, "w+", np.float32, (size, width))
    for low, high in row_blocks(size, 1 << 17):
        noise = rng.standard_normal((high - low, width), dtype=np.float32)
        pool[low:high] = noise + centers[rng.integers(50, size=high - low)]
    pool.flush()


def labels_of(pool, n_labels, n_classes):
    """The rare classes are the hundredth nearest to one point each; a third of the labels are."""
    rng = np.random.default_rng(1)
    sample = np.sort(rng.choice(len(pool), min(LOOKED_AT * n_labels, len(pool)), replace=False))
    scores = np.asarray(pool[sample]) @ rng.normal(size=(pool.shape[1], n_classes - 1))
    best = scores.max(axis=1)
    is_rare = best >= np.quantile(best, 0.99)
    classes = np.where(is_rare, scores.argmax(axis=1), n_classes - 1)
    rare, others = (rng.permutation(np.flatnonzero(side)) for side in (is_rare, ~is_rare))
    rare = rare[: n_labels // 3]
    chosen = rng.permutation(np.append(rare, others[: n_labels - len(rare)]))
    return dict(zip(sample[chosen].tolist(), classes[chosen].tolist()))


def read_once(pool):
    begin = time.perf_counter()
    total = np.zeros(pool.shape[1])
    for low, high in row_blocks(len(pool), ROWS):
        total += pool[low:high].sum(axis=0)
    return time.perf_counter() - begin


def product(pool, n_columns):
    """Seconds of the product alone, in threads as the head's own."""
    columns = np.ones((pool.shape[1], n_columns), np.float32)
    begin = time.perf_counter()

    def multiply(bounds):
        np.asarray(pool[slice(*bounds)]) @ columns

    run_in_threads(multiply, row_blocks(len(pool), ROWS >> 2))
    return time.perf_counter() - begin


def train(trainer, pool, labels):
    begin = time.perf_counter()
    trainer.fit(pool, labels).proba(pool)
    return time.perf_counter() - begin


def anonymous_memory():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise AssertionError("Linux only")


def measure(path, n_classes, n_labels):
    """One line of the table, in this process."""
    import threading

    pool = np.load(path, mmap_mode="r")
    labels = labels_of(pool, n_labels + 2 * NEW, n_classes)
    first, second = (dict(list(labels.items())[: n_labels + more]) for more in (0, NEW))
    trainer = AutoTrainer(n_classes=n_classes)
    AutoTrainer(n_classes=n_classes).fit(np.asarray(pool[:2000]), {0: 0, 1: n_classes - 1})  # warm
    reading = min(read_once(pool) for _ in range(2))
    before, peak, is_over = anonymous_memory(), 0, threading.Event()

    def watch():
        nonlocal peak
        while not is_over.wait(0.01):
            peak = max(peak, anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    times = [product(pool, min(n_labels, PRODUCT_COLUMNS))]
    seconds = train(trainer, pool, first)
    times.append(product(pool, min(n_labels, PRODUCT_COLUMNS)))
    train(trainer, pool, second)
    later = train(trainer, pool, labels)
    is_over.set()
    watcher.join()
    return {
        "product": float(np.mean(times)),
        "reading": reading,
        "seconds": seconds,
        "later": later,
        "memory": (peak - before) / 1e9,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--line", nargs=3)
    options = parser.parse_args()
    if options.line:
        path, n_classes, n_labels = options.line
        print(json.dumps(measure(path, int(n_classes), int(n_labels))))
        return
    row("N", "d", "K", "labels", "product", "reading", "training + scoring", "ratio", "later", "GB")
    row(*["---"] * 10)
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            path, width = Path(folder) / "pool.npy", WIDTHS.get(size, 256)
            make_pool(path, size, width)
            for n_classes in CLASSES:
                for n_labels in LABELS:
                    line = [str(path), str(n_classes), str(n_labels)]
                    done = subprocess.run(
                        [sys.executable, __file__, "--line", *line],
                        check=True,
                        capture_output=True,
                        text=True,
                    )
                    found = json.loads(done.stdout)
                    ratio = (found["seconds"] - found["reading"]) / found["product"]
                    row(
                        f"{size:,}",
                        width,
                        n_classes,
                        f"{n_labels:,}",
                        f"{found['product']:.2f} s",
                        f"{found['reading']:.2f} s",
                        f"{found['seconds']:.2f} s",
                        f"{ratio:.2f}",
                        f"{found['later']:.2f} s",
                        f"{found['memory']:.2f}",
                    )


if __name__ == "__main__":
    main()
