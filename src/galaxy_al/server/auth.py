"""Who may come in: names on signed cookies, a token for strangers, and only one's own page."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import HTTPException, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from galaxy_al.errors import InvalidArgument
from galaxy_al.labelling.project import IMPORTER
from galaxy_al.system.files import writing

LONGEST_NAME = 60
LOCAL = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 20 << 20  # of a request

_SECRET_FILE, _KEY_BYTES = "secret", 32
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Access:
    """Signs names, so that a cookie or a personal link lets in after a restart, too.

    Parameters
    ----------
    token
        What somebody must know to sign in; None lets everybody in who can reach the server.
    is_secure
        Whether the page comes over TLS, and cookies only go over that.
    """

    def __init__(self, folder: Path, token: str | None, *, is_secure: bool = False) -> None:
        self._key = _secret(folder / _SECRET_FILE)
        # Browsers do not tell ports apart: two projects of a machine need two names.
        self.cookie = f"galaxy_annotator_{self._signature('')[:8]}"
        self._token, self.is_secure = token, is_secure

    @property
    def needs_token(self) -> bool:
        """Whether signing in takes a token."""
        return self._token is not None

    def may_sign_in(self, token: str) -> bool:
        """Whether a token is the right one, in constant time."""
        return self._token is None or hmac.compare_digest(
            token.encode(errors="replace"), self._token.encode()
        )

    def sign(self, name: str) -> str:
        """A text that only we can have made, and that holds a name."""
        encoded = urlsafe_b64encode(name.encode()).decode()
        return f"{encoded}.{self._signature(name)}"

    def name_of(self, signed: str) -> str | None:
        """The name in a text that we signed."""
        encoded, _, signature = signed.partition(".")
        try:
            name = urlsafe_b64decode(encoded.encode()).decode()
        except (NotBase64, UnicodeError, ValueError):
            return None
        if hmac.compare_digest(signature.encode(errors="replace"), self._signature(name).encode()):
            return name
        return None

    def _signature(self, name: str) -> str:
        return hmac.new(self._key, name.encode(), hashlib.sha256).hexdigest()[:32]


def clean_name(name: str) -> str:
    """A name as it is kept: without surrounding or odd spaces, and not too long."""
    cleaned = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if not 0 < len(cleaned) <= LONGEST_NAME:
        raise InvalidArgument(f"A name must have 1 to {LONGEST_NAME} characters.")
    if cleaned == IMPORTER:
        raise InvalidArgument(f"{IMPORTER!r} is the name of labels that were imported.")
    return cleaned


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


class Guard:
    """Refuses strange host names, changes from another page and what is too large; adds headers.

    Parameters
    ----------
    hosts
        The names by which the server may be called; empty if any may be used. Without it, a
        page elsewhere could let its own name point here and read everything.
    name
        One of them, by which a proxy is called.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], name: str = "") -> None:
        self._app, self._hosts, self._name = app, hosts, name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope["method"], Headers(scope=scope))
        if problem is not None:
            await problem(scope, receive, send)
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

        await self._app(scope, receive_some, send_with_headers)

    def _problem(self, method: str, headers: Headers) -> Response | None:
        origin, host = headers.get("origin"), headers.get("host", "")
        if self._hosts and _host_name(host) not in self._hosts:
            return refused(421, "This server is not known by that name.")
        is_change = method not in ("GET", "HEAD", "OPTIONS")
        if is_change and origin is not None:
            place = origin.partition("://")[2]
            if place != host and not (self._name and _host_name(place) == self._name):
                return refused(403, "A page from elsewhere may change nothing.")
        return None


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def refused(status: int, reason: str) -> JSONResponse:
    """The one shape of an error."""
    return JSONResponse({"error": reason}, status_code=status, headers=_HEADERS)


def _secret(path: Path) -> bytes:
    """The project's key, made when it is first needed and readable by its owner only."""
    if not path.exists() or len(path.read_bytes()) < _KEY_BYTES:
        with writing(path) as part:
            part.touch(0o600)
            part.write_bytes(secrets.token_bytes(_KEY_BYTES))
    return path.read_bytes()
