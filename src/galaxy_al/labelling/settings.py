"""The file ``project.toml``: its keys, its versions, and errors that name the key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from galaxy_al.data import MODALITIES
from galaxy_al.data.pool import check_classes
from galaxy_al.data.tables import is_unicode
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.goals import DEFAULT_GOAL, GOALS, find_goal
from galaxy_al.models.heads import HEADS
from galaxy_al.strategies import DEFAULT_STRATEGY, STRATEGIES
from galaxy_al.system.files import read_toml, writing
from galaxy_al.system.validation import validated


def _checked_text(text: str) -> str:
    if not is_unicode(text):
        raise InvalidArgument(f"{text!r} is not valid Unicode.")
    return text


def _checked_name(registry: Mapping[str, Any], name: str) -> str:
    registry[name]  # an unknown name is an error that lists the known ones
    return name


def _checked_goal(name: str) -> str:
    return find_goal(name).name


def _checked_classes(classes: tuple[str, ...]) -> tuple[str, ...]:
    check_classes(classes)
    if len(classes) < 2 or "" in classes:
        raise InvalidArgument("A project needs at least two classes, and each needs a name.")
    return classes


_Text = Annotated[str, AfterValidator(_checked_text)]
_Kind = Annotated[str, AfterValidator(partial(_checked_name, MODALITIES))]
_Head = Annotated[str, AfterValidator(partial(_checked_name, HEADS))]
_Goal = Annotated[str, AfterValidator(_checked_goal)]
_Strategy = Annotated[str, AfterValidator(partial(_checked_name, STRATEGIES))]
_Classes = Annotated[  # a list in TOML
    tuple[_Text, ...], Field(strict=False), AfterValidator(_checked_classes)
]


class ProjectSettings(BaseModel):
    """The settings of a project.

    Parameters
    ----------
    path
        The pool, relative to the folder of the project.
    kind, column, id_column
        How `load_pool` reads it.
    shards, scheduler
        Whether the pool is in shards, and the dask scheduler whose workers have them; empty is
        this process.
    classes
        The names of the classes, the majority class last.
    embedder
        The model that embeds images and texts. Empty: the default, which works offline.
    head
        The model that is trained: a name from `HEADS`.
    goal
        What the labels are for: a name from `GOALS`.
    strategy
        The strategy that asks once two classes are known; by default that of the goal.
    batch_size
        The number of answers between two trainings, at most.
    target_recall
        The share of the rare examples to find; you are told when it is found. 0: no such share.
    overlap, overlap_people
        The share of the examples that several people are asked, and how many people.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    path: _Text
    kind: _Kind
    classes: _Classes
    column: str = ""
    id_column: str = ""
    shards: bool = False
    scheduler: str = ""
    embedder: str = ""
    head: _Head = "auto"
    goal: _Goal = DEFAULT_GOAL
    strategy: _Strategy = DEFAULT_STRATEGY
    batch_size: Annotated[int, Field(ge=1)] = 50
    overlap: Annotated[float, Field(ge=0, le=1)] = 0.0
    overlap_people: Annotated[int, Field(ge=2, le=3)] = 2
    target_recall: Annotated[float, Field(ge=0, lt=1)] = 0.0
    seed: int = 0

    @model_validator(mode="before")
    @classmethod
    def _choose_strategy(cls, values: dict[str, Any]) -> dict[str, Any]:
        goal = values.get("goal", DEFAULT_GOAL)
        return {"strategy": GOALS[goal].strategy, **values} if goal in list(GOALS) else values

    @classmethod
    def create(cls, **values: Any) -> ProjectSettings:
        """Settings from arguments; an error names the argument."""
        return validated(cls, values)

    def write(self, path: Path) -> None:
        """Write the settings as TOML, with the version of the format."""
        with writing(path) as part:
            content = tomli_w.dumps({"format": FORMAT, **self.model_dump()})
            part.write_bytes(content.encode())

    @classmethod
    def read(cls, path: Path) -> ProjectSettings:
        """Read the settings from a file of this format or an older one."""
        return validated(cls, _migrate(read_toml(path), path), path)


def _add_head(values: Mapping[str, Any]) -> dict[str, Any]:
    """Format 2 lets you choose the head. Before, there was only one."""
    return {"head": "auto", **values}


def _add_goal(values: Mapping[str, Any]) -> dict[str, Any]:
    """Format 3 lets you choose the goal. Before, there was only one."""
    return {"goal": DEFAULT_GOAL, **values}


def _add_shards(values: Mapping[str, Any]) -> dict[str, Any]:
    """Format 4 lets a pool be in shards. Before, none was."""
    return {"shards": False, "scheduler": "", **values}


def _add_overlap(values: Mapping[str, Any]) -> dict[str, Any]:
    """Format 5 can ask several people the same example. Before, each was asked once."""
    return {"overlap": 0.0, "overlap_people": 2, **values}


def _add_target_recall(values: Mapping[str, Any]) -> dict[str, Any]:
    """Format 6 lets you say which share of the rare examples is enough."""
    return {"target_recall": 0.0, **values}


_MIGRATIONS: tuple[Callable[[Mapping[str, Any]], dict[str, Any]], ...] = (
    _add_head,
    _add_goal,
    _add_shards,
    _add_overlap,
    _add_target_recall,
)
FORMAT = len(_MIGRATIONS) + 1


def _migrate(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The values of a file as this format has them; a file without a format has the first."""
    migrated = dict(values)
    version = migrated.pop("format", 1)
    if type(version) is not int or version < 1:
        raise GalaxyError(f"{path}: format must be from 1 to {FORMAT}, got {version!r}.")
    if version > FORMAT:
        raise GalaxyError(
            f"{path} was written by a newer galaxy-al (its format is {version}, this one reads up "
            f"to {FORMAT}). Upgrade galaxy-al to open it."
        )
    for migration in _MIGRATIONS[version - 1 :]:
        migrated = migration(migrated)
    return migrated
