"""The pictures; the only module that imports matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's colours can be told apart by the colour-blind.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#777777", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

Curves = dict[str, tuple[NDArray[Any], NDArray[Any]]]


def save_curves(path: Path, labels_used: ArrayLike, panels: dict[str, Curves], title: str) -> None:
    """Draw one panel for each measure: its mean over the labels, a band of one standard error.

    Parameters
    ----------
    panels
        By the measure's name, by strategy: mean and standard error after each round.
    """
    figure = Figure(figsize=(5 * len(panels), 4.2), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (measure, curves) in zip(all_axes, panels.items()):
        _draw(axes, labels_used, curves)
        axes.set_title(measure, fontsize=11, loc="left")
        axes.set_xlabel("labels used")
    all_axes[0].legend(frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
    figure.savefig(path, dpi=150)


def _draw(axes: Axes, labels_used: ArrayLike, curves: Curves) -> None:
    for color, (strategy, (mean, error)) in zip(COLORS, curves.items()):
        axes.plot(labels_used, mean, color=color, label=strategy, linewidth=2)
        axes.fill_between(
            labels_used, mean - error, mean + error, color=color, alpha=0.2, linewidth=0
        )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
