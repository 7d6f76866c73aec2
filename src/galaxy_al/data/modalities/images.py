"""Images: a folder of files, or a column of a table with their paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.modalities.base import Items, Modality, Source
from galaxy_al.data.tables import Table
from galaxy_al.errors import GalaxyError, UnreadableImage
from galaxy_al.system.files import digest, file_state, read_bytes
from galaxy_al.system.threads import n_threads

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_SIDE = 8  # of a thumbnail, in pixels
# Every browser shows these as they are.
_SHOWN = {".gif": "gif", ".jpeg": "jpeg", ".jpg": "jpeg", ".png": "png", ".webp": "webp"}


@dataclass(frozen=True)
class ImageFiles:
    """Images that are read from their files when they are wanted."""

    paths: Sequence[Path]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        return self.read(index)

    def read(self, index: int, side: int | None = None) -> NDArray[np.uint8]:
        """An image; if a side is given a JPEG can come smaller, but not smaller than the side.

        Decoding a large photograph at an eighth of its size takes a fraction of the time.
        """
        from PIL import Image, ImageOps

        path = self.paths[index]
        try:
            with Image.open(path) as image:
                if side is not None:
                    image.draft("RGB", (side, side))
                return np.asarray(_as_rgb(ImageOps.exif_transpose(image)))
        except Exception as error:  # Pillow raises a dozen kinds, by the format and the damage
            raise UnreadableImage(f"Cannot read {path} as an image: {error}") from error

    def fingerprint(self) -> str:
        """Changes when a file is replaced, and not when it is read."""
        return digest(map(file_state, self.paths))


class Images(Modality):
    """Images in files, or the paper's images in one array."""

    name = "images"
    columns = ("image", "path", "file")
    help = "A folder of images, or a table."
    is_embedded = goes_to_networks = True
    searched_by = ("image",)
    media = "image"

    def reads(self, path: Path) -> bool:
        """Whether it is a folder."""
        return path.is_dir()

    def read(self, path: Path) -> Source:
        """The images of a folder and the folders in it; their ids are their paths within it."""
        found = [
            file
            for file in path.rglob("*")
            if file.suffix.lower() in SUFFIXES
            and not file.name.startswith(".")
            and not file.is_dir()
        ]
        if not found:
            raise GalaxyError(f"{path} holds no image: no {', '.join(SUFFIXES)}.")
        names = sorted(file.relative_to(path).as_posix() for file in found)
        images = ImageFiles([path / name for name in names])
        ids = [os.fsencode(name).decode(errors="backslashreplace") for name in names]
        return Source(ids, images, images.fingerprint())

    def read_column(self, table: Table, column: str) -> Items:
        """The images whose paths are in a column, relative to the table."""
        return ImageFiles([table.path.parent / name for name in table.texts(column)])

    def content(self, items: Any, state: str, column: str) -> str:
        """The state of the files, whatever table names them."""
        return str(items.fingerprint())

    def take(self, items: Any, kept: NDArray[np.intp]) -> Items:
        """Some of the files, in this order."""
        if isinstance(items, np.ndarray):
            return items[kept]
        return ImageFiles([items.paths[i] for i in kept.tolist()])

    def problems(self, items: Items, ids: Sequence[str]) -> dict[int, str]:
        """The images that cannot be read. Reads them all, on all cores."""

        def problem(index: int) -> str | None:
            try:
                items[index]
            except UnreadableImage as error:
                return str(error)
            return None

        with ThreadPoolExecutor(n_threads()) as threads:
            problems = enumerate(threads.map(problem, range(len(items))))
            return {index: found for index, found in problems if found is not None}

    def media_path(self, items: ImageFiles, index: int) -> Path:
        """The file of an image."""
        return items.paths[index]

    def media_bytes(self, items: ImageFiles, index: int, side: int | None) -> tuple[bytes, str]:
        """The file as it is, or small, or in a format that browsers show."""
        path = items.paths[index]
        if side is None and (shown := _SHOWN.get(path.suffix.lower())):
            return read_bytes(path), f"image/{shown}"
        from PIL import Image

        picture = Image.fromarray(items.read(index, side))
        if side is not None:
            picture.thumbnail((side, side))
        buffer = BytesIO()
        picture.save(buffer, "JPEG", quality=90)
        return buffer.getvalue(), "image/jpeg"

    def bytes_of(self, items: Any, index: int) -> bytes:
        """The file of an image."""
        return read_bytes(self.media_path(items, index))

    def look(self, items: Any, index: int) -> NDArray[np.float32]:
        """The `thumbnail` of an image; a file that cannot be read looks like nothing else."""
        try:
            return thumbnail(items.read(index, _SIDE))
        except UnreadableImage:
            return np.full(_SIDE**2, index + 1, dtype=np.float32)

    def label_studio(self, items: Items, index: int, id: str) -> tuple[str, str]:
        """The id, which is the path in the folder."""
        return "image", id

    def hugging_face(
        self, items: ImageFiles, indices: Sequence[int]
    ) -> tuple[str, list[Any], dict[str, Any]]:
        """The bytes and the names of the files."""
        paths = [items.paths[i] for i in indices]
        values = [{"bytes": read_bytes(path), "path": path.name} for path in paths]
        return "image", values, {"_type": "Image"}


def thumbnail(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """What an image looks like, as a unit vector that light and contrast do not change.

    Images that were scaled, compressed or brightened are near each other here, which they need not
    be for a network. Cropped ones are not; a network finds these.

    Parameters
    ----------
    image
        H x W x 3.
    """
    from PIL import Image

    small = Image.fromarray(image).convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    grey = np.asarray(small, dtype=np.float32).ravel()
    grey -= grey.mean()
    length = float(np.linalg.norm(grey))
    return grey / length if length else grey


def _as_rgb(image: Any) -> Any:
    """An image in RGB; deep greys are scaled, not cut, and transparent parts become white."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        values = np.asarray(image, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        scaled = (values - low) * (255 / (high - low) if high > low else 0)
        return Image.fromarray(scaled.astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        ground = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")
