"""Selection by two checkouts of the project, in turn, in one run.

    python benchmarks/before_after.py OLD [NEW]

OLD and NEW are folders that hold a checkout. Each measurement is a process of its own; the two
checkouts alternate, and the shortest of the repetitions counts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

SIZES = [(50_000, 10, 500), (1_000_000, 10, 1_000), (10_000_000, 2, 1_000)]
REPETITIONS = 5
MEASURE = """
import json, sys, time
import numpy as np
from galaxy_al import Galaxy, Snapshot

size, n_classes, n_labels = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
proba = rng.random((size, n_classes), dtype=np.float32) ** 4
proba /= proba.sum(axis=1, keepdims=True)
labels = np.full(size, -1)
known = rng.choice(size, n_labels, replace=False)
labels[known] = proba[known].argmax(axis=1)
begin = time.perf_counter()
session = Galaxy().start(Snapshot(proba, labels), rng=np.random.default_rng(0))
built = time.perf_counter()
asked = []
for _ in range(100):
    asked.append(session.ask())
    session.tell(asked[-1], int(proba[asked[-1]].argmax()))
print(json.dumps([built - begin, (time.perf_counter() - built) / 100, asked]))
"""


def measure(checkout, sizes):
    settings = {**os.environ, "PYTHONPATH": str(Path(checkout).resolve() / "src")}
    command = [sys.executable, "-c", MEASURE, *map(str, sizes)]
    return json.loads(subprocess.run(command, env=settings, capture_output=True, check=True).stdout)


def main():
    old, new = (*sys.argv[1:], ".")[:2]
    print("| N | K | labelled | build before | after | ratio | ask + tell before | after | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for sizes in SIZES:
        runs = {old: [], new: []}
        for _ in range(REPETITIONS):
            for checkout, found in runs.items():
                found.append(measure(checkout, sizes))
        assert all(run[2] == runs[old][0][2] for found in runs.values() for run in found)
        (build, ask), (build_now, ask_now) = (
            [min(run[part] for run in found) for part in (0, 1)] for found in runs.values()
        )
        cells = [*(f"{number:,}" for number in sizes)]
        cells += [f"{build * 1e3:.0f} ms", f"{build_now * 1e3:.0f} ms", f"{build_now / build:.2f}"]
        cells += [f"{ask * 1e6:.0f} µs", f"{ask_now * 1e6:.0f} µs", f"{ask_now / ask:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
