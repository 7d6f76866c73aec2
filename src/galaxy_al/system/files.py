"""Files: errors that name them, writing that cannot leave half a file, locks, checksums."""

from __future__ import annotations

import errno
import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from galaxy_al.errors import GalaxyError, one_line

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Name the file if it cannot be read; for a broken file libraries raise many types."""
    try:
        yield
    except Exception as error:
        if isinstance(error, GalaxyError) and str(path) in str(error):
            raise
        reason = getattr(error, "strerror", None) or one_line(error)
        raise GalaxyError(f"Cannot read {path}: {reason}") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    with reading(path):
        return path.read_bytes()


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    with reading(path):
        return tomllib.loads(path.read_text(encoding="utf-8"))


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that replaces it once it is complete."""
    part = path.with_name(f".{path.stem}-{uuid4().hex}{path.suffix}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise GalaxyError(f"Cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock that no other process can hold at the same time.

    Parameters
    ----------
    wait
        Until it is free; otherwise a lock that another process holds is an error.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout as error:
        raise GalaxyError(f"Another process is running: it holds {path}.") from error
    except OSError as error:
        raise GalaxyError(f"Cannot lock {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def file_state(path: Path) -> str:
    """A file's path, size and times: cheap to read, and different after the file has changed."""
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
        # File names need not be Unicode.
        data = part if isinstance(part, bytes) else part.encode(errors="surrogateescape")
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def checksum(path: Path, algorithm: str) -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return checksum_of(file, algorithm)


def checksum_of(file: IO[bytes], algorithm: str) -> str:
    """The checksum of the rest of an open file, in hexadecimal."""
    total = hashlib.new(algorithm)
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
    """Make a folder, and those above it, if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GalaxyError(f"Cannot make the folder {folder}: {error.strerror}.") from error
