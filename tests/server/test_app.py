"""The server: labelling over HTTP, who may come in, and what can be asked of it."""

import csv
import io
import json
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from PIL import Image
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
    unsupported_method,
)

from galaxy_al import GalaxyError
from galaxy_al.client import Client
from galaxy_al.labelling.project import create_project
from galaxy_al.labelling.service import Service
from galaxy_al.server import events as live
from galaxy_al.server.app import make_app
from galaxy_al.server.auth import LOCAL, MOST_BYTES, Access
from galaxy_al.server.rendering import example
from galaxy_al.server.search import decoded, nearest, walk
from support.projects import small_project
from support.servers import running_app, served


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    project, truth = small_project(tmp_path_factory.mktemp("server"))
    with served(project) as running:
        running.truth = truth
        yield running


@pytest.fixture
def ann(server):
    return server.browser("ann")


def test_a_robot_labels_until_it_has_found_the_rare(tmp_path):
    project, truth = small_project(tmp_path)
    with served(project) as running:
        client = Client(running.address, "robot")
        example = client.next()
        for _ in range(60):
            example = client.label(example["id"], truth[example["id"]])
        running.service.wait()
        status = client.status()
        assert status["n_labels"] == 60
        assert status["round"] >= 2
        assert sum(status["counts"].values()) == 60
        assert status["found"][-1] == [60, 60 - status["counts"]["fine"]]
        assert 0 < status["rounds"][-1]["low"] <= status["rounds"][-1]["accuracy"] <= 1
        assert {line["target"] for line in status["lines"]} == {0, 1}
        last = example["id"]
        assert client.skip(last)["id"] != last
        assert client.undo() == last
        assert client.next()["id"] == last
        client.leave()
        rows = list(csv.DictReader(io.StringIO(client.export().decode())))
        assert {row["id"]: row["label"] for row in rows}.items() <= truth.items()
        assert len(rows) == 60
        assert {row["annotator"] for row in rows} == {"robot"}
        json.loads(client.export("label-studio"))


