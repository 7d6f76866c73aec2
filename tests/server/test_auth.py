"""Signing in: cookies, personal links and the token."""

import pytest
import requests

from galaxy_al.client import Client, RequestFailed
from galaxy_al.server.auth import Access
from support.projects import small_project
from support.servers import served


def test_no_annotator_is_called_as_imported_labels_are(server):
    answer = server.browser()("POST", "/api/sign-in", json={"name": " import "})
    assert answer.status_code == 400


def test_a_visitor_gets_nothing_before_signing_in(server):
    stranger = server.browser()
    description = stranger("GET", "/api/openapi.json").json()
    for path, methods in description["paths"].items():
        for method in methods:
            if path in ("/api/sign-in", "/api/sign-out", "/api/me"):
                continue
            query = "?id=1&label=dent&text=a"
            answer = stranger(
                method.upper(), path + query, json={"labels": {"1": "dent"}, "id": "1"}
            )
            assert answer.status_code == 401, path
            assert answer.json() == {"error": "Sign in first."}
    assert stranger("GET", "/api/me").json() == {
        "name": None,
        "link": None,
        "needs_token": False,
    }


def test_the_cookie_is_for_this_server_only(server):
    answer = server.browser()("POST", "/api/sign-in", json={"name": " Zoë \t <b>x</b> "})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert answer.json()["name"] == "Zoë <b>x</b>"


def test_a_cookie_that_was_tampered_with_signs_in_no_annotator(server):
    access = Access(server.project.folder, None)
    good = access.sign("ann")
    assert access.name_of(good) == "ann"
    mixed = access.sign("bob").split(".")[0] + "." + good.split(".")[1]
    for bad in ("", ".", good[:-1], good + "0", mixed, "é.é"):
        assert access.name_of(bad) is None
    answer = requests.get(
        server.address + "/api/status", cookies={access.cookie: good[:-2] + "00"}, timeout=10
    )
    assert answer.status_code == 401


def test_two_projects_on_one_machine_do_not_sign_each_other_out(tmp_path, server):
    other, _ = small_project(tmp_path)
    with served(other) as second:
        session = requests.Session()
        for place in (server, second):
            session.post(place.address + "/api/sign-in", json={"name": "Ann"})
        for place in (server, second):
            assert session.get(place.address + "/api/me").json()["name"] == "Ann"


def test_a_key_that_was_not_written_whole_is_made_again(tmp_path):
    (tmp_path / "secret").write_bytes(b"")
    forger = Access(tmp_path, None)
    assert len((tmp_path / "secret").read_bytes()) == 32
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert Access(tmp_path, None).name_of(forger.sign("ann")) == "ann"


def test_a_personal_link_signs_in(server):
    first = server.browser()
    link = first("POST", "/api/sign-in", json={"name": "ann"}).json()["link"]
    other = server.browser()
    assert other("GET", link).status_code == 200
    me = other("GET", "/api/me").json()
    assert (me["name"], me["link"]) == ("ann", link)
    assert server.browser()("GET", "/join/YW5u.0000").status_code == 403


def test_a_token_is_asked_for_where_there_is_one(tmp_path):
    project, _ = small_project(tmp_path)
    with served(project, token="open sesame") as running:
        stranger = running.browser()
        for wrong in ("", "open", "open sesame ", "öffne"):
            answer = stranger("POST", "/api/sign-in", json={"name": "eve", "token": wrong})
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
        assert running.browser("ann", token="open sesame")("GET", "/api/status").ok
        with pytest.raises(RequestFailed, match="not the token that the server printed"):
            Client(running.address, "robot", token="guess")
