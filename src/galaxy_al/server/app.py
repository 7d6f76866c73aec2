"""The application: routers, what guards them, and how they fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from galaxy_al.labelling.service import Service
from galaxy_al.server.auth import Access
from galaxy_al.server.ending import Ending
from galaxy_al.server.errors import add_error_handlers
from galaxy_al.server.events import Broadcast
from galaxy_al.server.guard import Guard
from galaxy_al.server.routes import auditing, finding, labelling, pages, results, reviewing
from galaxy_al.server.schemas import Problem
from galaxy_al.server.search import Finder
from galaxy_al.server.status import status
from galaxy_al.version import __version__

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 413, 421, 422, 500, 503)
}


def make_app(
    service: Service, access: Access, hosts: frozenset[str] = frozenset(), name: str = ""
) -> FastAPI:
    """The server of one project, behind a `Guard` with these hosts and this name."""
    broadcast = Broadcast(lambda: status(service).model_dump_json(), service.leave)
    service.on_change = broadcast.notify

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(broadcast.run())
        yield
        task.cancel()

    app = FastAPI(
        title="galaxy-al",
        version=__version__,
        description="Label the rare classes of a pool. Sign in first. Examples are named by id.",
        lifespan=running,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses=_PROBLEMS,
    )
    app.state.service, app.state.access = service, access
    app.state.broadcast, app.state.finder = broadcast, Finder(service)
    app.state.ending = Ending()
    add_error_handlers(app)
    app.add_middleware(Guard, hosts=hosts, name=name)
    for router in (
        labelling.router,
        auditing.router,
        reviewing.router,
        results.router,
        finding.router,
        pages.router,
    ):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=pages.STATIC), name="static")
    return app
