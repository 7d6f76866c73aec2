"""From the frozen experiments to the paper's own, in three steps: what makes the difference?

Run:  GALAXY_AL_DATA=DIR GALAXY_AL_HOME=DIR .venv/bin/python benchmarks/regimes.py SETTING RESULTS

SETTING is one of the suite paper-small, RESULTS the file with its results (--size paper). The same
pool, batches, starts and class weights in every regime; one thing changes at a time:

1. EfficientNet features that stay as they are, a linear head with a weight decay of 0.01, as in the
   frozen suites.
2. The features of the paper's ResNet-18 with ImageNet weights, and the same head.
3. The same with the paper's weight decay, 5e-5: a head that fits its labels.
4. The whole ResNet-18 is trained: features move. From RESULTS.

Prints areas under the curves, mean and standard error over the starts, and the rare examples found
at the end; --picture draws how far GALAXY is ahead.
"""

from __future__ import annotations

import argparse
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
from leads import MEASURES, RIVALS, draw, leads_of


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


def show(regimes, labels):
    """A table per measure: a row per method, a column per regime."""
    header = f"| strategy | {' | '.join(regimes)} |\n|---{'|---' * len(regimes)}|"
    for measure in MEASURES:
        digits = 0 if measure == "rare_found" else 3
        print(f"\n{measure}\n\n{header}")
        for label in labels:
            curves = [regime[measure].get(label) for regime in regimes.values()]
            print(f"| {label} | {' | '.join(cell(curve, digits) for curve in curves)} |")
        leads = [lead(regime, measure) for regime in regimes.values()]
        print(f"| *GALAXY's lead* | {' | '.join(leads)} |")


def cell(curve, digits):
    if curve is None:
        return ""
    mean, error = curve.area() if digits else curve.last()
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")


def lead(regime, measure):
    """Of GALAXY over the best of the paper's other methods."""
    values = {label: _values(curve, measure) for label, curve in regime[measure].items()}
    best = max((each for each in RIVALS if each in values), key=lambda each: values[each].mean())
    found = difference(best, values["galaxy"], values[best])
    digits = 0 if measure == "rare_found" else 3
    return f"{found.mean:+.{digits}f} ± {found.error:.{digits}f} ({best})"


def _values(curve, measure):
    return curve.runs[:, -1] if measure == "rare_found" else curve.areas()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting")
    parser.add_argument("results", type=Path)
    parser.add_argument("--suite", default="paper-small")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    suite = load_suite(given.suite, "paper")
    wanted = [run.method for run in suite.runs() if run.setting == given.setting and run.seed == 0]
    labels = [method.label for method in wanted]
    frozen, images = (load_labeled_pool(given.setting, takes) for takes in (False, True))
    assert (frozen.truth == images.truth).all()
    features = resnet_features(images)
    strong, weak = (Head("linear", weight_decay=decay) for decay in (0.01, 5e-5))
    regimes = {
        name: curves_of_regime(suite, wanted, table, frozen.truth, head)
        for name, table, head in (
            ("1. EfficientNet frozen, decay 0.01", frozen.items, strong),
            ("2. ResNet-18 frozen, decay 0.01", features, strong),
            ("3. ResNet-18 frozen, decay 5e-5", features, weak),
        )
    }
    for found in read_results(suite, Results(given.results, must_exist=True)):
        if found.name == given.setting:
            regimes["4. ResNet-18 trained whole"] = {
                measure: found.whole_curves(measure) for measure in MEASURES
            }
    show(regimes, labels)
    if given.picture:
        rows = {name: leads_of(regime) for name, regime in regimes.items()}
        draw(f"{given.setting}: from frozen features to the whole network", rows, given.picture)


if __name__ == "__main__":
    main()
