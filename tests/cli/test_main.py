import subprocess
import sys

from click.testing import CliRunner

from galaxy_al import STRATEGIES, __version__
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


def test_the_demo_prints_a_table_and_writes_the_picture(tmp_path):
    picture = tmp_path / "demo.png"
    result = run("demo", "--output", str(picture))
    assert result.exit_code == 0
    for name in ("galaxy", "random", "confidence", "most-likely-positive"):
        assert name in result.output
    assert "balanced accuracy" in result.output
    assert "±" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_error_is_one_line_and_exit_code_1(tmp_path):
    missing = tmp_path / "missing" / "demo.png"
    done = subprocess.run(
        [sys.executable, "-m", "galaxy_al", "demo", "--output", str(missing)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("galaxy-al: ")
    assert str(missing.parent) in done.stderr


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
