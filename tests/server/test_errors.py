"""How the server fails: in one shape, and a bug with an id in the log."""

import re

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
    unsupported_method,
)

from galaxy_al.labelling.service import Service
from galaxy_al.server.app import make_app
from galaxy_al.server.auth import Access
from support.projects import small_project


def broken(*args, **kwargs):
    raise ZeroDivisionError("a bug")


def test_a_bug_is_a_logged_500_with_an_id(server, ann, monkeypatch, caplog):
    caplog.set_level("ERROR")  # a cluster in the same process silences other tests
    monkeypatch.setattr(server.service, "next", broken)
    answer = ann("POST", "/api/next")
    assert answer.status_code == 500
    id = answer.json()["id"]
    assert re.fullmatch(r"[0-9a-f]{8}", id)
    assert answer.json()["error"].startswith(f"Internal error {id}. ")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    (record,) = [one for one in caplog.records if id in one.getMessage()]
    assert record.exc_info[0] is ZeroDivisionError
    assert "in broken" in caplog.text


def test_a_value_error_of_ours_is_not_taken_for_a_mistake_of_yours(server, ann, monkeypatch):
    def reshape(*args, **kwargs):
        np.zeros(3).reshape(2)

    monkeypatch.setattr(server.service, "scores", reshape)
    assert ann("GET", "/api/likeliest?label=dent").status_code == 500
    assert ann("GET", "/api/likeliest?label=nothing").status_code == 404
    unknown = ann("POST", "/api/label", json={"labels": {"1": "nothing"}})
    assert unknown.status_code == 400
    assert unknown.json()["error"].startswith("Unknown class 'nothing'. Choose from: scratch, ")


def _schema(folder):
    project, _ = small_project(folder)
    service = Service(project)
    access = Access(project.folder, None)
    app = make_app(service, access)
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    return schema, {access.cookie: access.sign("fuzz")}


@pytest.mark.slow
def test_whatever_is_sent_the_server_never_fails(tmp_path):
    """Every answer is as described: no 500, no other shape."""
    schema, cookies = _schema(tmp_path)
    left_out = [ignored_auth, missing_required_header, negative_data_rejection]
    left_out += [positive_data_acceptance, unsupported_method]
    n_called = 0
    for operation in schema.get_all_operations():
        operation = operation.ok()
        if operation.path == "/api/events":  # it never ends
            continue

        def call(case):
            nonlocal n_called
            n_called += 1
            response = case.call(cookies=cookies)
            case.validate_response(response, excluded_checks=left_out)

        run = given(case=operation.as_strategy())(call)
        settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))(run)()
    assert n_called > 200
