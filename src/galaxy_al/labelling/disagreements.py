"""Where people disagree, how probable the label that counts is, and how much it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from galaxy_al.labelling.log import Log


@dataclass(frozen=True)
class Disagreement:
    """An example on which people disagree, to be decided.

    Parameters
    ----------
    answers
        The label of each person, the first answer first; None cannot tell.
    consensus, probability
        The label that counts until there is a decision, and how probable it is.
    """

    id: str
    answers: Mapping[str, str | None]
    consensus: str
    probability: float


@dataclass(frozen=True)
class Support:
    """What the label of an example rests on.

    Parameters
    ----------
    probability
        How probable it is that the label is right, if several people gave one; 1 if it was decided
        under review. None if only one person gave a label: others have not said what they think.
    n_answers
        How many people have answered; skips do not count.
    is_disputed
        Whether people gave different answers.
    """

    probability: float | None
    n_answers: int
    is_disputed: bool


def disagreements(log: Log) -> list[Disagreement]:
    """The examples on which people disagree and that are not decided, the least probable first."""
    found = []
    for example in log.disputed():
        if log.is_decided(example):
            continue
        answers = [entry for entry in log.opinions(example) if log.is_answer(entry)]
        consensus = log.consensus()[example]
        given = {entry.annotator: entry.label for entry in answers}
        found.append(Disagreement(example, given, consensus.label, consensus.probability))
    return sorted(found, key=lambda one: one.probability)


def support(log: Log, example: str) -> Support:
    """What the label of an example rests on."""
    answers = [entry for entry in log.answers(example) if entry.kind != "skip"]
    labels = log.labels_of(example)
    probability = None
    if log.is_decided(example):
        probability = 1.0
    elif len(labels) > 1:
        probability = log.consensus()[example].probability
    return Support(probability, len(answers), log.is_disputed(example))


def label_weights(log: Log) -> dict[str, float]:
    """How much the labels count on which people disagree; all others count fully.

    A label counts by the probability that it is right. Where one person cannot tell and another
    can, their label counts fully.
    """
    found = disagreements(log)
    return {one.id: one.probability for one in found if len({*one.answers.values()} - {None}) > 1}
