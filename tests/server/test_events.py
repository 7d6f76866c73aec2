"""The stream of events: what it sends, and who has left."""

import json
import time

from galaxy_al.server import events as live


def test_what_an_annotator_holds_goes_back_when_their_last_page_is_closed(server, monkeypatch):
    monkeypatch.setattr(live, "_GRACE", 0.2)
    me = server.browser("two pages")
    streams = [me("GET", "/api/events", stream=True) for _ in range(2)]
    told = [stream.iter_lines() for stream in streams]
    assert all(next(lines) for lines in told)
    mine = me("POST", "/api/next").json()["example"]["id"]
    streams[0].close()
    time.sleep(0.5)
    assert mine in server.service.view().pending
    streams[1].close()
    until = time.monotonic() + 10
    while mine in server.service.view().pending and time.monotonic() < until:
        time.sleep(0.05)
    assert mine not in server.service.view().pending


def test_changes_are_told_by_events(server, ann):
    me = server.browser("eve")
    stream = me("GET", "/api/events", stream=True)
    lines = stream.iter_lines()
    first = json.loads(next(lines).removeprefix(b"data: "))
    example = ann("POST", "/api/next").json()["example"]["id"]
    ann("POST", "/api/label", json={"labels": {example: "fine"}})
    for line in lines:
        if line.startswith(b"data: "):
            later = json.loads(line.removeprefix(b"data: "))
            if later["n_labels"] == first["n_labels"] + 1:
                break
    assert "eve" in {person["name"] for person in later["annotators"] if person["is_here"]}
    stream.close()
    ann("POST", "/api/leave")


def test_a_status_that_fails_is_logged_and_the_next_one_is_sent(server, ann, monkeypatch, caplog):
    def broken():
        raise ZeroDivisionError("a bug")

    stream = server.browser("eve")("GET", "/api/events", stream=True)
    lines = stream.iter_lines()
    next(lines)
    with monkeypatch.context() as patched:
        patched.setattr(server.service, "view", broken)
        ann("POST", "/api/leave")
        until = time.monotonic() + 10
        while "ZeroDivisionError: a bug" not in caplog.text and time.monotonic() < until:
            time.sleep(0.05)
        assert "ZeroDivisionError: a bug" in caplog.text
    ann("POST", "/api/leave")
    assert any(line.startswith(b"data: ") for line in lines)
    stream.close()
