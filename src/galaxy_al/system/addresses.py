"""Files at any address that fsspec knows: a path, or s3://bucket/folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import (
    NO_SPACE,
    checksum,
    checksum_of,
    digest,
    make_folder,
    writing,
)

_fetched: set[tuple[str, str, str]] = set()  # addresses, checksums and versions


class FileState(NamedTuple):
    """What a listing says about a file.

    Parameters
    ----------
    version
        Of a remote file: differs when the file does, as an ETag. Empty on this machine.
    """

    size: int
    version: str = ""


def is_remote(address: str) -> bool:
    """Whether an address is not a path on this machine.

    Examples
    --------
    >>> is_remote("s3://bucket/pool"), is_remote("/data/pool"), is_remote("file:///data/pool")
    (True, False, False)
    """
    return "://" in address and not address.startswith("file://")


def local_path(address: str) -> Path:
    """The path of an address on this machine."""
    return Path(address.removeprefix("file://"))


def absolute(address: str | Path) -> str:
    """The same address, wherever it is read: a path from the root, or one that is remote."""
    given = str(address)
    return given if is_remote(given) else str(local_path(given).resolve())


def join(folder: str, name: str) -> str:
    """The address of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def exists(address: str) -> bool:
    """Whether there is a file."""
    if not is_remote(address):
        return local_path(address).exists()
    with _naming(address):
        return bool(_filesystem(address).exists(address))


def size_of(address: str) -> int | None:
    """The size of a file in bytes; None if there is none."""
    if not is_remote(address):
        path = local_path(address)
        return path.stat().st_size if path.is_file() else None
    with _naming(address):
        filesystem = _filesystem(address)
        return int(filesystem.size(address)) if filesystem.exists(address) else None


def files_in(folder: str) -> dict[str, FileState]:
    """The files in a folder by name, sorted; of a remote folder by a single listing."""
    with _naming(folder):
        if not is_remote(folder):
            files = sorted(path for path in local_path(folder).iterdir() if path.is_file())
            return {path.name: FileState(path.stat().st_size) for path in files}
        filesystem = _filesystem(folder)
        found = filesystem.ls(folder, detail=True) if filesystem.exists(folder) else []
        states = {
            entry["name"].rpartition("/")[2]: FileState(int(entry["size"]), _version(entry))
            for entry in found
            if entry["type"] == "file"
        }
        return dict(sorted(states.items()))


def _version(entry: dict[str, Any]) -> str:
    """A short name for what a listing says about a remote file."""
    said = entry.get("ETag") or sorted((key, str(value)) for key, value in entry.items())
    return digest([str(said)])[:8]


def read_address(address: str) -> bytes:
    """The content of a file."""
    with _naming(address):
        if not is_remote(address):
            return local_path(address).read_bytes()
        return bytes(_filesystem(address).cat_file(address))


@contextmanager
def writing_address(address: str) -> Iterator[Path]:
    """A file on this machine that becomes the one at the address once it is complete.

    What a process that was killed has left of the same file is removed.
    """
    if not is_remote(address):
        path = local_path(address)
        make_folder(path.parent)
        for left in path.parent.glob(f".{path.stem}-{'[0-9a-f]' * 32}{path.suffix}"):
            left.unlink(missing_ok=True)
        with writing(path) as part:
            yield part
        return
    with _naming(address, "write"), tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / address.rpartition("/")[2]
        yield part
        _filesystem(address).put_file(str(part), address)


def checksum_at(address: str) -> str:
    """The checksum (SHA-256) of what lies at an address now; nothing is kept of it."""
    with _naming(address):
        if not is_remote(address):
            return checksum(local_path(address), "sha256")
        with _filesystem(address).open(address, "rb") as file:
            return checksum_of(file, "sha256")


def fetch(address: str, sha256: str, version: str = "") -> Path:
    """A file on this machine with the content of an address, fetched once per process.

    Parameters
    ----------
    sha256
        The checksum that it should have; the caller checks it.
    version
        What `files_in` says: what was fetched of another version is not used.
    """
    if not is_remote(address):
        return local_path(address)
    key, path = (address, sha256, version), _place(address, sha256, version)
    if key not in _fetched:
        if not (path.exists() and checksum(path, "sha256") == sha256):
            found = fetch_unknown(address, version)
            if found != path:
                return found
        _fetched.add(key)
    return path


def fetch_unknown(address: str, version: str = "") -> Path:
    """As `fetch`, for a file whose checksum is not known yet."""
    if not is_remote(address):
        return local_path(address)
    part = _place(address, uuid4().hex, version)
    try:
        with writing(part) as new, _naming(address):
            _filesystem(address).get_file(address, str(new))
        return part.replace(_place(address, checksum(part, "sha256"), version))
    finally:
        part.unlink(missing_ok=True)


def _place(address: str, key: str, version: str) -> Path:
    return kept_file(f"{key}-{version}-{address.rpartition('/')[2]}")


def kept_file(name: str) -> Path:
    """A temporary file that your other processes on this machine find as well, and only yours."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    folder = Path(tempfile.gettempdir()) / f"galaxy-al-{user}"
    make_folder(folder)
    with _naming(str(folder), "use"):
        folder.chmod(0o700)  # fails if it is another user's
    return folder / name


def _filesystem(address: str) -> Any:
    with needs_extra(f"Reading {address}", "scale"):
        import fsspec

        # A listing that is remembered would hide what others write.
        return fsspec.core.url_to_fs(address, use_listings_cache=False)[0]


@contextmanager
def _naming(address: str, what: str = "read") -> Iterator[None]:
    """Name the file in an error; every filesystem raises other types."""
    try:
        yield
    except GalaxyError:
        raise
    except Exception as error:
        if what == "read" and getattr(error, "errno", None) in NO_SPACE:
            raise  # the file that it is copied to is at fault: `writing` names it
        reason = getattr(error, "strerror", None) or one_line(error)
        raise GalaxyError(f"Cannot {what} {address}: {reason}") from error
