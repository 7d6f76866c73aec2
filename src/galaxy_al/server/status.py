"""What the page shows beside the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from galaxy_al.labelling.project import IMPORTER
from galaxy_al.labelling.service import Service
from galaxy_al.models.kernel import KernelModel

_POINTS = 200  # of a curve
_ENOUGH_DRAWN = 100  # to estimate from, instead of from the model
_GONE_AFTER = 45.0  # seconds without a word


def status(service: Service) -> dict[str, Any]:
    """The state of a project in numbers, as JSON can have it."""
    with service.lock:  # for as short as possible: labelling waits
        session, current = service.learner.session_copy(), service.log.all_current()
        shown = _state(service)
    counts = Counter(session.state.labels.values())
    names = service.project.classes
    return {
        **shown,
        "n_labels": len(session.state.labels),
        "counts": {name: counts[code] for code, name in enumerate(names)},
        "n_cannot_tell": sum(entry.kind == "cannot tell" for entry in current),
        "found": _found(
            [entry.label for entry in current if entry.label in names and entry.source != "import"],
            names[-1],
        ),
        "lines": [vars(line) for line in session.lines()],
    }


def _state(service: Service) -> dict[str, Any]:
    project, learner, labels = service.project, service.learner, service.learner.state.labels
    return {
        "project": project.folder.resolve().name,
        "kind": project.pool.kind,
        "classes": list(project.classes),
        "size": len(project.pool),
        "n_bad": len(project.bad),
        "round": service.round,
        "n_until_training": max(project.settings.batch_size - service.n_new, 0),
        "training": asdict(service.training),
        "asking": learner.explore.name if learner.is_exploring else learner.strategy.name,
        "is_exploring": learner.is_exploring,
        "random": _random_share(service, labels, len(project.classes) - 1),
        "rounds": [asdict(record) for record in service.rounds],
        "annotators": _annotators(service),
    }


def _found(names: list[str | None], other: str) -> list[tuple[int, int]]:
    """How many labels were spent, and how many rare examples had been found by then."""
    found = np.cumsum([name != other for name in names], dtype=np.int64)
    if not names:
        return [(0, 0)]
    at = np.unique(np.linspace(0, len(names) - 1, _POINTS).astype(int))
    return [(0, 0), *((i + 1, int(found[i])) for i in at.tolist())]


def _random_share(service: Service, labels: Mapping[int, int], other: int) -> dict[str, Any] | None:
    """How many of those asked at random would be rare, and how that is known."""
    drawn = [index for index in service.learner.state.random if index in labels]
    if len(drawn) >= _ENOUGH_DRAWN:
        share = float(np.mean([labels[index] != other for index in drawn]))
        return {"share": share, "by": "sample", "n": len(drawn)}
    model = service.learner.model
    if isinstance(model, KernelModel) and model.class_priors.any():
        return {"share": float(model.class_priors[:other].sum()), "by": "model", "n": len(drawn)}
    return None


def _annotators(service: Service) -> list[dict[str, Any]]:
    now = service.now()
    return [
        {
            "name": name,
            "n": service.log.count_of(name),
            "is_here": now - service.seen.get(name, -np.inf) < _GONE_AFTER,
        }
        for name in sorted({*service.seen, *service.log.annotators()} - {IMPORTER})
    ]
