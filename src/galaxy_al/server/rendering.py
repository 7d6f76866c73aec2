"""An example as the page gets it."""

from __future__ import annotations

from urllib.parse import quote

from galaxy_al.errors import NotFound
from galaxy_al.labelling.project import Project
from galaxy_al.server.schemas import Example
from galaxy_al.system.files import digest, file_state


def show(project: Project, index: int) -> Example:
    """What is shown of an example."""
    pool, modality, id = project.pool, project.pool.modality, project.pool.ids[index]
    if modality.media is None:
        return Example(id=id, **modality.show(pool.items, index))
    version = digest([file_state(modality.media_path(pool.items, index))])
    address = f"/api/media?id={quote(id, safe='')}&v={version}"  # another one for another file
    return Example.model_validate({"id": id, modality.media: address})


def read_media(project: Project, id: str, side: int | None) -> tuple[bytes, str]:
    """The file that the page shows of an example, and its media type."""
    pool, index = project.pool, project.find(id)
    if pool.modality.media is None:
        raise NotFound(f"This pool holds {pool.kind}, which have no files to show.")
    return pool.modality.media_bytes(pool.items, index, side)
