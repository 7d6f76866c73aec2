"""What an export format is, and what formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from galaxy_al.data.tables import plain
from galaxy_al.labelling.model import LabeledExamples
from galaxy_al.system.files import writing

Columns = dict[str, Sequence[Any] | NDArray[Any]]


@dataclass(frozen=True)
class ExportFormat:
    """A format in which labels can be exported.

    A package adds one with an entry point in the group ``galaxy_al.exports``.

    Parameters
    ----------
    file_name
        The default name of the file.
    write
        Writes the labels to a path.
    media_type
        The type of the download. None if the format is a folder, which cannot be downloaded.
    suffix
        Output files with this suffix get this format by default.
    """

    name: str
    file_name: str
    write: Callable[[LabeledExamples, Path], None]
    media_type: str | None = None
    suffix: str | None = None


def columns_of(labeled: LabeledExamples) -> Columns:
    """One row per label, with the probabilities if there is a model."""
    entries = labeled.entries
    columns: Columns = {
        "id": [entry.example for entry in entries],
        "label": [entry.label for entry in entries],
        "annotator": [entry.annotator for entry in entries],
        "created_at": [entry.created_at for entry in entries],
        "round": [entry.round for entry in entries],
        "source": [entry.source for entry in entries],
        "is_random": [entry.is_random for entry in entries],
        "n_answers": [support.n_answers for support in labeled.supports],
        "answers_disagree": [support.is_disputed for support in labeled.supports],
        "consensus_probability": [support.probability for support in labeled.supports],
    }
    if labeled.proba is not None:
        for class_index, name in enumerate(labeled.project.classes):
            columns[f"p_{name}"] = labeled.proba[:, class_index]
    columns["suspected_error"] = [labeled.suspected.get(entry.example) for entry in entries]
    return columns


def attributes_of(labeled: LabeledExamples) -> list[dict[str, Any]]:
    """For each label its columns, except for the id and the label itself."""
    columns = {name: plain(column) for name, column in columns_of(labeled).items()}
    del columns["id"], columns["label"]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def json_format(name: str, content: Callable[[LabeledExamples], Any]) -> ExportFormat:
    """A format that is one JSON file."""

    def write(labeled: LabeledExamples, path: Path) -> None:
        text = json.dumps(content(labeled), ensure_ascii=False, indent=1)
        with writing(path) as part:
            part.write_text(text, encoding="utf-8")

    return ExportFormat(name, f"{name}.json", write, "application/json")
