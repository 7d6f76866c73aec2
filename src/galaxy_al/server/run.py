"""Starting the server of a project."""

from __future__ import annotations

import re
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Timer

import uvicorn
from fastapi import FastAPI

from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.labelling.model import label_warnings
from galaxy_al.labelling.project import LOCK_FILE, open_project, read_settings
from galaxy_al.labelling.service import Service
from galaxy_al.server.app import make_app
from galaxy_al.server.auth import LOCAL, Access, new_token
from galaxy_al.system.files import locked

_SWITCH_SECONDS = 0.0005  # a tenth of Python's own: a request must not wait for the training


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str = "",
    opens_page: bool = True,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve a project until interrupted.

    Parameters
    ----------
    host
        Any other address than this machine's own needs a token, which is made and told once.
    port
        0 takes any that is free.
    name
        By which a proxy with TLS in front of it is called; it needs a token, too.
    tell
        Gets the lines to show: the address, and the token if there is one.
    """
    name, is_local = _host_name(name), host in LOCAL
    token = None if is_local and not name else new_token()
    with _alone(folder), closing(listen(host, port)) as listening:
        tell(f"Opening {folder} ...")
        project = open_project(folder)
        service = Service(project)
        port = listening.getsockname()[1]
        address = f"http://{_reachable(host)}:{port}"
        shown = f"https://{name}, by way of {address}" if name else address
        n_labels = len(service.learner.state.labels)
        tell(f"{len(project.pool):,} {project.pool.kind}, {n_labels:,} labels")
        for warning in label_warnings(project, service.log.all_current()):
            tell(warning)
        if token:
            tell(f"Token: {token}")
        tell(f"Label at {shown} (Ctrl+C ends)")
        if opens_page and not name:
            Timer(0.5, webbrowser.open, [address]).start()
        hosts = frozenset({*LOCAL, name} - {""}) if is_local else frozenset[str]()
        sys.setswitchinterval(_SWITCH_SECONDS)
        app = make_app(service, Access(folder, token, is_secure=bool(name)), hosts, name)
        with closing(service):
            with suppress(KeyboardInterrupt):
                make_server(app).run(sockets=[listening])
            if service.training.is_running:
                tell("Waiting for the training to end ...")


def _host_name(name: str) -> str:
    """The name of a machine as browsers send it; empty stays empty."""
    lower = name.strip().lower()
    if lower and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", lower):
        raise InvalidArgument(
            f"--name is a name like label.example.org, without more, got {name!r}."
        )
    return lower


def _reachable(host: str) -> str:
    """How to call an address in a browser."""
    if host in LOCAL:
        return "localhost"
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def make_server(app: FastAPI) -> uvicorn.Server:
    """What runs an app, and ends the open streams before it waits for the rest."""

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.broadcast.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app, log_level="warning", timeout_graceful_shutdown=3, server_header=False
    )
    return Server(config)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other server has the project."""
    read_settings(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / LOCK_FILE, wait=False))
        except GalaxyError as error:
            raise GalaxyError(f"Another server is labelling {folder} already.") from error
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; a clear error if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only of a socket that says TCP does asyncio send at once what is small; else after 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # whoever comes before the server runs waits for it
    except OSError as error:
        listening.close()
        raise GalaxyError(f"Cannot listen at {host}, port {port}: {error.strerror}.") from error
    return listening
