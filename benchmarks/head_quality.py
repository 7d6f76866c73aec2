"""head="auto" against a grid of heads chosen by the truth, on vectors of every kind.

Run:  GALAXY_AL_DATA=FOLDER GALAXY_AL_HELD_OUT=OTHER .venv/bin/python benchmarks/head_quality.py
(about half an hour; with --packaged, more pools that it was developed on; with --held-out, those
that nothing was chosen by; with names, these pools)

Labels are chosen by four strategies. Each figure is the mean at 100, 200, 400, 700 and 1,000
labels. Prints the table of docs/appendix/default.md: how far `auto` is from the best of the grid in
average precision and in balanced accuracy, for every row.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from galaxy_al.metrics import balanced_accuracy, rare_average_precision
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.forest import fit_forest
from galaxy_al.models.kernel import KernelTrainer
from galaxy_al.models.log_odds import log_softmax
from galaxy_al.snapshot import balanced_proba
from pools import HELD_OUT, PACKAGED, label_order, load

POOLS = (
    "banking77-1",
    "banking77-3",
    "dino-2",
    "letters-3",
    "letters-9",
    "satellite-2",
    "satellite-3",
    "cifar100-3",
)
STRATEGIES = ("random", "galaxy", "margin", "fair-cuts")
COUNTS = (100, 200, 400, 700, 1000)
WIDTHS = (0.5, 0.7, 1.0, 2.0)


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def grid(vectors, scaled, labels, n_classes):
    """The log probabilities of every head of the grid, by name."""
    known = np.array(sorted(labels))
    targets = np.array([labels[i] for i in known.tolist()])
    found = {}
    for width in WIDTHS:
        for per_column in (False, True):
            trainer = KernelTrainer(n_classes=n_classes, width=width, per_column=per_column)
            name = f"kernel {width:g}{', columns scaled' if per_column else ''}"
            found[name] = log_softmax(trainer.fit(vectors, labels).logits(vectors))
    found["trees"] = fit_forest(vectors[known], targets, n_classes, 0).log_proba(vectors)
    for name, classifier in (
        ("linear 0.01", LogisticRegression(C=0.01, max_iter=500)),
        ("linear 1", LogisticRegression(C=1, max_iter=500)),
        ("MLP", MLPClassifier((128,), alpha=1e-2, max_iter=200, random_state=0)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(scaled[known], targets)
        logs = np.full((len(vectors), n_classes), -300.0)
        proba = np.maximum(classifier.predict_proba(scaled), 1e-9)
        logs[:, classifier.classes_] = np.log(proba)
        found[name] = logs
    for other in ("trees", "MLP"):
        for kernel in ("kernel 0.7, columns scaled", "kernel 1"):
            found[f"{kernel} + {other}"] = (found[kernel] + found[other]) / 2
    return found


def judge(proba, balanced, truth):
    majority = proba.shape[1] - 1
    return (
        rare_average_precision(truth, proba, majority),
        balanced_accuracy(truth, balanced.argmax(axis=1)),
    )


def judge_logs(logs, labels, truth):
    """Judge log probabilities, balanced by the mean over the pool as the head does."""
    proba = np.exp(log_softmax(logs))
    filled = proba.copy()
    filled[list(labels)] = np.eye(proba.shape[1])[list(labels.values())]
    return judge(proba, balanced_proba(proba, filled.mean(axis=0)), truth)


def compare(vectors, truth, order):
    n_classes = int(truth.max()) + 1
    spread = vectors.std(axis=0)
    scaled = (vectors - vectors.mean(axis=0)) / np.where(spread > 0, spread, 1)
    results = {}
    for count in COUNTS:
        labels = {i: int(truth[i]) for i in order[:count]}
        if len(set(labels.values())) < 2:
            continue
        auto = AutoTrainer(n_classes=n_classes).fit(vectors, labels)
        results.setdefault("auto", []).append(
            judge(auto.proba(vectors), auto.balanced(vectors), truth)
        )
        for name, logs in grid(vectors, scaled, labels, n_classes).items():
            results.setdefault(name, []).append(judge_logs(logs, labels, truth))
    return {name: np.mean(found, axis=0) for name, found in results.items()}


def main():
    row(
        "pool",
        "labels by",
        "average precision",
        "best of grid",
        "gap",
        "balanced accuracy",
        "best of grid",
        "gap",
    )
    row(*["---"] * 8)
    gaps = []
    groups = {"--held-out": HELD_OUT, "--packaged": PACKAGED}
    chosen = groups.get(sys.argv[1] if sys.argv[1:] else "", sys.argv[1:] or POOLS)
    for pool in chosen:
        vectors, truth = load(pool)
        for strategy in STRATEGIES:
            found = compare(vectors, truth, label_order(vectors, truth, strategy, max(COUNTS)))
            ours = found.pop("auto")
            cells, gap = [], []
            for measure in (0, 1):
                best = max(found, key=lambda name: found[name][measure])
                gap.append(ours[measure] - found[best][measure])
                cells += [
                    f"{ours[measure]:.3f}",
                    f"{found[best][measure]:.3f}, {best}",
                    f"{gap[-1]:+.3f}",
                ]
            gaps.append(gap)
            row(pool, strategy, *cells)
    for name, values in zip(("Average precision", "Balanced accuracy"), np.transpose(gaps)):
        print(
            f"\n{name} less the best of the grid: mean {values.mean():+.3f}, "
            f"least {values.min():+.3f}, "
            f"more than 0.01 below in {(values < -0.01).sum()} of {len(values)} rows."
        )


if __name__ == "__main__":
    main()
