"""Progress, live and on request; files and exports."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from galaxy_al.errors import InvalidArgument
from galaxy_al.labelling.exports import EXPORTS
from galaxy_al.server.events import Broadcast
from galaxy_al.server.rendering import read_media, show
from galaxy_al.server.routes.context import Annotator, TheService
from galaxy_al.server.schemas import Disagreements, Id, Status
from galaxy_al.server.status import status

router = APIRouter()


@router.get("/api/status", tags=["live"])
def show_status(service: TheService, annotator: Annotator) -> Status:
    """The progress of the project."""
    return status(service)


@router.get("/api/events", tags=["live"], response_class=StreamingResponse)
async def stream_status(
    service: TheService, annotator: Annotator, request: Request
) -> StreamingResponse:
    """The progress after every change, as server-sent events."""
    broadcast: Broadcast = request.app.state.broadcast
    service.heartbeat(annotator)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = broadcast.events(annotator)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


@router.get("/api/media", tags=["examples"], response_class=Response)
def show_media(
    service: TheService,
    annotator: Annotator,
    id: Id,
    side: Annotated[int | None, Query(ge=16, le=2048)] = None,
    v: Annotated[str, Query(description="The version of the file, as in the address given.")] = "",
) -> Response:
    """The file of an example. An image comes in full size or scaled down."""
    data, kind = read_media(service.project, id, side)
    return Response(data, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})


@router.get("/api/disagreements", tags=["review"])
def show_disagreements(service: TheService, annotator: Annotator) -> Disagreements:
    """The examples on which people disagree, except those that you are still to be asked about.

    To decide one, label it with the source `review`.
    """
    found, project = service.disagreements(annotator), service.project
    examples = [show(project, project.find(one.id)) for one in found]
    return Disagreements(examples=examples, disagreements=found)


@router.get("/api/export", tags=["examples"], response_class=Response)
def download(service: TheService, annotator: Annotator, format: str = "csv") -> Response:
    """The labels: by whom, when, in which round, and the probabilities of the model.

    Labels of others are left out while you are still to be asked about their examples.
    """
    wanted = EXPORTS[format]
    if wanted.media_type is None:
        raise InvalidArgument(f"{format} is a folder. Write it with `galaxy-al export`.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "labels"
        wanted.write(service.labeled(annotator), path)
        data = path.read_bytes()
    headers = {"Content-Disposition": f'attachment; filename="{wanted.file_name}"'}
    return Response(data, media_type=wanted.media_type, headers=headers)
