"""Do the probabilities of head="auto" mean what they say?

Run:  GALAXY_AL_DATA=FOLDER GALAXY_AL_HELD_OUT=OTHER .venv/bin/python benchmarks/calibration.py
(about ten minutes)

FOLDER holds the development data, OTHER what held_out.py makes. 1,000 labels are chosen by the
default strategy; everything is measured on the examples that have none. Prints the tables of
docs/appendix/calibration.md and draws docs/appendix/figures/reliability.png. With --held-out it
prints the last table alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from galaxy_al.metrics import (
    calibration_error,
    rare_f1,
    reliability,
)
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.decisions import choose_thresholds
from galaxy_al.models.estimates import estimate_decisions, held_out_table
from pools import HELD_OUT, IMAGES, OTHERS, PACKAGED, label_order, load

N_LABELS = 1000
SEEDS = (0, 1)
ENOUGH = 10  # rare examples left, to compare their number with what is expected
PICTURE = Path(__file__).parent.parent / "docs/appendix/figures/reliability.png"
KEYS = ("rare", "expected", "ece", "balanced ece", "f1", "balanced f1")
MEASURES = ("precision", "recall", "f1", "count")


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def judge(vectors, truth, order):
    """What the model of some labels says of all other examples, and what is true."""
    n_classes = int(truth.max()) + 1
    model = AutoTrainer(n_classes=n_classes).fit(vectors, {i: int(truth[i]) for i in order})
    rest = np.setdiff1d(np.arange(len(truth)), order)
    proba, balanced, true = model.proba(vectors)[rest], model.balanced(vectors)[rest], truth[rest]
    is_rare = true < n_classes - 1
    decision = choose_thresholds("f1", model.proba(vectors), model.class_priors)
    found = {
        "rare": is_rare.sum(),
        "expected": (1 - proba[:, -1].astype(np.float64)).sum(),
        "ece": calibration_error(is_rare, 1 - proba[:, -1]),
        "balanced ece": calibration_error(is_rare, 1 - balanced[:, -1]),
    }
    if is_rare.any():
        found["f1"] = rare_f1(true, decision.classes(proba), n_classes - 1)
        found["balanced f1"] = rare_f1(true, balanced.argmax(axis=1), n_classes - 1)
    return found, covered(model, vectors, truth), reliability(is_rare, 1 - proba[:, -1], 30)


def covered(model, vectors, truth):
    """Whether the interval of each measure of each rare class holds the truth."""
    table = held_out_table(model.proba(vectors), model.held_out)
    decision = choose_thresholds("f1", table, model.class_priors)
    estimate, decided = estimate_decisions(table, model.held_out, decision), decision.classes(table)
    inside = []
    for k in np.flatnonzero(model.class_priors[:-1] > 0):
        alarms, wanted = decided == k, truth == k
        right = np.count_nonzero(alarms & wanted)
        true = {
            "precision": right / max(alarms.sum(), 1),
            "recall": right / wanted.sum(),
            "f1": 2 * right / (alarms.sum() + wanted.sum()),
            "count": wanted.sum(),
        }
        intervals = {name: getattr(estimate.classes[k], name) for name in MEASURES}
        inside.append(
            [intervals[name].low <= true[name] <= intervals[name].high for name in MEASURES]
        )
    return inside


def draw(curves):
    figure = Figure(figsize=(6.5, 6), layout="constrained")
    axes = figure.subplots()
    axes.plot([1e-4, 1], [1e-4, 1], color="black", linewidth=1)
    for name, bins in curves.items():
        points = np.array([(said, true) for said, true, _ in bins if said > 1e-4 and true > 0])
        style = "-" if name in IMAGES else "--"
        axes.plot(*points.T, style, marker=".", label=name, linewidth=1)
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 1.2), ylim=(1e-4, 1.2))
    axes.set(xlabel="probability of being rare, mean of a bin", ylabel="share that is rare")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(PICTURE, dpi=110)


def table(pools):
    """Judge some pools; returns a reliability curve for each."""
    row("pool", "rare left", "expected", "ratio", "ECE", "ECE balanced", "F1", "F1 balanced")
    row(*["---"] * 8)
    inside, curves, ratios, errors = [], {}, [], []
    for name in pools:
        vectors, truth = load(name)
        runs = [
            judge(vectors, truth, label_order(vectors, truth, "fair-cuts", N_LABELS, seed))
            for seed in SEEDS
        ]
        mean = {key: np.mean([found.get(key, np.nan) for found, _, _ in runs]) for key in KEYS}
        has_enough = mean["rare"] >= ENOUGH
        ratio = mean["expected"] / mean["rare"] if has_enough else np.nan
        if has_enough:
            ratios.append(ratio)
        errors.append((mean["ece"], mean["balanced ece"]))
        curves[name] = runs[0][2]
        inside += [each for _, those, _ in runs for each in those]
        row(
            name,
            f"{mean['rare']:,.1f}",
            f"{mean['expected']:,.1f}",
            f"{ratio:.2f}" if has_enough else "",
            f"{mean['ece']:.4f}",
            f"{mean['balanced ece']:.4f}",
            f"{mean['f1']:.2f}" if has_enough else "",
            f"{mean['balanced f1']:.2f}" if has_enough else "",
        )
    print(f"\nWithin 15%: {sum(abs(r - 1) <= 0.15 for r in ratios)} of {len(ratios)} pools.")
    print(f"ECE at most 0.02 in {sum(e <= 0.02 for e, _ in errors)} of {len(errors)}, ", end="")
    print(f"at most half of the balanced view's in {sum(e <= b / 2 for e, b in errors)}.")
    coverage = np.mean(inside, axis=0)
    print(f"Intervals that hold the truth, of {len(inside)} classes: ", end="")
    print(", ".join(f"{name} {share:.0%}" for name, share in zip(MEASURES, coverage)) + ".\n")
    return curves


def main():
    if "--held-out" not in sys.argv:
        draw(table((*IMAGES, *OTHERS)))
        print("More pools that it was developed on:\n")
        table(PACKAGED)
    print("Held out:\n")
    table(HELD_OUT)


if __name__ == "__main__":
    main()
