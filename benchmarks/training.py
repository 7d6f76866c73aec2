"""How fast heads and networks are trained and pools are scored, beside the bare work.

Run:  .venv/bin/python benchmarks/training.py      (about three minutes)

Ratios are of the least times of several runs taken in turn.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from galaxy_al.data import load_pool
from galaxy_al.metrics import balanced_accuracy
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embed
from galaxy_al.models.networks.resnet import ResNet18
from galaxy_al.models.networks.training import RECIPES, Trainer


def labeled_embeddings(size, dim=512, n_classes=10, seed=0):
    """Rare classes of 1% each in the pool; embeddings that overlap."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(1).normal(size=(n_classes, dim)) * 0.12
    truth = rng.choice(n_classes, size, p=[0.01] * (n_classes - 1) + [1 - 0.01 * (n_classes - 1)])
    return (centers[truth] + rng.normal(size=(size, dim))).astype(np.float32), truth


def least(*works, repeat=5):
    """The least time of each of some works, taken in turn."""
    seconds = [[] for _ in works]
    for _ in range(repeat):
        for times, work in zip(seconds, works):
            begin = time.perf_counter()
            work()
            times.append(time.perf_counter() - begin)
    return [min(times) for times in seconds]


def row(*cells):
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def linear_head():
    from sklearn.linear_model import LogisticRegression

    embeddings, truth = labeled_embeddings(5000)
    pool, answers = labeled_embeddings(50_000, seed=2)
    labels = dict(enumerate(truth.tolist()))
    found = {}

    def ours():
        found["ours"] = Trainer("linear", n_classes=10).fit(embeddings, labels)

    def theirs():
        head = LogisticRegression(class_weight="balanced", max_iter=1000)
        found["theirs"] = head.fit(embeddings, truth)

    times = least(ours, theirs)
    accuracy = balanced_accuracy(answers, found["ours"].proba(pool).argmax(axis=1))
    reference = balanced_accuracy(answers, found["theirs"].predict(pool))
    ratio = times[0] / times[1]
    met = "met" if ratio <= 1 and accuracy >= reference - 0.005 else "**missed**"
    result = f"{times[0]:.2f} s, {accuracy:.3f} against {times[1]:.2f} s, {reference:.3f}"
    row("linear head, 5,000 x 512", result, f"{ratio:.2f}", "at most 1, within 0.005", met)


def scoring():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(1_000_000, 512)).astype(np.float32)
    model = Trainer("linear", n_classes=10).fit(pool[:500], dict(enumerate([*range(10)] * 50)))
    weights = torch.from_numpy(model.last_layer()[0])
    tensor = torch.from_numpy(pool)
    ours, bare = least(lambda: model.proba(pool), lambda: tensor @ weights.T, repeat=7)
    share = bare / ours
    met = "met" if share >= 0.8 else "**missed**"
    result = f"{ours:.2f} s against {bare:.2f} s"
    row("scoring 1,000,000 x 512, linear", result, f"{share:.2f}", "at least 0.80", met)


def resnet():
    images = np.random.default_rng(0).integers(0, 256, size=(500, 32, 32, 3), dtype=np.uint8)
    truth = np.arange(500) % 10
    labels = dict(enumerate(truth.tolist()))
    recipe = replace(RECIPES["resnet18"], epochs=2)
    tensors = torch.from_numpy(images).permute(0, 3, 1, 2).float().div(127.5).sub(1)
    tensors = tensors.contiguous(memory_format=torch.channels_last)
    targets = torch.from_numpy(truth)

    def bare():
        network = ResNet18(10).to(memory_format=torch.channels_last)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-2, weight_decay=5e-5)
        for _ in range(2):
            for rows in torch.randperm(500).split(100):
                optimizer.zero_grad()
                loss = functional.cross_entropy(network(tensors[rows]), targets[rows])
                loss.backward()
                optimizer.step()

    def ours():
        Trainer("resnet18", n_classes=10, recipe=recipe).fit(images, labels)

    times = least(ours, bare, repeat=4)
    share = times[1] / times[0]
    met = "met" if share >= 0.9 else "**missed**"
    result = f"{times[0]:.2f} s against {times[1]:.2f} s"
    row("ResNet-18 at 32 x 32, 2 epochs of 500", result, f"{share:.2f}", "at least 0.90", met)


def embedding(side, suffix, size=640):
    """Files read, scaled and embedded, beside the network alone on batches that are ready."""
    embedder = load_embedder("images")
    ready = torch.rand(64, 3, 128, 128).contiguous(memory_format=torch.channels_last)
    network = embedder._network

    def bare():
        with torch.inference_mode():
            for start in range(0, size, 64):
                features = network.extract_features(ready[: size - start])
                functional.adaptive_avg_pool2d(features, 1)

    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        write_photos(photos, side, suffix, size)
        pool = load_pool(photos)
        caches = (Path(folder) / str(run) for run in itertools.count())

        def ours():
            embed(pool, embedder, cache=next(caches), show_progress=False)

        times = least(ours, bare, repeat=6)
    share = times[1] / times[0]
    met = "met" if share >= 0.9 else "**missed**"
    result = f"{size / times[0]:.0f} images/s against {size / times[1]:.0f}"
    work = f"embedding at 128 px, {suffix} files of {side} x {side}"
    row(work, result, f"{share:.2f}", "at least 0.90", met)


def write_photos(folder, side, suffix, size):
    """Smooth pictures with a little noise, as photographs are."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(size):
        coarse = Image.fromarray(rng.integers(0, 256, size=(4, 4, 3), dtype=np.uint8))
        picture = np.asarray(coarse.resize((side, side)), dtype=np.float32)
        picture += rng.normal(scale=5, size=picture.shape)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(folder / f"{i:04d}.{suffix}")


if __name__ == "__main__":
    row("work", "ours against bare", "ratio", "target", "")
    row(*["---"] * 5)
    linear_head()
    scoring()
    resnet()
    embedding(32, "png")
    embedding(256, "jpg")
