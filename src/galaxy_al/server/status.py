"""What the page shows beside the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from galaxy_al.goals import GOALS
from galaxy_al.labelling.missing import missing_classes
from galaxy_al.labelling.service import Service
from galaxy_al.labelling.views import View
from galaxy_al.server.schemas import RandomRate, Status

_POINTS = 200  # of a curve
_ENOUGH_RANDOM = 100  # labels, to estimate from them instead of from the model


def status(service: Service) -> Status:
    """The progress of a project."""
    project, view = service.project, service.view()
    counts = Counter(view.labels.values())
    return Status(
        project=project.folder.resolve().name,
        kind=project.pool.kind,
        searched_by=list(project.pool.modality.searched_by),
        classes=list(project.classes),
        size=len(project.pool),
        n_bad=len(project.bad),
        n_labels=len(view.labels),
        counts={name: counts[name] for name in project.classes},
        missing=missing_classes(
            project.classes, view.entries, service.strategy, project.settings.batch_size
        ),
        n_cannot_tell=sum(entry.kind == "cannot tell" for entry in view.entries),
        n_to_review=len(service.review()),
        found=_found(view, project.classes),
        random=_random_rate(view, project.classes[-1]),
        round=view.round,
        rounds=list(view.rounds),
        training=view.training,
        n_until_training=max(view.current_batch - view.n_new, 0),
        goal=project.settings.goal,
        goal_summary=GOALS[project.settings.goal].summary,
        strategy=view.strategy,
        is_exploring=view.is_exploring,
        rankings=list(view.rankings),
        annotators=list(view.people),
        agreement=service.agreement(),
        n_disagreements=len(service.disagreements()),
    )


def _found(view: View, classes: Sequence[str]) -> list[tuple[int, int]]:
    """How many labels were given here, and how many rare examples had been found by then."""
    given = [one.label for one in view.entries if one.source != "import" and one.label in classes]
    if not given:
        return [(0, 0)]
    found = np.cumsum([name != classes[-1] for name in given], dtype=np.int64)
    at = np.unique(np.linspace(0, len(given) - 1, _POINTS).astype(int))
    return [(0, 0), *((i + 1, int(found[i])) for i in at.tolist())]


def _random_rate(view: View, majority: str) -> RandomRate | None:
    """How many rare examples random sampling would find, and how that is known."""
    sample = [view.labels[id] for id in view.random if id in view.labels]
    if len(sample) >= _ENOUGH_RANDOM:
        share = sum(name != majority for name in sample) / len(sample)
        return RandomRate(share=share, by="sample", n=len(sample))
    if view.class_priors is not None:
        return RandomRate(share=sum(view.class_priors[:-1]), by="model", n=len(sample))
    return None
