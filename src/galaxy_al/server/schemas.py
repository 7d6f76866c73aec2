"""What goes over the line: the shapes that the API's description shows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(description="The id of an example.", min_length=1, max_length=10_000)]
MOST_AT_ONCE = 500


class Message(BaseModel):
    """A message without parts that nobody knows."""

    model_config = ConfigDict(extra="forbid")


class Problem(Message):
    """What went wrong."""

    error: str


class SignIn(Message):
    """Who somebody is."""

    name: str = Field(description="Any name; labels are kept under it.", max_length=1000)
    token: str = Field("", description="As printed by the server, if it asks for one.")


class SignedIn(Message):
    """The name as it is kept, and a link that signs in on another device."""

    name: str | None
    link: str | None
    needs_token: bool


class Labels(Message):
    """Classes of examples by their ids."""

    labels: dict[Id, str] = Field(min_length=1, max_length=MOST_AT_ONCE)
    source: Literal["asked", "found"] = Field(
        "asked", description="Whether they were asked, or found by the annotator."
    )


class Skip(Message):
    """An example to pass over."""

    id: Id
    cannot_tell: bool = Field(False, description="For good: nobody could tell.")


class LookingAt(Message):
    """What somebody has before them."""

    id: Id | None = Field(None, description="It is yours again, if nobody else has it.")


class Undo(Message):
    """What to take back."""

    id: Id | None = Field(None, description="Only if it is this example, as when asking again.")


class Example(Message):
    """An example: one of text, image and vector."""

    id: str
    text: str | None = None
    image: str | None = Field(None, description="Where the image is.")
    vector: list[float] | None = Field(None, description="The first numbers of an embedding.")
    width: int | None = Field(None, description="How many numbers the embedding has.")


class Next(Message):
    """What to look at now, and what comes after each answer."""

    example: Example | None = Field(description="None: nothing is left to ask.")
    ahead: dict[str, Example | None] = Field(
        description="By the class given now; the empty name is for a skip."
    )


class Undone(Next):
    """What was taken back."""

    undone: str | None = Field(description="The example; None if there was nothing to take back.")


class Found(Message):
    """Examples in an order, with the model's probabilities; none while there is no model."""

    examples: list[Example]
    proba: list[list[float]]
    labels: list[str | None]


class Clusters(Message):
    """Steps of a walk."""

    examples: list[Example]
    sizes: list[int]


Status = dict[str, Any]
