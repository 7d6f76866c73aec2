"""Running suites: the numbers of the plain loop, stored, resumed after a kill, exported."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import Future

import numpy as np
import pytest
from click.testing import CliRunner

from galaxy_al import GalaxyError, simulate
from galaxy_al.cli.main import cli
from galaxy_al.data.tables import read_table
from galaxy_al.experiments import datasets as pools
from galaxy_al.experiments.results import Results
from galaxy_al.experiments.runner import _raise_first_failure
from galaxy_al.experiments.runs import complete_run, make_head
from galaxy_al.experiments.suite import Head, Method, Run, load_suite

pytestmark = pytest.mark.torch
HEAD = Head("linear", weight_decay=0.01)
SUITE = """
title = "Small"
figure = "none"
settings = ["cifar10-2", "cifar10-3"]
strategies = ["galaxy", "confidence", "random"]
seeds = [0, 1]
batch_size = 20
rounds = 6
measures = ["balanced_accuracy", "rare_share"]

[frozen]
head = { network = "linear", weight_decay = 0.01 }
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Ready embeddings of a tiny CIFAR-10."""
    rng = np.random.default_rng(0)
    labels = rng.choice(10, 400, p=[0.05, 0.05, *[0.1125] * 8]).astype(np.uint8)
    embeddings = (rng.normal(size=(400, 6)) + 2 * np.eye(10, 6)[labels]).astype(np.float16)
    np.savez(tmp_path / "cifar10-embeddings.npz", embeddings=embeddings, labels=labels)
    monkeypatch.setenv("GALAXY_AL_DATA", str(tmp_path))
    pools.load_labeled_pool.cache_clear()
    (tmp_path / "small.toml").write_text(SUITE)
    return embeddings.astype(np.float32), labels.astype(int)


def run_of(strategy="galaxy", seed=0, setting="cifar10-3", head=HEAD, **options):
    return Run(setting, Method(strategy, strategy, options), seed, 20, head)


def rounds_of(path):
    """Everything but the seconds, which are never the same."""
    columns = "key, round, n_labels, balanced_accuracy, average_precision, f1, rare_found, indices"
    query = f"select {columns}, generator_state from rounds order by key, round"
    with sqlite3.connect(path) as db:
        return db.execute(query).fetchall()


def test_rare_classes_are_thinned_to_one_in_a_thousand(monkeypatch, data):
    _, labels = data
    monkeypatch.setattr(pools, "THINNED_TO", 40)
    found, whole = (
        pools.load_labeled_pool(name, False) for name in ("cifar10-3-thinned", "cifar10-3")
    )
    n_big = np.count_nonzero(labels >= 2)
    assert np.bincount(found.truth).tolist() == [n_big // 40, n_big // 40, n_big]
    assert len(found.items) == len(found.truth)
    places = {row.tobytes(): i for i, row in enumerate(whole.items)}
    assert (whole.truth[[places[row.tobytes()] for row in found.items]] == found.truth).all()
    assert found.source != whole.source


def test_small_pools_keep_the_shares_of_the_classes(monkeypatch, data):
    _, labels = data
    monkeypatch.setattr(pools, "SMALL_SIZE", 101)
    small, whole = (
        pools.load_labeled_pool(name, False) for name in ("cifar10-3-small", "cifar10-3")
    )
    exact = np.bincount(np.minimum(labels, 2)) * 101 / 400
    assert len(small.truth) == len(small.items) == 101
    assert (np.abs(np.bincount(small.truth) - exact) < 1).all()
    places = {row.tobytes(): i for i, row in enumerate(whole.items)}
    rows = [places[row.tobytes()] for row in small.items]
    assert len(set(rows)) == 101
    assert (whole.truth[rows] == small.truth).all()
    assert small.source != whole.source


def test_one_answer_in_ten_is_wrong_and_the_truth_is_still_what_is_judged_by(data, tmp_path):
    embeddings, labels = data
    noisy, truth = pools.load_labeled_pool("cifar10-3-noisy", False), np.minimum(labels, 2)
    answers = np.array([noisy.answer(i) for i in range(400)])
    assert (noisy.truth == truth).all()
    assert 20 <= np.count_nonzero(answers != truth) <= 60
    complete_run(run_of("margin", setting="cifar10-3-noisy"), 5, tmp_path / "r.sqlite")
    head = make_head(HEAD, 3, 0)
    history = simulate(embeddings, truth, "margin", head, 20, 5, 0, annotator=noisy.answer)
    table = Results(tmp_path / "r.sqlite").table()
    assert table["average_precision"] == [step.average_precision for step in history]


@pytest.mark.parametrize("setting", ["cifar10-3", "cifar10-3-noisy"])
def test_the_default_resumes_to_the_same_numbers(data, tmp_path, setting):
    whole = run_of("fair-cuts", setting=setting, head=Head())
    complete_run(whole, 6, tmp_path / "whole.sqlite")
    for rounds in (2, 3, 6):
        complete_run(whole, rounds, tmp_path / "parts.sqlite")
    assert rounds_of(tmp_path / "parts.sqlite") == rounds_of(tmp_path / "whole.sqlite")


def test_a_run_has_the_numbers_of_the_plain_loop(data, tmp_path):
    embeddings, labels = data
    complete_run(run_of(across="rotate"), 5, tmp_path / "r.sqlite")
    from galaxy_al.strategies import Galaxy

    truth = np.minimum(labels, 2)
    history = simulate(embeddings, truth, Galaxy("rotate"), make_head(HEAD, 3, 0), 20, 5, 0)
    table = Results(tmp_path / "r.sqlite").table()
    for name in ("n_labels", "balanced_accuracy", "average_precision", "f1", "rare_found"):
        assert table[name] == [getattr(step, name) for step in history]
    assert [tuple(json.loads(i)) for i in table["indices"]] == [s.indices for s in history]
    assert table["n_examples"][0] == 400
    assert table["n_rare"][0] == np.count_nonzero(labels < 2)
    assert json.loads(table["versions"][0])["numpy"] == np.__version__
    assert json.loads(table["config"][0])["seed"] == 0
    parts = [sum(table[part]) for part in ("selection", "training", "scoring", "judging")]
    assert min(parts) > 0
    assert sum(parts) <= sum(table["whole"])


@pytest.mark.parametrize("strategy", ["galaxy", "s2", "badge", "direct", "cluster-margin"])
def test_a_run_that_resumes_has_the_numbers_of_one_that_never_stopped(data, tmp_path, strategy):
    complete_run(run_of(strategy), 6, tmp_path / "whole.sqlite")
    for rounds in (1, 2, 5, 6, 6):
        complete_run(run_of(strategy), rounds, tmp_path / "parts.sqlite")
    assert rounds_of(tmp_path / "parts.sqlite") == rounds_of(tmp_path / "whole.sqlite")


def test_s2_can_be_judged_by_the_nearest_label_on_its_graph(data, tmp_path):
    from galaxy_al.graphs.neighbor_graph import knn_graph

    embeddings, labels = data
    nearest = Run("cifar10-3", Method("s2", "s2", {}, "graph"), 0, 20, HEAD)
    complete_run(nearest, 4, tmp_path / "r.sqlite")
    complete_run(run_of("s2"), 4, tmp_path / "r.sqlite")
    table = Results(tmp_path / "r.sqlite").table()
    by_key = {}
    for key, indices, accuracy in zip(
        table["key"], table["indices"], table["balanced_accuracy"], strict=True
    ):
        by_key.setdefault(key, []).append((json.loads(indices), accuracy))
    graph, head = by_key[nearest.key], by_key[run_of("s2").key]
    assert [asked for asked, _ in graph] == [asked for asked, _ in head]
    assert [accuracy for _, accuracy in graph] != [accuracy for _, accuracy in head]
    # The last accuracy by breadth-first search in plain Python; only untied examples are judged.
    truth, near = np.minimum(labels, 2), knn_graph(embeddings).toarray() > 0
    known = [i for asked, _ in graph for i in asked]
    hops = np.full((3, 400), np.inf)
    for k in range(3):
        front = {i for i in known if truth[i] == k}
        seen, step = set(), 0
        while front:
            hops[k, list(front)] = step
            seen |= front
            front = set(np.flatnonzero(near[list(front)].any(axis=0)).tolist()) - seen
            step += 1
    order = np.sort(hops, axis=0)
    untied = order[0] < order[1]
    right = (hops.argmin(axis=0) == truth)[untied]
    least = np.mean([right[truth[untied] == k].sum() / (truth == k).sum() for k in range(3)])
    most = least + np.mean([(~untied[truth == k]).sum() / (truth == k).sum() for k in range(3)])
    assert least - 1e-9 <= graph[-1][1] <= most + 1e-9


def test_the_papers_network_runs_on_a_settings_images(tmp_path, monkeypatch):
    from dataclasses import replace

    from galaxy_al.data import SETTINGS, archives
    from galaxy_al.data import paper as settings
    from support import tiny_archives

    rng = np.random.default_rng(0)
    original = rng.integers(0, 9, size=60)
    images = rng.integers(0, 256, size=(60, 28, 28, 3), dtype=np.uint8)
    path = tmp_path / "pathmnist.npz"
    tiny_archives.write_pathmnist(path, images, original)
    monkeypatch.setenv("GALAXY_AL_HOME", str(tmp_path))
    archive = archives.ARCHIVES["pathmnist"]
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    monkeypatch.setitem(archives.ARCHIVES, "pathmnist", replace(archive, md5=md5))
    sizes = (int((original == 7).sum()), int((original != 7).sum()))
    setting = replace(SETTINGS["pathmnist-2"], sizes=sizes)
    monkeypatch.setitem(settings.SETTINGS, "pathmnist-2", setting)
    pools.load_labeled_pool.cache_clear()
    network = Head("resnet18", steps=2, rate=1e-4, precision="bfloat16")
    found = run_of("galaxy", setting="pathmnist-2", head=network)
    complete_run(found, 3, tmp_path / "r.sqlite")
    assert Results(tmp_path / "r.sqlite").progress(99)[found.key].n_labels == 60
    for rounds in (1, 2, 3):
        complete_run(found, rounds, tmp_path / "parts.sqlite")
    assert rounds_of(tmp_path / "parts.sqlite") == rounds_of(tmp_path / "r.sqlite")


def test_a_pool_that_ends_ends_the_run_and_it_counts_as_done(data, tmp_path):
    path = tmp_path / "r.sqlite"
    complete_run(run_of("random"), 50, path)
    found = Results(path).progress(99)[run_of("random").key]
    assert (found.n_labels, found.rounds, found.is_done(50)) == (400, 20, True)


def test_results_on_other_data_are_not_mixed(data, tmp_path, monkeypatch):
    complete_run(run_of(), 1, tmp_path / "r.sqlite")
    np.savez(tmp_path / "cifar10-embeddings.npz", embeddings=data[0][:300], labels=data[1][:300])
    pools.load_labeled_pool.cache_clear()
    with pytest.raises(GalaxyError, match=r"r.sqlite has results of galaxy on other data"):
        complete_run(run_of(), 2, tmp_path / "r.sqlite")


def bench(tmp_path, *arguments):
    results = ["--results", str(tmp_path / "r.sqlite")]
    command = ["bench", *map(str, arguments), *results]
    return CliRunner().invoke(cli, command, catch_exceptions=False)


COMMAND = [sys.executable, "-m", "galaxy_al", "bench", "run"]


def test_a_bench_that_is_killed_again_and_again_ends_with_the_same_numbers(data, tmp_path):
    suite = tmp_path / "small.toml"
    whole, parts = tmp_path / "whole.sqlite", tmp_path / "parts.sqlite"
    subprocess.run([*COMMAND, suite, "--results", whole], check=True, capture_output=True)
    assert len(rounds_of(whole)) == 12 * 6
    for wanted in (5, 30):
        process = subprocess.Popen(
            [*COMMAND, suite, "--results", parts, "--jobs", "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if parts.exists() and n_rounds(parts) >= wanted:
                break
            time.sleep(0.02)
        process.kill()
        process.wait()
        wait_for_children(process.pid)
    assert n_rounds(parts) < 12 * 6
    assert set(rounds_of(parts)) <= set(rounds_of(whole))
    subprocess.run([*COMMAND, suite, "--results", parts], check=True, capture_output=True)
    assert rounds_of(parts) == rounds_of(whole)


def n_rounds(path):
    try:
        with sqlite3.connect(path) as db:
            return db.execute("select count(*) from rounds").fetchone()[0]
    except sqlite3.OperationalError:  # not made yet
        return 0


def wait_for_children(group):
    """The processes of the bench end by themselves when it is killed."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("some processes went on")


