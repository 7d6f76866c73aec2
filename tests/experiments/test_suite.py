"""Suites: the installed ones are valid, and errors name the key."""

from pathlib import Path

import numpy as np
import pytest

from galaxy_al import GalaxyError, Snapshot
from galaxy_al.data import SETTINGS
from galaxy_al.experiments import suite as suite_module
from galaxy_al.experiments.suite import SIZES, Head, Method, Run, load_suite, suite_names
from galaxy_al.strategies import make_strategy

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
def test_the_installed_suites_are_valid(path, size):
    suite = load_suite(path, size)
    assert suite.runs()
    frozen = "auto" if path.stem.startswith("default") else "linear"
    assert suite.head.network == {"paper": "resnet18", "frozen": frozen}[size]


def test_the_full_suite_has_the_papers_settings_and_rounds_and_the_figures_are_parts_of_it():
    full = load_suite(SUITES / "full.toml", "frozen")
    assert full.settings == tuple(name for name, setting in SETTINGS.items() if setting.is_of_paper)
    assert (full.batch_size, full.rounds, len(full.seeds)) == (100, 50, 4)
    keys = {run.key for run in full.runs()}
    keys |= {run.key for run in load_suite(SUITES / "bait.toml", "frozen").runs()}
    for name in ("intro", "figure4", "figure5"):
        runs = load_suite(SUITES / f"{name}.toml", "frozen").runs()
        done = {run.key for run in runs if run.method.strategy != "bait"}
        assert done <= keys
    large = load_suite(SUITES / "large-budget.toml", "paper")
    assert (large.batch_size * large.rounds, len(large.seeds)) == (30_000, 3)


def test_a_size_overrides_what_stands_above(tmp_path):
    frozen, paper = load(tmp_path, GOOD), load(tmp_path, GOOD, "paper")
    assert (frozen.rounds, paper.rounds) == (4, 3)
    assert frozen.head == Head("linear", weight_decay=0.01)
    assert paper.head == Head("resnet18", epochs=500)
    assert frozen.strategies == (
        Method("galaxy", "galaxy"),
        Method("rotating", "galaxy", {"across": "rotate"}),
    )
    assert len(frozen.runs()) == 4


