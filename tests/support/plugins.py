"""A package that is installed for one test: a folder with modules and entry points."""

import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager


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


class command_with:  # noqa: N801 - called like a function
    """Runs galaxy-al in a folder, with a plugin installed."""

    def __init__(self, plugin, folder):
        path = os.pathsep.join([str(plugin), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._places = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": path}, "text": True}

    def __call__(self, *arguments):
        command = [sys.executable, "-m", "galaxy_al", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, check=False, **self._places)

    @contextmanager
    def label(self, project):
        """The address of the labelling page, until the end of the block."""
        command = [sys.executable, "-m", "galaxy_al", "label", str(project), "--no-open"]
        server = subprocess.Popen(
            [*command, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **self._places,
        )
        try:
            said = next(line for line in server.stdout if line.startswith("Label at"))
            yield said.split()[2].rstrip("/.")
        finally:
            server.terminate()
            server.communicate(timeout=30)
