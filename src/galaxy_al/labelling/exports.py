"""The labels of a project in the forms that other tools read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from galaxy_al.data.tables import load_pyarrow, plain, write_table
from galaxy_al.errors import InvalidArgument
from galaxy_al.labelling.model import Labelled
from galaxy_al.labelling.project import Project
from galaxy_al.system.files import writing
from galaxy_al.version import __version__


def export(labelled: Labelled, path: Path, form: str) -> None:
    """Write the labels: who, when, in which round, and the model's probabilities."""
    forms: dict[str, Callable[[Labelled, Path], None]] = {
        "csv": lambda some, path: write_table(path, table(some), ".csv"),
        "jsonl": lambda some, path: write_table(path, table(some), ".jsonl"),
        "parquet": lambda some, path: write_table(path, table(some), ".parquet"),
        "coco": lambda some, path: _write_json(path, coco(some)),
        "label-studio": lambda some, path: _write_json(path, label_studio(some)),
        "hf": write_dataset,
    }
    if form not in forms:
        raise InvalidArgument(f"Unknown format {form!r}. Choose from: {', '.join(forms)}.")
    forms[form](labelled, path)


def table(labelled: Labelled) -> dict[str, Sequence[Any] | NDArray[Any]]:
    """One row a label."""
    entries = labelled.entries
    columns: dict[str, Sequence[Any] | NDArray[Any]] = {
        "id": [entry.example for entry in entries],
        "label": [entry.label for entry in entries],
        "annotator": [entry.annotator for entry in entries],
        "created_at": [entry.created_at for entry in entries],
        "round": [entry.round for entry in entries],
        "source": [entry.source for entry in entries],
        "is_random": [entry.is_random for entry in entries],
    }
    if labelled.proba is not None:
        for code, name in enumerate(labelled.project.classes):
            columns[f"p_{name}"] = labelled.proba[:, code]
    return columns


def coco(labelled: Labelled) -> dict[str, Any]:
    """COCO: images, categories, and one annotation of the whole image for each label."""
    project = labelled.project
    pool, modality = project.pool, project.pool.modality
    names = {name: code + 1 for code, name in enumerate(project.classes)}
    images, annotations = [], []
    rows = zip(labelled.entries, labelled.indices, _abouts(labelled))
    for number, (entry, index, about) in enumerate(rows, start=1):
        width, height = modality.image_size(pool.items, index)
        images.append({"id": number, "file_name": entry.example, "width": width, "height": height})
        annotations.append(
            {
                "id": number,
                "image_id": number,
                "category_id": names[entry.label or ""],
                "bbox": [0, 0, width, height],
                "area": width * height,
                "iscrowd": 0,
                "segmentation": [],
                "attributes": about,
            }
        )
    return {
        "info": {"description": project.folder.resolve().name, "version": __version__},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": code, "name": name} for name, code in names.items()],
    }


def label_studio(labelled: Labelled) -> list[dict[str, Any]]:
    """Label Studio: a task an example, with the label and the model's prediction."""
    project = labelled.project
    pool = project.pool

    def choice(key: str, name: str | None) -> list[dict[str, Any]]:
        value = {"choices": [name]}
        return [{"from_name": "label", "to_name": key, "type": "choices", "value": value}]

    tasks = []
    rows = zip(labelled.entries, labelled.indices, _abouts(labelled))
    for row, (entry, index, about) in enumerate(rows):
        key, shown = pool.modality.label_studio(pool.items, index, entry.example)
        annotation = {"result": choice(key, entry.label), "created_at": entry.created_at}
        task = {
            "data": {key: shown, "id": entry.example, **about},
            "annotations": [annotation],
        }
        if labelled.proba is not None:
            likely = int(labelled.proba[row].argmax())
            score = float(labelled.proba[row, likely])
            task["predictions"] = [{"result": choice(key, project.classes[likely]), "score": score}]
        tasks.append(task)
    return tasks


def write_dataset(labelled: Labelled, folder: Path) -> None:
    """A dataset of Hugging Face: a folder that ``datasets.load_dataset`` takes."""
    arrow = load_pyarrow()
    project, columns = labelled.project, dict(table(labelled))
    names = list(project.classes)
    features: dict[str, Any] = {
        "label": {"names": names, "_type": "ClassLabel"},
        "round": {"dtype": "int64", "_type": "Value"},
        "is_random": {"dtype": "bool", "_type": "Value"},
    }
    columns["label"] = [names.index(entry.label or "") for entry in labelled.entries]
    name, values, feature = project.pool.modality.hugging_face(
        project.pool.items, labelled.indices
    )
    columns[name], features[name] = values, feature
    for name in columns:
        kind = "float64" if name.startswith("p_") else "string"
        features.setdefault(name, {"dtype": kind, "_type": "Value"})
    ordered = {name: features[name] for name in columns}
    rows = arrow.table({name: plain(column) for name, column in columns.items()})
    about = json.dumps({"info": {"features": ordered}})
    folder.joinpath("data").mkdir(parents=True, exist_ok=True)
    with writing(folder / "data" / "train-00000-of-00001.parquet") as part:
        arrow.parquet.write_table(rows.replace_schema_metadata({"huggingface": about}), part)
    with writing(folder / "README.md") as part:
        part.write_text(_card(project, len(labelled.entries)), encoding="utf-8")


def _card(project: Project, size: int) -> str:
    name = project.folder.resolve().name
    classes = ", ".join(project.classes)
    return (
        f"---\npretty_name: {json.dumps(name)}\ntags: [galaxy-al]\n---\n\n# {name}\n\n"
        f"{size:,} labels of {len(project.pool):,} {project.pool.kind}, made with galaxy-al. "
        f"Classes: {classes}.\n\nThey were chosen to find rare examples and are not a random "
        "sample; those with `is_random` were asked by chance.\n"
    )


def _abouts(labelled: Labelled) -> list[dict[str, Any]]:
    """For each label who, when, which round, and the probabilities."""
    columns = {name: plain(column) for name, column in table(labelled).items()}
    del columns["id"], columns["label"]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def _write_json(path: Path, content: Any) -> None:
    with writing(path) as part:
        part.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
