"""An example as the page gets it: a text, an image or numbers."""

from __future__ import annotations

from io import BytesIO
from urllib.parse import quote

import numpy as np

from galaxy_al.data.pool import ImageFiles, Pool
from galaxy_al.errors import NotFound
from galaxy_al.labelling.project import Project
from galaxy_al.labelling.service import index_of
from galaxy_al.server.schemas import Example
from galaxy_al.system.files import digest, file_state, reading

_MOST_NUMBERS = 512  # of a vector that is shown
_PLAIN = {".gif": "gif", ".jpeg": "jpeg", ".jpg": "jpeg", ".png": "png", ".webp": "webp"}


def show(project: Project, index: int) -> Example:
    """What is shown of an example."""
    pool, id = project.pool, project.pool.ids[index]
    if pool.kind == "images":
        address = f"/api/image?id={quote(id, safe='')}&v={_version(pool, index)}"
        return Example(id=id, image=address)
    if pool.kind == "texts":
        return Example(id=id, text=str(pool.items[index]))
    vector = np.asarray(project.vectors[index], dtype=np.float64)
    return Example(id=id, vector=vector[:_MOST_NUMBERS].tolist(), width=len(vector))


def _version(pool: Pool, index: int) -> str:
    """Changes with the file: a browser keeps what it has seen at an address."""
    assert isinstance(pool.items, ImageFiles)
    return digest([file_state(pool.items.paths[index])])


def read_image(project: Project, id: str, side: int | None) -> tuple[bytes, str]:
    """The bytes of an image and their type: as they are, or small, or in a form pages show."""
    files, index = project.pool.items, index_of(project, id)
    if not isinstance(files, ImageFiles):
        raise NotFound(f"This pool holds {project.pool.kind}, not images.")
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
