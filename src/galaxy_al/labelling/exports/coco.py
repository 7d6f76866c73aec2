"""COCO: images, categories, and one annotation of the whole image per label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.exports.base import ExportFormat, attributes_of, write_json
from galaxy_al.labelling.model import LabeledExamples
from galaxy_al.version import __version__


def _content(labeled: LabeledExamples) -> dict[str, Any]:
    project, pool = labeled.project, labeled.project.pool
    if pool.modality.media != "image":
        raise GalaxyError(f"COCO needs images, but the pool contains {pool.kind}.")
    categories = {name: number for number, name in enumerate(labeled.classes, start=1)}
    images, annotations = [], []
    rows = zip(labeled.entries, labeled.indices, attributes_of(labeled))
    for number, (entry, index, attributes) in enumerate(rows, start=1):
        width, height = pool.modality.image_size(pool.items, index)
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


def _write(labeled: LabeledExamples, path: Path) -> None:
    write_json(path, _content(labeled))


COCO = ExportFormat("coco", "coco.json", _write, "application/json")
