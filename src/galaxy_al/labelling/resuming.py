"""The learner of a project as its log left it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from galaxy_al.data.pool import Pool
from galaxy_al.labelling.disagreements import label_weights
from galaxy_al.labelling.exploring import explorer_of
from galaxy_al.labelling.log import Entry, Log
from galaxy_al.labelling.model import class_indices, labels_of, weights_by_index
from galaxy_al.labelling.project import Project
from galaxy_al.learner import Learner
from galaxy_al.strategies import make_strategy


def resume(project: Project, entries: Sequence[Entry], log: Log) -> Learner:
    """A learner that knows everything that counts in the log.

    Parameters
    ----------
    entries
        All entries of the log, also those that were undone.
    """
    current = log.all_current()
    settings, pool = project.settings, project.pool
    strategy = make_strategy(settings.strategy)
    explorer = explorer_of(strategy, project.folder)
    learner = Learner(
        project.vectors,
        len(project.classes),
        strategy=strategy,
        head=settings.head,
        batch_size=settings.batch_size,
        goal=settings.goal,
        seed=settings.seed,
        texts=pool.modality.words(pool.items) if isinstance(pool, Pool) else None,
        explore=explorer,
    )
    labels = class_indices(project, labels_of(project, current))
    never = {entry.example for entry in current if entry.kind == "cannot tell"}
    skipped = project.bad.keys() | set(project.indices(never).values())
    answered = {entry.example for entry in current if entry.kind != "skip"}
    sampled = answered & {entry.example for entry in entries if entry.is_random}
    random = project.indices(sampled).values()
    state = np.random.default_rng([abs(settings.seed), len(entries)]).bit_generator.state
    weights = weights_by_index(project, label_weights(log))
    learner.resume(labels, dict(state), skipped, random, weights)
    if set(labels.values()) < set(range(len(project.classes))):
        explorer.outliers.find_now()
    return learner
