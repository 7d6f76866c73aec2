"""What scripts rely on: the client's methods, and that it needs the standard library only."""

import ast
import sys
from pathlib import Path

import galaxy_al.client

METHODS = "next label label_many skip undo here leave train status image export"


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_the_client_can_be_copied_into_other_tools():
    tree = ast.parse(Path(galaxy_al.client.__file__).read_text())
    assert {name.partition(".")[0] for name in imported(tree)} <= sys.stdlib_module_names


def test_the_methods_keep_their_names():
    assert set(METHODS.split()) <= set(vars(galaxy_al.client.Client))
