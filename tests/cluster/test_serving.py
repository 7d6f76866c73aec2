"""The labelling server on a pool in shards, when files change and the scheduler is lost."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import requests
from distributed import LocalCluster

from galaxy_al.client import Client, RequestFailed
from galaxy_al.cluster.embedding import embed_into_shards
from galaxy_al.data import load_pool
from galaxy_al.errors import LostScheduler
from galaxy_al.labelling.project import create_project, read_settings
from galaxy_al.labelling.summary import summarize
from galaxy_al.server.run import serve
from support.commands import run
from support.servers import served

OPTIONS = {"shards": True, "classes": ["dent"], "other": "fine", "batch_size": 5}


@pytest.fixture
def shards(tmp_path, client):
    """A folder of ten shards with ids."""
    vectors = np.random.default_rng(0).normal(size=(1000, 8)).astype(np.float32)
    path = tmp_path / "pool.npz"
    np.savez(path, embeddings=vectors, ids=[f"part {i:03}" for i in range(1000)])
    options = {"scheduler": client.scheduler.address, "rows": 100}
    embed_into_shards(load_pool(path), path, str(tmp_path / "shards"), **options)
    return tmp_path / "shards"


def change_ids(shards):
    """Other ids in all files, of the same length."""
    for file in shards.glob("*.arrow"):
        file.write_bytes(file.read_bytes().replace(b"part", b"none"))


def test_an_answer_that_is_stored_is_acknowledged_although_no_question_follows(tmp_path, shards):
    with served(create_project(tmp_path / "project", shards, **OPTIONS)) as server:
        ann = server.browser("ann")
        first = ann("POST", "/api/next").json()["example"]["id"]
        change_ids(shards)
        answer = ann("POST", "/api/label", json={"labels": {first: "dent"}})
        assert answer.status_code == 200
        reply = answer.json()
        assert re.match(r"That is stored, but .*\.arrow has changed", reply["problem"])
        assert reply["example"] is None
        assert [entry.example for entry in summarize(tmp_path / "project").entries] == [first]
        assert ann("POST", "/api/next").status_code == 400
        with pytest.raises(RequestFailed, match=r"That is stored, but there is no next question"):
            Client(server.address, "ann").label(first, "dent")


def served_in_thread(folder, threads):
    """The outcome of a server, and its address."""
    printed = []
    outcome = threads.submit(serve, folder, port=0, opens_page=False, tell=printed.append)
    while not any("Label at" in line for line in printed):
        assert not outcome.done(), outcome.exception()
        time.sleep(0.05)
    (address,) = re.findall(r"http://\S+", " ".join(printed))
    return outcome, address


def label_some(annotator):
    for _ in range(10):
        annotator.label(annotator.next()["id"], "fine")


def test_the_server_ends_when_the_scheduler_is_lost(tmp_path, shards):
    with (
        LocalCluster(n_workers=1, dashboard_address=":0", silence_logs=50) as cluster,
        ThreadPoolExecutor(1) as threads,
    ):
        scheduler = cluster.scheduler_address
        create_project(tmp_path / "project", shards, scheduler=scheduler, **OPTIONS).close()
        outcome, address = served_in_thread(tmp_path / "project", threads)
        ann = Client(address, "ann")
        first = ann.next()["id"]
        ann.label(first, "dent")
        cluster.close()
        with pytest.raises(RequestFailed, match="connection to the scheduler was lost"):
            label_some(ann)
        with pytest.raises(LostScheduler, match="or with another --scheduler"):
            outcome.result(timeout=60)
        with pytest.raises(requests.ConnectionError):
            requests.get(address, timeout=10)
    assert "labels (0 imported), 1 annotator" in run("status", tmp_path / "project").output


def test_commands_replace_the_scheduler_of_a_project(tmp_path, shards, client):
    project, address = tmp_path / "project", client.scheduler.address
    (tmp_path / "known.csv").write_text("id,label\npart 001,dent\npart 002,fine\n")
    create_project(project, shards, labels=tmp_path / "known.csv", **OPTIONS)
    for command, given, remembered in (
        ("train", address, address),
        ("export", "none", ""),
    ):
        run(command, project, "--scheduler", given)
        assert read_settings(project).scheduler == remembered
    failed = run("train", project, "--scheduler", "tcp://127.0.0.1:1", fails=True)
    assert "Cannot reach a scheduler" in str(failed.exception)
    assert read_settings(project).scheduler == ""


def test_a_pool_in_memory_has_no_scheduler(tmp_path):
    np.save(tmp_path / "pool.npy", np.eye(9))
    given = ("--embeddings", tmp_path / "pool.npy", "--classes", "a", "--other", "b")
    failed = run("init", tmp_path / "project", *given, "--scheduler", "local", fails=True)
    assert "--scheduler does not apply to a pool that is not in shards." in failed.output
    assert not (tmp_path / "project").exists()
    run("init", tmp_path / "project", *given)
    failed = run("export", tmp_path / "project", "--scheduler", "local", fails=True)
    assert "is not in shards and needs no scheduler" in str(failed.exception)
