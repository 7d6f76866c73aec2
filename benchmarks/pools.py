"""The pools that heads are developed on: images, texts and tables, with rare classes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from galaxy_al.experiments.datasets import load_labeled_pool

FOLDER = Path(os.environ.get("GALAXY_AL_DATA", "."))
IMAGES = ("cifar10-2", "cifar10-3", "cifar100-2", "cifar100-3", "cifar100-10", "svhn-2", "svhn-3")


def load(name):
    """Vectors and the truth; the last class is the majority class."""
    if name in IMAGES:
        data = load_labeled_pool(name, False)
        return data.items, data.truth
    if name.startswith("keel-"):
        return _keel(FOLDER / f"{name.removeprefix('keel-')}.dat")
    return OTHERS[name]()


def _keel(path):
    """A table of the KEEL repository; its two smallest classes are rare, at most 60 of each."""
    lines = path.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.lower().startswith("@data"))
    cells = [[cell.strip() for cell in line.split(",")] for line in lines[start + 1 :] if line]
    vectors = np.array([line[:-1] for line in cells], dtype=np.float32)
    classes = np.unique([line[-1] for line in cells], return_inverse=True)[1]
    rng, counts = np.random.default_rng(0), np.bincount(classes)
    truth, kept = np.full(len(classes), 2), np.ones(len(classes), dtype=bool)
    for number, k in enumerate(np.argsort(counts, kind="stable")[:2]):
        members = rng.permutation(np.flatnonzero(classes == k))
        truth[members], kept[members[60:]] = number, False
    return vectors[kept], truth[kept]


def _thinned(file, vectors, rare, count):
    """Some classes of a file are the rare ones, at most ``count`` examples each."""
    rng, content = np.random.default_rng(0), np.load(FOLDER / file)
    classes = np.unique(content["labels"], return_inverse=True)[1]
    truth, kept = np.full(len(classes), len(rare)), [np.flatnonzero(~np.isin(classes, rare))]
    for number, k in enumerate(rare):
        members = rng.permutation(np.flatnonzero(classes == k))[:count]
        truth[members] = number
        kept.append(members)
    rows = np.sort(np.concatenate(kept))
    return content[vectors][rows].astype(np.float32), truth[rows]


OTHERS = {
    "banking77-1": partial(_thinned, "banking77.npz", "embeddings", [11], None),
    "banking77-3": partial(_thinned, "banking77.npz", "embeddings", [3, 30, 61], None),
    "letters-3": partial(_thinned, "letters.npz", "features", [0, 7, 16], 100),
    "letters-9": partial(_thinned, "letters.npz", "features", list(range(1, 26, 3)), 100),
    "satellite-2": partial(_thinned, "satellite.npz", "features", [3], None),
    "satellite-3": partial(_thinned, "satellite.npz", "features", [1, 4], 100),
}


def label_order(vectors, truth, strategy, count, seed=0):
    """In which order a strategy with the default head would have labelled."""
    from galaxy_al.simulation import simulate

    if strategy == "random":
        return np.random.default_rng(seed).permutation(len(truth))[:count].tolist()
    history = simulate(vectors, truth, strategy, batch_size=100, rounds=count // 100, seed=seed)
    return [index for step in history for index in step.indices]
