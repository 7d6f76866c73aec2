"""What SIMILAR and Coreset keep between batches: the first batch and later ones.

Run:  GALAXY_AL_DATA=DIR OMP_NUM_THREADS=1 .venv/bin/python benchmarks/later_batches.py

SVHN has 73,257 embeddings of 256 columns; 3,000 labels, half of them rare, batches of 100. "From
scratch" is a new strategy on the labels of the later batch, whose picks must be the same.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from galaxy_al import Snapshot
from galaxy_al.strategies import Coreset, Similar


def timed(strategy, snapshot, seed):
    begin = time.perf_counter()
    picks = strategy.rank(snapshot, 100, np.random.default_rng(seed))
    return time.perf_counter() - begin, picks


def main():
    path = Path(os.environ["GALAXY_AL_DATA"]) / "svhn-embeddings.npz"
    with np.load(path) as content:
        embeddings = content["embeddings"].astype(np.float32)
        truth = np.minimum(content["labels"].astype(int), 1)
    rng = np.random.default_rng(0)
    columns = "first, s", "later, s", "from scratch, s", "later / first", "later / from scratch"
    print(f"| strategy | {' | '.join(columns)} | same |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for kind in (Coreset, Similar):
        labels = np.full(len(truth), -1)
        for k in (0, 1):
            some = rng.permutation(np.flatnonzero(truth == k))[:1500]
            labels[some] = k
        strategy, rows, same = kind(), [], True
        for batch in range(5):
            known = labels >= 0
            head = LogisticRegression(C=1e-3, max_iter=1000).fit(embeddings[known], labels[known])
            snapshot = Snapshot(head.predict_proba(embeddings), labels, embeddings)
            took, picks = timed(strategy, snapshot, batch)
            fresh, others = timed(kind(), snapshot, batch)
            rows.append((took, fresh))
            same = same and bool((picks == others).all())
            labels = labels.copy()
            labels[picks] = truth[picks]
        first, later = rows[0][0], float(np.median([took for took, _ in rows[1:]]))
        fresh = float(np.median([fresh for _, fresh in rows[1:]]))
        cells = [f"{value:.2f}" for value in (first, later, fresh, later / first, later / fresh)]
        print(f"| {kind.name} | {' | '.join(cells)} | {same} |", flush=True)


if __name__ == "__main__":
    main()
