"""What the documents say runs, and the files they name are there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def blocks(name, language):
    text = (ROOT / name).read_text()
    return re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, flags=re.M | re.S)


def test_the_python_examples_of_the_readme_run(capsys):
    namespace = {}
    for _, block in blocks("README.md", "python"):
        exec(block, namespace)
    found, last = capsys.readouterr().out.strip().splitlines()
    assert int(found.split()[0]) > 20
    assert last.startswith("100 ")


def test_the_examples_of_the_methods_page_run():
    namespace = {}
    for _, block in blocks("docs/methods.md", "python"):
        exec(block, namespace)
    assert len(namespace["batch"]) == 100
    assert namespace["predicted"].shape == (500,)


@pytest.mark.torch
def test_the_examples_of_the_training_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for _, block in blocks("docs/training.md", "python"):
        exec(block, namespace)
    right = namespace["snapshot"].proba.argmax(axis=1) == namespace["truth"]
    assert right.mean() > 0.8
    assert (namespace["proba"] == namespace["snapshot"].proba).all()


def test_the_first_example_is_about_ten_lines():
    _, block = blocks("README.md", "python")[0]
    assert len([line for line in block.splitlines() if line and "import" not in line]) <= 10


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


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/benchmarks.md",
        "docs/algorithm.md",
        "docs/methods.md",
        "docs/data.md",
        "docs/training.md",
        "docs/experiments.md",
        "docs/results.md",
        "docs/log.md",
        "docs/default.md",
        "docs/labelling.md",
    ],
)
def test_linked_files_exist(name):
    document = ROOT / name
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_strategy_has_its_paragraph_and_reference():
    from galaxy_al import STRATEGIES

    text = (ROOT / "docs/methods.md").read_text()
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S))
    for name, strategy in STRATEGIES.items():
        section = next(body for title, body in sections.items() if name in title.split(", "))
        assert "**Use" in section
        assert "**Not**" in section
        is_ours = strategy.paper.startswith("none")
        assert is_ours or strategy.paper.split(",")[0].split(" ")[0] in section
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        assert anchor in {title.replace(", ", "-").replace(" ", "-").lower() for title in sections}
