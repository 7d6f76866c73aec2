"""What every request must pass: the host name, the page it comes from, and its size."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from galaxy_al.server.errors import refused

LOCAL = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 20 << 20  # of a request

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "media-src 'self'; connect-src 'self'; font-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """Refuses unknown host names, changes from other pages and large requests; adds headers.

    Parameters
    ----------
    hosts
        The host names that requests may use; empty allows any. Without this check, another site
        could point its own name at this server and read everything.
    name
        The host name of a proxy in front of this server; one of ``hosts``.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], name: str = "") -> None:
        self._app, self._hosts, self._name = app, hosts, name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        n_bytes = 0

        async def receive_some() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > MOST_BYTES:
                raise HTTPException(413, f"At most {MOST_BYTES >> 20} MB can be sent.")
            return message

        problem = self._problem(scope["method"], Headers(scope=scope))
        await (problem or self._app)(scope, receive_some, send_with_headers)

    def _problem(self, method: str, headers: Headers) -> Response | None:
        origin, host = headers.get("origin"), headers.get("host", "")
        if self._hosts and _host_name(host) not in self._hosts:
            return refused(421, "This server does not answer to that host name.")
        is_change = method not in ("GET", "HEAD", "OPTIONS")
        if is_change and origin is not None:
            place = origin.partition("://")[2]
            if place != host and not (self._name and _host_name(place) == self._name):
                return refused(403, "Pages of other sites cannot change anything here.")
        return None


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
