"""Files: what they are now, errors that name them, and writing that loses nothing."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from galaxy_al.errors import GalaxyError, one_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # on Windows: there nobody is kept waiting


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file if it cannot be read; libraries raise dozens of kinds for a broken one."""
    try:
        yield
    except Exception as error:
        if isinstance(error, GalaxyError) and str(path) in str(error):
            raise
        reason = getattr(error, "strerror", None) or one_line(error)
        raise GalaxyError(f"Cannot read {path}: {reason}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file says."""
    with reading(path):
        return tomllib.loads(path.read_text(encoding="utf-8"))


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A file to write beside the one wanted; it takes the place only when it is whole."""
    part = path.with_name(f".{path.stem}-{uuid4().hex}{path.suffix}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise GalaxyError(f"Cannot write {path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock that no other process can have at the same time; on Windows there is none.

    Parameters
    ----------
    wait
        Until it is free; otherwise a lock that is taken is an error.
    """
    with path.open("a") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise GalaxyError(f"Another process is at work: it holds {path}.") from error
        yield


def file_state(path: Path) -> str:
    """A file's place, size and times of change: cheap to see, and other when the file is."""
    place = path.absolute()
    try:
        state = path.stat()
    except OSError:
        return f"{place} missing"
    return f"{place} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"


def digest(parts: Iterable[str | bytes]) -> str:
    """A short name for a sequence of texts and bytes, different for any other sequence."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        # Names of files need not be Unicode.
        data = part if isinstance(part, bytes) else part.encode(errors="surrogateescape")
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def checksum(path: Path, algorithm: str) -> str:
    """The sum of a file's bytes, in hexadecimal."""
    total = hashlib.new(algorithm)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            total.update(chunk)
    return total.hexdigest()


def folder_digest(folder: Path) -> str:
    """A short name for the files of a folder and their content, wherever the folder is."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest(
        f"{path.relative_to(folder).as_posix()} {checksum(path, 'sha256')}" for path in files
    )


def make_folder(folder: Path) -> None:
    """Make a folder if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GalaxyError(f"Cannot make the folder {folder}: {error.strerror}.") from error
