"""Workers and drivers of pools in shards, killed at random moments: is the result the same?

Run:  .venv/bin/python benchmarks/kills.py      (about five minutes)

Every trial kills a process as `kill -9` does, at a random moment of the time that the work takes
undisturbed. "Hit" are trials in which the work was still going on. Results are compared byte by
byte with those of an undisturbed run, or of the same pool in one array.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from galaxy_al import Learner
from galaxy_al.cluster.connecting import connected
from galaxy_al.cluster.embedding import embed_into_shards
from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.data import load_pool
from galaxy_al.labelling.project import create_project
from galaxy_al.models.auto import AutoTrainer
from support.crashing import run_and_kill

TRIALS = 10
SIZE, WIDTH, ROWS = 200_000, 64, 2000


def kill_one(client) -> None:
    pids = list(client.run(os.getpid, on_error="ignore").values())
    os.kill(random.choice([pid for pid in pids if isinstance(pid, int)]), signal.SIGKILL)


def wait_for_workers(client) -> None:
    """One that is killed while it starts is given up by dask, unless it is asked for again."""
    client.cluster.scale(2)
    client.wait_for_workers(2, timeout=120)


def with_a_kill(client, seconds, work) -> tuple[object, bool]:
    """What the work makes while a worker is killed, and whether it was still at it."""
    wait_for_workers(client)
    killed = []

    def kill() -> None:
        kill_one(client)
        killed.append(time.perf_counter())

    timer = threading.Timer(random.uniform(0, seconds), kill)
    timer.start()
    result = work()
    end = time.perf_counter()
    timer.join()
    return result, killed[0] < end


def sums(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.glob("*.npy")}


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def timed(work):
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def show(what: str, trials: list[tuple[bool, bool]]) -> None:
    hits = sum(hit for hit, _ in trials)
    print(f"| {what} | {len(trials)} | {hits} | {sum(same for _, same in trials)} |", flush=True)


def workers_while_embedding(folder, client, source) -> None:
    def embed(out):
        address = client.scheduler.address
        embed_into_shards(load_pool(source), source, str(out), scheduler=address, rows=ROWS)
        return sums(out)

    expected, seconds = timed(lambda: embed(folder / "whole"))
    trials = []
    for _ in range(TRIALS):
        made, hit = with_a_kill(client, seconds, lambda: embed(fresh(folder / "killed")))
        trials.append((hit, made == expected))
    show("a worker, embedding", trials)


def driver_while_embedding(folder, source) -> None:
    expected, out = sums(folder / "whole"), folder / "driver"
    command = [sys.executable, "-m", "galaxy_al", "embed", str(source), "--out", str(out)]
    command += ["--rows", str(ROWS)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    _, seconds = timed(lambda: subprocess.run(command, check=True, **quiet))
    trials = []
    for _ in range(TRIALS):
        fresh(out)
        process = subprocess.Popen(command, **quiet)
        time.sleep(random.uniform(0, seconds))
        hit = process.poll() is None
        process.kill()
        process.wait()
        subprocess.run(command, check=True, **quiet)
        trials.append((hit, sums(out) == expected))
    show("the driver, embedding; run again", trials)


def workers_while_scoring(client, shards, vectors, labels) -> None:
    expected = AutoTrainer(n_classes=2).fit(vectors, labels).proba(vectors)
    with ShardedPool(shards, scheduler=client.scheduler.address) as pool:

        def score():
            return np.asarray(
                AutoTrainer(n_classes=2).fit(pool.vectors, labels).proba(pool.vectors)
            )

        _, seconds = timed(score)
        trials = []
        for _ in range(TRIALS):
            made, hit = with_a_kill(client, seconds, score)
            trials.append((hit, np.array_equal(made, expected)))
    show("a worker, training and scoring", trials)


def questions(pool, truth, labels, between=lambda: None) -> list[int]:
    learner = Learner(pool, n_classes=2, batch_size=60)
    learner.resume(labels)
    asked = []
    for _ in range(60):
        between()
        asked.append(learner.ask())
        learner.tell(asked[-1], int(truth[asked[-1]]))
    return asked


def workers_in_a_batch(client, shards, vectors, truth, labels) -> None:
    expected = questions(vectors, truth, labels)
    trials = []
    with ShardedPool(shards, scheduler=client.scheduler.address) as pool:
        for _ in range(TRIALS):
            wait_for_workers(client)
            steps = iter([False] * random.randrange(60) + [True])

            def between(steps=steps) -> None:
                if next(steps, False):
                    kill_one(client)

            trials.append((True, questions(pool, truth, labels, between) == expected))
    show("a worker, in a batch of 60 questions", trials)


def driver_while_labelling(folder, shards) -> None:
    project = create_project(
        folder / "project",
        shards,
        shards=True,
        scheduler="local",
        classes=["class 0"],
        other="class 1",
        batch_size=100,
    )
    project.close()
    said, lost = run_and_kill(project.folder, TRIALS, n_annotators=3, n_classes=2, alive=3.0)
    print(f"| the server, while three people label | {TRIALS} | {TRIALS} | ", end="")
    print(f"{len(lost)} of {len(said):,} acknowledged labels lost |", flush=True)


def main() -> None:
    random.seed(0)
    rng = np.random.default_rng(0)
    truth = (rng.random(SIZE) > 0.01).astype(int)
    middles = rng.normal(size=(2, WIDTH)) * 0.4
    vectors = (rng.normal(size=(SIZE, WIDTH)) + middles[truth]).astype(np.float32)
    labels = {int(i): int(truth[i]) for i in range(0, SIZE, 500)}
    print("| killed | trials | hit | identical |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name, connected("local", n_workers=2) as client:
        folder = Path(name)
        np.save(folder / "vectors.npy", vectors)
        workers_while_embedding(folder, client, folder / "vectors.npy")
        driver_while_embedding(folder, folder / "vectors.npy")
        workers_while_scoring(client, folder / "whole", vectors, labels)
        workers_in_a_batch(client, folder / "whole", vectors, truth, labels)
        driver_while_labelling(folder, folder / "whole")


if __name__ == "__main__":
    main()
