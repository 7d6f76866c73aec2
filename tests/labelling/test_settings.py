"""Settings: what is wrong is named, and older files are read."""

import subprocess
import sys

import pytest

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.labelling.settings import FORMAT, ProjectSettings
from galaxy_al.system.files import read_toml
from support.projects import FORMAT_2, OLD_PROJECT

GOOD = {"path": '"x.csv"', "kind": '"texts"', "classes": '["spam", "ham"]'}


SINCE_FORMAT_4 = {
    "shards": False,
    "scheduler": "",
    "overlap": 0.0,
    "overlap_people": 2,
    "target_recall": 0.0,
}


def write(path, changes):
    path.write_text("".join(f"{key} = {value}\n" for key, value in {**GOOD, **changes}.items()))
    return path


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("colour", "3", "unknown key colour. Keys are: batch_size, classes, column, "
         "embedder, goal, head, id_column, kind, overlap, overlap_people, path, scheduler, "
         "seed, shards, "
         "strategy, target_recall."),
        ("batch_size", "0", "batch_size must be at least 1, got 0."),
        ("batch_size", '"50"', "batch_size must be a valid integer, got '50'."),
        ("batch_size", "true", "batch_size must be a valid integer, got True."),
        ("overlap", "1.5", "overlap must be at most 1, got 1.5."),
        ("overlap", "-0.1", "overlap must be at least 0, got -0.1."),
        ("target_recall", "1.0", "target_recall must be less than 1, got 1.0."),
        ("target_recall", "-0.5", "target_recall must be at least 0, got -0.5."),
        ("overlap_people", "5", "overlap_people must be at most 3, got 5."),
        ("overlap_people", "1", "overlap_people must be at least 2, got 1."),
        ("seed", "1.5", "seed must be a valid integer, got 1.5."),
        ("path", "7", "path must be a valid string, got 7."),
        ("kind", '"audio"', "kind: Unknown kind 'audio'. Choose from: embeddings, images, texts."),
        ("classes", '"spam"', "classes must be a valid list, got 'spam'."),
        ("classes", '["spam", 3]', "classes[1] must be a valid string, got 3."),
        ("classes", '["spam"]', "classes: A project needs at least two classes, "
         "and each needs a name."),
        ("classes", '["a", "a"]', "classes: Two classes are called 'a'."),
        ("head", '""', "head: Unknown head ''. Choose from: auto, linear, mlp, resnet18."),
        ("goal", '"all"', "goal: Unknown goal 'all'. Choose from: classifier, find-all."),
        ("goal", '["find-all"]', "goal must be a valid string, got ['find-all']."),
        ("format", '"2"', f"format must be from 1 to {FORMAT}, got '2'."),
        ("format", "0", f"format must be from 1 to {FORMAT}, got 0."),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line_with_the_file_and_the_key(tmp_path, key, value, message):
    path = write(tmp_path / "project.toml", {key: value})
    with pytest.raises(GalaxyError) as refused:
        ProjectSettings.read(path)
    assert str(refused.value) == f"{path}: {message}"


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = write(tmp_path / "project.toml", {"format": str(FORMAT + 1)})
    with pytest.raises(
        GalaxyError, match=f"project.toml was written by a newer galaxy-al .*to {FORMAT}"
    ):
        ProjectSettings.read(path)


def test_an_unknown_strategy_and_a_missing_key_are_named(tmp_path):
    path = write(tmp_path / "project.toml", {"strategy": '"galxy"'})
    with pytest.raises(GalaxyError, match=r"Unknown strategy 'galxy'\. Choose from: badge, "):
        ProjectSettings.read(path)
    path.write_text('path = "x"\nkind = "texts"\n')
    with pytest.raises(GalaxyError, match="the key classes is missing"):
        ProjectSettings.read(path)
    path.write_text("kind = [")
    with pytest.raises(GalaxyError, match=f"Cannot read {path}"):
        ProjectSettings.read(path)


def test_wrong_arguments_are_value_errors():
    with pytest.raises(InvalidArgument, match="batch_size must be at least 1, got -2"):
        ProjectSettings.create(path="x", kind="texts", classes=("a", "b"), batch_size=-2)
    with pytest.raises(ValueError, match="not valid Unicode"):
        ProjectSettings.create(path="x", kind="texts", classes=("\udc80", "ham"))


def test_settings_are_written_and_read_as_they_are(tmp_path):
    names = ('a"b\\c', "日本\n\t", "\x01é", "🐱", "\x7f", "\r\n")
    settings = ProjectSettings(
        path="../x y", kind="texts", classes=names, seed=-3, head="linear", strategy="galaxy"
    )
    settings.write(tmp_path / "project.toml")
    assert ProjectSettings.read(tmp_path / "project.toml") == settings
    assert read_toml(tmp_path / "project.toml")["format"] == FORMAT


def test_a_file_without_a_format_is_of_the_first_one():
    path = OLD_PROJECT / "project" / "project.toml"
    written = read_toml(path)
    assert "format" not in written
    assert "head" not in written
    settings = ProjectSettings.read(path).model_dump()
    added = {"head": "auto", "goal": "classifier", **SINCE_FORMAT_4}
    assert settings == {**written, "classes": tuple(written["classes"]), **added}


def test_a_project_of_format_2_has_the_goal_classifier():
    path = FORMAT_2 / "project.toml"
    written = read_toml(path)
    assert written.pop("format") == 2
    assert "goal" not in written
    settings = ProjectSettings.read(path).model_dump()
    added = {"goal": "classifier", **SINCE_FORMAT_4}
    assert settings == {**written, "classes": tuple(written["classes"]), **added}


def test_the_goal_chooses_the_strategy_unless_one_is_given():
    given = {"path": "x", "kind": "texts", "classes": ("a", "b")}
    assert ProjectSettings.create(**given).strategy == "fair-cuts"
    assert ProjectSettings.create(**given, goal="find-all").strategy == "find-all"
    chosen = ProjectSettings.create(**given, goal="find-all", strategy="galaxy")
    assert (chosen.goal, chosen.strategy) == ("find-all", "galaxy")


def test_importing_the_package_does_not_import_pydantic():
    code = "import sys, galaxy_al, galaxy_al.cli.main; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
