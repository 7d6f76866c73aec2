"""The default against every other strategy, all with the same head: the suite `default`.

    galaxy-al bench run default --results RESULTS      the 21 settings of images
    .venv/bin/python benchmarks/contest.py pools FOLDER        other pools, and a suite of them
    galaxy-al bench run FOLDER/other-pools.toml --results RESULTS
    .venv/bin/python benchmarks/contest.py before SUITE FILE   the default's rule before, same head
    .venv/bin/python benchmarks/contest.py tables SUITE RESULTS FILE
    .venv/bin/python benchmarks/contest.py figures SUITE RESULTS FOLDER

Set GALAXY_AL_DATA as for benchmarks/head.py, and GALAXY_AL_HELD_OUT to what benchmarks/held_out.py
made. ``tables`` and ``figures`` make those of docs/appendix/default.md.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import pools
from galaxy_al.experiments.curves import Curve
from galaxy_al.experiments.datasets import load_labeled_pool, own_pool, setting_title
from galaxy_al.experiments.plots import demo_figure, save_figure
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.suite import load_suite
from galaxy_al.simulation import simulate
from galaxy_al.strategies import FairCuts, make_strategy
from galaxy_al.strategies.fair_cuts import FairCutsSession

DEFAULT, BEFORE = "fair-cuts", "before"
MEASURES = {"balanced_accuracy": "balanced accuracy", "average_precision": "average precision"}
DECISIONS = {"f1": "F1 of the rare classes", "precision": "precision", "recall": "recall"}
ROTATING = "galaxy, rotating"

# None of these was looked at while the search was chosen.
OTHER_POOLS = (
    "banking77-others-7", "letters-others-6", "banking77-others-2", "dino-others-2", "clothes-2",
    "digits-1", "yeast4-1", "abalone19-1", "winequality-red-4-1", "news-2", "newstest-2",
    "photos100-3", "optdigits-2", "segment-2", "texture-3",
)  # fmt: skip

DRAWN = ("cifar100-3", "cifar100-10", "svhn-3", "cifar10-3-thinned", "svhn-3-noisy")
LINES = (DEFAULT, "galaxy", "direct", "margin", "most-likely-positive", "random")


class ThirdsSession(FairCutsSession):
    """While a class is missing, a third random, a third least sure, a third at the cuts."""

    def _search_share(self, n_missing):
        return 2 / 3

    def _search(self, found):
        is_random = len(found) < 2 or self._rng.random() < 1 / 2
        return None if is_random else self._let_ask(self._strategy.least_sure)


class Thirds(FairCuts):
    """The default's rule before; the first questions were random."""

    def __init__(self):
        super().__init__(spread=1)
        self.explorer = None

    def open_session(self, start):
        return ThirdsSession(self, start)


