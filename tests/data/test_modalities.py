"""A modality from outside the package is used from the command line."""

import numpy as np
import pytest

from galaxy_al.data import MODALITIES
from support.plugins import command_with, write_plugin

NUMBERS = """
import numpy as np
from galaxy_al.data import Modality


class Numbers(Modality):
    name = "numbers"
    columns = ("number",)
    help = "A table of numbers."

    def read_column(self, table, column):
        return [float(text) for text in table.texts(column)]

    def vectors(self, items):
        return np.array(items)[:, None]

    def problems(self, items, ids):
        return {i: f"{ids[i]} is negative." for i, item in enumerate(items) if item < 0}


NUMBERS = Numbers()
"""


@pytest.fixture
def run(tmp_path):
    """Run a command with the plugin installed."""
    entry_points = {"galaxy_al.modalities": {"numbers": "NUMBERS"}}
    plugin = write_plugin(tmp_path / "plugin", "numbers_plugin", NUMBERS, entry_points)
    return command_with(plugin, tmp_path)


@pytest.mark.slow
def test_a_modality_of_a_plugin_has_its_own_option_and_is_labelled_and_exported(run, tmp_path):
    numbers = np.random.default_rng(0).normal(size=60).round(3) + 5
    rows = "\n".join(map(str, [*numbers, -1.0]))
    (tmp_path / "numbers.csv").write_text(f"number\n{rows}\n")
    labels = "\n".join(f"{i},{'big' if numbers[i] > 5 else 'small'}" for i in range(20))
    (tmp_path / "labels.csv").write_text(f"id,label\n{labels}\n")
    assert "--numbers PATH" in run("init", "--help").stdout
    classes = ["--classes", "big", "--other", "small", "--import-labels", "labels.csv"]
    done = run("init", "project", "--numbers", "numbers.csv", *classes)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("61 numbers in project, 20 labels imported")
    assert "60 is negative." in done.stderr
    assert run("export", "project", "--output", "out.csv").returncode == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 21
    checked = run("data", "check", "numbers.csv", "--kind", "numbers")
    assert checked.stdout.startswith("61 numbers, the first '0', the last '60'")
    assert run("data", "check", "numbers.csv").stdout.startswith("61 numbers")


def test_an_unknown_kind_is_refused_with_the_choice(run, tmp_path):
    (tmp_path / "numbers.csv").write_text("number\n1\n")
    done = run("data", "check", "numbers.csv", "--kind", "sounds")
    assert done.returncode != 0
    expected = "Unknown kind 'sounds'. Choose from: embeddings, images, numbers, texts."
    assert expected in done.stderr


@pytest.mark.parametrize("name", ["images", "texts", "embeddings"])
def test_the_modalities_of_the_package_say_what_they_are(name):
    modality = MODALITIES[name]
    assert modality.name == name
    assert modality.columns
    assert modality.is_embedded == (name != "embeddings")
    assert modality.help.endswith(".")