def test_the_example_of_the_labelling_page_runs(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "labelling.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    project, truth = small_project(tmp_path, size=60)
    with served(project) as running:
        code = block.replace("http://localhost:8000", running.address)
        exec(code, {"answer": lambda example: truth[example["id"]]})
        running.service.wait()
        assert len(running.service.learner.state.labels) == 60


def test_many_labels_at_once_are_found_and_not_asked(server, ann):
    found = ann("GET", "/api/likeliest?label=dent&count=5").json()["examples"]
    labels = {example["id"]: "dent" for example in found}
    assert ann("POST", "/api/label", json={"labels": labels, "source": "found"}).ok
    entries = [server.service.log.current(example) for example in labels]
    assert {(entry.source, entry.label) for entry in entries} == {("found", "dent")}
    for _ in labels:
        ann("POST", "/api/undo")


def test_what_is_sent_has_a_limit_also_before_signing_in(server):
    huge = b'{"name": "' + b"x" * (MOST_BYTES + 1) + b'"}'
    json_type = {"Content-Type": "application/json"}
    answer = server.browser()("POST", "/api/sign-in", data=huge, headers=json_type)
    assert answer.status_code == 413
    assert answer.json() == {"error": "At most 20 MB can be sent."}


def test_nobody_is_called_as_imported_labels_are(server):
    answer = server.browser()("POST", "/api/sign-in", json={"name": " import "})
    assert answer.status_code == 400


def test_what_somebody_has_goes_back_when_their_last_page_is_closed(server, monkeypatch):
    monkeypatch.setattr(live, "_GRACE", 0.2)
    me = server.browser("two pages")
    streams = [me("GET", "/api/events", stream=True) for _ in range(2)]
    told = [stream.iter_lines() for stream in streams]
    assert all(next(lines) for lines in told)
    mine = server.project.index_of[me("POST", "/api/next").json()["example"]["id"]]
    streams[0].close()
    time.sleep(0.5)
    assert server.service.leases.holder(mine) == "two pages"
    streams[1].close()
    until = time.monotonic() + 10
    while server.service.leases.holder(mine) is not None and time.monotonic() < until:
        time.sleep(0.05)
    assert server.service.leases.holder(mine) is None


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


def test_labels_that_existed_are_not_labels_spent(tmp_path):
    (tmp_path / "known.csv").write_text("id,label\n0,dent\n1,fine\n2,scratch\n")
    project, _ = small_project(tmp_path, labels=tmp_path / "known.csv")
    with served(project) as running:
        ann = running.browser("ann")
        assert ann("GET", "/api/status").json()["found"] == [[0, 0]]
        mine = ann("POST", "/api/next").json()["example"]["id"]
        ann("POST", "/api/label", json={"labels": {mine: "dent"}})
        status = ann("GET", "/api/status").json()
        assert (status["found"][-1], status["n_labels"]) == ([1, 1], 4)


def test_two_people_never_get_the_same_example(server):
    people = [server.browser(f"person {i}") for i in range(8)]
    got = [person("POST", "/api/next").json()["example"]["id"] for person in people]
    assert len(set(got)) == len(people)
    taken = people[1]("POST", "/api/label", json={"labels": {got[0]: "fine"}})
    assert taken.status_code == 409
    assert taken.json() == {"error": f"Somebody else is looking at {got[0]!r}."}
    for person in people:
        assert person("POST", "/api/leave").status_code == 204


def test_the_answer_says_what_comes_after_each_label(server, ann):
    for _ in range(3):
        now = ann("POST", "/api/next?ahead=true").json()
        assert now["ahead"].keys() == {"scratch", "dent", "fine", ""}
        name = server.truth[now["example"]["id"]]
        running = server.service.training.is_running
        then = ann("POST", "/api/label", json={"labels": {now["example"]["id"]: name}}).json()
        if not running and not server.service.training.is_running:
            assert then["example"]["id"] == now["ahead"][name]["id"]
        server.service.wait()
    ann("POST", "/api/leave")


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


def test_nobody_gets_anything_before_signing_in(server):
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


def test_a_cookie_that_was_tampered_with_is_nobodys(server):
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


def test_a_key_that_was_not_written_whole_is_made_anew(tmp_path):
    (tmp_path / "secret").write_bytes(b"")
    forger = Access(tmp_path, None)
    assert len((tmp_path / "secret").read_bytes()) == 32
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert Access(tmp_path, None).name_of(forger.sign("ann")) == "ann"


def test_an_undo_that_is_asked_for_twice_is_one(server):
    me = server.browser("twice")
    said = []
    for _ in range(2):
        said.append(me("POST", "/api/next").json()["example"]["id"])
        me("POST", "/api/label", json={"labels": {said[-1]: "fine"}})
    assert me("POST", "/api/undo", json={"id": said[-1]}).json()["undone"] == said[-1]
    again = me("POST", "/api/undo", json={"id": said[-1]})
    assert again.status_code == 409
    assert "may be taken back already" in again.json()["error"]
    assert me("POST", "/api/undo").json()["undone"] == said[0]
    me("POST", "/api/leave")


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
        with pytest.raises(GalaxyError, match="not the token that the server printed"):
            Client(running.address, "robot", token="guess")


def test_a_page_from_elsewhere_can_change_nothing(server, ann):
    for origin in ("http://evil.example", "null", f"http://localhost:{server.port + 1}"):
        answer = ann("POST", "/api/train", headers={"Origin": origin})
        assert answer.status_code == 403
        assert answer.json() == {"error": "A page from elsewhere may change nothing."}
    assert ann("POST", "/api/leave", headers={"Origin": server.address}).ok


def test_a_name_that_points_here_is_not_enough(server, ann):
    answer = ann("GET", "/api/status", headers={"Host": "evil.example"})
    assert answer.status_code == 421


@pytest.mark.parametrize(
    "path", ["/", "/api", "/static/main.js", "/api/status", "/nothing", "/api/image?id=1"]
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


@pytest.mark.parametrize(
    "id", ["../secret", "/etc/passwd", "..%2fsecret", "project.toml", "\u0000", "", "1/../1"]
)
def test_only_examples_of_the_pool_can_be_had(image_server, id):
    answer = image_server.browser("ann")("GET", "/api/image", params={"id": id})
    assert answer.status_code in (404, 422)
    assert "error" in answer.json()


def test_static_files_cannot_be_left(ann):
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py"):
        assert ann("GET", path).status_code == 404


@pytest.fixture(scope="module")
def image_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for i in range(24):
        color = (200, 30, 30) if i % 6 == 0 else (30, 30, 200)
        noise = rng.integers(0, 40, (48, 64, 3)) + np.array(color)
        suffix = "tif" if i == 1 else "png"
        picture = Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8))
        picture.save(folder / "photos" / f"a <b>&'\"{i:02}.{suffix}")
    (folder / "photos" / "broken.jpg").write_bytes(b"no image")
    project = create_project(
        folder / "project",
        folder / "photos",
        kind="images",
        classes=["red"],
        other="blue",
        batch_size=5,
    )
    with served(project) as running:
        yield running


def test_images_come_whole_small_and_in_a_form_that_pages_show(image_server):
    ann = image_server.browser("ann")
    for name in image_server.project.pool.ids:
        answer = ann("GET", "/api/image", params={"id": name})
        if name == "broken.jpg":
            assert answer.status_code in (200, 400)
            continue
        kind = answer.headers["content-type"]
        assert kind == ("image/jpeg" if name.endswith("tif") else "image/png")
        assert Image.open(io.BytesIO(answer.content)).size == (64, 48)
        small = ann("GET", "/api/image", params={"id": name, "side": 32}).content
        assert Image.open(io.BytesIO(small)).size == (32, 24)