def test_run_status_export_plot_and_report(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = tmp_path / "small.toml"
    done = bench(tmp_path, "run", suite)
    assert "12 of 12 runs are done" in done.output
    before = rounds_of(tmp_path / "r.sqlite")
    assert "12 of 12 runs are done" in bench(tmp_path, "run", suite).output
    assert rounds_of(tmp_path / "r.sqlite") == before
    assert "2 of 2" in bench(tmp_path, "status", suite).output
    for ending in ("csv", "parquet", "json"):
        out = tmp_path / f"out.{'jsonl' if ending == 'json' else ending}"
        assert "72 rounds" in bench(tmp_path, "export", "--format", ending, "--output", out).output
        table = read_table(out)
        assert len(table) == 72
        assert float(table.column("f1")[3]) == Results(tmp_path / "r.sqlite").table()["f1"][3]
    shown = bench(tmp_path, "plot", suite, "--output", "figures", "--format", "png")
    assert "small-cifar10-3.png" in shown.output
    assert (tmp_path / "figures" / "small-cifar10-2.png").read_bytes()[:4] == b"\x89PNG"
    for ending, start in (("svg", b"<?xml"), ("pdf", b"%PDF")):
        bench(tmp_path, "plot", suite, "--output", "figures", "--format", ending)
        written = tmp_path / "figures" / f"small-cifar10-2.{ending}"
        assert written.read_bytes().startswith(start)
    bench(tmp_path, "report", suite)
    page = (tmp_path / "small.html").read_text()
    assert page.count("<svg") == 2
    assert "http" not in page.split("<body>")[1].replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "").replace("https://matplotlib.org", "")


