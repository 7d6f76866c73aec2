"""How errors are answered: what you can correct as a message, a bug as a logged 500 with an id."""

from __future__ import annotations

import logging
from secrets import token_hex

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from galaxy_al.errors import GalaxyError, LostScheduler, NotFound, PoolExhausted, Taken

_LOGGER = logging.getLogger(__name__)
_STATUS = {NotFound: 404, Taken: 409, PoolExhausted: 409, LostScheduler: 503, GalaxyError: 400}


def refused(status: int, reason: str, **more: str) -> JSONResponse:
    """The one shape of an error."""
    return JSONResponse({"error": reason, **more}, status_code=status)


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error in the one shape."""
    app.exception_handler(GalaxyError)(_answer_galaxy_error)
    app.exception_handler(HTTPException)(_answer_http_error)
    app.exception_handler(RequestValidationError)(_answer_invalid_request)
    app.add_middleware(Failures)


class Failures:
    """Logs an unexpected exception under a short id, and answers 500 with that id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        is_started = False

        async def send_and_note(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception:
            if scope["type"] != "http":
                raise
            id = token_hex(4)
            _LOGGER.exception("Internal error %s in %s %s", id, scope["method"], scope["path"])
            if not is_started:
                reason = f"Internal error {id}. The details are in the log of the server."
                await refused(500, reason, id=id)(scope, receive, send)


async def _answer_galaxy_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GalaxyError)
    request.app.state.ending.note(error)
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    return refused(status, str(error))


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refused(error.status_code, str(error.detail))


async def _answer_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return refused(422, f"{where}: {first['msg']}")
