"""A package that is installed for one test: a folder with modules and entry points."""

import os
import subprocess
import sys
import textwrap


def write_plugin(folder, module, source, entry_points):
    """Write a package into a folder; it is installed when the folder is on the path.

    Parameters
    ----------
    entry_points
        The names of the module's objects, by group and name.
    """
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / f"{module}.py").write_text(textwrap.dedent(source))
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [
        line
        for group, names in entry_points.items()
        for line in (f"[{group}]", *(f"{name} = {module}:{of}" for name, of in names.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def command_with(plugin, folder):
    """Runs galaxy-al in a folder, with a plugin installed."""
    path = os.pathsep.join([str(plugin), os.environ.get("PYTHONPATH", "")])

    def run(*arguments):
        command = [sys.executable, "-m", "galaxy_al", *arguments]
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