def test_the_address_of_an_image_is_another_when_the_file_is(image_server):
    path = image_server.project.pool.items.paths[3]
    before = example(image_server.project, 3)["image"]
    assert before == example(image_server.project, 3)["image"]
    path.write_bytes(path.read_bytes())
    assert example(image_server.project, 3)["image"] != before


def test_an_image_that_is_gone_is_an_error_that_says_so(image_server):
    path = image_server.project.pool.items.paths[5]
    kept = path.read_bytes()
    path.unlink()
    ann = image_server.browser("ann")
    for more in ({}, {"side": 32}):
        params = {"id": image_server.project.pool.ids[5], **more}
        answer = ann("GET", "/api/image", params=params)
        assert answer.status_code == 400
        assert "Cannot read" in answer.json()["error"]
    path.write_bytes(kept)


def test_what_cannot_be_read_is_never_asked(image_server):
    ann = image_server.browser("ann")
    for _ in range(24):
        example = ann("POST", "/api/next").json()["example"]
        assert example["id"] != "broken.jpg"
        label = "red" if int(example["id"][-6:-4]) % 6 == 0 else "blue"
        ann("POST", "/api/label", json={"labels": {example["id"]: label}})
    assert ann("POST", "/api/next").json() == {"example": None, "ahead": {}}
    for _ in range(24):
        assert ann("POST", "/api/undo").json()["undone"] is not None
    ann("POST", "/api/leave")


def test_an_uploaded_image_finds_its_like(image_server):
    ann = image_server.browser("ann")
    for name, path in zip(image_server.project.pool.ids, image_server.project.pool.items.paths):
        if name != "broken.jpg":
            found = ann("POST", "/api/like-image?count=4", data=path.read_bytes()).json()
            assert found["examples"][0]["id"] == name


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", 400), (b"GIF89a", 400), (b"<svg/>", 400), (b"x" * (MOST_BYTES + 1), 413)],
    ids=["nothing", "cut off", "svg", "too large"],
)
def test_an_upload_that_is_no_image_is_refused(image_server, data, code):
    answer = image_server.browser("ann")("POST", "/api/like-image", data=data)
    assert answer.status_code == code
    assert "error" in answer.json()


def test_a_bomb_is_not_decoded():
    bomb = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    with pytest.raises(GalaxyError, match=r"no image that can be read|too many pixels"):
        decoded(bomb.getvalue())


def test_embeddings_are_not_searched_by_text_or_image(ann):
    reason = ann("GET", "/api/like-text?text=dent").json()["error"]
    assert reason.startswith("A pool of embeddings cannot be searched by text")
    assert ann("POST", "/api/like-image", data=b"x").status_code == 400


def test_the_nearest_are_those_with_the_smallest_distance():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(300, 4)).astype(np.float32)
    query = rng.normal(size=4)
    naive = sorted(range(300), key=lambda i: np.linalg.norm(vectors[i] - query))
    left_out = set(naive[1:4])
    expected = [i for i in naive if i not in left_out][:10]
    assert nearest(vectors, query, 10, left_out) == expected
    assert len(nearest(vectors, query, 500, left_out)) == 297


def test_a_walk_covers_the_pool_and_goes_into_a_cluster():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(size=(500, 3)), rng.normal(size=(20, 3)) + 30])
    clusters = walk(vectors, None, 0, rng)
    assert sum(cluster.size for cluster in clusters) == 520
    far = [cluster for cluster in clusters if cluster.centre >= 500]
    assert sum(cluster.size for cluster in far) == 20
    inside = walk(vectors, far[0].centre, 20, rng)
    assert all(cluster.centre >= 500 for cluster in inside)
    clusters = walk(vectors, None, 0, rng, without=range(500))
    assert sum(cluster.size for cluster in clusters) == 20
    assert walk(vectors, None, 0, rng, without=range(520)) == []


def test_like_this_leaves_out_what_is_labelled(server, ann):
    found = ann("GET", "/api/like?id=7&count=3").json()
    assert "7" not in [example["id"] for example in found["examples"]]
    assert found["labels"] == [None] * 3
    assert ann("GET", "/api/like?id=nothing").json() == {
        "error": "The pool has no example 'nothing'."
    }


@pytest.mark.slow
def test_labels_from_many_threads_are_all_kept(tmp_path):
    project, truth = small_project(tmp_path, size=400)
    said, problems = {}, []

    def work(name):
        try:
            client = Client(running.address, name)
            example = client.next()
            for _ in range(25):
                said[example["id"]] = (name, truth[example["id"]])
                example = client.label(example["id"], truth[example["id"]])
            client.leave()
        except Exception as error:
            problems.append(error)

    with served(project) as running:
        threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        running.service.wait()
        assert problems == []
        assert len(said) == 200
        current = {entry.example: entry for entry in running.service.log.all_current()}
    assert {name: (entry.annotator, entry.label) for name, entry in current.items()} == said
    again = Service(project)
    assert len(again.learner.state.labels) == 200
    again.close()


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
