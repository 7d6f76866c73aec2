"""The messages of the API: what its description shows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from galaxy_al.labelling.background import Training
from galaxy_al.labelling.database import RoundRecord
from galaxy_al.labelling.disagreements import Disagreement
from galaxy_al.labelling.reliability import AgreementReport
from galaxy_al.labelling.views import Person
from galaxy_al.strategies.session import LineView

Id = Annotated[str, Field(description="The id of an example.", min_length=1, max_length=10_000)]
MOST_AT_ONCE = 500


class Message(BaseModel):
    """A message; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Problem(Message):
    """What went wrong."""

    error: str
    id: str | None = Field(
        default=None, description="Of an internal error: look for it in the log."
    )


class SignIn(Message):
    """Your name."""

    name: str = Field(description="Any name. Your labels are stored under it.", max_length=1000)
    token: str = Field(default="", description="The token that the server printed, if it did.")


class SignedIn(Message):
    """Your name as it is stored, and a link that signs you in on another device."""

    name: str | None
    link: str | None
    needs_token: bool


class Labels(Message):
    """The classes of examples, by id."""

    labels: dict[Id, str] = Field(min_length=1, max_length=MOST_AT_ONCE)
    source: Literal["asked", "found", "review"] = Field(
        "asked",
        description="Whether you were asked, found the examples yourself, or decide under review, "
        "which counts before all other answers.",
    )


class Skip(Message):
    """An example to skip."""

    id: Id
    cannot_tell: bool = Field(default=False, description="Whether it must never be asked again.")
    source: Literal["asked", "review"] = Field(
        "asked", description="Whether you were asked, or decide in a review."
    )


class LookingAt(Message):
    """The example that your page shows."""

    id: Id | None = Field(default=None, description="It is yours if no other annotator has it.")


class Undo(Message):
    """What to undo."""

    id: Id | None = Field(
        default=None, description="Undo only if your last answer was to this example."
    )


class Example(Message):
    """An example: a text, an image, a sound or a vector."""

    id: str
    text: str | None = None
    image: str | None = Field(default=None, description="The address of the image.")
    audio: str | None = Field(default=None, description="The address of the sound.")
    vector: list[float] | None = Field(
        default=None, description="The first numbers of an embedding."
    )
    width: int | None = Field(default=None, description="How many numbers the embedding has.")


class Next(Message):
    """Your question, and what follows each answer."""

    example: Example | None = Field(description="Null if nothing is left to ask.")
    ahead: dict[str, Example | None] = Field(
        description="By the class that you answer; the empty name stands for a skip."
    )
    problem: str = Field(
        default="", description="Why there is no next question, although your answer is stored."
    )


class Undone(Next):
    """What was undone."""

    undone: str | None = Field(description="The example; null if there was nothing to undo.")


class Found(Message):
    """Examples, best first, with the probabilities of the model; none before it is trained."""

    examples: list[Example]
    proba: list[list[float]]


class Reviewed(Message):
    """A labelled example in a review."""

    example: Example
    label: str = Field(description="The label that counts.")
    annotator: str = Field(description="Who gave it.")
    answers: dict[str, str] = Field(description="What each person answered.")


class ReviewItem(Message):
    """Something to look at again."""

    reason: Literal["duplicates", "disagreement", "suspect"]
    sentence: str = Field(description="Why, in one sentence.")
    examples: list[Reviewed] = Field(description="One example, or a group of duplicates.")
    suggested: str | None = Field(description="What the model thinks, of a suspected error.")
    error: float | None = Field(description="How likely the label is an error, if suspected.")


class Review(Message):
    """What to look at again, the first first."""

    items: list[ReviewItem]
    n_items: int = Field(description="How many there are; perhaps more than these.")


class Clusters(Message):
    """Steps of a walk."""

    examples: list[Example]
    sizes: list[int]


class RandomRate(Message):
    """How many rare examples random sampling would find."""

    share: float = Field(description="The part of the pool that is rare.")
    by: Literal["sample", "model"] = Field(description="How that is known.")
    n: int = Field(description="How many labelled examples were asked at random.")


class Disagreements(Message):
    """The examples on which people disagree, the least certain first."""

    examples: list[Example]
    disagreements: list[Disagreement] = Field(description="In the same order.")


class Status(Message):
    """The progress of a project."""

    project: str
    kind: str
    searched_by: list[str]
    classes: list[str]
    size: int = Field(description="How many examples the pool has.")
    n_bad: int = Field(description="How many examples cannot be used.")
    n_labels: int
    counts: dict[str, int] = Field(description="How many labels each class has.")
    missing: dict[str, str] = Field(description="What is known about classes without labels.")
    n_cannot_tell: int
    n_to_review: int = Field(description="How many things there are to look at again.")
    found: list[tuple[int, int]] = Field(description="Labels given, and rare examples among them.")
    random: RandomRate | None
    round: int
    rounds: list[RoundRecord]
    training: Training
    n_until_training: int = Field(description="How many more answers start a training.")
    goal: str = Field(description="What the labels are for.")
    goal_summary: str = Field(description="The same in plain words.")
    strategy: str = Field(description="The strategy that asks now.")
    is_exploring: bool = Field(description="Whether fewer than two classes are known.")
    rankings: list[LineView]
    annotators: list[Person]
    agreement: AgreementReport | None = Field(
        description="How well people agree; null if no example has the labels of two people."
    )
    n_disagreements: int = Field(description="How many disagreements are not decided.")
