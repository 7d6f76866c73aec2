"""Progress, live and on request; images and exports."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from galaxy_al.labelling.exports import export
from galaxy_al.server.events import Broadcast
from galaxy_al.server.rendering import read_image
from galaxy_al.server.routes.context import Annotator, TheService
from galaxy_al.server.schemas import ExportFormat, Id, Status
from galaxy_al.server.status import status

_FILES = {
    "csv": ("labels.csv", "text/csv"),
    "jsonl": ("labels.jsonl", "application/jsonl"),
    "parquet": ("labels.parquet", "application/vnd.apache.parquet"),
    "coco": ("coco.json", "application/json"),
    "label-studio": ("label-studio.json", "application/json"),
}

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


@router.get("/api/image", tags=["examples"], response_class=Response)
def show_image(
    service: TheService,
    annotator: Annotator,
    id: Id,
    side: Annotated[int | None, Query(ge=16, le=2048)] = None,
    v: Annotated[str, Query(description="The version of the file, as in the address given.")] = "",
) -> Response:
    """The image of an example, in full size or scaled down."""
    data, kind = read_image(service.project, id, side)
    return Response(data, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})


@router.get("/api/export", tags=["examples"], response_class=Response)
def download(service: TheService, annotator: Annotator, format: ExportFormat = "csv") -> Response:
    """The labels: by whom, when, in which round, and the probabilities of the model."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "labels"
        export(service.labeled(), path, format)
        data = path.read_bytes()
    name, kind = _FILES[format]
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=kind, headers=headers)