def test_a_run_has_one_key_whatever_it_is_called_and_another_for_anything_that_matters():
    run = Run("svhn-2", Method("a", "galaxy"), 0, 100, Head("linear"))
    same = Run("svhn-2", Method("b", "galaxy"), 0, 100, Head("linear"))
    assert run.key == same.key
    others = [
        Run("svhn-3", Method("a", "galaxy"), 0, 100, Head("linear")),
        Run("svhn-2", Method("a", "random"), 0, 100, Head("linear")),
        Run("svhn-2", Method("a", "galaxy", {"across": "rotate"}), 0, 100, Head("linear")),
        Run("svhn-2", Method("a", "s2", {}, "graph"), 0, 100, Head("linear")),
        Run("svhn-2", Method("a", "galaxy"), 1, 100, Head("linear")),
        Run("svhn-2", Method("a", "galaxy"), 0, 10, Head("linear")),
        Run("svhn-2", Method("a", "galaxy"), 0, 100, Head("linear", weight_decay=0.0)),
    ]
    assert len({run.key, *(other.key for other in others)}) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 4", "rounds = 0", r"rounds must be at least 1, got 0"),
        ("rounds = 4", 'rounds = "many"', r"rounds must be a valid integer, got 'many'"),
        ("rounds = 4", "rounds = true", r"rounds must be a valid integer, got True"),
        ("seeds = [0, 1]", "seeds = []", r"seeds must have at least 1 item"),
        ("seeds = [0, 1]", "seed = [0, 1]", r"unknown key seed. Keys are: batch_size, figure"),
        ("seeds = [0, 1]", "", r"the key seeds is missing"),
        ("seeds = [0, 1]", "seeds = [0, 0]", r"seeds: 0 is there twice"),
        (
            "seeds = [0, 1]",
            "seeds = [-1]",
            r"seeds\[0\] must be at least 0",
        ),
        ('["cifar10-2"]', '["cifar10-2", "cifar10-2"]', r"settings: 'cifar10-2' is there twice"),
        (', across = "rotate"', "", r"strategies: two have the same options"),
        ('"rotating"', '"_rotating"', r"strategies\[1\].label must match pattern.*got '_rotating'"),
        ("weight_decay = 0.01", "hidden = 3", r"head: hidden is for mlp, not for linear"),
        ("weight_decay = 0.01", "weight_decay = inf", r"head.weight_decay must be a finite number"),
        ("weight_decay = 0.01", 'weights = "a"', r"head: weights is for resnet18, not for linear"),
        ("cifar10-2", "cifar-10", r"settings\[0\]: unknown 'cifar-10'. Choose from: cifar10-2"),
        ('["galaxy", {', '["galxy", {', r"strategies\[0\]: Unknown strategy 'galxy'"),
        ("across", "acros", r"strategies\[1\]: Strategy 'galaxy' has no option 'acros'"),
        ('"rotate"', '"both"', r"strategies\[1\]: Unknown across 'both'"),
        ('"rotating"', '"galaxy"', r"strategies: two have the same label"),
        ('label = "rotating"', 'predictor = "graph"', r"strategies\[1\]: predictor must be 'head'"),
        ('strategy = "galaxy", ', "", r"the key strategies\[1\].strategy is missing"),
        (
            '"linear"',
            '"vgg"',
            r"head.network: unknown 'vgg'. Choose from: auto, linear, mlp, resnet18",
        ),
        (
            "weight_decay = 0.01",
            "decay = 0.01",
            r"unknown key head.decay. Keys are: batch_size",
        ),
        ("weight_decay = 0.01", 'weight_decay = "a"', r"head.weight_decay must be a valid number"),
        (
            "weight_decay = 0.01",
            "epochs = -1",
            r"head.epochs must be at least 1, got -1",
        ),
        ("weight_decay = 0.01", "epochs = 1", r"head: epochs is for mlp and resnet18"),
        ("[frozen]", "[frosen]", r"the table \[frozen\] is missing"),
        ('title = "A suite"', "title = 3", r"title must be a valid string, got 3"),
        ("rounds = 3", "rounds = ", r"Cannot read .*a.toml"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(GalaxyError, match=message) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert "a.toml" in str(caught.value)


def test_a_suite_is_found_by_its_name_from_anywhere_and_a_wrong_name_lists_those_there_are(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert suite_names() == sorted(path.stem for path in SUITES.glob("*.toml"))
    assert load_suite("intro", "frozen").name == "intro"
    for name in ("figure9", "figure9.toml"):
        with pytest.raises(GalaxyError, match=rf"no suite {name}. .* choose from: .*figure4"):
            load_suite(name, "frozen")


def test_methods_that_are_others_with_two_classes_are_left_out_there():
    suite = load_suite("paper-small", "paper")
    labels = {
        setting: {run.method.label for run in suite.runs() if run.setting == setting}
        for setting in suite.settings
    }
    only_with_three = labels["cifar10-3-small"] - labels["cifar10-2-small"]
    assert only_with_three == {"galaxy, rotating", "margin"}
    assert labels["cifar10-2-small"] < labels["cifar10-3-small"]


@pytest.mark.parametrize("seed", range(5))
def test_with_two_classes_these_methods_ask_the_same(seed):
    rng = np.random.default_rng(seed)
    score, truth = rng.random(300), rng.random(300)
    labels = np.full(300, -1)
    labels[:20] = truth[:20] > score[:20]
    proba = np.stack([score, 1 - score], axis=1)
    pairs = [("galaxy", {}), ("galaxy", {"across": "rotate"})], [("confidence", {}), ("margin", {})]
    for pair in pairs:
        asked = []
        for name, options in pair:
            strategy = make_strategy(name, **options)
            session = strategy.start(Snapshot(proba, labels), rng=np.random.default_rng(0))
            asked.append([])
            for _ in range(60):
                asked[-1].append(session.ask())
                session.tell(asked[-1][-1], int(truth[asked[-1][-1]] > score[asked[-1][-1]]))
        assert asked[0] == asked[1]
