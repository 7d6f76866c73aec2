"""The workers of a real cluster answer as this process does, also if one of them is killed."""

import os
import signal
import threading

import numpy as np
import pytest

from galaxy_al import Learner, Snapshot
from galaxy_al.cluster.connecting import connected
from galaxy_al.cluster.parts import ClusterParts
from galaxy_al.errors import GalaxyError
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.simulation import simulate
from galaxy_al.strategies import make_strategy
from support.clusters import on_cluster
from support.every_strategy import last_layer, some_pool
from support.shardings import converse, on_shards


def squared(part):
    return part * part


def add(one, other):
    return one + other


def test_work_is_done_where_the_parts_are(client):
    parts = ClusterParts.of(client, list(range(10))).map(squared)
    assert len(parts) == 10
    assert parts.reduce(lambda part: part + 1, add) == 10 + sum(i * i for i in range(10))
    assert parts.some(lambda part, more: part + more, {3: 100, 1: 200}) == [109, 201]
    assert parts.map(add, parts).reduce(lambda part: part, add) == 2 * sum(i * i for i in range(10))
    processes = parts.some(lambda part, _: os.getpid(), dict.fromkeys(range(10)))
    assert len(set(processes)) == 2
    assert os.getpid() not in processes


def test_errors_of_the_work_come_back(client):
    parts = ClusterParts.of(client, [1, 0])
    with pytest.raises(ZeroDivisionError):
        parts.reduce(lambda part: 1 / part, add)
    with pytest.raises(ZeroDivisionError):
        parts.map(lambda part: 1 / part).reduce(lambda part: part, add)
    with pytest.raises(OSError, match="no such file"):
        parts.some(fail_to_read, {0: None})


def fail_to_read(part, _):
    raise OSError("no such file")


@pytest.mark.parametrize("name", ["galaxy", "direct", "fair-cuts", "base", "entropy", "random"])
def test_questions_are_those_of_one_process(client, name):
    proba, _, labels = some_pool(size=500, n_labeled=40)
    whole = Snapshot(proba, labels, *last_layer(proba))
    shards = on_shards(whole, [0, 7, 200, 201, 450, 500], on_cluster(client))
    asked = [
        converse(make_strategy(name).start(each, rng=np.random.default_rng(3)), 3, seed=3, steps=15)
        for each in (whole, shards)
    ]
    assert asked[0] == asked[1]


def rare_pool(size=3000, width=16, seed=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(size) > 0.03).astype(int)
    pool = rng.normal(size=(size, width)) + 2 * rng.normal(size=(2, width))[truth]
    return pool.astype(np.float16), truth


def test_a_simulation_is_that_of_one_process(client):
    pool, truth = rare_pool()
    table = on_cluster(client)(pool, [0, 1000, 1800, 3000])
    assert simulate(table, truth, batch_size=15, rounds=3) == simulate(
        pool, truth, batch_size=15, rounds=3
    )


def kill_a_worker(client):
    """Kill the process of a worker, as `kill -9` does."""
    alive = client.run(os.getpid, on_error="ignore").values()
    os.kill(min(alive), signal.SIGKILL)


def test_a_worker_killed_while_the_pool_is_scored_changes_nothing(client):
    pool, truth = rare_pool(size=40_000, width=64)
    labels = {int(i): int(truth[i]) for i in range(0, 40_000, 100)}
    table = on_cluster(client)(pool, list(range(0, 40_001, 2000)))
    expected = AutoTrainer(n_classes=2).fit(pool, labels)
    np.testing.assert_array_equal(table[[0, 39_999]], pool[[0, 39_999]])
    timer = threading.Timer(0.3, kill_a_worker, [client])
    timer.start()
    model = AutoTrainer(n_classes=2).fit(table, labels)
    timer.join()
    np.testing.assert_array_equal(np.asarray(model.proba(table)), expected.proba(pool))
    np.testing.assert_array_equal(model.class_priors, expected.class_priors)


def test_a_worker_killed_in_the_middle_of_a_batch_changes_nothing(client):
    pool, truth = rare_pool()
    table = on_cluster(client)(pool, [0, 1000, 1800, 3000])
    asked = []
    for each, kills in ((pool, False), (table, True)):
        learner = Learner(each, n_classes=2, batch_size=30, seed=1)
        learner.resume({int(i): int(truth[i]) for i in range(0, 3000, 10)})
        asked.append([])
        for step in range(30):
            if kills and step in (10, 20):
                kill_a_worker(client)
            index = learner.ask()
            learner.tell(index, int(truth[index]))
            asked[-1].append(index)
    assert asked[0] == asked[1]


def test_a_task_that_kills_its_workers_is_given_up(client):
    parts = ClusterParts.of(client, [1]).map(die)
    with pytest.raises(GalaxyError, match="lost its worker several times"):
        parts.reduce(lambda part: part, add)


def die(part):
    os._exit(1)


def test_workers_that_dask_has_given_up_are_started_again():
    with connected("local", n_workers=1) as client:
        (first,) = client.run(os.getpid).values()
        (nanny,) = client.cluster.workers.values()
        client.cluster.sync(nanny.close)  # as dask does if a worker is killed twice in 15 seconds
        assert client.submit(os.getpid, pure=False).result(timeout=60) != first
