"""The results of a suite as tables."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from galaxy_al.experiments.claims import claims_of
from galaxy_al.experiments.curves import WINDOW, Curve, curves_of
from galaxy_al.experiments.datasets import setting_title
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.suite import MEASURES, Suite

CHECKPOINTS = (500, 1000, 2500, 5000)
# The accuracies that the paper names, by setting.
NAMED_BY_THE_PAPER = {"svhn-2": 0.92, "cifar100-3": 0.66}
_AREA_MEASURES = {
    "balanced_accuracy": "balanced accuracy",
    "average_precision": "average precision",
    "f1": "F1",
}
_PARTS = ("selection", "training", "scoring", "judging")


@dataclass(frozen=True)
class Table:
    """A table with a sentence about it."""

    title: str
    about: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class SettingResults:
    """What was measured on one setting.

    Parameters
    ----------
    n_starts, rounds
        What the suite asks for.
    versions
        Of the packages it was measured with.
    curves
        By measure, by label.
    seconds
        By label, the mean seconds of the parts of a round and of the whole round.
    """

    name: str
    n_examples: int
    n_rare: int
    n_starts: int
    rounds: int
    versions: str
    curves: dict[str, dict[str, Curve]]
    seconds: dict[str, dict[str, float]]

    @property
    def accuracy(self) -> dict[str, Curve]:
        """Balanced accuracy, by label."""
        return self.curves["balanced_accuracy"]

    @property
    def unfinished(self) -> list[str]:
        """The methods with fewer rounds or fewer random starts than the suite asks for."""
        found = []
        for label, curve in self.accuracy.items():
            count, length = curve.runs.shape
            is_short = length < self.rounds and curve.n_labels[-1] < self.n_examples
            if count < self.n_starts or is_short:
                found.append(f"{label} ({count} of {self.n_starts} runs, {length} rounds)")
        return found

    def whole_curves(self, measure: str) -> dict[str, Curve]:
        """The curves as long as the longest: areas of shorter ones cannot be compared."""
        curves = self.curves[measure]
        most = max(curve.n_labels[-1] for curve in curves.values())
        return {label: curve for label, curve in curves.items() if curve.n_labels[-1] == most}


def read_results(suite: Suite, results: Results) -> list[SettingResults]:
    """The results of a suite, for the settings that have any."""
    table, runs = results.table(), suite.runs()
    found = []
    for setting in suite.settings:
        keys: dict[str, list[str]] = defaultdict(list)
        for run in runs:
            if run.setting == setting:
                keys[run.method.label].append(run.key)
        its_keys = {key for group in keys.values() for key in group}
        rows = [row for row, key in enumerate(table["key"]) if key in its_keys]
        if rows:
            curves = {
                measure: curves_of(table, measure, keys, suite.rounds)
                for measure in dict.fromkeys((*MEASURES, *suite.measures))
            }
            first, versions = rows[0], json.loads(table["versions"][rows[0]])
            found.append(
                SettingResults(
                    name=setting_title(setting),
                    n_examples=table["n_examples"][first],
                    n_rare=table["n_rare"][first],
                    n_starts=len(suite.seeds),
                    rounds=suite.rounds,
                    versions=", ".join(f"{name} {number}" for name, number in versions.items()),
                    curves=curves,
                    seconds=_seconds(table, keys),
                )
            )
    return found


def _seconds(
    table: dict[str, list[Any]], keys: dict[str, list[str]]
) -> dict[str, dict[str, float]]:
    label_of = {key: label for label, group in keys.items() for key in group}
    taken: dict[str, list[list[float]]] = defaultdict(list)
    for row, key in enumerate(table["key"]):
        if key in label_of:
            taken[label_of[key]].append([table[part][row] for part in (*_PARTS, "whole")])
    return {
        label: dict(zip((*_PARTS, "whole"), np.mean(taken[label], axis=0).tolist()))
        for label in keys
        if taken[label]
    }


def tables_of(found: SettingResults) -> list[Table]:
    """All tables of a setting."""
    return [
        *_claims(found),
        *_checkpoint_tables(found),
        _labels_needed(found),
        _areas(found),
        _times(found),
    ]


def _claims(found: SettingResults) -> Iterator[Table]:
    curves = {name: found.whole_curves(name) for name in ("balanced_accuracy", "rare_found")}
    rows = [[claim.statement, claim.found, claim.verdict] for claim in claims_of(curves)]
    if rows:
        about = (
            "The lead, mean ± standard error over the random starts, over the rival (in brackets) "
            "that comes closest. Not decidable: neither side is beyond the error (5%, one-sided)."
        )
        yield Table("The paper's claims", about, ["claim", "found", "verdict"], rows)


def overview(all_found: list[SettingResults]) -> list[Table]:
    """All settings side by side: areas under the curves, and rare examples found at the end."""
    about = "Mean ± standard error; the highest is marked. Shorter runs are left out."
    areas = [
        _side_by_side(all_found, f"Area under the curve of {name}", about, measure, 3)
        for measure, name in _AREA_MEASURES.items()
    ]
    return [*areas, _side_by_side(all_found, "Rare examples found", about, "rare_found", 0)]


def _side_by_side(
    all_found: list[SettingResults], title: str, about: str, measure: str, digits: int
) -> Table:
    labels = list(dict.fromkeys(label for found in all_found for label in found.accuracy))
    columns = []
    for found in all_found:
        whole = found.whole_curves(measure)
        figures = {
            label: curve.last() if measure == "rare_found" else curve.area()
            for label, curve in whole.items()
        }
        best = max(figures, key=lambda label: figures[label][0])
        shown = {label: _figure(value, digits) for label, value in figures.items()}
        columns.append({**shown, best: f"**{shown[best]}**"})
    rows = [[label, *(column.get(label, "") for column in columns)] for label in labels]
    return Table(title, about, ["strategy", *(found.name for found in all_found)], rows)


def _checkpoint_tables(found: SettingResults) -> Iterator[Table]:
    titles = {
        "balanced_accuracy": "Balanced accuracy",
        "average_precision": "Macro average precision of the rare classes",
        "f1": "Macro F1 of the rare classes",
        "rare_found": "Rare examples found",
    }
    for measure, title in titles.items():
        curves = found.curves[measure]
        reached = [n for n in CHECKPOINTS if any(curve.at(n) for curve in curves.values())]
        if not reached:
            continue
        digits = 0 if measure == "rare_found" else 3
        rows = [
            [label, *(_figure(curve.at(n), digits) for n in reached)]
            for label, curve in _best_first(curves)
        ]
        header = ["strategy", *(f"{n:,} labels" for n in reached)]
        yield Table(title, "Mean ± standard error of the runs, not smoothed.", header, rows)


def _labels_needed(found: SettingResults) -> Table:
    levels = _levels(found)
    needed = {
        label: [found.curves[measure][label].labels_to_reach(to) for measure, to in levels.values()]
        for label in found.accuracy
    }
    rows = [
        [label, *(f"{n:,}" if n is not None else "not reached" for n in counts)]
        for label, counts in sorted(needed.items(), key=lambda item: _reached_first(item[1]))
    ]
    about = f"Read off the moving average of {WINDOW}. " + " ".join(
        _saving(name, {label: counts[i] for label, counts in needed.items()})
        for i, name in enumerate(levels)
    )
    return Table("Labels needed", about, ["strategy", *levels], rows)


def _levels(found: SettingResults) -> dict[str, tuple[str, float]]:
    """By name, a measure and the level to reach."""
    levels = {}
    if found.name in NAMED_BY_THE_PAPER:
        level = NAMED_BY_THE_PAPER[found.name]
        levels[f"to a balanced accuracy of {level:.2f}, named by the paper"] = (
            "balanced_accuracy",
            level,
        )
    for measure in ("average_precision", "balanced_accuracy") if "random" in found.accuracy else ():
        final = float(found.curves[measure]["random"].mean(WINDOW)[-1])
        name = _AREA_MEASURES[measure]
        article = "an" if name.startswith("a") else "a"
        levels[f"to {article} {name} of {final:.3f}, where random ends"] = (measure, final)
    return levels


def _saving(level: str, needed: dict[str, int | None]) -> str:
    reached = sorted((count, label) for label, count in needed.items() if count is not None)
    if len(reached) < 2:
        return f"{level[0].upper()}{level[1:]}: fewer than two strategies get there."
    first, winner = reached[0]
    others = [pair for pair in reached if _strategy(pair[1]) != _strategy(winner)]
    second, runner_up = others[0] if others else reached[1]
    saved = 1 - first / second
    return f"{level[0].upper()}{level[1:]}: {winner} saves {saved:.0%} against {runner_up}."


def _strategy(label: str) -> str:
    """Of "galaxy, rotating", galaxy: variants of one strategy are not each other's rivals."""
    return label.partition(",")[0]


