"""Pools of images, texts and tables with rare classes: to develop on, and to judge by."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from galaxy_al.experiments.datasets import load_labeled_pool

FOLDER = Path(os.environ.get("GALAXY_AL_DATA", "."))
HELD_OUT_FOLDER = Path(os.environ.get("GALAXY_AL_HELD_OUT", "."))  # made by held_out.py
IMAGES = ("cifar10-2", "cifar10-3", "cifar100-2", "cifar100-3", "cifar100-10", "svhn-2", "svhn-3")


def load(name):
    """Vectors and the truth; the last class is the majority class."""
    if name in IMAGES:
        data = load_labeled_pool(name, False)
        return data.items, data.truth
    return {**OTHERS, **PACKAGED, **HELD_OUT, **MORE_CLASSES}[name]()


def thinned(file, vectors, rare, count):
    """Some classes of a file are the rare ones, at most ``count`` examples each."""
    rng, content = np.random.default_rng(0), np.load(FOLDER / file)
    names, classes = np.unique(content["labels"], return_inverse=True)
    rare = [names.tolist().index(k) if isinstance(k, str) else k for k in rare]
    truth, kept = np.full(len(classes), len(rare)), [np.flatnonzero(~np.isin(classes, rare))]
    for number, k in enumerate(rare):
        members = rng.permutation(np.flatnonzero(classes == k))[:count]
        truth[members] = number
        kept.append(members)
    rows = np.sort(np.concatenate(kept))
    return content[vectors][rows].astype(np.float32), truth[rows]


OTHERS = {
    "banking77-1": partial(thinned, "banking77.npz", "embeddings", [11], None),
    "banking77-3": partial(thinned, "banking77.npz", "embeddings", [3, 30, 61], None),
    "dino-2": partial(thinned, "cifar10-dinov2-4000.npz", "embeddings", [3, 5], 40),
    "letters-3": partial(thinned, "letters.npz", "features", [0, 7, 16], 100),
    "letters-9": partial(thinned, "letters.npz", "features", list(range(1, 26, 3)), 100),
    "satellite-2": partial(thinned, "satellite.npz", "features", [3], None),
    "satellite-3": partial(thinned, "satellite.npz", "features", [1, 4], 100),
}


def _made(name, rare, count):
    file = HELD_OUT_FOLDER / f"{name.rpartition('-')[0]}.npz"
    return partial(thinned, file, "vectors", rare, count)


# The head was chosen on these as well; the last ten were held out at first.
PACKAGED = {
    name: _made(name, rare, count)
    for name, rare, count in (
        ("reuters-1", ["coffee"], None),
        ("reuters-3", ["sugar", "ship", "grain"], None),
        ("news-2", [2, 13], 100),
        ("sms-1", ["spam"], 100),
        ("photos10-1", [3], 60),
        ("photos10-2", [0, 8], 40),
        ("photos100-3", [0, 1, 2], None),
        ("fashion-1", [6], 150),
        ("fashion-3", [2, 5, 8], 300),
        ("penbased-2", [3, 8], 100),
        ("optdigits-2", [1, 9], 60),
        ("texture-3", [0, 4, 8], 60),
        ("magic-1", ["h"], 200),
        ("segment-2", [2, 4], 40),
        ("newstest-2", [7, 11], 60),
        ("solar-1", ["defective"], 100),
        ("phoneme-1", ["1"], 150),
        ("spambase-1", ["1"], 150),
        ("ring-1", ["1"], 150),
        ("twonorm-1", ["1"], 100),
        ("banana-1", ["1.0"], 100),
        ("page-blocks0-1", ["positive"], 100),
    )
} | {
    "cifar100-others-3": partial(
        thinned, "cifar100-embeddings.npz", "embeddings", [20, 50, 80], None
    ),
    "svhn-seven-1": partial(thinned, "svhn-embeddings.npz", "embeddings", [7], 300),
}

# Nothing was chosen by these.
HELD_OUT = {
    "banking77-others-2": partial(thinned, "banking77.npz", "embeddings", [20, 45], None),
    "dino-others-2": partial(thinned, "cifar10-dinov2-4000.npz", "embeddings", [0, 8], 40),
} | {
    name: _made(name, rare, count)
    for name, rare, count in (
        ("clothes-2", [2, 5], 60),
        ("digits-1", [7], 60),
        ("abalone19-1", ["positive"], None),
        ("winequality-red-4-1", ["positive"], None),
        ("yeast4-1", ["positive"], None),
    )
}


# Nothing was chosen by these either; they have more classes.
MORE_CLASSES = {
    "banking77-others-7": partial(
        thinned, "banking77.npz", "embeddings", [5, 15, 25, 35, 50, 60, 70], None
    ),
    "letters-others-6": partial(thinned, "letters.npz", "features", [2, 5, 8, 11, 14, 20], 60),
}


def label_order(vectors, truth, strategy, count, seed=0):
    """In which order a strategy with the default head would have labelled."""
    from galaxy_al.simulation import simulate

    if strategy == "random":
        return np.random.default_rng(seed).permutation(len(truth))[:count].tolist()
    history = simulate(vectors, truth, strategy, batch_size=100, rounds=count // 100, seed=seed)
    return [index for step in history for index in step.indices]
