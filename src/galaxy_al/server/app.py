"""The routes: each a few lines over the service."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, RedirectResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as AnyHTTPException

from galaxy_al.errors import GalaxyError, PoolExhausted, Taken
from galaxy_al.labelling.exports import EXPORTS
from galaxy_al.labelling.model import LabeledExamples, usable_labels
from galaxy_al.labelling.service import Service
from galaxy_al.server.auth import Access, Guard, clean_name, refused
from galaxy_al.server.events import Broadcast
from galaxy_al.server.rendering import example, image
from galaxy_al.server.schemas import (
    Clusters,
    Found,
    Id,
    Labels,
    LookingAt,
    Next,
    Problem,
    SignedIn,
    SignIn,
    Skip,
    Status,
    Undo,
    Undone,
)
from galaxy_al.server.search import Queries, likeliest, nearest, walk
from galaxy_al.server.status import status
from galaxy_al.version import __version__

_STATIC = Path(__file__).with_name("static")
_YEAR = 365 * 24 * 3600
_MOST_FOUND = 200
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 413, 421, 422)
}
Count = Annotated[int, Query(ge=1, le=_MOST_FOUND)]


def make_app(
    service: Service, access: Access, hosts: frozenset[str] = frozenset(), name: str = ""
) -> FastAPI:
    """The server of one project.

    Parameters
    ----------
    hosts, name
        As of `Guard`.
    """
    broadcast = Broadcast(lambda: status(service), service.leave)
    service.on_change = broadcast.notify

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(broadcast.run())
        yield
        task.cancel()

    app = FastAPI(
        title="galaxy-al",
        version=__version__,
        description="Label the rare classes of a pool. Sign in first; ids in, ids out.",
        lifespan=running,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses=_PROBLEMS,
    )
    app.add_middleware(Guard, hosts=hosts, name=name)
    app.state.broadcast = broadcast
    _add_error_shapes(app)
    _add_pages(app, access)
    signed_in = _signed_in(access)
    _add_labelling(app, service, signed_in)
    _add_looking(app, service, signed_in)
    _add_finding(app, service, signed_in)

    @app.get("/api/events", tags=["live"], response_class=StreamingResponse)
    async def events(annotator: Annotated[str, Depends(signed_in)]) -> StreamingResponse:
        """The status whenever it changes, as server-sent events."""
        service.heartbeat(annotator)
        stream = broadcast.events(annotator)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return app


def _add_error_shapes(app: FastAPI) -> None:
    """Every error is a JSON object with one text."""
    codes = {Taken: 409, PoolExhausted: 409, GalaxyError: 400, ValueError: 400}

    async def told(request: Request, error: Exception) -> Response:
        code = next(codes[kind] for kind in type(error).__mro__ if kind in codes)
        return refused(code, str(error))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, AnyHTTPException)
        return refused(error.status_code, str(error.detail))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return refused(422, f"{where}: {first['msg']}")

    for kind in (GalaxyError, ValueError):
        app.exception_handler(kind)(told)
    app.exception_handler(AnyHTTPException)(http)
    app.exception_handler(RequestValidationError)(invalid)


def _signed_in(access: Access) -> Any:
    async def annotator(request: Request) -> str:
        name = access.name_of(request.cookies.get(access.cookie, ""))
        if name is None:
            raise HTTPException(401, "Sign in first.")
        return name

    return annotator


def _add_pages(app: FastAPI, access: Access) -> None:
    def with_cookie(response: Response, name: str) -> Response:
        response.set_cookie(
            access.cookie,
            access.sign(name),
            max_age=_YEAR,
            httponly=True,
            samesite="strict",
            secure=access.is_secure,
        )
        return response

    def signed_in(name: str | None) -> SignedIn:
        link = None if name is None else f"/join/{access.sign(name)}"
        return SignedIn(name=name, link=link, needs_token=access.needs_token)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/api", include_in_schema=False)
    async def description() -> FileResponse:
        return FileResponse(_STATIC / "api.html", headers={"Cache-Control": "no-cache"})

    @app.get("/join/{signed}", include_in_schema=False)
    async def join(signed: str) -> Response:
        name = access.name_of(signed)
        if name is None:
            raise HTTPException(403, "This link is not one of ours.")
        return with_cookie(RedirectResponse("/", status_code=303), name)

    @app.post("/api/sign-in", tags=["sign in"], response_model=SignedIn)
    async def sign_in(wanted: SignIn, response: Response) -> SignedIn:
        """Say who you are; a cookie remembers it."""
        if not access.may_sign_in(wanted.token):
            raise HTTPException(403, "That is not the token that the server printed.")
        name = clean_name(wanted.name)
        with_cookie(response, name)
        return signed_in(name)

    @app.get("/api/me", tags=["sign in"], response_model=SignedIn)
    async def me(request: Request) -> SignedIn:
        """Who you are; nobody, before you sign in."""
        return signed_in(access.name_of(request.cookies.get(access.cookie, "")))

    @app.post("/api/sign-out", tags=["sign in"], status_code=204)
    async def sign_out(response: Response) -> None:
        """Forget who you are."""
        response.delete_cookie(access.cookie, httponly=True, samesite="strict")


def _add_labelling(app: FastAPI, service: Service, signed_in: Any) -> None:
    Annotator = Annotated[str, Depends(signed_in)]
    project = service.project

    def shown(index: int | None) -> dict[str, Any] | None:
        return None if index is None else example(project, index)

    def following(annotator: str, ahead: bool) -> dict[str, Any]:
        with service.lock:
            try:
                index = service.next(annotator)
            except PoolExhausted:
                return {"example": None, "ahead": {}}
            answers = service.look_ahead(annotator) if ahead else {}
        return {
            "example": example(project, index),
            "ahead": {
                "" if code is None else project.classes[code]: shown(at)
                for code, at in answers.items()
            },
        }

    @app.post("/api/next", tags=["labelling"], response_model=Next)
    async def next_example(annotator: Annotator, ahead: bool = False) -> dict[str, Any]:
        """The example to look at: it is yours until you answer, leave or are not heard of."""
        return following(annotator, ahead)

    @app.post("/api/label", tags=["labelling"], response_model=Next)
    async def label(annotator: Annotator, given: Labels, ahead: bool = False) -> dict[str, Any]:
        """Give examples their classes; they are on disk when the answer comes."""
        code = {name: code for code, name in enumerate(project.classes)}
        for name in given.labels.values():
            if name not in code:
                known = ", ".join(project.classes)
                raise HTTPException(400, f"Unknown class {name!r}. Choose from: {known}.")
        labels = [(index_of(service, id), code[name]) for id, name in given.labels.items()]
        service.label(annotator, labels, given.source)
        return following(annotator, ahead)

    @app.post("/api/skip", tags=["labelling"], response_model=Next)
    async def skip(annotator: Annotator, skipped: Skip, ahead: bool = False) -> dict[str, Any]:
        """Pass over an example until the next training, or for good."""
        service.skip(annotator, index_of(service, skipped.id), for_good=skipped.cannot_tell)
        return following(annotator, ahead)

    @app.post("/api/undo", tags=["labelling"], response_model=Undone)
    async def undo(
        annotator: Annotator, wanted: Undo | None = None, ahead: bool = False
    ) -> dict[str, Any]:
        """Take back what you said last, and look at that example again."""
        id = wanted.id if wanted else None
        index = service.undo(annotator, None if id is None else index_of(service, id))
        undone = None if index is None else project.pool.ids[index]
        return {"undone": undone, **following(annotator, ahead)}

    @app.post("/api/here", tags=["labelling"], status_code=204)
    async def here(annotator: Annotator, looking: LookingAt | None = None) -> None:
        """Say that you are still there: what is yours stays so for another two minutes."""
        id = looking.id if looking else None
        service.heartbeat(annotator, None if id is None else index_of(service, id))

    @app.post("/api/leave", tags=["labelling"], status_code=204)
    async def leave(annotator: Annotator) -> None:
        """Give back the example that is yours."""
        service.leave(annotator)

    @app.post("/api/train", tags=["labelling"], status_code=202)
    async def train(annotator: Annotator) -> None:
        """Train now, in the background."""
        service.train()


def _add_looking(app: FastAPI, service: Service, signed_in: Any) -> None:
    Annotator = Annotated[str, Depends(signed_in)]
    project = service.project

    @app.get("/api/status", tags=["live"])
    def show_status(annotator: Annotator) -> Status:
        """How far the project is."""
        return status(service)

    @app.get("/api/export", tags=["examples"], response_class=Response)
    def show_export(annotator: Annotator, format: str = "csv") -> Response:
        """The labels: annotator, time, round, and the model's probabilities."""
        wanted = EXPORTS[format]
        if wanted.media_type is None:
            raise GalaxyError(f"{format} is a folder. Write it with `galaxy-al export`.")
        with service.lock:
            entries = usable_labels(project, service.log.all_current())
            indices = [project.index_of[entry.example] for entry in entries]
            proba = None if service.learner.is_exploring else service.learner.proba[indices]
        with TemporaryDirectory() as folder:
            path = Path(folder) / "labels"
            wanted.write(LabeledExamples(project, entries, proba), path)
            data = path.read_bytes()
        headers = {"Content-Disposition": f'attachment; filename="{wanted.file_name}"'}
        return Response(data, media_type=wanted.media_type, headers=headers)

    @app.get("/api/image", tags=["examples"], response_class=Response)
    def show_image(
        annotator: Annotator,
        id: Id,
        side: Annotated[int | None, Query(ge=16, le=2048)] = None,
        v: Annotated[
            str, Query(description="As in the address given: other for another file.")
        ] = "",
    ) -> Response:
        """The image of an example, as it is or no larger than a side."""
        if project.pool.modality.media is None:
            raise HTTPException(404, f"This pool holds {project.pool.kind}.")
        data, kind = image(project, index_of(service, id), side)
        return Response(data, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})


