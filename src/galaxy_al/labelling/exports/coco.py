"""COCO: images, categories, and one annotation of the whole image per label."""

from __future__ import annotations

from typing import Any

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.exports.base import attributes_of, json_format
from galaxy_al.labelling.model import LabeledExamples
from galaxy_al.system.files import reading
from galaxy_al.version import __version__


def _content(labeled: LabeledExamples) -> dict[str, Any]:
    from PIL import Image

    project, pool = labeled.project, labeled.project.pool
    if pool.modality.media != "image":
        raise GalaxyError(f"COCO needs images, but the pool contains {pool.kind}.")
    categories = {name: number for number, name in enumerate(labeled.classes, start=1)}
    images, annotations = [], []
    rows = zip(labeled.entries, labeled.indices, attributes_of(labeled))
    for number, (entry, index, attributes) in enumerate(rows, start=1):
        path = pool.modality.media_path(pool.items, index)
        with reading(path), Image.open(path) as image:
            width, height = image.size
        images.append({"id": number, "file_name": entry.example, "width": width, "height": height})
        annotations.append(
            {
                "id": number,
                "image_id": number,
                "category_id": categories[entry.label or ""],
                "bbox": [0, 0, width, height],
                "area": width * height,
                "iscrowd": 0,
                "segmentation": [],
                "attributes": attributes,
            }
        )
    return {
        "info": {"description": project.folder.resolve().name, "version": __version__},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for name, number in categories.items()],
    }


COCO = json_format("coco", _content)
