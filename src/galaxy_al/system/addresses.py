"""Files at any address that fsspec knows: a path, or s3://bucket/folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import Any
from uuid import uuid4

from galaxy_al.errors import GalaxyError, one_line
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import checksum, make_folder, writing

_cached: dict[tuple[str, str], Path] = {}  # by address and checksum


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


def names_in(folder: str) -> list[str]:
    """The names of the files in a folder, sorted."""
    with _naming(folder):
        if not is_remote(folder):
            return sorted(path.name for path in local_path(folder).iterdir() if path.is_file())
        found = _filesystem(folder).ls(folder, detail=True)
        return sorted(
            entry["name"].rpartition("/")[2] for entry in found if entry["type"] == "file"
        )


def read_address(address: str) -> bytes:
    """The content of a file."""
    with _naming(address):
        if not is_remote(address):
            return local_path(address).read_bytes()
        return bytes(_filesystem(address).cat_file(address))


@contextmanager
def writing_address(address: str) -> Iterator[Path]:
    """A file on this machine that becomes the one at the address once it is complete."""
    if not is_remote(address):
        path = local_path(address)
        make_folder(path.parent)
        with writing(path) as part:
            yield part
        return
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / address.rpartition("/")[2]
        yield part
        with _naming(address, "write"):
            _filesystem(address).put_file(str(part), address)


def fetch(address: str, sha256: str) -> Path:
    """A file on this machine with the content of an address, fetched once per process."""
    if not is_remote(address):
        return local_path(address)
    if (address, sha256) not in _cached:
        path = _place(address, sha256)
        if not (path.exists() and checksum(path, "sha256") == sha256):
            with writing(path) as part, _naming(address):
                _filesystem(address).get_file(address, str(part))
        _cached[address, sha256] = path
    return _cached[address, sha256]


def fetch_unknown(address: str) -> Path:
    """As `fetch`, for a file whose checksum is not known yet."""
    if not is_remote(address):
        return local_path(address)
    part = _place(address, uuid4().hex)
    with _naming(address):
        _filesystem(address).get_file(address, str(part))
    return part.replace(_place(address, checksum(part, "sha256")))


def _place(address: str, key: str) -> Path:
    return kept_file(f"{key}-{address.rpartition('/')[2]}")


def kept_file(name: str) -> Path:
    """A temporary file that your other processes on this machine find as well, and only yours."""
    folder = Path(tempfile.gettempdir()) / f"galaxy-al-{getuser()}"
    make_folder(folder)
    with _naming(str(folder), "use"):
        folder.chmod(0o700)  # fails if it is another user's
    return folder / name


def _filesystem(address: str) -> Any:
    with needs_extra(f"Reading {address}", "scale"):
        import fsspec

        return fsspec.core.url_to_fs(address)[0]


@contextmanager
def _naming(address: str, what: str = "read") -> Iterator[None]:
    """Name the file in an error; every filesystem raises other types."""
    try:
        yield
    except GalaxyError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise GalaxyError(f"Cannot {what} {address}: {reason}") from error
