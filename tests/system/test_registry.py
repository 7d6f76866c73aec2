"""Names from entry points are found late, loaded when wanted, and fail one at a time."""

import sys
from pathlib import Path

import pytest

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.system.registry import Registry
from support.plugins import write_plugin

MODULE = "CIRCLE = 1\nSQUARE = 4\nclass Oval:\n    name = 'ellipse'\n"
ENTRY_POINTS = {
    "test_galaxy_al.shapes": {
        "circle": "CIRCLE",
        "square": "SQUARE",
        "broken": "NO_SUCH_SHAPE",
        "oval": "Oval",
    }
}


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[int]:
    """A registry with one built-in shape, and a package that offers four."""
    plugin = write_plugin(tmp_path, "galaxy_al_test_shapes", MODULE, ENTRY_POINTS)
    monkeypatch.syspath_prepend(plugin)
    monkeypatch.delitem(sys.modules, "galaxy_al_test_shapes", raising=False)
    return Registry("shape", "test_galaxy_al.shapes", {"circle": 100})


def test_a_plugin_is_listed_without_being_imported(shapes: Registry[int]) -> None:
    assert list(shapes) == ["circle", "square", "broken", "oval"]
    assert len(shapes) == 4
    assert "galaxy_al_test_shapes" not in sys.modules


def test_a_plugin_is_imported_when_it_is_looked_up(shapes: Registry[int]) -> None:
    assert shapes["square"] == 4
    assert "galaxy_al_test_shapes" in sys.modules


def test_a_plugin_cannot_replace_what_is_built_in(shapes: Registry[int]) -> None:
    list(shapes)
    assert shapes["circle"] == 100


def test_a_plugin_that_cannot_be_imported_is_named(shapes: Registry[int]) -> None:
    with pytest.raises(GalaxyError, match=r"'broken' of the package galaxy_al_test.*NO_SUCH_SHAPE"):
        shapes["broken"]


def test_a_plugin_that_calls_itself_something_else_is_refused(shapes: Registry[int]) -> None:
    with pytest.raises(GalaxyError) as caught:
        shapes["oval"]
    assert str(caught.value) == (
        "The shape 'oval' is called 'ellipse' by its package. Both names must be the same."
    )


def test_an_unknown_name_is_an_invalid_argument_and_a_missing_key(shapes: Registry[int]) -> None:
    message = "Unknown shape 'sqare'. Choose from: broken, circle, oval, square."
    with pytest.raises(InvalidArgument) as caught:
        shapes["sqare"]
    assert str(caught.value) == message
    assert "sqare" not in shapes
    assert shapes.get("sqare") is None
