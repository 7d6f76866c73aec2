"""An example as the page gets it: a text, an image or numbers."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from galaxy_al.labelling.project import Project


def example(project: Project, index: int) -> dict[str, Any]:
    """What is shown of an example."""
    pool, modality, name = project.pool, project.pool.modality, project.pool.ids[index]
    if modality.media is None:
        return {"id": name, **modality.show(pool.items, index)}
    version = modality.media_version(pool.items, index)
    return {"id": name, modality.media: f"/api/image?id={quote(name, safe='')}&v={version}"}


def image(project: Project, index: int, side: int | None) -> tuple[bytes, str]:
    """The bytes of the file that the page shows of an example, and their media type."""
    return project.pool.modality.media_bytes(project.pool.items, index, side)
