"""Draw how far GALAXY is ahead of other methods: the pictures of docs/results.md.

Run:  .venv/bin/python benchmarks/leads.py docs/appendix/rounds.csv.gz docs/pictures/frozen.png

Draws the rounds of the frozen suites, a row per setting. regimes.py draws its regimes with it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from galaxy_al.experiments.claims import difference
from galaxy_al.experiments.curves import Curve
from galaxy_al.experiments.plots import COLORS
from galaxy_al.experiments.suite import load_suite

MEASURES = ("balanced_accuracy", "average_precision", "rare_found")
TITLES = (
    "balanced accuracy, the paper's metric",
    "average precision of the rare classes",
    "rare examples found, as a ratio",
)
RIVALS = (
    "confidence",
    "cluster-margin",
    "base",
    "badge",
    "similar",
    "most-likely-positive",
    "random",
)


def leads_of(curves):
    """By rival, the mean and the standard error of each measure: a lead, or a ratio of finds."""
    found = defaultdict(list)
    for measure in MEASURES:
        for rival in RIVALS:
            if rival in curves[measure]:
                found[rival].append(_lead(measure, curves[measure], rival))
    return dict(found)


def _lead(measure, curves, rival):
    ours, theirs = curves["galaxy"], curves[rival]
    if measure == "rare_found":
        count = min(len(ours.runs), len(theirs.runs))
        ratios = ours.runs[:count, -1] / theirs.runs[:count, -1]
        error = ratios.std(ddof=1) / np.sqrt(count) if count > 1 else np.nan
        return float(ratios.mean()), float(error)
    lead = difference(rival, ours.areas(), theirs.areas())
    return lead.mean, lead.error


def draw(title, rows, path):
    """One row per name of ``rows``, one panel per measure, one dot per rival.

    Parameters
    ----------
    rows
        By name, what `leads_of` gives.
    """
    figure = Figure(figsize=(12, 1.9 + 0.62 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    for number, (axes, heading) in enumerate(zip(panels, TITLES)):
        for place, leads in enumerate(rows.values()):
            for rival, values in leads.items():
                rank = RIVALS.index(rival)
                height = place + 0.55 * (rank / (len(RIVALS) - 1) - 0.5)
                mean, error = values[number]
                axes.errorbar(
                    mean, height, xerr=error, fmt="o", color=COLORS[rank], markersize=5, linewidth=1
                )
            if place:
                axes.axhline(place - 0.5, color="#dddddd", linewidth=0.7)
        axes.axvline(1 if MEASURES[number] == "rare_found" else 0, color="#333333", linewidth=1)
        axes.set_title(heading, fontsize=11, loc="left")
        axes.set_xlabel("GALAXY is behind  ←   → GALAXY is ahead", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xscale("log")
    ticks = (0.5, 1, 2, 5, 10)
    panels[-1].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panels[-1].minorticks_off()
    panels[0].set_yticks(range(len(rows)), rows)
    panels[0].invert_yaxis()
    for rank, rival in enumerate(RIVALS):
        if any(rival in leads for leads in rows.values()):
            panels[-1].plot([], [], "o", color=COLORS[rank], label=rival)
    panels[-1].legend(
        frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5), title="against"
    )
    figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
    figure.savefig(path, dpi=150)


def read_rounds(path, batch_size, n_rounds):
    """By setting, by measure, by label: the curves of the runs that are complete."""
    runs = defaultdict(dict)
    with gzip.open(path, "rt") as lines:
        for row in csv.DictReader(lines):
            if int(row["batch_size"]) == batch_size:
                runs[row["setting"], row["label"], row["seed"]][int(row["round"])] = row
    grouped = defaultdict(lambda: defaultdict(list))
    for (setting, label, _), by_round in sorted(runs.items()):
        if len(by_round) >= n_rounds:
            grouped[setting][label].append([by_round[n] for n in range(1, n_rounds + 1)])
    return {
        setting: {
            measure: {label: _curve(starts, measure) for label, starts in by_label.items()}
            for measure in MEASURES
        }
        for setting, by_label in grouped.items()
    }


def _curve(starts, measure):
    n_labels = np.array([int(row["n_labels"]) for row in starts[0]])
    return Curve(n_labels, np.array([[float(row[measure]) for row in rows] for rows in starts]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    suite = load_suite("full", "frozen")
    found = read_rounds(given.rounds, suite.batch_size, suite.rounds)
    rows = {name: leads_of(found[name]) for name in suite.settings if name in found}
    draw("Frozen features: GALAXY against the paper's other methods", rows, given.picture)


if __name__ == "__main__":
    main()
