"""Files from the web: downloaded once, checked, and resumed where a download broke off."""

from __future__ import annotations

from pathlib import Path

from galaxy_al.errors import GalaxyError
from galaxy_al.system.files import checksum, make_folder


def download(url: str, path: Path, expected: str) -> Path:
    """A file from the web, kept at ``path``; the checksum is compared even if it is there.

    Parameters
    ----------
    expected
        ``md5:...`` or ``sha256:...``; the beginning of a sum is enough.
    """
    if path.exists():
        check_sum(path, expected)
        return path
    part = path.with_name(path.name + ".part")
    make_folder(path.parent)
    try:
        _fetch(url, part)
        check_sum(part, expected)
    except ImportError as error:
        raise GalaxyError("Downloads need requests: pip install 'galaxy-al[data]'.") from error
    except OSError as error:  # the base class of all that requests raises
        reason = error.strerror or type(error).__name__
        raise GalaxyError(
            f"Cannot download {url} ({reason}). Try again to resume where it stopped, or put the "
            f"file by hand into {path.parent} as {path.name}."
        ) from error
    except GalaxyError as error:
        part.unlink()
        raise GalaxyError(f"The file from {url} was not kept: {error}") from error
    return part.replace(path)


def check_sum(path: Path, expected: str) -> None:
    """Refuse a file whose sum does not begin as it should."""
    algorithm, wanted = expected.split(":")
    found = checksum(path, algorithm)
    if not found.startswith(wanted):
        raise GalaxyError(
            f"{path} is not the file it should be: its {algorithm.upper()} sum is {found}, not "
            f"{wanted}."
        )


def _fetch(url: str, part: Path) -> None:
    """Download, resuming the part that an earlier attempt has left."""
    import requests
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    done = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={done}-"} if done else {}
    with requests.get(url, headers=headers, stream=True, timeout=30) as answer:
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            return  # the part is complete
        answer.raise_for_status()
        resumes = answer.status_code == requests.codes.partial_content
        done = done if resumes else 0
        total = done + int(answer.headers.get("Content-Length", 0)) or None
        columns = "{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn()
        with (
            Progress(*columns, transient=True) as bar,
            part.open("ab" if resumes else "wb") as file,
        ):
            task = bar.add_task(f"Downloading {url}", total=total, completed=done)
            for chunk in answer.iter_content(1 << 16):
                file.write(chunk)
                bar.advance(task, len(chunk))
        if total and part.stat().st_size < total:
            raise requests.ConnectionError(f"{url} ended early")