def write_pools(folder):
    """Files of the other pools, and a suite that is like `default` but has shorter runs."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = []
    for name in OTHER_POOLS:
        vectors, truth = pools.load(name)
        np.savez(folder / f"{name}.npz", embeddings=vectors, labels=truth)
        settings.append(own_pool(folder / f"{name}.npz", None, None, None))
    text = (Path(load_suite.__code__.co_filename).parent / "suites" / "default.toml").read_text()
    before, _, after = text.partition("settings = [")
    after = after.partition("]\n")[2].replace(
        "batch_size = 100\nrounds = 20", "batch_size = 25\nrounds = 16"
    )
    listed = "".join(f"    {json.dumps(setting)},\n" for setting in settings)
    (folder / "other-pools.toml").write_text(f"{before}settings = [\n{listed}]\n{after}")


def run_before(job):
    setting, seed, batch_size, rounds = job
    data = load_labeled_pool(setting, False)
    history = simulate(
        data.items, data.truth, Thirds(), batch_size=batch_size, rounds=rounds, seed=seed,
        annotator=data.answer,
    )  # fmt: skip
    return [
        [step.n_labels, *(getattr(step, name) for name in (*MEASURES, "rare_found"))]
        for step in history
    ]


def before(suite, path):
    """The runs of the rule before, in a file."""
    jobs = [
        (setting, seed, suite.batch_size, suite.rounds)
        for setting in suite.settings
        for seed in suite.seeds
    ]
    found = defaultdict(list)
    with ProcessPoolExecutor(2) as processes:
        for job, rounds in zip(jobs, processes.map(run_before, jobs)):
            found[setting_title(job[0])].append(rounds)
            path.write_text(json.dumps(found))


def read(suite, results, before_path):
    """Curves by measure, setting and strategy."""
    table = Results(results, must_exist=True).table()
    measures = (*MEASURES, "rare_found", *DECISIONS)
    columns = ("setting", "label", "seed", "n_labels", *measures)
    runs = defaultdict(list)
    for setting, label, seed, *row in zip(*(table[name] for name in columns)):
        runs[setting, label, seed].append(row)
    groups = defaultdict(lambda: defaultdict(list))
    for (setting, label, _), rows in runs.items():
        if len(rows) == suite.rounds and setting in suite.settings:
            groups[setting_title(setting)][label].append(rows)
    if before_path.exists():
        for title, found in json.loads(before_path.read_text()).items():
            groups[title][BEFORE] = found
    curves = defaultdict(lambda: defaultdict(dict))
    for title, group in groups.items():
        for label, found in group.items():
            values = np.array(found)
            for column, measure in enumerate(measures[: values.shape[2] - 1], 1):
                curves[measure][title][label] = Curve(values[0, :, 0], values[:, :, column])
    for by_setting in curves.values():
        for found in by_setting.values():
            add_same(found)
    return curves


def add_same(found):
    """With two classes these strategies are the same as others by definition, and need no runs."""
    if not {"base", ROTATING} & found.keys():
        for name in ("base", "confidence", "entropy"):
            for view in ("", ", balanced"):
                found.setdefault(name + view, found["margin" + view])
        for name in ("galaxy", "direct", "most-likely-positive"):
            found.setdefault(f"{name}, pool", found[name])
        found[ROTATING] = found["galaxy"]


def views_of(suite, curves):
    """By strategy that ran in all settings, the labels of its views: that of the strategy first."""
    views = {}
    for method in suite.strategies:
        name = method.label.partition(", ")[0]
        if method.label == ROTATING:
            views[ROTATING] = [ROTATING]
        elif name != DEFAULT:
            views.setdefault(name, []).append(method.label)
    settings = curves["average_precision"].values()
    return {
        name: labels
        for name, labels in views.items()
        if all(label in found for found in settings for label in labels)
    }


def better_views(curves, views):
    """The view that has the higher mean over all settings, by measure and strategy."""
    return {
        measure: {
            name: max(labels, key=means_over_settings(curves[measure], labels).get)
            for name, labels in views.items()
        }
        for measure in MEASURES
    }


def means_over_settings(curves, labels, figure_of=Curve.area):
    """A figure of each of some strategies, from the starts that all of them have."""
    means = dict.fromkeys(labels, 0.0)
    for found in curves.values():
        n_starts = min(len(found[label].runs) for label in labels)
        for label in labels:
            curve = Curve(found[label].n_labels, found[label].runs[:n_starts])
            means[label] += figure_of(curve)[0] / len(curves)
    return means


def defaults(curves, measure="average_precision"):
    """The default, and its rule before if that ran in all settings."""
    has_before = all(BEFORE in found for found in curves[measure].values())
    return (DEFAULT, BEFORE) if has_before else (DEFAULT,)


def others_in(found):
    """All strategies but the default, in both views."""
    return [label for label in found if label != BEFORE and not label.startswith(DEFAULT)]


def complete(found, labels):
    """Those of some strategies that have as many starts as any of them."""
    most = max(len(found[label].runs) for label in labels)
    return [label for label in labels if len(found[label].runs) == most]


def named_view(label):
    name, _, given = label.partition(", ")
    return given if given in ("pool", "balanced") else make_strategy(name).view


def print_table(head, rows):
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(row)} |")
    print()


def print_views(curves, views):
    both = ("pool", "balanced")
    rows = []
    for name, labels in views.items():
        if len(labels) == 2:
            by_view, cells = {named_view(label): label for label in labels}, [name]
            for measure in MEASURES:
                areas = means_over_settings(curves[measure], labels)
                pair = [areas[by_view[view]] for view in both]
                cells += [
                    f"**{area:.3f}**" if area == max(pair) else f"{area:.3f}" for area in pair
                ]
            rows.append(cells)
    print_table(
        ["strategy", *(f"{title}, {view}" for title in MEASURES.values() for view in both)], rows
    )


def verdict(mine, best):
    """Whether one area is above another, or below by more than the error of the difference."""
    gap = best[0] - mine[0]
    return "first" if gap <= 0 else "equal" if gap <= np.hypot(mine[1], best[1]) else "behind"


def figure(mean, error):
    return f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ± {error:.3f}"


def print_contest(curves):
    for measure, title in MEASURES.items():
        rows, counts = [], Counter()
        for setting, found in curves[measure].items():
            areas = {label: found[label].area() for label in complete(found, others_in(found))}
            best, mine = max(areas, key=areas.get), found[DEFAULT].area()
            result = verdict(mine, areas[best])
            counts[result] += 1
            difference = (
                f"{mine[0] - areas[best][0]:+.3f} ± {np.hypot(mine[1], areas[best][1]):.3f}"
            )
            rule = figure(*found[BEFORE].area()) if BEFORE in found else "-"
            name = best if best == ROTATING else f"{best.partition(', ')[0]}, {named_view(best)}"
            rows.append(
                [setting, figure(*mine), rule, figure(*areas[best]), name, difference, result]
            )
        print_table([title, "fair-cuts", "before", "best other", "which", "difference", ""], rows)
        print(f"{dict(counts)}\n")


def gap(found, name, better):
    """The area of a strategy, and the best of the others."""
    mine = better.get(name, name)
    others = complete(found, [label for label in others_in(found) if label != mine])
    if name not in (DEFAULT, BEFORE):
        others.append(DEFAULT)
    return found[mine].area(), max(found[label].area() for label in others)


def print_gaps(curves, better, views):
    rows = []
    for name in (*defaults(curves), *views):
        gaps = {
            measure: [gap(found, name, better[measure]) for found in curves[measure].values()]
            for measure in MEASURES
        }
        pairs = [pair for found in gaps.values() for pair in found]
        n_within = sum(verdict(*pair) != "behind" for pair in pairs)
        sizes = [[max(best[0] - mine[0], 0) for mine, best in found] for found in gaps.values()]
        rows.append([name, f"{n_within} of {len(pairs)}"])
        rows[-1] += [f"{function(size):.3f}" for function in (np.mean, np.max) for size in sizes]
    parts = [
        f"{which} gap, {title}" for which in ("mean", "largest") for title in MEASURES.values()
    ]
    print_table(["strategy", "within one error", *parts], rows)


def print_all(curves, better, views):
    """Every strategy in its better view, by kind of setting."""
    kinds = defaultdict(list)
    for setting in curves["average_precision"]:
        kinds[next((kind for kind in ("thinned", "noisy") if kind in setting), "")].append(setting)
    for kind, settings in kinds.items():
        for measure, title in {**MEASURES, **({} if kind else DECISIONS)}.items():
            rows, names = [], (*defaults(curves, measure), *views)
            for name in names:
                label = better.get(measure, better["average_precision"]).get(name, name)
                areas = [curves[measure][setting][label].area() for setting in settings]
                rows.append([name, *(figure(*area) for area in areas)])
            print_table([title, *(setting.removesuffix(f"-{kind}") for setting in settings)], rows)


def print_means(curves):
    rows, names = [], defaults(curves)
    for measure, title in {**MEASURES, "rare_found": "rare examples found"}.items():
        if measure in MEASURES:
            areas = means_over_settings(curves[measure], names)
            rows.append([f"{title}, all rounds", *(f"{areas[name]:.4f}" for name in names)])
        ends = means_over_settings(curves[measure], names, Curve.last)
        rows.append([f"{title}, at the end", *(f"{ends[name]:.4f}" for name in names)])
    print_table(["mean over the settings", *names], rows)


def print_labels_needed(curves):
    rows, n_few = [], 0
    for setting, found in curves["average_precision"].items():
        level, most = found["galaxy"].last()[0], int(found["galaxy"].n_labels[-1])
        needed = found[DEFAULT].labels_to_reach(level)
        n_few += needed is not None and needed <= 0.7 * most
        rows.append([setting, f"{level:.3f}"])
        rows[-1] += (
            ["not reached", "-"] if needed is None else [f"{needed:,}", f"{needed / most:.0%}"]
        )
    print_table(
        ["setting", "GALAXY's average precision at the end", "labels of fair-cuts", "share"], rows
    )
    print(f"At most 70% in {n_few} of {len(rows)}.")


def draw(curves, folder):
    """A figure for some of the settings: a few strategies, both measures."""
    for setting in DRAWN:
        panels = {
            title: {label: curves[measure][setting][label] for label in LINES}
            for measure, title in MEASURES.items()
        }
        save_figure(demo_figure(setting, panels), folder / f"default-{setting}", ["png"])


def main(task, *arguments):
    if task == "pools":
        write_pools(Path(arguments[0]))
        return
    suite = load_suite(arguments[0], "frozen")
    if task == "before":
        before(suite, Path(arguments[1]))
        return
    if task == "figures":
        draw(read(suite, Path(arguments[1]), Path("-")), Path(arguments[2]))
        return
    curves = read(suite, *map(Path, arguments[1:]))
    views = views_of(suite, curves)
    better = better_views(curves, views)
    print_views(curves, views)
    print_contest(curves)
    print_gaps(curves, better, views)
    print_all(curves, better, views)
    print_means(curves)
    print_labels_needed(curves)


if __name__ == "__main__":
    main(*sys.argv[1:])
