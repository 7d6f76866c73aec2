"""The examples in the documents run, what they name exists, and the site builds."""

import importlib
import os
import re
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
N_LABELS = 240
CLASSES = {3: "three", 8: "eight"}


def blocks(name, language):
    text = (ROOT / name).read_text()
    return re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, flags=re.M | re.S)


def run_blocks(name):
    namespace = {}
    for _, block in blocks(name, "python"):
        exec(block, namespace)
    return namespace


def test_the_python_examples_of_the_readme_run(capsys):
    run_blocks("README.md")
    found, last = capsys.readouterr().out.strip().splitlines()
    assert found in (ROOT / "README.md").read_text()
    assert int(found.split()[0]) > 20
    assert last.startswith("100 ")


def test_the_first_example_is_about_ten_lines_and_uses_the_default():
    from galaxy_al.strategies import DEFAULT_STRATEGY, STRATEGIES

    _, block = blocks("README.md", "python")[0]
    assert len([line for line in block.splitlines() if line and "import" not in line]) <= 10
    assert f"{STRATEGIES[DEFAULT_STRATEGY].__name__}()" in block


def test_the_examples_of_the_strategies_page_run():
    namespace = run_blocks("docs/strategies.md")
    assert len(namespace["batch"]) == 100
    assert namespace["predicted"].shape == (500,)


@pytest.mark.torch
def test_the_examples_of_the_python_guide_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = run_blocks("docs/python.md")
    snapshot, truth = namespace["snapshot"], namespace["truth"]
    for view in (snapshot.proba, snapshot.balanced):
        assert (view.argmax(axis=1) == truth).mean() > 0.8
    assert (namespace["proba"] == snapshot.proba).all()
    in_pool = namespace["balanced"] * namespace["priors"]
    in_pool /= in_pool.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(in_pool, namespace["auto"].proba(namespace["embeddings"]), atol=1e-5)
    assert namespace["decided"].shape == truth.shape
    assert Path("my-model/model.onnx").exists()
    np.testing.assert_allclose(namespace["color"], [[1, 0, 0.2]], atol=1e-6)
    assert len(namespace["batch"]) == len(namespace["labels"]) == 100
    assert namespace["history"][-1].n_labels == 100


def test_the_strategy_of_the_contributing_guide_works_and_passes_the_linter(tmp_path):
    from galaxy_al import Snapshot

    (indent, block), *_ = blocks("CONTRIBUTING.md", "python")
    code = re.sub(rf"^{indent}", "", block, flags=re.M)
    (tmp_path / "least_likely_other.py").write_text(code)
    config = ["--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
    for command in (["check"], ["format", "--check"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, *config], check=True)
    namespace = {"__name__": "example"}
    exec(code, namespace)
    strategy = namespace["LeastLikelyOther"]()
    snapshot = Snapshot([[0.1, 0.9], [0.6, 0.4], [0.3, 0.7]])
    assert strategy.rank(snapshot, 2, None).tolist() == [1, 2]


def test_the_plugins_of_the_contributing_guide_work(tmp_path):
    from galaxy_al import simulate

    namespace = {}
    for _, block in blocks("CONTRIBUTING.md", "python")[1:]:
        exec(block, namespace)
    trainer = namespace["nearest"](n_classes=2, seed=0, needs=())
    points, truth = np.array([[0.0], [1.0], [9.0], [10.0]]), np.array([0, 0, 1, 1])
    last = simulate(points, truth, "random", head=trainer, batch_size=4, rounds=1)[-1]
    assert last.balanced_accuracy == 1
    assert namespace["NUMBERS"].vectors([1.0, 2.0]).tolist() == [[1], [2]]
    labeled = SimpleNamespace(entries=[SimpleNamespace(example="a"), SimpleNamespace(example="b")])
    namespace["IDS"].write(labeled, tmp_path / "ids.txt")
    assert (tmp_path / "ids.txt").read_text() == "a\nb\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_linked_files_exist(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_avoid_the_worst_patterns_of_the_glossary(page):
    bad = (
        r"by chance|nobody|somebody|whoever|\banew\b|likewise|\bthe big (class|one)|\bgo(es)? on\b"
    )
    bad += r"|, too\b|(?<!there )is no (?!more|longer|less)|\bone a core"
    assert not re.findall(rf".*(?:{bad}).*", page.read_text(), flags=re.I)


def test_every_strategy_has_its_paragraph_and_reference():
    from galaxy_al import STRATEGIES

    text = (ROOT / "docs/strategies.md").read_text()
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S))
    for name, strategy in STRATEGIES.items():
        section = next(body for title, body in sections.items() if name in title.split(", "))
        assert "**Use" in section
        assert "**Not**" in section
        is_ours = strategy.paper.startswith("none")
        assert is_ours or strategy.paper.split(",")[0].split(" ")[0] in section
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        assert anchor in {title.replace(", ", "-").replace(" ", "-").lower() for title in sections}


