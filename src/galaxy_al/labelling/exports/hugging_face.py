"""A Hugging Face dataset: a folder that ``datasets.load_dataset`` opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from galaxy_al.data.tables import load_pyarrow, plain
from galaxy_al.labelling.exports.base import Columns, ExportFormat, columns_of
from galaxy_al.labelling.model import LabeledExamples
from galaxy_al.system.files import make_folder, writing


def _write(labeled: LabeledExamples, folder: Path) -> None:
    arrow = load_pyarrow()
    columns, features = _columns(labeled)
    rows = arrow.table({name: plain(column) for name, column in columns.items()})
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    make_folder(folder / "data")
    with writing(folder / "data" / "train-00000-of-00001.parquet") as part:
        arrow.parquet.write_table(rows.replace_schema_metadata(metadata), part)
    with writing(folder / "README.md") as part:
        part.write_text(_card(labeled), encoding="utf-8")


def _columns(labeled: LabeledExamples) -> tuple[Columns, dict[str, Any]]:
    """The columns with their contents, and their types as `datasets` describes them."""
    columns, names = columns_of(labeled), labeled.classes
    columns["label"] = [names.index(entry.label or "") for entry in labeled.entries]
    pool = labeled.project.pool
    content, values, feature = pool.modality.hugging_face(pool.items, labeled.indices)
    columns[content] = values
    types: dict[str, Any] = {
        "label": {"names": names, "_type": "ClassLabel"},
        "round": {"dtype": "int64", "_type": "Value"},
        "is_random": {"dtype": "bool", "_type": "Value"},
        "suspected_error": {"dtype": "float64", "_type": "Value"},
        "n_answers": {"dtype": "int64", "_type": "Value"},
        "answers_disagree": {"dtype": "bool", "_type": "Value"},
        "consensus_probability": {"dtype": "float64", "_type": "Value"},
        content: feature,
    }
    for name in columns:
        dtype = "float64" if name.startswith("p_") else "string"
        types.setdefault(name, {"dtype": dtype, "_type": "Value"})
    return columns, {name: types[name] for name in columns}


def _card(labeled: LabeledExamples) -> str:
    project = labeled.project
    name, classes = project.folder.resolve().name, ", ".join(labeled.classes)
    return (
        f"---\npretty_name: {json.dumps(name)}\ntags: [galaxy-al]\n---\n\n# {name}\n\n"
        f"{len(labeled.entries):,} labels of {len(project.pool):,} {project.pool.kind}, made with "
        f"galaxy-al. Classes: {classes}.\n\nThe examples were chosen to find rare classes and are "
        "not a random sample. Those with `is_random` were sampled at random.\n"
    )


HUGGING_FACE = ExportFormat("hf", "dataset", _write)
