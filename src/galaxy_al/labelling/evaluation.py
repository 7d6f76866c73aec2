"""What is written down of a round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from galaxy_al.audit.draws import CANNOT_TELL
from galaxy_al.audit.random_sample import Answer
from galaxy_al.labelling.database import PoolRecord, RoundRecord
from galaxy_al.labelling.insight import insight_of
from galaxy_al.labelling.log import Entry
from galaxy_al.labelling.project import Project
from galaxy_al.learner import NextRound


def evaluate_round(project: Project, ready: NextRound, answers: Sequence[Answer]) -> RoundRecord:
    """The record of a round; the caller adds its number and the time."""
    n_classes, labels = len(project.classes), ready.state.labels
    found = insight_of(project, ready, answers)
    insight, accuracy = (None, None) if found is None else found
    return RoundRecord(
        number=0,
        n_labels=len(labels),
        rare_found=sum(label != n_classes - 1 for label in labels.values()),
        accuracy=accuracy.value if accuracy else None,
        low=accuracy.low if accuracy else None,
        high=accuracy.high if accuracy else None,
        seconds=0.0,
        insight=insight.dumps() if insight else "",
    )


def answers_of(
    project: Project, classes: Sequence[str], history: Iterable[Entry], random_since: int
) -> list[Answer]:
    """What was answered, for statistics.

    Parameters
    ----------
    history
        The current entry of each example, in the order in which the examples were answered.
    random_since
        The number of the entry after which random examples were drawn from the pool as it is.
        Those before do not count as random.
    """
    entries, number = list(history), {name: k for k, name in enumerate(classes)}
    index_of = project.usable_indices(entry.example for entry in entries)
    return [
        Answer(
            index_of[entry.example],
            number.get(entry.label or "", CANNOT_TELL),
            entry.is_random and entry.number > random_since,
        )
        for entry in entries
        if entry.example in index_of
    ]


def last_change(pools: Iterable[PoolRecord]) -> int:
    """The number of the last entry before the pool became as it is; 0 if it always was."""
    return max((pool.after for pool in list(pools)[1:]), default=0)
