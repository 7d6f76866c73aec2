"""Labels to find 95% of the relevant texts: the goal find-all beside ASReview's simulation.

Run:  .venv/bin/python benchmarks/find_all.py PACKAGES ASREVIEW [chosen | judged] [POOL ...]

ASREVIEW is a Python interpreter with asreview 3.0.8, in an environment of its own. PACKAGES and the
environment variables GALAXY_AL_DATA and GALAXY_AL_HELD_OUT are as in `held_out.py`, which must have
made its files before. Both read the same texts and start from the same two labels, one relevant and
one not. ASReview runs its default model (TF-IDF and a support vector machine, trained after every
label), galaxy-al its defaults for texts. What find-all does was chosen on the pools CHOSEN.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from galaxy_al.learner import Learner
from galaxy_al.simulation import play_round
from held_out import TEXTS
from pools import FOLDER, HELD_OUT_FOLDER

RECALL = 0.95
STARTS = 5
BATCH_SIZE = 50  # the default of a project
AFTER = (50, 100, 200)  # labels at which recall is reported

# The source, what is relevant in it, and how many of those are kept.
CHOSEN = {
    "banking77-11": ("banking77", 11, None),
    "banking77-23": ("banking77", 23, None),
    "banking77-51": ("banking77", 51, None),
    "sms": ("sms", "spam", 50),
    "reuters-gold": ("reuters", "gold", None),
    "reuters-gnp": ("reuters", "gnp", None),
    "reuters-money-supply": ("reuters", "money-supply", None),
    "reuters-cocoa": ("reuters", "cocoa", None),
}
JUDGED = {
    "reuters-coffee": ("reuters", "coffee", None),
    "reuters-sugar": ("reuters", "sugar", None),
    "reuters-ship": ("reuters", "ship", None),
    "reuters-cpi": ("reuters", "cpi", None),
    "news-5": ("news", 5, 110),
    "news-14": ("news", 14, 110),
}


def read(packages, source, label, count):
    """Texts, their vectors, and which are relevant."""
    if source == "banking77":
        content = np.load(FOLDER / "banking77.npz")
        texts, vectors = content["texts"], content["embeddings"]
    else:
        texts = np.array(TEXTS[source](packages)[0])
        content = np.load(HELD_OUT_FOLDER / f"{source}.npz")
        vectors = content["vectors"]
    is_relevant = content["labels"] == label
    kept = np.random.default_rng(0).permutation(np.flatnonzero(is_relevant))[:count]
    rows = np.sort(np.append(np.flatnonzero(~is_relevant), kept))
    return texts[rows].tolist(), vectors[rows].astype(np.float32), is_relevant[rows]


def choose_starts(is_relevant):
    """One relevant example and one other, for each start."""
    generators = [np.random.default_rng([7, start]) for start in range(STARTS)]
    return [
        [int(rng.choice(np.flatnonzero(is_relevant == kind))) for kind in (True, False)]
        for rng in generators
    ]


def order_by_asreview(interpreter, texts, is_relevant, starts):
    task = {"texts": texts, "relevant": is_relevant.astype(int).tolist()}
    task |= {"starts": starts, "recall": RECALL}
    command = [interpreter, str(Path(__file__).with_name("asreview_order.py").resolve())]
    with tempfile.TemporaryDirectory() as folder:  # it leaves a file where it runs
        done = subprocess.run(
            command,
            input=json.dumps(task),
            stdout=subprocess.PIPE,
            cwd=folder,
            text=True,
            check=True,
        )
    return json.loads(done.stdout)


def order_by_galaxy_al(texts, vectors, is_relevant, start):
    truth = np.where(is_relevant, 0, 1)
    learner = Learner(vectors, 2, goal="find-all", batch_size=BATCH_SIZE, texts=texts)
    learner.resume({index: int(truth[index]) for index in start})
    order, n_left = [], int(np.ceil(RECALL * is_relevant.sum())) - 1
    while n_left > is_relevant[order].sum():
        order += play_round(learner, truth).indices
    return order


def measure(order, is_relevant):
    """Labels to the recall, the recalls after some labels, and the work saved over sampling."""
    found = 1 + np.cumsum(is_relevant[order])
    n_labels = int(np.searchsorted(found, np.ceil(RECALL * is_relevant.sum()))) + 1
    recalls = [found[min(n, len(found)) - 1] / is_relevant.sum() for n in AFTER]
    return [n_labels, *recalls, RECALL - n_labels / len(is_relevant)]


def compare(packages, interpreter, name, pool):
    """The means of both, and one line of the table."""
    texts, vectors, is_relevant = read(packages, *pool)
    starts = choose_starts(is_relevant)
    begin = time.perf_counter()
    theirs = order_by_asreview(interpreter, texts, is_relevant, starts)
    middle = time.perf_counter()
    ours = [order_by_galaxy_al(texts, vectors, is_relevant, start) for start in starts]
    seconds = middle - begin, time.perf_counter() - middle
    theirs, ours = (
        np.mean([measure(order, is_relevant) for order in orders], axis=0)
        for orders in (theirs, ours)
    )
    cells = [name, f"{is_relevant.sum()} of {len(texts):,}", f"{theirs[0]:.0f}", f"{ours[0]:.0f}"]
    cells += [f"**{ours[0] / theirs[0]:.2f}**"]
    cells += [f"{a:.2f} / {b:.2f}" for a, b in zip(theirs[1:], ours[1:])]
    cells += [" / ".join(f"{second:.0f}" for second in seconds)]
    print("| " + " | ".join(cells) + " |", flush=True)
    return theirs[0], ours[0]


def main():
    packages, interpreter, *names = sys.argv[1:]
    pools = {"chosen": CHOSEN, "judged": JUDGED}.get(names[0] if names else "judged", {})
    pools = pools or {name: {**CHOSEN, **JUDGED}[name] for name in names}
    titles = ["pool", "relevant", "ASReview", "find-all", "ratio"]
    titles += [f"recall after {n}" for n in AFTER] + ["WSS@95", "seconds"]
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|", flush=True)
    results = [compare(Path(packages), interpreter, *item) for item in pools.items()]
    theirs, ours = np.mean(results, axis=0)
    ratios = [ours / theirs for theirs, ours in results]
    print(f"\nMean labels: {theirs:.0f} and {ours:.0f}, {ours / theirs:.2f}.", end=" ")
    print(f"Mean ratio {np.mean(ratios):.2f}, at most {max(ratios):.2f}.")


if __name__ == "__main__":
    main()
