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
from galaxy_al.labelling.project import LOCK_FILE, open_project, read_settings
from galaxy_al.labelling.service import Service
from galaxy_al.server.app import make_app
from galaxy_al.server.auth import Access, new_token
from galaxy_al.server.guard import LOCAL
from galaxy_al.system.files import locked

_SWITCH_SECONDS = 0.0005  # a tenth of Python's default: requests must not wait for the training


def serve(
    folder: Path,
    *,
    scheduler: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str = "",
    opens_page: bool = True,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve a project until interrupted, or until its scheduler is lost.

    Parameters
    ----------
    scheduler
        As of `open_project`.
    host
        Any address but this machine's own needs a token, which is made and shown at the start.
    port
        0 takes any free port.
    name
        The host name of a proxy with TLS in front of the server; it also needs a token.
    tell
        Shows a line: the address, and the token if there is one.
    """
    name, is_local = _host_name(name), host in LOCAL
    token = None if is_local and not name else new_token()
    with _locked(folder), closing(listen(host, port)) as listening:
        tell(f"Opening {folder} …")
        project = open_project(folder, scheduler)
        service = Service(project)
        port = listening.getsockname()[1]
        address = f"http://{_reachable(host)}:{port}"
        shown = f"https://{name} (the proxy must forward to {address})" if name else address
        labeled = service.labeled()
        tell(f"{len(project.pool):,} {project.pool.kind}, {len(labeled.entries):,} labels")
        for warning in labeled.warnings:
            tell(warning)
        if token:
            tell(f"Token: {token}")
        tell(f"Label at {shown} (stop with Ctrl+C)")
        if opens_page and not name:
            Timer(0.5, webbrowser.open, [address]).start()
        hosts = frozenset({*LOCAL, name} - {""}) if is_local else frozenset[str]()
        sys.setswitchinterval(_SWITCH_SECONDS)
        app = make_app(service, Access(folder, token, is_secure=bool(name)), hosts, name)
        with closing(service):
            with suppress(KeyboardInterrupt):
                make_server(app).run(sockets=[listening])
            if service.training.is_running:
                tell("Waiting for the training to finish …")
        if app.state.ending.reason is not None:
            raise app.state.ending.reason


def _host_name(name: str) -> str:
    """A host name as browsers send it; empty stays empty."""
    lower = name.strip().lower()
    if lower and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", lower):
        raise InvalidArgument(f"--name must be a host name like label.example.org, got {name!r}.")
    return lower


def _reachable(host: str) -> str:
    """The host name to open in a browser."""
    if host in LOCAL:
        return "localhost"
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def make_server(app: FastAPI) -> uvicorn.Server:
    """A server that ends the open streams before it waits for other requests."""

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.broadcast.close()
            await super().shutdown(sockets)

        def stop(self) -> None:
            self.should_exit = True

    config = uvicorn.Config(
        app, log_level="warning", timeout_graceful_shutdown=3, server_header=False
    )
    server = Server(config)
    app.state.ending.stop = server.stop
    return server


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the project's lock: one server per project."""
    read_settings(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / LOCK_FILE, wait=False))
        except GalaxyError as error:
            raise GalaxyError(f"Another server is already running on {folder}.") from error
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; a clear error if the address is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small messages at once only if the socket names TCP; otherwise after 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # early requests wait until the server runs
    except OSError as error:
        listening.close()
        raise GalaxyError(f"Cannot listen at {host}, port {port}: {error.strerror}.") from error
    return listening
