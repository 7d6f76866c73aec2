"""A small client of the labelling server. Examples are named by their ids.

It needs only the standard library, so you can copy it into other tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener


class RequestFailed(Exception):  # noqa: N818 - reads as what happened
    """The server cannot be reached, or refused a request; the message says why."""


class Client:
    """One annotator at a server.

    Parameters
    ----------
    address
        The address that the server printed.
    name
        The annotator's name.
    token
        The token that the server printed, if it did.
    timeout
        How many seconds to wait for a reply.

    Examples
    --------
    Label with a function of your own::

        client = Client("http://localhost:8000", "robot")
        example = client.next()
        while example is not None:
            example = client.label(example["id"], answer(example))
    """

    def __init__(self, address: str, name: str, token: str = "", *, timeout: float = 60) -> None:
        self._address, self._timeout = address.rstrip("/"), timeout
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self._call("POST", "/api/sign-in", {"name": name, "token": token})

    def next(self) -> dict[str, Any] | None:
        """Your question: its id, and its text, image or vector. None if nothing is left."""
        return self._example(self._call("POST", "/api/next"))

    def label(self, id: str, label: str) -> dict[str, Any] | None:
        """Label an example; returns the next question."""
        return self._example(self._call("POST", "/api/label", {"labels": {id: label}}))

    def label_many(self, labels: Mapping[str, str]) -> None:
        """Label examples that you found yourself, at most 500 at once."""
        self._call("POST", "/api/label", {"labels": dict(labels), "source": "found"})

    def disagreements(self) -> list[dict[str, Any]]:
        """What people disagree on: id, answers, consensus, probability; the least certain first."""
        found: list[dict[str, Any]] = self._call("GET", "/api/disagreements")["disagreements"]
        return found

    def decide(self, labels: Mapping[str, str]) -> None:
        """Decide what the labels of examples are, whatever others have answered."""
        self._call("POST", "/api/label", {"labels": dict(labels), "source": "review"})

    def skip(self, id: str, *, cannot_tell: bool = False) -> dict[str, Any] | None:
        """Skip an example until the next training, or for good; returns the next question."""
        return self._example(
            self._call("POST", "/api/skip", {"id": id, "cannot_tell": cannot_tell})
        )

    def undo(self) -> str | None:
        """Undo your last answer; returns its id, or None if there was nothing to undo."""
        undone: str | None = self._call("POST", "/api/undo")["undone"]
        return undone

    def here(self) -> None:
        """Keep what is yours for another two minutes."""
        self._call("POST", "/api/here")

    def leave(self) -> None:
        """Give back the example that is yours."""
        self._call("POST", "/api/leave")

    def train(self) -> None:
        """Start a training in the background."""
        self._call("POST", "/api/train")

    def status(self) -> dict[str, Any]:
        """The progress of the project."""
        found: dict[str, Any] = self._call("GET", "/api/status")
        return found

    def image(self, id: str) -> bytes:
        """The image of an example, or its sound."""
        return self._raw("GET", f"/api/media?{urlencode({'id': id})}")

    def export(self, form: str = "csv") -> bytes:
        """The labels as a file, in any format of ``galaxy-al export`` that is one file."""
        return self._raw("GET", f"/api/export?{urlencode({'format': form})}")

    @staticmethod
    def _example(answer: dict[str, Any]) -> dict[str, Any] | None:
        if answer.get("problem"):
            raise RequestFailed(answer["problem"])
        found = answer["example"]
        return found and {key: value for key, value in found.items() if value is not None}

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._raw(method, path, body)
        return json.loads(answer) if answer else None

    def _raw(self, method: str, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(self._address + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            raise RequestFailed(_reason(error)) from error
        except (HTTPException, OSError) as error:
            reason = getattr(error, "reason", error) or "the connection was lost"
            raise RequestFailed(f"Cannot reach {self._address}: {reason}.") from error


def _reason(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered {error.code}."
