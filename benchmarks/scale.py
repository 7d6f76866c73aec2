"""Pools in shards on a local cluster of processes: time, memory, latency, and what it buys.

Run:  .venv/bin/python benchmarks/scale.py FOLDER                (half an hour; 16 GB in FOLDER)
      .venv/bin/python benchmarks/scale.py FOLDER --only scores  (one of the tables)
      .venv/bin/python benchmarks/scale.py FOLDER --only costs   (from the tables that were made)

Every row is a process of its own, so that its memory is that row's. The pools are synthetic:

- scores: K = 2, single precision, 100 shards, logits normal around -6; 1,000 labels at random.
- rounds: 64 columns in half precision, 100 shards, 1 example in 10,000 rare; 1,000 labels, 60 rare.

"Messages" are calls to workers for one ask and tell, "kB" what they answer. "Passes" are how often
a round goes over all vectors, and over all scores.

"Read once" is all workers reading all shards from the disk, with the page cache emptied; "bare
pass" is reading, and one matrix product with 1,000 columns. Both are done by the same workers.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from galaxy_al import Learner, Snapshot
from galaxy_al.cluster.parts import ClusterParts
from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.data.shard_files import Manifest, ShardRecord, write_vectors
from galaxy_al.labelling.project import create_project
from galaxy_al.server.nearest import VectorIndex, nearest
from galaxy_al.shards import Rows, reduce_rows, row_blocks
from galaxy_al.strategies import make_strategy
from support.crashing import free_port, start

N_SHARDS, N_LABELS, BATCH, WIDTH = 100, 1000, 100, 64
RARE, NAMES = 1e-4, ("rare", "usual")
N_WORKERS = os.cpu_count() or 1
WATCH = """() => {
  const begin = performance.now(), caption = document.querySelector("#caption")
  const watch = new MutationObserver(() => {
    window.took = performance.now() - begin
    watch.disconnect()
  })
  watch.observe(caption, {childList: true, characterData: true, subtree: true})
}"""
SIZES = {
    "scores": (10**6, 10**7, 10**8),
    "rounds": (10**6, 10**7, 10**8),
    "page": (10**7,),
    "find": (10**6, 10**7),
    "subsample": (10**7,),
}


def write_pool(folder: Path, tables, width, dtype) -> None:
    folder.mkdir(parents=True)
    shards = []
    for number, table in enumerate(tables):
        file = write_vectors(str(folder), f"{number:06d}", table)
        shards.append(ShardRecord(rows=len(table), vectors=file))
    Manifest(kind="embeddings", width=width, dtype=dtype, shards=tuple(shards)).write(str(folder))


def scores_pool(folder: Path, size: int) -> Path:
    path = folder / f"scores-{size}"
    if not path.exists():
        rng = np.random.default_rng(0)

        def tables():
            for _ in range(N_SHARDS):
                p = 1 / (1 + np.exp(-rng.normal(-6, 2.5, size // N_SHARDS)))
                yield np.stack([p, 1 - p], axis=1).astype(np.float32)

        write_pool(path, tables(), 2, "float32")
    return path


def vectors_pool(folder: Path, size: int) -> tuple[Path, np.ndarray]:
    path, truth_path = folder / f"vectors-{size}", folder / f"truth-{size}.npy"
    if not path.exists():
        rng, truth = np.random.default_rng(0), []
        middles = (0.35 * rng.normal(size=(2, WIDTH))).astype(np.float32)

        def tables():
            for _ in range(N_SHARDS):
                truth.append((rng.random(size // N_SHARDS) >= RARE).astype(np.int8))
                noise = rng.standard_normal((size // N_SHARDS, WIDTH), dtype=np.float32)
                yield (noise + middles[truth[-1]]).astype(np.float16)

        write_pool(path, tables(), WIDTH, "float16")
        np.save(truth_path, np.concatenate(truth))
    return path, np.load(truth_path, mmap_mode="r")


def forget(folder: Path) -> None:
    """Take the files out of the page cache."""
    for path in folder.glob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def add(one, other):
    return one + other


def total(rows: Rows) -> float:
    return float(rows.values.sum(dtype=np.float64))


def bare_product(columns, part) -> Rows:
    rows = part.open()
    made = np.empty((len(rows.values), 1), np.float32)
    product = np.empty((1024, columns.shape[1]), np.float32)
    for low, high in row_blocks(len(made), 1024):
        block = rows.values[low:high].astype(np.float32)
        made[low:high] = np.matmul(block, columns, out=product[: high - low])[:, :1]
    return Rows(rows.start, made)


def timed(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def worker_megabytes(pool: ShardedPool) -> float:
    """Of the largest worker, at its peak."""
    peaks = pool.vectors.parts._client.run(megabytes)
    return max(peaks.values())


class Counted:
    """Counts what is asked of the workers."""

    def __init__(self) -> None:
        self.messages = self.n_bytes = 0
        self.passes: dict[int, int] = {}
        ask, make = ClusterParts._ask, ClusterParts.map

        def counted_ask(parts, call, given):
            answers = ask(parts, call, given)
            self.messages += len(answers)
            self.n_bytes += sum(len(pickle.dumps(answer)) for answer in answers)
            if len(given) == len(parts):
                self.went_over(parts)
            return answers

        def counted_map(parts, work, *others):
            self.went_over(parts)
            return make(parts, work, *others)

        ClusterParts._ask, ClusterParts.map = counted_ask, counted_map

    def went_over(self, parts) -> None:
        self.passes[id(parts)] = self.passes.get(id(parts), 0) + 1

    def start(self) -> None:
        self.messages, self.n_bytes, self.passes = 0, 0, {}

    def per_question(self) -> dict[str, float]:
        return {"messages": self.messages / BATCH, "kB": self.n_bytes / BATCH / 1e3}


def quantile(seconds: list[float], share: float) -> float:
    return float(np.quantile(seconds, share))


def quantiles(seconds: list[float]) -> dict[str, float]:
    late = quantile(seconds, 0.95)
    return {"ask + tell, ms": 1e3 * quantile(seconds, 0.5), "p95": 1e3 * late}


def measure_scores(folder: Path, size: int) -> dict[str, float]:
    path, counted = scores_pool(folder, size), Counted()
    with ShardedPool(path, scheduler="local") as pool:
        table = pool.vectors
        reduce_rows(total, add, table)  # the checksums, once
        forget(path)
        read, _ = timed(lambda: reduce_rows(total, add, table))
        rng = np.random.default_rng(1)
        known = np.unique(rng.integers(0, size, N_LABELS))
        labels = {int(i): int(rng.random() > p) for i, p in zip(known, table[known][:, 0].tolist())}
        row = {"rows": size, "read once, s": read}
        for name in ("galaxy", "fair-cuts"):
            forget(path)
            begin = time.perf_counter()
            snapshot = Snapshot(table, labels)
            session = make_strategy(name).start(snapshot, rng=np.random.default_rng(0))
            started = time.perf_counter() - begin
            seconds = []
            counted.start()
            for _ in range(BATCH):
                took, index = timed(session.ask)
                label = int(rng.random() > table[index][0])
                seconds.append(took + timed(partial(session.tell, index, label))[0])
            whole = started + sum(seconds)
            found = {"start, s": started, "batch of 100, s": whole, "x reading": whole / read}
            found |= quantiles(seconds) | counted.per_question()
            row |= {f"{name} {key}": value for key, value in found.items()}
            del session, snapshot  # or its files stay in memory
        return row | {"driver, MB": megabytes(), "worker, MB": worker_megabytes(pool)}


def rare_rows(truth: np.memmap) -> np.ndarray:
    """Read in blocks, not mapped: the memory of this process is measured."""
    found = []
    for low, high in row_blocks(len(truth), 10**6):
        block = np.fromfile(truth.filename, np.int8, high - low, offset=truth.offset + low)
        found.append(low + np.flatnonzero(block == 0))
    return np.concatenate(found)


def class_of(truth: np.memmap, index: int) -> int:
    return int(np.fromfile(truth.filename, np.int8, 1, offset=truth.offset + index)[0])


def some_labels(truth, count_rare=60) -> dict[int, int]:
    rng = np.random.default_rng(1)
    rare = rare_rows(truth)
    rare = rng.permutation(rare)[: min(count_rare, len(rare) // 2)]
    known = np.union1d(rng.integers(0, len(truth), N_LABELS - len(rare)), rare)
    return {int(i): class_of(truth, int(i)) for i in known}


def measure_rounds(folder: Path, size: int) -> dict[str, float]:
    path, truth = vectors_pool(folder, size)
    columns = np.random.default_rng(0).normal(size=(WIDTH, 1000)).astype(np.float32)
    labels, counted = some_labels(truth), Counted()
    with ShardedPool(path, scheduler="local") as pool:
        work = partial(bare_product, columns)
        pool.vectors.parts.map(work).reduce(total, add)  # the checksums, once
        bare, _ = timed(lambda: pool.vectors.parts.map(work).reduce(total, add))
        opening, learner = timed(lambda: Learner(pool, n_classes=2, batch_size=BATCH))
        learner.resume(labels)
        counted.start()
        again, _ = timed(lambda: learner.resume(labels))
        own = counted.passes.get(id(pool.vectors.parts), 0)
        others = sum(counted.passes.values()) - own
        counted.start()
        seconds = []
        for _ in range(BATCH):
            took, index = timed(learner.ask)
            seconds.append(took + timed(partial(learner.tell, index, class_of(truth, index)))[0])
        whole = again + sum(seconds)
        row = {"rows": size, "bare pass, s": bare, "opening, s": opening, "round, s": whole}
        row |= {"x bare pass": whole / bare, "passes": own, "of scores": others}
        row |= quantiles(seconds) | counted.per_question()
        return row | {"driver, MB": megabytes(), "worker, MB": worker_megabytes(pool)}


def measure_subsample(folder: Path, size: int, rounds: int = 10) -> dict[str, float]:
    """Rare examples found with 1,000 labels: on all shards, and on one row in a hundred of them."""
    path, truth = vectors_pool(folder, size)
    rng = np.random.default_rng(2)
    seeds = rng.permutation(np.flatnonzero(truth == 0))[:5]
    usual = rng.permutation(np.flatnonzero(truth == 1)[: 10**6])[:5]
    start = {int(i): int(truth[i]) for i in (*seeds, *usual)}
    row: dict[str, float] = {"rows": size, "rare": int((truth == 0).sum())}
    with ShardedPool(path, scheduler="local") as pool:
        row |= {"found on all": found(pool, truth, start, rounds)}
        kept = np.union1d(rng.choice(size, size // 100, replace=False), list(start))
        vectors = pool.vectors[kept]
    places = {int(index): place for place, index in enumerate(kept.tolist())}
    small = {places[index]: label for index, label in start.items()}
    row |= {"rare in 1%": int((truth[kept] == 0).sum())}
    return row | {"found in 1%": found(vectors, truth[kept], small, rounds)}


def found(pool, truth, start, rounds) -> int:
    learner = Learner(pool, n_classes=2, batch_size=BATCH)
    learner.resume(start)
    for _ in range(rounds):
        for _ in range(BATCH):
            index = learner.ask()
            learner.tell(index, int(truth[index]))
        learner.refit()
    return sum(label == 0 for label in learner.state.labels.values()) - 5


def measure_page(folder: Path, size: int, count: int = 150) -> dict[str, float]:
    """From a key to the next example, in Chromium, while models are trained in between."""
    from playwright.sync_api import expect, sync_playwright

    path, truth = vectors_pool(folder, size)
    project = folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    with (folder / "labels.csv").open("w") as file:
        file.write("id,label\n")
        file.writelines(f"{i},{NAMES[label]}\n" for i, label in some_labels(truth).items())
    given = {"classes": ["rare"], "other": "usual", "labels": folder / "labels.csv"}
    create_project(project, path, shards=True, scheduler="local", **given).close()
    port, seconds = free_port(), []
    server = start(project, port)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://localhost:{port}")
        page.get_by_label("Name").fill("Ann")
        page.get_by_role("button", name="Start labelling").click()
        caption = page.locator("#caption")
        expect(caption).not_to_be_empty(timeout=60_000)
        for _ in range(count):
            shown = caption.inner_text()
            page.evaluate(WATCH)
            page.keyboard.press("1" if truth[int(shown)] == 0 else "2")
            expect(caption).not_to_have_text(shown, timeout=60_000)
            seconds.append(page.evaluate("window.took") / 1e3)
            time.sleep(0.3)  # to look at it
        rounds = page.locator("#model-state").inner_text()
    server.send_signal(signal.SIGINT)
    server.wait()
    row = {"rows": size, "answers": count, "rounds": int(rounds.split()[1].strip(","))}
    return row | {"median, ms": 1e3 * quantile(seconds, 0.5), "p95": 1e3 * quantile(seconds, 0.95)}


def measure_find(folder: Path, size: int, count: int = 24, n_queries: int = 20) -> dict[str, float]:
    """The examples nearest to one of the pool: by looking at all, and by an index."""
    path, _ = vectors_pool(folder, size)
    with ShardedPool(path, scheduler="local") as pool:
        table = pool.vectors
        queries = table[np.random.default_rng(3).integers(0, size, n_queries)].astype(np.float64)
        nearest(table, queries[0], count)  # the checksums, once
        exact = [timed(partial(nearest, table, query, count)) for query in queries]
        building, index = timed(lambda: VectorIndex.of(table))
        quick = [timed(partial(index.nearest, query, count)) for query in queries]
        same = [len(set(one) & set(other)) for (_, one), (_, other) in zip(exact, quick)]
        row = {"rows": size, "all, s": float(np.median([took for took, _ in exact]))}
        row |= {"index, s": building, "by index, s": float(np.median([took for took, _ in quick]))}
        row |= {"of the nearest, %": 100 * sum(same) / (count * n_queries)}
        return row | {"driver, MB": megabytes(), "worker, MB": worker_megabytes(pool)}


MEASURES = {
    "scores": measure_scores,
    "rounds": measure_rounds,
    "page": measure_page,
    "find": measure_find,
    "subsample": measure_subsample,
}


def show(rows: list[dict[str, float]]) -> None:
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---:|" * len(rows[0]))
    for row in rows:
        cells = (f"{v:,}" if isinstance(v, int) else f"{v:,.2f}" for v in row.values())
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def show_costs(made: dict[str, list[dict[str, float]]]) -> None:
    """Fit seconds = fixed + per row and worker, relative to what was measured, and read it off."""
    for what, column in (("scores", "galaxy batch of 100, s"), ("rounds", "round, s")):
        sizes = np.array([row["rows"] for row in made[what]], dtype=float)
        seconds = np.array([row[column] for row in made[what]])
        design = np.stack([1 / seconds, sizes / N_WORKERS / seconds], axis=1)
        (fixed, each), *_ = np.linalg.lstsq(design, np.ones(len(sizes)), rcond=None)
        print(f"{what}: {fixed:.2f} s + {1e9 * each:.0f} ns per row and worker")
        cells = [("measured", n, N_WORKERS, s) for n, s in zip(sizes, seconds)]
        cells += [("computed", n, w, np.nan) for n in (1e9, 1e10) for w in (N_WORKERS, 40, 400)]
        print("| | rows | workers | seconds | by the model |\n|---|---:|---:|---:|---:|")
        for kind, n, workers, took in cells:
            said = "" if np.isnan(took) else f"{took:,.1f}"
            print(f"| {kind} | {n:,.0f} | {workers} | {said} | {fixed + each * n / workers:,.1f} |")
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=[*MEASURES, "costs"])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        what, size = arguments.one
        print(json.dumps(MEASURES[what](arguments.folder, int(size))))
        return
    results = arguments.folder / "results.json"
    made = json.loads(results.read_text()) if results.exists() else {}
    wanted = list(MEASURES) if arguments.only is None else [arguments.only]
    for what in [name for name in wanted if name != "costs"]:
        made[what] = rows = []
        for size in SIZES[what]:
            command = [sys.executable, __file__, str(arguments.folder), "--one", what, str(size)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            rows.append(json.loads(said.splitlines()[-1]))
        print(what)
        show(rows)
        results.write_text(json.dumps(made))
    if arguments.only in (None, "costs"):
        show_costs(made)


if __name__ == "__main__":
    main()
