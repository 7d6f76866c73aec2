"""Tables of results that can be computed by hand."""

import numpy as np
import pytest

from galaxy_al.experiments.curves import Curve
from galaxy_al.experiments.html import html_report, markdown_table
from galaxy_al.experiments.suite import Head, Method, Suite
from galaxy_al.experiments.tables import SettingResults, overview, tables_of

N_LABELS = np.array([500, 1000, 2500])
PARTS = {"selection": 0.2, "training": 1.0, "scoring": 0.5, "judging": 0.1, "whole": 1.86}


def curve(*runs, n_labels=N_LABELS):
    return Curve(n_labels, np.array(runs, dtype=float))


def some_results(name="svhn-2"):
    accuracy = {
        "galaxy": curve([0.5, 0.9, 0.95], [0.7, 0.95, 0.97]),
        "confidence": curve([0.6, 0.8, 0.93], [0.6, 0.8, 0.93]),
        "random": curve([0.4, 0.5, 0.6], [0.4, 0.5, 0.6]),
        "<b>": curve([0.1], n_labels=N_LABELS[:1]),
    }
    curves = dict.fromkeys(("balanced_accuracy", "average_precision", "f1"), accuracy)
    found = {
        label: curve([1, 2, 3][: c.runs.shape[1]], n_labels=c.n_labels)
        for label, c in accuracy.items()
    }
    seconds = {label: dict(PARTS) for label in accuracy}
    seconds["galaxy"]["selection"] = 0.285
    curves["rare_found"] = found
    return SettingResults(name, 1000, 50, 2, 3, "numpy 2", curves, seconds)


@pytest.fixture
def tables():
    return {table.title: table for table in tables_of(some_results())}


def row(table, label):
    (found,) = [cells for cells in table.rows if cells[0] == label]
    return dict(zip(table.header, found, strict=True))


def test_checkpoints_are_means_and_errors_at_so_many_labels(tables):
    accuracy = tables["Balanced accuracy"]
    assert accuracy.header == ["strategy", "500 labels", "1,000 labels", "2,500 labels"]
    assert row(accuracy, "galaxy")["500 labels"] == "0.600 ± 0.100"
    assert row(accuracy, "<b>")["1,000 labels"] == ""
    assert row(tables["Rare examples found"], "random")["2,500 labels"] == "3"


def test_labels_needed_are_those_of_the_smoothed_mean(tables):
    # Of three rounds the smoothed middle is the mean of it and of the mean of the other two.
    needed = tables["Labels needed"]
    named = "to a balanced accuracy of 0.92, named by the paper"
    to_random = "to a balanced accuracy of 0.600, where random ends"
    precision = "to an average precision of 0.600, where random ends"
    assert needed.header == ["strategy", named, precision, to_random]
    assert row(needed, "galaxy")[to_random] == row(needed, "galaxy")[precision] == "500"
    assert row(needed, "<b>")[to_random] == "not reached"
    assert row(needed, "galaxy")[named] == row(needed, "confidence")[named] == "2,500"
    assert row(needed, "random")[to_random] == "2,500"
    assert needed.about.count("saves 0% against") == 3


def test_savings_are_against_the_second_best():
    n_labels = np.arange(1, 41) * 100
    slope = np.linspace(0, 1, 40)[None]
    accuracy = {
        "galaxy": Curve(n_labels, np.minimum(2 * slope, 1)),
        "base": Curve(n_labels, slope),
        "random": Curve(n_labels, slope / 2),
    }
    curves = dict.fromkeys(("balanced_accuracy", "average_precision", "f1", "rare_found"), accuracy)
    seconds = {label: dict(PARTS) for label in accuracy}
    found = SettingResults("x", 1, 1, 1, 40, "", curves, seconds)
    (needed,) = [table for table in tables_of(found) if table.title == "Labels needed"]
    final = accuracy["random"].mean(10)[-1]
    first = {label: c.labels_to_reach(final) for label, c in accuracy.items()}
    assert first["galaxy"] < first["base"] < first["random"]
    saved = 1 - first["galaxy"] / first["base"]
    assert f"galaxy saves {saved:.0%} against base" in needed.about


def test_times_show_the_harness_and_galaxys_overhead(tables):
    times = tables["Time of a batch"]
    assert row(times, "random")["harness"] == "0.0600"
    assert row(times, "random")["its share"] == "4.0%"  # 0.06 of 1.5 seconds
    assert "0.085 s more than confidence sampling's, 5.0% of a batch" in times.about


def test_settings_stand_side_by_side_and_short_runs_are_left_out():
    area = overview([some_results("one"), some_results("two")])[0]
    assert area.header == ["strategy", "one", "two"]
    assert row(area, "<b>")["one"] == ""
    # (0.55 + 0.9) / 2 * 500 and so on by hand: mean 0.6, 0.925, 0.96.
    galaxy = (0.5 * (0.6 + 0.925) * 500 + 0.5 * (0.925 + 0.96) * 1500) / 2000
    assert row(area, "galaxy")["two"].startswith(f"**{galaxy:.3f} ±")
    assert markdown_table(area).count("\n| ") == 6


def test_runs_that_are_not_all_there_are_named():
    assert some_results().unfinished == ["<b> (1 of 2 runs, 1 rounds)"]


def test_names_are_escaped(monkeypatch):
    suite = Suite(
        name="s",
        title="a <i> & b",
        figure="f",
        size="frozen",
        settings=("cifar10-2",),
        strategies=(Method("galaxy", "galaxy"),),
        seeds=(0,),
        batch_size=1,
        rounds=1,
        head=Head(),
        measures=("balanced_accuracy",),
    )
    page = html_report(suite, [some_results("o<n>e")])
    assert "<b>0" not in page.replace("<td><b>", "")
    assert "&lt;b&gt;" in page
    assert "o&lt;n&gt;e" in page
    assert "a &lt;i&gt; &amp; b" in page
    for name in ("<i>", "o<n>e", "<b></"):
        assert name not in page