def _add_finding(app: FastAPI, service: Service, signed_in: Any) -> None:
    Annotator = Annotated[str, Depends(signed_in)]
    project, queries = service.project, Queries(service.project)

    def shown(indices: Sequence[int]) -> dict[str, Any]:
        with service.lock:
            proba = service.learner.proba[[] if service.learner.is_exploring else list(indices)]
            labels = service.learner.state.labels
        names = [project.classes[labels[i]] if i in labels else None for i in indices]
        examples = [example(project, i) for i in indices]
        return {"examples": examples, "proba": np.round(proba, 4).tolist(), "labels": names}

    def busy() -> set[int]:
        with service.lock:
            return {
                *service.learner.state.labels,
                *service.learner.state.skipped,
                *service.learner.state.pending,
            }

    @app.get("/api/likeliest", tags=["finding"], response_model=Found)
    def find_likeliest(annotator: Annotator, label: str, count: Count = 24) -> dict[str, Any]:
        """The examples without a label that are most likely of a class."""
        if label not in project.classes:
            raise HTTPException(404, f"There is no class {label!r}.")
        target = project.classes.index(label)
        return shown(likeliest(service.learner.proba, target, count, busy()))

    @app.get("/api/like", tags=["finding"], response_model=Found)
    def find_like(annotator: Annotator, id: Id, count: Count = 24) -> dict[str, Any]:
        """The examples without a label that are most like another one."""
        index = index_of(service, id)
        point = np.asarray(project.vectors[index], dtype=np.float64)
        return shown(nearest(project.vectors, point, count, busy() | {index}))

    @app.get("/api/like-text", tags=["finding"], response_model=Found)
    def find_like_text(
        annotator: Annotator,
        text: Annotated[str, Query(min_length=1, max_length=10_000)],
        count: Count = 24,
    ) -> dict[str, Any]:
        """The examples without a label that are most like a text."""
        return shown(nearest(project.vectors, queries.text(text), count, busy()))

    @app.post("/api/like-image", tags=["finding"], response_model=Found)
    async def find_like_image(
        annotator: Annotator,
        request: Request,
        count: Count = 24,
    ) -> dict[str, Any]:
        """The examples without a label that are most like an image, sent as the body."""
        data = await request.body()
        return await asyncio.to_thread(
            lambda: shown(nearest(project.vectors, queries.image(data), count, busy()))
        )

    @app.get("/api/walk", tags=["finding"], response_model=Clusters)
    def walk_on(
        annotator: Annotator, id: Id | None = None, radius: Annotated[int, Query(ge=1)] = 1000
    ) -> dict[str, Any]:
        """The clusters of the pool, or of those around an example; go on with one of these."""
        centre = None if id is None else index_of(service, id)
        clusters = walk(
            project.vectors, centre, min(radius, len(project.pool)), _rng(), project.bad
        )
        return {
            "examples": [example(project, cluster.centre) for cluster in clusters],
            "sizes": [cluster.size for cluster in clusters],
        }


def index_of(service: Service, id: str) -> int:
    """Where an example is; only those of the pool can be had."""
    index = service.project.index_of.get(id)
    if index is None:
        raise HTTPException(404, f"The pool has no example {id!r}.")
    return index


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)  # the same walk shows the same clusters
