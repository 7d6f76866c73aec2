"""Copies that share what cannot change with the original."""

from __future__ import annotations

from collections import deque
from copy import copy, deepcopy
from typing import Any, TypeVar

import numpy as np

from galaxy_al.snapshot import Snapshot

Thing = TypeVar("Thing")

_UNCHANGING = (bool, int, float, str, tuple, frozenset, type(None), Snapshot)


def fork(thing: Thing) -> Thing:
    """A copy that behaves as the original would; changes to one do not affect the other.

    It is like `copy.deepcopy`, except that snapshots, tuples and read-only arrays are shared, and
    an object with a ``__copy__`` of its own copies itself. So it costs little beside a pool.
    """
    forked: Thing = _fork(thing, {})
    return forked


def _fork(thing: Any, done: dict[int, Any]) -> Any:
    if isinstance(thing, _UNCHANGING):
        return thing
    if id(thing) not in done:
        done[id(thing)] = _copied(thing, done)
    return done[id(thing)]


def _copied(thing: Any, done: dict[int, Any]) -> Any:
    if isinstance(thing, np.ndarray):
        return thing.copy() if thing.flags.writeable else thing
    if isinstance(thing, np.random.Generator):
        return deepcopy(thing)
    if isinstance(thing, dict | list | deque):
        return _copied_container(thing, done)
    other = copy(thing)
    if hasattr(thing, "__dict__") and not hasattr(thing, "__copy__"):
        done[id(thing)] = other  # before its parts, which may refer to it
        for name, value in vars(thing).items():
            other.__dict__[name] = _fork(value, done)
    return other


def _copied_container(thing: Any, done: dict[int, Any]) -> Any:
    """A container of plain values is copied at once: that is most of the time of a fork."""
    other = copy(thing)
    values = thing.values() if isinstance(thing, dict) else thing
    if all(issubclass(kind, _UNCHANGING) for kind in set(map(type, values))):
        return other
    if isinstance(thing, dict):
        other.update((key, _fork(value, done)) for key, value in thing.items())
    else:
        other.clear()
        other.extend(_fork(item, done) for item in thing)
    return other
