"""What a file says as a pydantic model; an error is one line that names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from galaxy_al.errors import GalaxyError, InvalidArgument, one_line

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Model = TypeVar("Model")
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def validated(model: type[Model], content: Mapping[str, Any], path: Path | None = None) -> Model:
    """The content of a file, or arguments, as a `BaseModel` or a pydantic dataclass."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(model).validate_python(content)
    except ValidationError as error:
        # A misspelt key is an unknown and a missing one: name the one that is there.
        first, *_ = sorted(error.errors(), key=lambda found: found["type"] not in _UNKNOWN)
        problem = f"{_problem(first, model).rstrip('.')}."
        if path is None:  # a message of our own needs no key to be understood
            raise InvalidArgument(str(first.get("ctx", {}).get("error", problem))) from error
        raise GalaxyError(f"{path}: {problem}") from error


def _problem(found: ErrorDetails, model: Any) -> str:
    place = found["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
    if found["type"] in ("missing", "missing_argument"):
        return f"the key {key} is missing"
    if found["type"] in _UNKNOWN:
        for part in place[:-1]:
            model = model.__pydantic_fields__[part].annotation
        return f"unknown key {key}. Keys are: {', '.join(sorted(model.__pydantic_fields__))}"
    if found["type"] == "value_error":
        return f"{key}: {one_line(found['ctx']['error'])}" if key else str(found["ctx"]["error"])
    must = re.sub("^.* should ", "must ", found["msg"]).replace("tuple", "list")
    must = must.replace("greater than or equal to", "at least")
    must = must.replace("less than or equal to", "at most")
    return f"{key} {must}, got {found['input']!r}"
