import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import HealthCheck, settings

from galaxy_al.graphs import buckets, places, ranking, sorted_rows

settings.register_profile(
    "house",
    deadline=None,
    # Only `bucket_sizes` is a fixture that one test shares between its examples.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    print_blob=True,
)
settings.register_profile("quick", settings.get_profile("house"), max_examples=10)
settings.load_profile("house")


MARKS = {
    "networks": "torch",  # with the examples in their docstrings
    "test_embedding.py": "torch",
    "test_saving.py": "torch",
    "test_page.py": "browser",
    "test_crash.py": "slow",
    "images": "torch",  # a project of images is embedded
}


def pytest_collection_modifyitems(items):
    """Mark whole files and folders, and users of fixtures; other tests have marks beside them."""
    for item in items:
        for part in MARKS.keys() & {*item.path.parts, *getattr(item, "fixturenames", ())}:
            item.add_marker(MARKS[part])


@pytest.fixture(params=["as they are", "tiny"])
def bucket_sizes(request, monkeypatch):
    """Small test pools fit into one chunk and one bucket: also try them cut into many."""
    if request.param == "tiny":
        monkeypatch.setattr(sorted_rows, "CHUNK", 4)
        monkeypatch.setattr(ranking, "_FINE_ROWS", 1)
        monkeypatch.setattr(ranking, "_COARSE_ROWS", 3)
        for module in (buckets, places, ranking):
            monkeypatch.setattr(module, "MANY_ROWS", 2)


@pytest.fixture
def server():
    """A server of one file that stops after ``most`` bytes and can resume from any byte."""
    state = {"content": b"", "most": None, "ranges": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            start = self.headers.get("Range")
            state["ranges"].append(start)
            first = int(start.removeprefix("bytes=").removesuffix("-")) if start else 0
            rest = state["content"][first:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[: state["most"]])

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    state["url"] = f"http://127.0.0.1:{http.server_port}"
    yield state
    http.shutdown()
    thread.join()
    http.server_close()
