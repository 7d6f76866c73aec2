"""The figures; the only module that imports matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from galaxy_al.experiments.curves import WINDOW, Curve
from galaxy_al.experiments.theory import Check
from galaxy_al.models.decisions import ThresholdCurve
from galaxy_al.models.report import ModelReport
from galaxy_al.system.files import writing

# Okabe and Ito's palette for colour-blind readers; the ninth method and later ones are dashed.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#777777", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MEASURE_TITLES = {
    "balanced_accuracy": "balanced accuracy",
    "average_precision": "average precision of the rare classes",
    "f1": "F1 of the rare classes",
    "rare_found": "rare examples found",
    "rare_share": "share of the labels that are rare",
}


def demo_figure(title: str, panels: dict[str, dict[str, Curve]]) -> Figure:
    """One panel per measure: the mean of each strategy and a band of one standard error."""
    figure = Figure(figsize=(5 * len(panels), 4.2), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (measure, curves) in zip(all_axes, panels.items()):
        for number, (label, curve) in enumerate(curves.items()):
            _line(axes, curve, label, number)
        _finish(axes, measure)
    all_axes[0].legend(frameon=False, fontsize=9)
    _title(figure, title)
    return figure


def setting_figure(title: str, panels: dict[str, dict[str, Curve]]) -> Figure:
    """One row per measure: the means smoothed as in the paper, and raw beside them."""
    figure = Figure(figsize=(11.5, 4.3 * len(panels)), layout="constrained")
    rows = figure.subplots(len(panels), 2, squeeze=False, sharey="row")
    for row, (measure, curves) in zip(rows, panels.items()):
        for axes, window in zip(row, (WINDOW, 1)):
            for number, (label, curve) in enumerate(curves.items()):
                _line(axes, curve, label, number, window)
            how = f"moving average of {WINDOW}" if window > 1 else "raw"
            _finish(axes, f"{MEASURE_TITLES[measure]}, {how}")
        _legend_by_height(row[1], {label: curve.mean()[-1] for label, curve in curves.items()})
    _title(figure, title)
    return figure


def save_decision_figure(path: Path, report: ModelReport, curves: Sequence[ThresholdCurve]) -> None:
    """Draw precision and recall of each rare class at every threshold, and the chosen one."""
    figure = Figure(figsize=(6, 4.6), layout="constrained")
    axes = figure.subplots()
    for k, (name, curve) in enumerate(zip(report.classes, curves)):
        color = COLORS[k % len(COLORS)]
        axes.plot(curve.thresholds, curve.precision, color=color, label=name)
        axes.plot(curve.thresholds, curve.recall, "--", color=color)
        axes.axvline(report.decision.thresholds[k], color=color, linewidth=1, linestyle=":")
    axes.set(xlabel="threshold (dotted: chosen)", xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_ylabel("expected precision (line) and recall (dashes)")
    axes.legend(loc="lower center", framealpha=1, edgecolor="none")
    axes.grid(alpha=0.3)
    _title(figure, "What every threshold gives")
    with writing(path) as part:
        figure.savefig(part, dpi=150, format="png")


def theory_figure(checks: Sequence[Check]) -> Figure:
    """The measured ratio over the paper's bound, for every point of the grid."""
    names = {
        "bisection": "bisection (theorem)",
        "batched": "batched GALAXY (corollary)",
        "noise": "GALAXY with noise (theorem)",
    }
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (statement, name) in enumerate(names.items()):
        found = [check for check in checks if check.statement == statement]
        bounds, ratios = [c.bound for c in found], [c.ratio for c in found]
        errors = [c.error for c in found]
        left.errorbar(
            bounds, ratios, errors, fmt="o", color=COLORS[number], label=name, markersize=4
        )
        quotients = [ratio / bound for ratio, bound in zip(ratios, bounds)]
        jitter = [c.z + 0.18 * (number - 1) for c in found]
        right.plot(jitter, quotients, "o", color=COLORS[number], markersize=4, alpha=0.7)
    largest = max(check.bound for check in checks)
    left.plot([0, largest], [0, largest], color="#777777", linewidth=1, label="the bound")
    right.axhline(1, color="#777777", linewidth=1)
    left.set(xlabel="the paper's bound", ylabel="labels of ID over labels of OOD, measured")
    right.set(xlabel="z: steps of bisection that meet only OOD", ylabel="measured over the bound")
    for axes, title in ((left, "All points of the grid"), (right, "How far above the bound")):
        _frame(axes, title)
    left.legend(frameon=False, fontsize=9)
    figure.suptitle(
        "The paper's bounds, simulated", fontsize=12, fontweight="bold", x=0.01, ha="left"
    )
    return figure


def save_figure(figure: Figure, path: Path, formats: Iterable[str]) -> list[Path]:
    """Write a figure in several formats; each file gets the suffix of its format."""
    written = []
    for ending in formats:
        target = path.with_name(f"{path.name}.{ending}")
        with writing(target) as part:
            figure.savefig(part, dpi=150)
        written.append(target)
    return written


def _line(axes: Axes, curve: Curve, label: str, number: int, window: int = 1) -> None:
    x, mean, error = curve.n_labels, curve.mean(window), curve.error(window)
    color = COLORS[number % len(COLORS)]
    dashes = "-" if number < len(COLORS) else "--"
    width = 2.6 if number == 0 else 1.6
    axes.plot(x, mean, dashes, color=color, label=label, linewidth=width, zorder=3 - number / 99)
    if not np.isnan(error).any():
        axes.fill_between(x, mean - error, mean + error, color=color, alpha=0.15, linewidth=0)


def _title(figure: Figure, title: str) -> None:
    figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")


def _finish(axes: Axes, title: str) -> None:
    _frame(axes, title)
    axes.set_xlabel("labels used")


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=11, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)


def _legend_by_height(axes: Axes, final: dict[str, float]) -> None:
    """A legend beside the lines, in the order of their final values."""
    handles, labels = axes.get_legend_handles_labels()
    lines = dict(zip(labels, handles))
    order = sorted(final, key=lambda label: -final[label])
    axes.legend(
        [lines[label] for label in order],
        order,
        frameon=False,
        fontsize=9,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        title="by final value",
        title_fontsize=8,
    )
