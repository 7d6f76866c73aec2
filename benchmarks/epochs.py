"""How many epochs the paper's network needs: balanced accuracy against epochs, for one label set.

Run:  GALAXY_AL_DATA=DIR .venv/bin/python benchmarks/epochs.py SETTING [--labels 400] [--float32]

SETTING is that of a suite, as cifar10-2-small. The labels are sampled at random, a third of them
from the rare classes, as strategies find them. Everything else is the paper's: ResNet-18 with
ImageNet weights, Adam with 1e-2, batches of 100, class weights. A row per number of epochs, each
trained from the beginning: balanced accuracy and average precision over the pool.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from galaxy_al.experiments.datasets import load_labeled_pool
from galaxy_al.metrics import balanced_accuracy, rare_average_precision
from galaxy_al.models.networks.training import RECIPES, Trainer

EPOCHS = (5, 10, 20, 30, 50, 100, 200, 500)


def some_labels(truth: np.ndarray, count: int, rng: np.random.Generator) -> dict[int, int]:
    rare = rng.permutation(np.flatnonzero(truth != truth.max()))[: count // 3]
    others = rng.permutation(np.flatnonzero(truth == truth.max()))[: count - len(rare)]
    return {int(i): int(truth[i]) for i in np.union1d(rare, others)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting")
    parser.add_argument("--labels", type=int, default=400)
    parser.add_argument("--epochs", type=int, nargs="+", default=EPOCHS)
    parser.add_argument("--starts", type=int, default=1)
    parser.add_argument("--float32", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = load_labeled_pool(given.setting, True)
    n_classes = int(data.truth.max()) + 1
    precision = "float32" if given.float32 else "fastest"
    print(f"{given.setting}, {given.labels} labels, {precision}")
    print("| epochs | start | balanced accuracy | average precision | training, s |")
    print("|---:|---:|---:|---:|---:|", flush=True)
    for epochs in given.epochs:
        for start in range(given.starts):
            labels = some_labels(data.truth, given.labels, np.random.default_rng(start))
            recipe = replace(RECIPES["resnet18"], epochs=epochs)
            trainer = Trainer(
                "resnet18",
                n_classes=n_classes,
                recipe=recipe,
                weights="imagenet",
                precision=precision,
                seed=start,
            )
            begin = time.perf_counter()
            model = trainer.fit(data.items, labels)
            took = time.perf_counter() - begin
            scores = model.balanced(data.items)
            accuracy = balanced_accuracy(data.truth, scores.argmax(axis=1))
            ranking = rare_average_precision(data.truth, scores, n_classes - 1)
            row = f"{accuracy:.3f} | {ranking:.3f} | {took:.0f}"
            print(f"| {epochs} | {start} | {row} |", flush=True)


if __name__ == "__main__":
    main()
