"""Suites: those that come along, and errors that name the key."""

from pathlib import Path

import pytest

from galaxy_al import GalaxyError
from galaxy_al.data import SETTINGS
from galaxy_al.experiments import suite as suite_module
from galaxy_al.experiments.suite import SIZES, Cell, Contender, Head, load_suite

SUITES = Path(suite_module.__file__).with_name("suites")
GOOD = """
title = "A suite"
figure = "Figure 0"
settings = ["cifar10-2"]
strategies = ["galaxy", { strategy = "galaxy", label = "rotating", across = "rotate" }]
seeds = [0, 1]
batch_size = 10
rounds = 3

[frozen]
head = { network = "linear", weight_decay = 0.01 }
rounds = 4

[paper]
head = { network = "resnet18", epochs = 500 }
"""


def load(tmp_path, text, size="frozen"):
    (tmp_path / "a.toml").write_text(text)
    return load_suite(tmp_path / "a.toml", size)


@pytest.mark.parametrize("path", sorted(SUITES.glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("size", SIZES)
def test_the_suites_that_come_along_are_right(path, size):
    suite = load_suite(path, size)
    assert suite.cells()
    frozen = "auto" if path.stem.startswith("default") else "linear"
    assert suite.head.network == {"paper": "resnet18", "frozen": frozen}[size]


def test_the_full_suite_has_the_papers_settings_and_rounds_and_the_figures_are_parts_of_it():
    full = load_suite(SUITES / "full.toml", "frozen")
    assert full.settings == tuple(SETTINGS)
    assert (full.batch_size, full.rounds, len(full.seeds)) == (100, 50, 4)
    keys = {cell.key for cell in full.cells()}
    keys |= {cell.key for cell in load_suite(SUITES / "bait.toml", "frozen").cells()}
    for name in ("intro", "figure4", "figure5"):
        cells = load_suite(SUITES / f"{name}.toml", "frozen").cells()
        done = {cell.key for cell in cells if cell.contender.strategy != "bait"}
        assert done <= keys
    large = load_suite(SUITES / "large-budget.toml", "paper")
    assert (large.batch_size * large.rounds, len(large.seeds)) == (30_000, 3)


def test_a_size_overrides_what_stands_above(tmp_path):
    frozen, paper = load(tmp_path, GOOD), load(tmp_path, GOOD, "paper")
    assert (frozen.rounds, paper.rounds) == (4, 3)
    assert frozen.head == Head("linear", weight_decay=0.01)
    assert paper.head == Head("resnet18", epochs=500)
    assert frozen.contenders == (
        Contender("galaxy", "galaxy"),
        Contender("rotating", "galaxy", {"across": "rotate"}),
    )
    assert len(frozen.cells()) == 4


def test_a_run_has_one_key_whatever_it_is_called_and_another_for_anything_that_matters():
    cell = Cell("svhn-2", Contender("a", "galaxy"), 0, 100, Head("linear"))
    same = Cell("svhn-2", Contender("b", "galaxy"), 0, 100, Head("linear"))
    assert cell.key == same.key
    others = [
        Cell("svhn-3", Contender("a", "galaxy"), 0, 100, Head("linear")),
        Cell("svhn-2", Contender("a", "random"), 0, 100, Head("linear")),
        Cell("svhn-2", Contender("a", "galaxy", {"across": "rotate"}), 0, 100, Head("linear")),
        Cell("svhn-2", Contender("a", "s2", {}, "graph"), 0, 100, Head("linear")),
        Cell("svhn-2", Contender("a", "galaxy"), 1, 100, Head("linear")),
        Cell("svhn-2", Contender("a", "galaxy"), 0, 10, Head("linear")),
        Cell("svhn-2", Contender("a", "galaxy"), 0, 100, Head("linear", weight_decay=0.0)),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 4", "rounds = 0", r"rounds must be a whole number, 1 or more, got 0"),
        ("rounds = 4", 'rounds = "many"', r"rounds must be a whole number.*got 'many'"),
        ("rounds = 4", "rounds = true", r"rounds must be a whole number.*got True"),
        ("seeds = [0, 1]", "seeds = []", r"seeds must be a list of one or more"),
        ("seeds = [0, 1]", "seed = [0, 1]", r"unknown key seed. Keys are: batch_size, figure"),
        ("seeds = [0, 1]", "", r"lacks the key seeds"),
        ("seeds = [0, 1]", "seeds = [0, 0]", r"seeds must be different numbers, 0 or more"),
        ("seeds = [0, 1]", "seeds = [-1]", r"seeds must be different numbers, 0 or more"),
        ('["cifar10-2"]', '["cifar10-2", "cifar10-2"]', r"two of its runs are the same"),
        (', across = "rotate"', "", r"two of its runs are the same"),
        ('"rotating"', '"_rotating"', r"strategies\[1\] must name a strategy, and a label if any"),
        ("weight_decay = 0.01", "hidden = 3", r"head.hidden is for mlp, not for linear"),
        ("weight_decay = 0.01", "weight_decay = inf", r"head.weight_decay must be a number"),
        ("weight_decay = 0.01", 'weights = "a"', r"head.weights is for resnet18, not for linear"),
        ("cifar10-2", "cifar-10", r"settings: unknown 'cifar-10'. Choose from: cifar10-2"),
        ('["galaxy", {', '["galxy", {', r"strategies\[0\]: Unknown strategy 'galxy'"),
        ("across", "acros", r"strategies\[1\]: Strategy 'galaxy' has no option 'acros'"),
        ('"rotate"', '"both"', r"strategies\[1\]: Unknown across 'both'"),
        ('"rotating"', '"galaxy"', r"two are called 'galaxy'"),
        ('label = "rotating"', 'predictor = "graph"', r"strategies\[1\].predictor must be 'head'"),
        ('strategy = "galaxy", ', "", r"strategies\[1\] must name a strategy"),
        ('"linear"', '"vgg"', r"head.network: unknown 'vgg'"),
        ("weight_decay = 0.01", "decay = 0.01", r"unknown key head.decay"),
        ("weight_decay = 0.01", 'weight_decay = "a"', r"head.weight_decay must be a number"),
        ("weight_decay = 0.01", "epochs = -1", r"head.epochs must be a whole number"),
        ("weight_decay = 0.01", "epochs = 1", r"head.epochs is for mlp and resnet18"),
        ("[frozen]", "[frosen]", r"has no table \[frozen\]"),
        ('title = "A suite"', "title = 3", r"title must be a text, got 3"),
        ("rounds = 3", "rounds = ", r"Cannot read .*a.toml"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(GalaxyError, match=message) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert "a.toml" in str(caught.value)


def test_a_suite_that_is_not_there_is_told_with_those_that_are(monkeypatch):
    monkeypatch.chdir(SUITES.parent)
    assert load_suite("intro", "frozen").name == "intro"
    with pytest.raises(GalaxyError, match=r"no suite suites/figure9.toml.* there are: .*figure4"):
        load_suite("figure9", "frozen")
    monkeypatch.chdir(SUITES)
    assert load_suite("intro", "frozen").name == "intro"