def test_without_results_or_with_two_sources_it_says_so(data, tmp_path):
    suite = tmp_path / "small.toml"
    for arguments, message in [
        (("status", suite), "There is no results file"),
        (("run",), "Name either a suite or your own data with --pool"),
        (("run", suite, "--pool", "x.csv"), "either a suite or your own data"),
        (("run", suite, "--log", "paper:x"), "Unknown tracker 'paper:x'"),
        (("run", suite, "--rounds", "2"), "--rounds is for --pool; a suite defines its own"),
        (("run", "--pool", "x.npz", "--size", "paper"), "--size is for suites"),
    ]:
        with pytest.raises((GalaxyError, ValueError), match=message):
            bench(tmp_path, *arguments)
    complete_run(run_of("entropy"), 1, tmp_path / "r.sqlite")
    with pytest.raises(GalaxyError, match=r"has no results of small \(frozen\)"):
        bench(tmp_path, "report", suite)


def test_with_any_number_of_jobs_the_numbers_are_the_same(tmp_path):
    rng = np.random.default_rng(0)  # large enough for libraries to use their threads
    labels = rng.choice(10, 20_000).astype(np.uint8)
    embeddings = (rng.normal(size=(20_000, 64)) + np.eye(10, 64)[labels]).astype(np.float16)
    np.savez(tmp_path / "cifar10-embeddings.npz", embeddings=embeddings, labels=labels)
    (tmp_path / "one.toml").write_text(SUITE.replace("rounds = 6", "rounds = 3"))
    environment = {**os.environ, "GALAXY_AL_DATA": str(tmp_path)}
    found = []
    for jobs, threads in ((1, "2"), (2, "1")):
        path = tmp_path / f"{jobs}.sqlite"
        command = [*COMMAND, tmp_path / "one.toml", "--results", path, "--jobs", str(jobs)]
        environment["OMP_NUM_THREADS"] = threads
        subprocess.run(command, check=True, capture_output=True, env=environment)
        found.append(rounds_of(path))
    assert found[0] == found[1]


