"""Real servers of small projects, in threads of the test."""

import threading
from contextlib import contextmanager

import requests

from galaxy_al.labelling.service import Service
from galaxy_al.server.app import make_app
from galaxy_al.server.auth import Access
from galaxy_al.server.guard import LOCAL
from galaxy_al.server.run import listen, make_server


class Served:
    """A server that runs, and requests to it as one browser makes them."""

    def __init__(self, service, port):
        self.service, self.port = service, port
        self.address = f"http://localhost:{port}"
        self.project = service.project

    def browser(self, name=None, token=""):
        """A browser with its own cookies, signed in if there is a name."""
        session = requests.Session()
        if name is not None:
            answer = session.post(
                self.address + "/api/sign-in", json={"name": name, "token": token}
            )
            answer.raise_for_status()
        return lambda method, path, **more: session.request(method, self.address + path, **more)


@contextmanager
def running_app(app, port=0):
    """The port of an app that runs until the end of the block."""
    listening = listen("127.0.0.1", port)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def served(project, token=None, port=0):
    """Serve a project until the end of the block."""
    service = Service(project)
    app = make_app(service, Access(project.folder, token), frozenset(LOCAL))
    with running_app(app, port) as port:
        yield Served(service, port)
    service.close()
