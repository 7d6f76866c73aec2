"""An example as the page gets it: a text, an image or numbers."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from urllib.parse import quote

import numpy as np

from galaxy_al.data.pool import ImageFiles, Pool
from galaxy_al.labelling.project import Project
from galaxy_al.system.files import digest, file_state, reading

_MOST_NUMBERS = 512  # of a vector that is drawn
_PLAIN = {".gif": "gif", ".jpeg": "jpeg", ".jpg": "jpeg", ".png": "png", ".webp": "webp"}


def example(project: Project, index: int) -> dict[str, Any]:
    """What is shown of an example."""
    pool, name = project.pool, project.pool.ids[index]
    if pool.kind == "images":
        return {
            "id": name,
            "image": f"/api/image?id={quote(name, safe='')}&v={_version(pool, index)}",
        }
    if pool.kind == "texts":
        return {"id": name, "text": str(pool.items[index])}
    vector = np.asarray(project.vectors[index], dtype=np.float64)
    return {"id": name, "vector": vector[:_MOST_NUMBERS].tolist(), "width": len(vector)}


def _version(pool: Pool, index: int) -> str:
    """Another one for every other file: a browser keeps what it has seen at an address."""
    assert isinstance(pool.items, ImageFiles)
    return digest([file_state(pool.items.paths[index])])


def image(project: Project, index: int, side: int | None) -> tuple[bytes, str]:
    """The bytes of an image and their type: as they are, or small, or in a form pages show."""
    files = project.pool.items
    assert isinstance(files, ImageFiles)
    path = files.paths[index]
    if side is None and path.suffix.lower() in _PLAIN:
        with reading(path):
            return path.read_bytes(), f"image/{_PLAIN[path.suffix.lower()]}"
    from PIL import Image

    picture = Image.fromarray(files.read(index, side))
    if side is not None:
        picture.thumbnail((side, side))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=90)
    return buffer.getvalue(), "image/jpeg"