def test_a_shorter_suite_is_not_judged_by_the_rounds_of_a_longer_one(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for rounds in (3, 6):
        text = SUITE.replace("rounds = 6", f"rounds = {rounds}")
        (tmp_path / f"s{rounds}.toml").write_text(text)
    bench(tmp_path, "run", "s3.toml")
    bench(tmp_path, "report", "s3.toml", "--output", "before.md")
    before = bench(tmp_path, "status", "s3.toml").output
    bench(tmp_path, "run", "s6.toml")
    bench(tmp_path, "report", "s3.toml", "--output", "after.md")
    assert bench(tmp_path, "status", "s3.toml").output == before

    def but_times(name):
        parts = (tmp_path / name).read_text().split("**Time of a batch")
        return [parts[0], *(part.partition("## ")[2] for part in parts[1:])]

    assert but_times("after.md") == but_times("before.md")


def test_changed_labels_of_ones_own_pool_are_noticed_and_bad_rows_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.npz"
    table = np.random.default_rng(0).normal(size=(60, 3))
    labels = np.repeat([0, 1], [10, 50])
    own = ("--pool", "mine.npz", "--batch-size", "20", "--rounds", "1")
    np.savez(path, embeddings=table, labels=labels)
    pools.load_labeled_pool.cache_clear()
    bench(tmp_path, "run", *own)
    np.savez(path, embeddings=table, labels=np.roll(labels, 1))
    pools.load_labeled_pool.cache_clear()
    with pytest.raises(GalaxyError, match=r"on other data: .* changed since. Name another"):
        bench(tmp_path, "run", *own)
    table[7] = np.nan
    np.savez(path, embeddings=table, labels=labels)
    pools.load_labeled_pool.cache_clear()
    (tmp_path / "r.sqlite").unlink()
    done = bench(tmp_path, "run", *own)
    assert "(unreadable or not finite): 1" in done.output


def test_results_are_read_without_being_written(data, tmp_path):
    with sqlite3.connect(tmp_path / "r.sqlite") as db:
        db.execute("create table mine (a)")
    with pytest.raises(GalaxyError, match=r"r.sqlite: this is not a results file"):
        bench(tmp_path, "status", tmp_path / "small.toml")
    with sqlite3.connect(tmp_path / "r.sqlite") as db:
        assert db.execute("select name from sqlite_master").fetchall() == [("mine",)]


def test_a_process_that_is_killed_is_reported_and_the_rest_is_stored(data, tmp_path):
    text = SUITE.replace("rounds = 6", "rounds = 19")
    (tmp_path / "long.toml").write_text(text)
    path = tmp_path / "r.sqlite"
    process = subprocess.Popen(
        [*COMMAND, tmp_path / "long.toml", "--results", path, "--jobs", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not (path.exists() and n_rounds(path) > 3):
        time.sleep(0.02)
    found = subprocess.run(
        ["ps", "-ewwo", "pid,ppid,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in found.stdout.splitlines()[1:]]
    workers = [
        int(pid)
        for pid, parent, what in rows
        if parent == str(process.pid) and "spawn_main" in what
    ]
    os.kill(workers[0], signal.SIGKILL)
    _, reported = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "A process was killed, perhaps because memory ran out" in reported
    assert reported.count("\n") == 1
    assert n_rounds(path) > 3


def test_a_second_bench_on_the_same_results_is_refused(data, tmp_path):
    from galaxy_al.system.files import locked

    with (
        locked(tmp_path / "r.sqlite.lock"),
        pytest.raises(GalaxyError, match=r"Another process is running: it holds .*r.sqlite.lock"),
    ):
        bench(tmp_path, "run", tmp_path / "small.toml")


def test_a_run_that_fails_does_not_stop_the_others(data, tmp_path):
    text = SUITE.replace('"random"]', '{ strategy = "bait", candidates = 1 }, "random"]')
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(GalaxyError, match=r"4 of 16 runs failed. The first, bait on cifar10-2"):
        bench(tmp_path, "run", tmp_path / "bad.toml")
    table = Results(tmp_path / "r.sqlite").table()
    assert sum(label != "bait" for label in table["label"]) == 72


def test_a_bug_in_a_run_is_reported_as_one():
    failed = Future()
    failed.set_exception(ZeroDivisionError("division by zero"))
    run = Run("cifar10-2", Method("random", "random"), 0, 10, Head())
    with pytest.raises(RuntimeError, match=r"1 of 1 runs failed\. The first, random on .*zero"):
        _raise_first_failure({failed: run})


def test_ones_own_labelled_table_shows_which_strategy_would_have_served_best(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(300) < 0.1, "rare", "fine")
    vectors = rng.normal(size=(300, 4)) + 2 * (truth == "rare")[:, None]
    rows = zip(vectors.tolist(), truth.tolist(), strict=True)
    lines = [json.dumps({"embedding": vector, "kind": name}) for vector, name in rows]
    (tmp_path / "mine.jsonl").write_text("\n".join([*lines, json.dumps({"embedding": [0] * 4})]))
    pools.load_labeled_pool.cache_clear()
    own = ("--pool", "mine.jsonl", "--labels", "kind", "--batch-size", "20", "--rounds", "3")
    done = bench(tmp_path, "run", *own)
    assert "44 of 44 runs are done" in done.output
    table = Results(tmp_path / "r.sqlite").table()
    assert set(table["n_examples"]) == {300}
    assert set(table["n_rare"]) == {int(np.count_nonzero(truth == "rare"))}
    bench(tmp_path, "report", *own)
    assert "<h2>mine</h2>" in (tmp_path / "mine.html").read_text()
    with pytest.raises(GalaxyError, match=r"Unknown kind 'sounds'\. Choose from: embed"):
        bench(tmp_path, "run", *own, "--kind", "sounds")


def test_rounds_are_reported_to_tensorboard_as_they_finish(data, tmp_path, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.chdir(tmp_path)
    bench(tmp_path, "run", tmp_path / "small.toml", "--log", f"tensorboard:{tmp_path / 'logs'}")
    folder = tmp_path / "logs" / "cifar10-3" / "galaxy" / "seed 1"
    events = EventAccumulator(str(folder)).Reload()
    reported = events.Tensors("balanced_accuracy")
    suite = load_suite(tmp_path / "small.toml", "frozen")
    (key,) = [
        c.key
        for c in suite.runs()
        if (c.setting, c.method.label, c.seed) == ("cifar10-3", "galaxy", 1)
    ]
    table = Results(tmp_path / "r.sqlite").table()
    rows = [row for row, found in enumerate(table["key"]) if found == key]
    assert [event.step for event in reported] == [table["n_labels"][row] for row in rows]
    values = [event.tensor_proto.float_val[0] for event in reported]
    np.testing.assert_allclose(values, [table["balanced_accuracy"][row] for row in rows], rtol=1e-6)
