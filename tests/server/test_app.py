"""The server: labelling over HTTP by robots and people."""

import csv
import io
import json
import re
import threading
from pathlib import Path

from galaxy_al.client import Client
from galaxy_al.labelling.service import Service
from support.projects import small_project
from support.servers import served


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
        assert {ranking["target"] for ranking in status["rankings"]} == {0, 1}
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
        assert len(running.service.view().labels) == 60


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
    assert taken.json() == {"error": f"Another annotator is looking at {got[0]!r}."}
    for person in people:
        assert person("POST", "/api/leave").status_code == 204


def test_an_answer_after_another_annotators_is_kept_as_a_second_opinion(server):
    early, late = server.browser("early"), server.browser("late")
    id = late("POST", "/api/next").json()["example"]["id"]
    late("POST", "/api/leave")  # as when the lease has ended
    assert early("POST", "/api/next").json()["example"]["id"] == id
    early("POST", "/api/label", json={"labels": {id: "dent"}})
    kept = late("POST", "/api/label", json={"labels": {id: "fine"}})
    assert kept.status_code == 200
    assert kept.json()["example"]["id"] != id
    labels = {entry.annotator: entry.label for entry in server.service._log.answers(id)}
    assert labels == {"early": "dent", "late": "fine"}
    assert early("POST", "/api/undo").json()["undone"] == id
    assert late("POST", "/api/undo").json()["undone"] == id
    assert server.service._log.answers(id) == []
    for person in (early, late):
        person("POST", "/api/leave")


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


def test_the_description_names_every_field_of_the_status(server, ann):
    schemas = ann("GET", "/api/openapi.json").json()["components"]["schemas"]
    status = ann("GET", "/api/status").json()
    assert schemas["Status"]["properties"].keys() == status.keys()
    assert schemas["Training"]["properties"].keys() == status["training"].keys()


def test_an_undo_that_is_asked_for_twice_is_one(server):
    me = server.browser("twice")
    said = []
    for _ in range(2):
        said.append(me("POST", "/api/next").json()["example"]["id"])
        me("POST", "/api/label", json={"labels": {said[-1]: "fine"}})
    assert me("POST", "/api/undo", json={"id": said[-1]}).json()["undone"] == said[-1]
    again = me("POST", "/api/undo", json={"id": said[-1]})
    assert again.status_code == 409
    assert again.json()["error"].endswith("was not your last answer; it may already be undone.")
    assert me("POST", "/api/undo").json()["undone"] == said[0]
    me("POST", "/api/leave")


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
        current = {entry.example: entry for entry in running.service.view().entries}
    assert {name: (entry.annotator, entry.label) for name, entry in current.items()} == said
    again = Service(project)
    assert len(again.view().labels) == 200
    again.close()


def test_the_status_says_the_goal_and_when_the_next_training_is(tmp_path):
    project, truth = small_project(tmp_path, goal="find-all")
    with served(project) as running:
        ann = running.browser("ann")
        before = ann("GET", "/api/status").json()
        assert before["goal"] == "find-all"
        assert before["goal_summary"] == "find all rare examples, the most likely first."
        assert before["n_until_training"] == 20  # until a second class is known
        given = {name: id for id, name in truth.items()}
        labels = {id: name for name, id in given.items()}
        ann("POST", "/api/label", json={"labels": labels, "source": "found"})
        running.service.wait()
        after = ann("GET", "/api/status").json()
        assert (after["strategy"], after["n_until_training"]) == ("find-all", 1)
