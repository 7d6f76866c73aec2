import subprocess
import sys

import pytest
from click.testing import CliRunner

from galaxy_al import STRATEGIES, GalaxyError, __version__
from galaxy_al.cli.main import cli


def run(*arguments):
    return CliRunner().invoke(cli, arguments)


def command_paths(group, path=()):
    for name, command in group.commands.items():
        yield (*path, name)
        if hasattr(command, "commands"):
            yield from command_paths(command, (*path, name))


def test_every_command_has_help_with_an_example():
    for path in command_paths(cli):
        text = run(*path, "--help").output
        lines = [line.strip() for line in text.splitlines()]
        assert "Example:" in lines
        assert lines[lines.index("Example:") + 1].startswith(f"galaxy-al {' '.join(path)}")
        assert "\\b" not in text


def test_version():
    assert __version__ in run("--version").output


def test_strategies_are_listed():
    output = run("strategies").output
    lines = output.splitlines()
    for name, strategy in STRATEGIES.items():
        first = next(i for i, line in enumerate(lines) if line.split()[0] == name)
        assert lines[first].endswith(strategy.summary)
        needs = ", ".join(("scores", *strategy.needs))
        answers = f"answers within a batch: {strategy.needs_answers}"
        assert lines[first + 1].strip() == f"needs {needs}; {answers}"
        assert lines[first + 2].strip() == strategy.paper
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_the_demo_prints_a_table_and_writes_the_picture(tmp_path):
    picture = tmp_path / "demo.png"
    result = run("demo", "--output", str(picture))
    assert result.exit_code == 0
    for name in ("galaxy", "random", "confidence", "most-likely-positive"):
        assert name in result.output
    assert "balanced accuracy" in result.output
    assert "±" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def run_process(*arguments, before=""):
    """The real command, after some Python that breaks it."""
    code = f"{before}\nfrom galaxy_al.cli.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


BROKEN = """
import galaxy_al.strategies
class Broken(dict):
    def __iter__(self):
        raise {error}
galaxy_al.strategies.STRATEGIES = Broken()
"""


@pytest.mark.slow
def test_an_error_is_one_line_and_exit_code_1(tmp_path):
    missing = tmp_path / "missing" / "demo.png"
    done = run_process("demo", "--output", missing)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("galaxy-al: ")
    assert str(missing.parent) in done.stderr
    assert "Traceback" in run_process("--debug", "demo", "--output", missing).stderr


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ValueError('wrong shape')", "OSError('wrong shape')"])
def test_a_bug_is_one_line_that_says_how_to_see_the_traceback(error):
    done = run_process("strategies", before=BROKEN.format(error=error))
    assert done.returncode == 70
    assert done.stderr.count("\n") == 1
    name = error.partition("(")[0]
    assert done.stderr.startswith(f"galaxy-al: internal error: {name}: wrong shape. This is a bug.")
    assert "--debug" in done.stderr
    debugged = run_process("--debug", "strategies", before=BROKEN.format(error=error))
    assert debugged.returncode == 70
    assert "Traceback" in debugged.stderr
    assert "in __iter__" in debugged.stderr


def test_ctrl_c_prints_nothing_ugly():
    done = run_process("strategies", before=BROKEN.format(error="KeyboardInterrupt"))
    assert done.returncode == 130
    assert done.stdout + done.stderr.strip() == ""


@pytest.mark.slow
def test_wrong_usage_shows_the_usage():
    done = run_process("demo", "--nonsense")
    assert done.returncode == 2
    assert "Usage: galaxy-al demo" in done.stderr
    assert "No such option" in done.stderr
    assert run_process("--help").returncode == run_process("--version").returncode == 0


@pytest.mark.slow
def test_files_that_cannot_be_used_are_errors_and_not_bugs(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a database, but long enough to be one" * 100)
    commands = [
        ("demo", "--output", file / "x.png"),
        ("theory", "--draws", "10", "--output", file / "x.png"),
    ]
    for path in (tmp_path, file, file / "x"):
        commands += [
            ("bench", "status", "intro", "--results", path),
            ("bench", "run", "intro", "--results", path),
            ("bench", "export", "--results", path),
            ("bench", "run", path),
            ("bench", "run", "--pool", path),
            ("data", "check", path / "missing.csv"),
        ]
    for command in commands:
        result = run(*map(str, command))
        assert isinstance(result.exception, GalaxyError) or result.exit_code == 2, command


def test_the_package_imports_quickly_and_without_the_heavy_libraries():
    code = (
        "import sys, time, numpy; begin = time.process_time(); "
        "import galaxy_al, galaxy_al.cli.main; "
        "print(time.process_time() - begin); "
        "print([m for m in ('torch', 'sklearn', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    assert all(done.stdout.splitlines()[1] == "[]" for done in outputs)
    assert min(float(done.stdout.splitlines()[0]) for done in outputs) < 0.3
