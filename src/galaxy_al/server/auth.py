"""Signing in: names on signed cookies, and a token where strangers can reach the server."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from fastapi import HTTPException, Request, Response
from itsdangerous import BadData, URLSafeSerializer

from galaxy_al.errors import InvalidArgument
from galaxy_al.labelling.log import IMPORTER
from galaxy_al.system.files import digest, writing

LONGEST_NAME = 60

_SECRET_FILE, _KEY_BYTES = "secret", 32
_YEAR = 365 * 24 * 3600


class Access:
    """Signs the names of annotators, so that cookies and personal links survive a restart.

    Parameters
    ----------
    token
        What an annotator must enter to sign in. With None, anyone who reaches the server may.
    is_secure
        Whether the page is served over TLS; cookies are then sent over TLS only.
    """

    def __init__(self, folder: Path, token: str | None, *, is_secure: bool = False) -> None:
        key = _read_key(folder / _SECRET_FILE)
        signing = {"digest_method": hashlib.sha256, "key_derivation": "hmac"}
        self._serializer = URLSafeSerializer(key, salt="annotator", signer_kwargs=signing)
        # Browsers share cookies among the ports of a host: two projects need two names.
        self.cookie = f"galaxy_annotator_{digest([key])[:8]}"
        self._token, self._is_secure = token, is_secure

    @property
    def needs_token(self) -> bool:
        """Whether you need a token to sign in."""
        return self._token is not None

    def may_sign_in(self, token: str) -> bool:
        """Whether a token is the right one; compared in constant time."""
        return self._token is None or hmac.compare_digest(
            token.encode(errors="replace"), self._token.encode()
        )

    def sign(self, name: str) -> str:
        """A name with a signature that only this project can make."""
        return str(self._serializer.dumps(name))

    def name_of(self, signed: str) -> str | None:
        """The name in a text that this project signed."""
        try:
            name = self._serializer.loads(signed)
        except BadData:
            return None
        return name if isinstance(name, str) else None

    def visitor(self, request: Request) -> str | None:
        """The name of the annotator who sends a request."""
        return self.name_of(request.cookies.get(self.cookie, ""))

    def remember(self, response: Response, name: str) -> None:
        """Set the cookie that keeps an annotator signed in."""
        response.set_cookie(
            self.cookie,
            self.sign(name),
            max_age=_YEAR,
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
        )

    def forget(self, response: Response) -> None:
        """Delete the cookie."""
        response.delete_cookie(self.cookie, httponly=True, samesite="strict")


async def signed_in(request: Request) -> str:
    """The name of the annotator; an error if they are not signed in."""
    access: Access = request.app.state.access
    name = access.visitor(request)
    if name is None:
        raise HTTPException(401, "Sign in first.")
    return name


def clean_name(name: str) -> str:
    """A name as it is stored: without odd spaces, and not too long."""
    cleaned = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if not 0 < len(cleaned) <= LONGEST_NAME:
        raise InvalidArgument(f"A name must have 1 to {LONGEST_NAME} characters.")
    if cleaned == IMPORTER:
        raise InvalidArgument(f"{IMPORTER!r} is reserved for imported labels. Choose another name.")
    return cleaned


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(24)


def _read_key(path: Path) -> bytes:
    """The project's secret key. It is made on first use, and only its owner can read it."""
    if not path.exists() or len(path.read_bytes()) < _KEY_BYTES:
        with writing(path) as part:
            part.touch(0o600)
            part.write_bytes(secrets.token_bytes(_KEY_BYTES))
    return path.read_bytes()
