"""Questions and answers."""

from typing import Annotated

from fastapi import APIRouter, Query

from galaxy_al.errors import GalaxyError, PoolExhausted
from galaxy_al.labelling.service import Service
from galaxy_al.server.ending import Ending
from galaxy_al.server.rendering import show
from galaxy_al.server.routes.context import Annotator, TheEnding, TheService
from galaxy_al.server.schemas import Example, Labels, LookingAt, Next, Skip, Undo, Undone

router = APIRouter(tags=["labelling"])

Ahead = Annotated[bool, Query(description="Whether to say what follows each answer.")]


def _next(service: Service, annotator: str, ahead: bool) -> Next:
    project = service.project

    def shown(id: str | None) -> Example | None:
        return None if id is None else show(project, project.find(id))

    try:
        question = service.next(annotator, ahead=ahead)
    except PoolExhausted:
        return Next(example=None, ahead={})
    after = {answer or "": shown(then) for answer, then in question.ahead.items()}
    return Next(example=shown(question.id), ahead=after)


def _next_after(service: Service, annotator: str, ahead: bool, ending: Ending) -> Next:
    """The next question after what is stored; a failure here must not look like a refusal."""
    try:
        return _next(service, annotator, ahead)
    except GalaxyError as error:
        ending.note(error)
        problem = f"That is stored, but there is no next question: {error}"
        return Next(example=None, ahead={}, problem=problem)


@router.post("/api/next")
async def ask(service: TheService, annotator: Annotator, ahead: Ahead = False) -> Next:
    """Get your question. It is yours until you answer, leave, or send nothing for two minutes."""
    return _next(service, annotator, ahead)


@router.post("/api/label")
async def label(
    service: TheService,
    annotator: Annotator,
    ending: TheEnding,
    given: Labels,
    ahead: Ahead = False,
) -> Next:
    """Label examples. The labels are on disk when the answer comes."""
    service.label(annotator, given.labels, given.source)
    return _next_after(service, annotator, ahead, ending)


@router.post("/api/skip")
async def skip(
    service: TheService,
    annotator: Annotator,
    ending: TheEnding,
    skipped: Skip,
    ahead: Ahead = False,
) -> Next:
    """Skip an example until the next training, or for good if you cannot tell."""
    service.skip(annotator, skipped.id, cannot_tell=skipped.cannot_tell, source=skipped.source)
    return _next_after(service, annotator, ahead, ending)


@router.post("/api/undo")
async def undo(
    service: TheService,
    annotator: Annotator,
    ending: TheEnding,
    wanted: Undo | None = None,
    ahead: Ahead = False,
) -> Undone:
    """Undo your last answer and get that example again."""
    undone = service.undo(annotator, wanted.id if wanted else None)
    now = _next_after(service, annotator, ahead, ending)
    return Undone(undone=undone, **dict(now))


@router.post("/api/here", status_code=204)
async def stay(service: TheService, annotator: Annotator, looking: LookingAt | None = None) -> None:
    """Keep what is yours for another two minutes."""
    service.heartbeat(annotator, looking.id if looking else None)


@router.post("/api/leave", status_code=204)
async def leave(service: TheService, annotator: Annotator) -> None:
    """Give back the example that is yours."""
    service.leave(annotator)


@router.post("/api/train", status_code=202)
async def train(service: TheService, annotator: Annotator) -> None:
    """Start a training in the background."""
    service.train()
