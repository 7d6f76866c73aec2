"""A modality from outside the package is used from the command line."""

import numpy as np
import pytest
import requests

from galaxy_al.client import Client
from galaxy_al.data import MODALITIES, Modality
from galaxy_al.errors import InvalidArgument
from support.commands import read_csv
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


class Sounds(Modality):
    name = "sounds"
    columns = ("sound",)
    help = "A table of sounds."
    media = "audio"

    def read_column(self, table, column):
        return [table.path.parent / name for name in table.texts(column)]

    def vectors(self, items):
        return np.array([[float(len(path.read_bytes()))] for path in items])


NUMBERS, SOUNDS = Numbers(), Sounds()
"""


@pytest.fixture
def run(tmp_path):
    """Run a command with the plugin installed."""
    entry_points = {"galaxy_al.modalities": {"numbers": "NUMBERS", "sounds": "SOUNDS"}}
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
    with run.label("project") as address:
        client = Client(address, "ann")
        example = client.next()
        assert example["text"] == str(numbers[int(example["id"])])
        client.label(example["id"], "big")
    assert run("export", "project", "--output", "out.csv").returncode == 0
    rows = {row["id"]: row["label"] for row in read_csv(tmp_path / "out.csv")}
    assert (len(rows), rows[example["id"]]) == (21, "big")
    checked = run("data", "check", "numbers.csv", "--kind", "numbers")
    assert checked.stdout.startswith("61 numbers, the first '0', the last '60'")
    assert run("data", "check", "numbers.csv").stdout.startswith("61 numbers")


def test_a_modality_of_a_plugin_is_heard_on_the_page(run, tmp_path):
    for i in range(12):
        (tmp_path / f"{i}.wav").write_bytes(b"RIFF" + bytes([i]) * i)
    rows = "\n".join(f"{i}.wav" for i in range(12))
    (tmp_path / "sounds.csv").write_text(f"sound\n{rows}\n")
    done = run("init", "p", "--sounds", "sounds.csv", "--classes", "bird", "--other", "wind")
    assert (done.returncode, done.stderr) == (0, "")
    with run.label("p") as address, requests.Session() as session:
        session.post(f"{address}/api/sign-in", json={"name": "ann"}).raise_for_status()
        example = session.post(f"{address}/api/next").json()["example"]
        answer = session.get(address + example["audio"])
        assert answer.content == (tmp_path / f"{example['id']}.wav").read_bytes()
        assert answer.headers["content-type"] in ("audio/x-wav", "audio/wav", "audio/vnd.wave")
        assert "media-src 'self'" in answer.headers["content-security-policy"]
        labels = {"labels": {example["id"]: "bird"}}
        following = session.post(f"{address}/api/label", json=labels).json()["example"]
        assert following["audio"].startswith("/api/media?")
        assert session.get(address + "/api/media?id=none").status_code == 404
    done = run("export", "p", "--format", "coco")
    assert done.stderr == "galaxy-al: COCO needs images, but the pool contains sounds.\n"


def test_a_medium_that_the_page_cannot_show_is_refused():
    with pytest.raises(InvalidArgument, match=r"media must be None or one of .*, got 'smell'"):
        type("Smells", (Modality,), {"media": "smell"})


def test_an_unknown_kind_is_refused_with_the_choice(run, tmp_path):
    (tmp_path / "numbers.csv").write_text("number\n1\n")
    done = run("data", "check", "numbers.csv", "--kind", "smells")
    assert done.returncode != 0
    expected = "Unknown kind 'smells'. Choose from: embeddings, images, numbers, sounds, texts."
    assert expected in done.stderr


@pytest.mark.parametrize("name", ["images", "texts", "embeddings"])
def test_the_modalities_of_the_package_say_what_they_are(name):
    modality = MODALITIES[name]
    assert modality.name == name
    assert modality.columns
    assert modality.is_embedded == (name != "embeddings")
    assert modality.help.endswith(".")


def test_only_texts_have_words():
    assert MODALITIES["texts"].words(["a b", "c"]) == ["a b", "c"]
    assert MODALITIES["embeddings"].words(np.eye(2)) is None
