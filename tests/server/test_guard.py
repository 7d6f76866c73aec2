"""The guard: host names, other pages, sizes and headers."""

import pytest
import requests

from galaxy_al.labelling.service import Service
from galaxy_al.server.app import make_app
from galaxy_al.server.auth import Access
from galaxy_al.server.guard import LOCAL, MOST_BYTES
from support.projects import small_project
from support.servers import running_app


def test_what_is_sent_has_a_limit_also_before_signing_in(server):
    huge = b'{"name": "' + b"x" * (MOST_BYTES + 1) + b'"}'
    json_type = {"Content-Type": "application/json"}
    answer = server.browser()("POST", "/api/sign-in", data=huge, headers=json_type)
    assert answer.status_code == 413
    assert answer.json() == {"error": "At most 20 MB can be sent."}


def test_a_proxy_has_a_name_and_cookies_for_tls_only(tmp_path):
    project, _ = small_project(tmp_path)
    app = make_app(
        Service(project),
        Access(project.folder, "secret", is_secure=True),
        frozenset({*LOCAL, "label.example.org"}),
        "label.example.org",
    )
    with running_app(app) as port:
        address = f"http://localhost:{port}/api/sign-in"
        body = {"name": "ann", "token": "secret"}
        for host in ("label.example.org", f"localhost:{port}"):
            headers = {"Host": host, "Origin": "https://label.example.org"}
            answer = requests.post(address, json=body, headers=headers, timeout=10)
            assert answer.status_code == 200
            assert "Secure" in answer.headers["set-cookie"]
        headers["Origin"] = "https://evil.example.org"
        assert requests.post(address, json=body, headers=headers, timeout=10).status_code == 403


def test_a_page_from_elsewhere_can_change_nothing(server, ann):
    for origin in ("http://evil.example", "null", f"http://localhost:{server.port + 1}"):
        answer = ann("POST", "/api/train", headers={"Origin": origin})
        assert answer.status_code == 403
        assert answer.json() == {"error": "Pages of other sites cannot change anything here."}
    assert ann("POST", "/api/leave", headers={"Origin": server.address}).ok


def test_a_name_that_points_here_is_not_enough(server, ann):
    answer = ann("GET", "/api/status", headers={"Host": "evil.example"})
    assert answer.status_code == 421


@pytest.mark.parametrize(
    "path", ["/", "/api", "/static/main.js", "/api/status", "/nothing", "/api/media?id=1"]
)
def test_every_answer_has_the_strict_headers(ann, path):
    answer = ann("GET", path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_has_no_script_and_no_style_of_its_own(ann):
    for path in ("/", "/api"):
        page = ann("GET", path).text
        assert "<script>" not in page
        assert "style=" not in page
        assert " on" + "click" not in page


def test_static_files_cannot_be_left(ann):
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py"):
        assert ann("GET", path).status_code == 404
