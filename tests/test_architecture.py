"""The import contracts bite: a module in the wrong place makes `lint-imports` fail."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "pyproject.toml"
PACKAGE = ROOT / "src" / "galaxy_al"
pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path):
    """A copy of the package that a test may break."""
    shutil.copytree(
        PACKAGE,
        tmp_path / "galaxy_al",
        ignore=shutil.ignore_patterns("__pycache__", "static"),
    )
    return tmp_path / "galaxy_al"


def broken_contracts(copy):
    """The names of the contracts that the copy breaks."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--config", str(CONFIG), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=copy.parent, env=environment, capture_output=True, text=True, check=False
    )
    broken = re.findall(r"^(.+) BROKEN", done.stdout, flags=re.M)
    assert (done.returncode != 0) == bool(broken), done.stdout + done.stderr
    return broken


def prepend(path, line):
    path.write_text(f"{line}\n{path.read_text()}" if path.exists() else f"{line}\n")


def test_the_package_keeps_all_contracts(copy):
    assert broken_contracts(copy) == []


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("corridor.py", '"""In no layer."""', "Dependencies point one way"),
        ("graphs/sort_keys.py", "import galaxy_al.metrics", "Dependencies point one way"),
        ("system/files.py", "import torch", "Only models.networks imports torch"),
        ("labelling/log.py", "import fastapi", "Only the server imports the web framework"),
        ("labelling/log.py", "import dask.array", "Only the cluster imports dask"),
        ("learner.py", "import matplotlib.pyplot", "Only experiments.plots imports matplotlib"),
    ],
)
def test_a_module_in_the_wrong_place_breaks_its_contract(copy, file, line, contract):
    prepend(copy / file, line)
    assert broken_contracts(copy) == [contract]


def test_a_cycle_between_siblings_breaks_the_contract(copy):
    prepend(copy / "system" / "threads.py", "import galaxy_al.system.folders")
    prepend(copy / "system" / "folders.py", "import galaxy_al.system.threads")
    assert broken_contracts(copy) == ["No package has a cycle among its modules"]


def test_no_module_is_longer_than_400_lines():
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.js")]
    assert [path.name for path in files if path.read_text().count("\n") > 400] == []


def test_the_folders_of_the_tests_are_those_of_the_package():
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert [str(folder) for folder in folders if not (PACKAGE / folder).is_dir()] == []


def test_the_contracts_fit_on_one_screen():
    section = CONFIG.read_text().partition("[tool.importlinter]")[2]
    section = re.split(r"^\[(?!\[?tool\.importlinter)", section, flags=re.M)[0]
    assert section.strip().count("\n") + 2 <= 60