def _areas(found: SettingResults) -> Table:
    rows = [
        [label, *(_figure(found.curves[measure][label].area(), 4) for measure in _AREA_MEASURES)]
        for label, _ in _best_first(found.whole_curves("balanced_accuracy"))
    ]
    about = "Over labels, as a share; mean ± standard error. Shorter runs are left out."
    return Table("Area under the curve", about, ["strategy", *_AREA_MEASURES.values()], rows)


def _times(found: SettingResults) -> Table:
    rows = []
    for label, parts in sorted(found.seconds.items(), key=lambda item: item[1]["selection"]):
        rest = parts["whole"] - sum(parts[part] for part in _PARTS)
        share = rest / (parts["training"] + parts["scoring"])
        figures = [f"{parts[part]:.3f}" for part in _PARTS]
        rows.append([label, *figures, f"{max(rest, 0):.4f}", f"{max(share, 0):.1%}"])
    about = (
        "Mean seconds per batch. Judging computes the metrics; the harness is everything else, "
        "as a share of training and scoring. What a strategy prepares once (a graph, "
        "clusters) is not included. " + _overhead(found.seconds)
    )
    header = ["strategy", *_PARTS, "harness", "its share"]
    return Table("Time of a batch", about, header, rows)


def _overhead(seconds: dict[str, dict[str, float]]) -> str:
    if not {"galaxy", "confidence"} <= set(seconds):
        return ""
    galaxy, confidence = (
        sum(seconds[label][part] for part in ("selection", "training", "scoring"))
        for label in ("galaxy", "confidence")
    )
    selection = seconds["galaxy"]["selection"] - seconds["confidence"]["selection"]
    return (
        f"GALAXY's selection takes {selection:.3f} s more than confidence sampling's, "
        f"{selection / confidence:.1%} of a batch with confidence sampling "
        f"(the whole batch {galaxy / confidence - 1:+.1%}); the paper, which trains a whole "
        "network, claims under 5%."
    )


def _best_first(curves: dict[str, Curve]) -> list[tuple[str, Curve]]:
    return sorted(curves.items(), key=lambda item: -item[1].area()[0])


def _reached_first(counts: list[int | None]) -> list[float]:
    return [np.inf if count is None else count for count in reversed(counts)]


def _figure(value: tuple[float, float] | None, digits: int) -> str:
    if value is None:
        return ""
    mean, error = value
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")
