"""The files of an ONNX model: its name with options, its weights and what lies beside it."""

from __future__ import annotations

import glob
import json
import re
from pathlib import Path
from typing import Any

from galaxy_al.errors import GalaxyError
from galaxy_al.system.files import checksum, digest, reading

PROCESSOR, TOKENIZER, TOKENIZER_CONFIG = (
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
POOLING = "1_Pooling/config.json"  # as sentence-transformers writes it
_BESIDE = (PROCESSOR, TOKENIZER, TOKENIZER_CONFIG, POOLING)
_NAME = re.compile(r"(.+\.onnx)(?:@([^/\\]*))?", re.IGNORECASE | re.DOTALL)


def is_onnx(name: str) -> bool:
    """Whether a name is that of an ONNX file, with options after an @ or without.

    Examples
    --------
    >>> is_onnx("models/clip.onnx"), is_onnx("clip.onnx@224"), is_onnx("facebook/dinov2-small")
    (True, True, False)
    """
    return _NAME.fullmatch(name) is not None


def split_name(name: str) -> tuple[Path, str]:
    """The file of a name, and its options.

    Examples
    --------
    >>> split_name("clip.onnx@224,mean=0.5")[1]
    '224,mean=0.5'
    """
    found = _NAME.fullmatch(name)
    assert found is not None
    return Path(found[1]), found[2] or ""


def whole_name(name: str) -> str:
    """The name with the whole path of its file, which is the same from any folder."""
    path, options = split_name(name)
    return f"{path.resolve()}@{options}" if options else str(path.resolve())


def beside(path: Path, name: str) -> Path | None:
    """A file that belongs to a model: beside it, or above the folder ``onnx``, as on the Hub."""
    folders = [path.parent, *([path.parent.parent] if path.parent.name == "onnx" else [])]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def read_beside(path: Path, name: str) -> dict[str, Any]:
    """The content of a JSON file beside a model; empty if there is none."""
    found = beside(path, name)
    if found is None:
        return {}
    with reading(found):
        content = json.loads(found.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise GalaxyError(f"it must be a JSON object, got {type(content).__name__}")
        return content


def check_file(path: Path) -> None:
    """Refuse a file that does not exist."""
    if not path.is_file():
        raise GalaxyError(f"There is no ONNX file {path}.")


def onnx_content(path: Path) -> str:
    """A short name for what the vectors of a model depend on, wherever it is.

    That is the file, its weights if they are kept apart (``model.onnx.data``,
    ``model.onnx_data``), and the files beside it that say how to prepare an example.
    """
    check_file(path)
    with reading(path):
        parts = [("model", path)]
        for found in sorted(map(Path, glob.glob(f"{glob.escape(str(path))}?*"))):
            if found.is_file():
                parts.append((found.name.removeprefix(path.name), found))
        parts += [(name, other) for name in _BESIDE if (other := beside(path, name))]
        return digest(f"{name} {checksum(found, 'sha256')}" for name, found in parts)
