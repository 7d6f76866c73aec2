"""Named things that a plugin can add to: strategies, heads, modalities, export formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from galaxy_al.errors import GalaxyError, InvalidArgument, one_line

T = TypeVar("T")


class UnknownName(InvalidArgument, KeyError):  # noqa: N818 - reads as what happened
    """A registry has nothing of this name."""

    __str__ = Exception.__str__  # that of KeyError adds quotes


class Registry(Mapping[str, T]):
    """Things by name: the built-in ones, then those that installed packages offer.

    Packages are searched when a name is not built in, or when all names are listed. A plugin is
    imported when its name is looked up. It cannot replace what is built in.

    Parameters
    ----------
    kind
        What the things are, for messages.
    group
        The group of entry points where a package lists its own.

    Examples
    --------
    >>> colors = Registry("color", "galaxy_al.colors", {"red": 0xFF0000, "blue": 0x0000FF})
    >>> list(colors)
    ['red', 'blue']
    >>> colors["bleu"]
    Traceback (most recent call last):
    ...
    galaxy_al.system.registry.UnknownName: Unknown color 'bleu'. Choose from: blue, red.
    """

    def __init__(self, kind: str, group: str, builtin: Mapping[str, T]) -> None:
        self._kind, self._group, self._loaded = kind, group, dict(builtin)

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            if name not in self._plugins:
                names = ", ".join(sorted(self))
                raise UnknownName(f"Unknown {self._kind} {name!r}. Choose from: {names}.")
            self._loaded[name] = self._load(self._plugins[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        return iter({**self._loaded, **self._plugins})

    def __len__(self) -> int:
        return len({**self._loaded, **self._plugins})

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        return {found.name: found for found in entry_points(group=self._group)}

    def _load(self, plugin: EntryPoint) -> T:
        try:
            loaded: T = plugin.load()
        except Exception as error:  # a plugin's module can raise anything
            package = plugin.dist.name if plugin.dist else plugin.value
            raise GalaxyError(
                f"The {self._kind} {plugin.name!r} of the package {package} cannot be loaded: "
                f"{one_line(error)}"
            ) from error
        if (own := getattr(loaded, "name", plugin.name)) != plugin.name:
            raise GalaxyError(
                f"The {self._kind} {plugin.name!r} is called {own!r} by its package. Both names "
                "must be the same."
            )
        return loaded
