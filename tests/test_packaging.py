"""The wheel works on its own: in an empty environment, far from the checkout."""

import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SUITE = """
title = "Tiny"
figure = "none"
settings = ["cifar10-2"]
strategies = ["galaxy", "random"]
seeds = [0]
batch_size = 10
rounds = 2

[frozen]
head = { network = "auto" }
"""
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("docs/", "tests/", "benchmarks/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--outdir", folder, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("galaxy_al-*.tar.gz"))) == 1
    (found,) = folder.glob("galaxy_al-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs programs of an environment that has nothing but the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    places = {"cwd": folder, "env": clean_environment(folder)}
    pip = [folder / "env" / "bin" / "python", "-m", "pip", "install", "--quiet"]
    done = subprocess.run(
        [*pip, "-c", ROOT / "constraints.txt", f"{wheel}[app]"],
        capture_output=True, text=True, check=False, **places,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    def run(name, *arguments):
        command = [folder / "env" / "bin" / name, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **places)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.folder, run.places = folder, places
    return run


def clean_environment(folder):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**kept, "GALAXY_AL_DATA": str(folder), "GALAXY_AL_HOME": str(folder / "home")}


def test_the_wheel_holds_the_suites_the_page_and_the_types(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "galaxy_al"
    wanted = [package / "py.typed", *package.rglob("*.py"), *package.glob("server/static/**/*.*")]
    wanted += package.glob("experiments/suites/*.toml")
    assert {str(path.relative_to(ROOT / "src")) for path in wanted} <= names
    assert not [name for name in names if "tests" in name.split("/")]


def test_the_installed_package_is_the_wheel_and_needs_no_torch(installed):
    code = "import galaxy_al, importlib.util as u; print(galaxy_al.__file__, u.find_spec('torch'))"
    path, torch = installed("python", "-c", code).split()
    assert Path(path).is_relative_to(installed.folder / "env")
    assert torch == "None"


def test_the_demo_runs_from_the_wheel(installed):
    output = installed("galaxy-al", "demo", "--output", "demo.png")
    assert "fair-cuts" in output
    assert (installed.folder / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_bench_runs_from_the_wheel_and_the_suites_are_there(installed):
    assert "figure4" in installed("galaxy-al", "bench", "suites")
    rng = np.random.default_rng(0)
    labels = rng.choice(10, 200).astype(np.uint8)
    embeddings = (rng.normal(size=(200, 6)) + 2 * np.eye(10, 6)[labels]).astype(np.float16)
    path = installed.folder / "cifar10-embeddings.npz"
    np.savez(path, embeddings=embeddings, labels=labels)
    (installed.folder / "tiny.toml").write_text(SUITE)
    assert "2 of 2 runs are done" in installed("galaxy-al", "bench", "run", "tiny.toml")
    installed("galaxy-al", "bench", "report", "tiny.toml")
    assert "<svg" in (installed.folder / "tiny.html").read_text()


def test_a_project_of_vectors_is_labelled_from_the_wheel(installed):
    vectors = np.random.default_rng(0).normal(size=(50, 4))
    np.save(installed.folder / "vectors.npy", vectors)
    project = (
        "init",
        "mine",
        "--embeddings",
        "vectors.npy",
        "--classes",
        "rare",
        "--other",
        "rest",
    )
    installed("galaxy-al", *project)
    command = [installed.folder / "env" / "bin" / "galaxy-al", "label", "mine"]
    server = subprocess.Popen(
        [*command, "--no-open", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **installed.places,
    )  # fmt: skip
    try:
        first = next(line for line in server.stdout if line.startswith("Label at"))
        address = first.split()[2].rstrip("/.")
        page, _ = ask(address + "/")
        assert b"<!doctype html>" in page.lower()
        _, cookie = ask(f"{address}/api/sign-in", {"name": "ann"})
        answer, _ = ask(f"{address}/api/next", {}, cookie)
        assert 0 <= int(json.loads(answer)["example"]["id"]) < 50
    finally:
        server.terminate()
        server.communicate(timeout=30)


def ask(url, body=None, cookie=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Cookie": cookie or ""}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        return answer.read(), (answer.headers["set-cookie"] or "").split(";")[0]
