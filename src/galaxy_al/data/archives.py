"""The archives of the paper's data: fetching them, and reading their formats."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.files import reading
from galaxy_al.errors import GalaxyError
from galaxy_al.home import home_folder

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Archive:
    """A file on the web that holds a dataset.

    Parameters
    ----------
    read
        Turns the file into N x H x W x 3 images and their original labels.
    """

    file_name: str
    url: str
    md5: str
    read: Callable[[Path], tuple[Images, Labels]]


def fetch(archive: Archive) -> Path:
    """The archive's file, downloaded if it is not there; the checksum is compared either way."""
    import pooch

    path = home_folder() / archive.file_name
    if path.exists():
        found = pooch.file_hash(str(path), alg="md5")
        if found != archive.md5:
            raise GalaxyError(
                f"{path} is not the archive it should be: its MD5 sum is {found}, "
                f"not {archive.md5}. Move it away."
            )
        return path
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            archive.url, f"md5:{archive.md5}", path.name, path.parent, downloader=_download
        )
    except ValueError as error:
        raise GalaxyError(
            f"What came from {archive.url} is not the archive it should be: its MD5 sum is not "
            f"{archive.md5}. It was not kept."
        ) from error
    except OSError as error:  # those of requests are such, too
        reason = error.strerror or type(error).__name__
        raise GalaxyError(
            f"Cannot download {archive.url} ({reason}). Try again to go on where it stopped, or "
            f"put the file by hand into {path.parent} as {path.name}."
        ) from error
    return path


def _download(url: str, output_file: str, _: object) -> None:
    """Download for pooch, going on with the part that an earlier attempt has left."""
    import requests
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    part = Path(output_file).parent / (url.rsplit("/", 1)[-1] + ".part")
    done = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={done}-"} if done else {}
    with requests.get(url, headers=headers, stream=True, timeout=30) as answer:
        if answer.status_code != requests.codes.requested_range_not_satisfiable:
            answer.raise_for_status()
            resumes = answer.status_code == requests.codes.partial_content
            done = done if resumes else 0
            total = done + int(answer.headers.get("Content-Length", 0)) or None
            columns = "{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn()
            with (
                Progress(*columns, transient=True) as bar,
                part.open("ab" if resumes else "wb") as f,
            ):
                task = bar.add_task(f"Downloading {url}", total=total, completed=done)
                for chunk in answer.iter_content(1 << 16):
                    f.write(chunk)
                    bar.advance(task, len(chunk))
            if total and part.stat().st_size < total:
                raise requests.ConnectionError(f"{url} ended early")
    part.replace(output_file)


class _ArraysOnly(pickle.Unpickler):
    """Opens pickles of dicts, lists, numbers, texts and arrays, and of nothing else."""

    _ALLOWED = (
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise GalaxyError(f"The pickle wants {module}.{name}, which no such archive needs.")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _members(path: Path, wanted: Callable[[str], bool]) -> list[dict[bytes, Any]]:
    """The pickles in a tar archive whose names are wanted, by name."""
    with reading(path), tarfile.open(path) as tar:
        members = sorted((m for m in tar if wanted(Path(m.name).name)), key=lambda m: m.name)
        opened = [tar.extractfile(member) for member in members]
        loaded = [
            _ArraysOnly(io.BytesIO(file.read()), encoding="bytes").load()
            for file in opened
            if file is not None
        ]
    if not loaded:
        raise GalaxyError(f"{path} holds none of the files that were looked for.")
    return loaded


def _cifar(path: Path, wanted: Callable[[str], bool], key: bytes) -> tuple[Images, Labels]:
    batches = _members(path, wanted)
    rows = np.concatenate([batch[b"data"] for batch in batches])
    labels = np.concatenate([batch[key] for batch in batches]).astype(np.int64)
    return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


def read_cifar10(path: Path) -> tuple[Images, Labels]:
    """The five training batches of ``cifar-10-python.tar.gz``."""
    return _cifar(path, lambda name: name.startswith("data_batch_"), b"labels")


def read_cifar100(path: Path) -> tuple[Images, Labels]:
    """The training set of ``cifar-100-python.tar.gz`` with its hundred fine labels."""
    return _cifar(path, lambda name: name == "train", b"fine_labels")


def read_svhn(path: Path) -> tuple[Images, Labels]:
    """``train_32x32.mat``; the digit 0, which has the label 10 there, gets 0."""
    from scipy.io import loadmat

    with reading(path):
        content = loadmat(str(path))
        images, labels = content["X"], content["y"]
    return images.transpose(3, 0, 1, 2), labels.ravel().astype(np.int64) % 10


def read_pathmnist(path: Path) -> tuple[Images, Labels]:
    """The training set of ``pathmnist.npz``."""
    with reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as content:
        return content["train_images"], content["train_labels"].ravel().astype(np.int64)


ARCHIVES = {
    "cifar10": Archive(
        "cifar-10-python.tar.gz",
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
        read_cifar10,
    ),
    "cifar100": Archive(
        "cifar-100-python.tar.gz",
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        "eb9058c3a382ffc7106e4002c42a8d85",
        read_cifar100,
    ),
    "svhn": Archive(
        "train_32x32.mat",
        "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
        "e26dedcc434d2e4c54c9b2d4a06d8373",
        read_svhn,
    ),
    "pathmnist": Archive(
        "pathmnist.npz",
        "https://zenodo.org/records/10519652/files/pathmnist.npz",
        "a8b06965200029087d5bd730944a56c1",
        read_pathmnist,
    ),
}