def commands(command, path=("galaxy-al",)):
    yield " ".join(path), command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


def test_every_command_and_option_is_in_the_reference():
    from galaxy_al.cli.main import cli

    made = runpy.run_path(str(ROOT / "docs/hooks/commands.py"))["command_reference"]()
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", made, flags=re.M | re.S))
    found = dict(commands(cli))
    assert sections.keys() == found.keys()
    for path, command in found.items():
        assert command.help.splitlines()[0] in sections[path]
        for parameter in command.params:
            names = [name for name in (*parameter.opts, *parameter.secondary_opts) if "-" in name]
            assert all(name in sections[path] for name in names), (path, names)
            assert not getattr(parameter, "help", None) or parameter.help in sections[path]


def test_every_public_name_is_in_the_api_reference():
    import galaxy_al

    text = (ROOT / "docs/api.md").read_text()
    assert [name for name in galaxy_al.__all__ if name not in text] == ["__version__"]


def test_the_diagrams_are_current_and_name_modules_that_exist():
    hook = runpy.run_path(str(ROOT / "docs/hooks/diagrams.py"))
    n_diagrams = 0
    for page in (ROOT / "docs").glob("*.md"):
        for number, diagram in enumerate(hook["BLOCK"].findall(page.read_text()), start=1):
            assert hook["is_current"](hook["picture_of"](page.stem, number), diagram)
            shown = diagram.replace("<br/>", "")
            for module in re.findall(r"participant \w+ as ([a-z_]+\.[a-z_.]+)$", shown, re.M):
                importlib.import_module(f"galaxy_al.{module}")
            n_diagrams += 1
    assert n_diagrams >= 4


@pytest.mark.slow
def test_the_site_builds_strictly_and_fetches_nothing_from_elsewhere(tmp_path):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) >= 14
    fetched = r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=\"?https?://[^>]*"
    for page in pages:
        assert not re.findall(fetched, page.read_text()), page
    assert "fair-cuts" in (tmp_path / "strategies/index.html").read_text()


@pytest.mark.slow
@pytest.mark.torch
def test_the_commands_of_the_readme_print_what_it_shows(tmp_path, monkeypatch):
    """The run of the README, with an annotator who knows the truth."""
    monkeypatch.chdir(tmp_path)
    made = {}
    exec(blocks("docs/index.md", "python")[0][1], made)
    truth = {
        f"digit-{number:04}.png": CLASSES.get(int(made["digits"].target[i]), "other")
        for number, i in enumerate(made["order"])
    }
    for _, block in blocks("README.md", "console"):
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, flags=re.M):
            arguments = command.split()
            if arguments[1] == "label":
                printed = printed_while_labelling([*arguments, "--no-open"], truth)
            else:
                printed = run_command(arguments)
            assert_same_output(printed, shown, command)


def assert_same_output(printed, shown, command):
    """The same words and whole numbers; estimates may differ a little from machine to machine."""
    pairs = list(zip(printed.split(), shown.split(), strict=True))
    for found, expected in pairs:
        if found != expected and "train" in command:
            number, wanted = (float(re.sub(r"[(),]", "", word)) for word in (found, expected))
            assert abs(number - wanted) <= max(0.1, 0.15 * wanted), (command, found, expected)
        else:
            assert found == expected, command


def run_command(arguments):
    command = [sys.executable, "-m", "galaxy_al", *arguments[1:]]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def printed_while_labelling(arguments, truth):
    from galaxy_al.client import Client

    command = [sys.executable, "-m", "galaxy_al", *arguments[1:]]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        printed = ""
        while "http" not in printed:
            printed += server.stdout.readline()
        client = Client(re.search(r"http://\S+", printed)[0], "Ann")
        example = client.next()
        for _ in range(N_LABELS):
            example = client.label(example["id"], truth[example["id"]])
            while client.status()["training"]["is_running"]:
                time.sleep(0.1)
        counts = client.status()["counts"]
        server.send_signal(signal.SIGINT)
        assert counts["three"] + counts["eight"] > 30  # of 44; at random 7
        return printed
