"""From the frozen experiments to the paper's own, in three steps: what makes the difference?

Run:  GALAXY_AL_DATA=DIR GALAXY_AL_HOME=DIR .venv/bin/python benchmarks/regimes.py SETTING RESULTS

SETTING is one of the suite paper-small, RESULTS the file with its results (--size paper). The same
pool, batches, starts and class weights in every row; one thing changes at a time:

1. EfficientNet features that stay as they are, a linear head with a weight decay of 0.01, as in the
   frozen suites.
2. The features of the paper's ResNet-18 with ImageNet weights, and the same head.
3. The same with the paper's weight decay, 5e-5: a head that fits its labels.
4. The whole ResNet-18 is trained: features move. From RESULTS.

Areas under the curves, mean and standard error over the starts.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from galaxy_al import simulate
from galaxy_al.experiments.claims import difference
from galaxy_al.experiments.curves import Curve
from galaxy_al.experiments.datasets import load_labeled_pool
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.runs import make_head
from galaxy_al.experiments.suite import Head, load_suite
from galaxy_al.experiments.tables import read_results
from galaxy_al.models.networks.training import Trainer
from galaxy_al.strategies import make_strategy

MEASURES = ("balanced_accuracy", "average_precision", "rare_found")


def resnet_features(data):
    trainer = Trainer("resnet18", n_classes=2, weights="imagenet")
    found = trainer.fit(data.items, {}).snapshot(data.items).embeddings
    return np.asarray(found) / np.sqrt(np.mean(np.square(found)))


def curves_of_regime(suite, methods, embeddings, truth, head):
    """By measure, by label."""
    found = {measure: {} for measure in MEASURES}
    for method in methods:
        runs = []
        for seed in suite.seeds:
            strategy = make_strategy(method.strategy, **method.options)
            trainer = make_head(head, int(truth.max()) + 1, seed)
            sizes = {"batch_size": suite.batch_size, "rounds": suite.rounds, "seed": seed}
            runs.append(simulate(embeddings, truth, strategy, trainer, **sizes))
        n_labels = np.array([step.n_labels for step in runs[0]])
        for measure in MEASURES:
            values = [[getattr(step, measure) for step in run] for run in runs]
            found[measure][method.label] = Curve(n_labels, np.array(values, dtype=float))
    return found


def show(name, found, labels):
    cells = []
    for label in labels:
        for measure in ("balanced_accuracy", "average_precision"):
            curve = found[measure].get(label)
            cells.append("" if curve is None else "{:.3f} ± {:.3f}".format(*curve.area()))
    accuracy = {label: curve.areas() for label, curve in found["balanced_accuracy"].items()}
    rivals = [label for label in accuracy if not label.startswith(("galaxy", "fair", "direct"))]
    best = max(rivals, key=lambda label: accuracy[label].mean())
    lead = difference(best, accuracy["galaxy"], accuracy[best])
    print(f"| {name} | {' | '.join(cells)} | {lead.mean:+.3f} ± {lead.error:.3f} ({best}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting")
    parser.add_argument("results", type=Path)
    parser.add_argument("--suite", default="paper-small")
    parser.add_argument("--starts", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    suite = load_suite(given.suite, "paper")
    suite = replace(suite, seeds=suite.seeds[: given.starts])
    wanted = [run.method for run in suite.runs() if run.setting == given.setting and run.seed == 0]
    labels = [method.label for method in wanted]
    frozen, images = (load_labeled_pool(given.setting, takes) for takes in (False, True))
    assert (frozen.truth == images.truth).all()
    features = resnet_features(images)
    strong, weak = (Head("linear", weight_decay=decay) for decay in (0.01, 5e-5))
    names = " | ".join(f"{label} {m}" for label in labels for m in ("BA", "AP"))
    print(f"| regime | {names} | GALAXY's lead, BA |\n|---|{'---|' * (2 * len(labels) + 1)}")
    for name, table, head in (
        ("1. frozen EfficientNet, decay 0.01", frozen.items, strong),
        ("2. frozen ResNet-18, decay 0.01", features, strong),
        ("3. frozen ResNet-18, decay 5e-5", features, weak),
    ):
        show(name, curves_of_regime(suite, wanted, table, frozen.truth, head), labels)
    for found in read_results(suite, Results(given.results, must_exist=True)):
        if found.name == given.setting:
            show("4. the whole ResNet-18", found.curves, labels)


if __name__ == "__main__":
    main()
