"""Label Studio: one task per example, with the label and the model's prediction."""

from __future__ import annotations

from typing import Any

from galaxy_al.labelling.exports.base import attributes_of, json_format
from galaxy_al.labelling.model import LabeledExamples


def _tasks(labeled: LabeledExamples) -> list[dict[str, Any]]:
    project, pool = labeled.project, labeled.project.pool

    def choice(key: str, name: str | None) -> list[dict[str, Any]]:
        value = {"choices": [name]}
        return [{"from_name": "label", "to_name": key, "type": "choices", "value": value}]

    tasks = []
    rows = zip(labeled.entries, labeled.indices, attributes_of(labeled))
    for row, (entry, index, attributes) in enumerate(rows):
        key, shown = pool.modality.label_studio(pool.items, index, entry.example)
        annotation = {"result": choice(key, entry.label), "created_at": entry.created_at}
        task = {
            "data": {key: shown, "id": entry.example, **attributes},
            "annotations": [annotation],
        }
        if labeled.proba is not None:
            likely = int(labeled.proba[row].argmax())
            score = float(labeled.proba[row, likely])
            result = choice(key, project.classes[likely])
            task["predictions"] = [{"result": result, "score": score}]
        tasks.append(task)
    return tasks


LABEL_STUDIO = json_format("label-studio", _tasks)
