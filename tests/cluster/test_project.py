"""A project on a pool in shards asks, finds, exports and trains as one on the same array."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from galaxy_al import Learner
from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.labelling.project import create_project, open_project
from galaxy_al.labelling.service import Service
from galaxy_al.models.embedders import known_as
from galaxy_al.server.search import Finder
from support.commands import read_csv, run
from support.onnx_models import text_model, write_tokenizer

SIZE, WIDTH = 3000, 24


@pytest.fixture
def pool(tmp_path):
    """An array of vectors with ids, the same in shards, and the classes."""
    rng = np.random.default_rng(0)
    truth = rng.random(SIZE) > 0.02
    middles = rng.normal(size=(2, WIDTH)) * 1.2
    vectors = (rng.normal(size=(SIZE, WIDTH)) + middles[truth.astype(int)]).astype(np.float32)
    ids = np.array([f"part {i:05}" for i in range(SIZE)])
    np.savez(tmp_path / "pool.npz", embeddings=vectors, ids=ids)
    run("embed", tmp_path / "pool.npz", "--out", tmp_path / "shards", "--rows", "700")
    return tmp_path, dict(zip(ids.tolist(), np.where(truth, "fine", "dent").tolist()))


OPTIONS = {"classes": ["dent"], "other": "fine", "batch_size": 15}


def projects(folder, scheduler=""):
    in_memory = create_project(folder / "memory", folder / "pool.npz", kind="embeddings", **OPTIONS)
    in_shards = create_project(
        folder / "project", folder / "shards", shards=True, scheduler=scheduler, **OPTIONS
    )
    return in_memory, in_shards


def label(service, truth, count):
    asked = []
    for _ in range(count):
        question = service.next("ann", ahead=True)
        service.label("ann", {question.id: truth[question.id]})
        service.wait()  # for the training, which begins at the same answers then
        asked.append((question.id, dict(question.ahead)))
    return asked


@pytest.mark.parametrize("on_cluster", [False, True])
def test_the_same_questions_searches_exports_and_models(pool, client, on_cluster):
    folder, truth = pool
    address = client.scheduler.address if on_cluster else ""
    services = [Service(project) for project in projects(folder, address)]
    asked = [label(service, truth, 60) for service in services]
    assert asked[0] == asked[1]
    assert "dent" in {truth[id] for id, _ in asked[0]}
    for service in services:
        service.undo("ann")
        service.skip("ann", service.next("ann").id, cannot_tell=True)
        service.wait()
    views = [service.view() for service in services]
    assert views[0].labels == views[1].labels
    assert views[0].rankings == views[1].rankings
    finders = [Finder(service) for service in services]
    some = asked[0][7][0]
    for find in (
        lambda finder: finder.likeliest("dent", 20),
        lambda finder: finder.like(some, 20),
        lambda finder: finder.walk(None, 0),
        lambda finder: finder.walk(some, 200),
    ):
        assert find(finders[0]) == find(finders[1])
    for service in services:
        service.close()
    outputs = [
        export_and_train(folder / name, folder / new)
        for name, new in (("memory", "pool.npz"), ("project", "shards"))
    ]
    assert outputs[0] == outputs[1]


def export_and_train(project, new_data):
    run("export", project, "--output", project / "labels.csv")
    said = run("train", project).output.replace(str(project), "PROJECT")
    rows = [
        {key: value for key, value in row.items() if key != "created_at"}
        for row in read_csv(project / "labels.csv")
    ]
    predicted = project / "predicted.csv"
    run("predict", project / "model", new_data, "--output", predicted, "--prevalence", "0.01")
    return rows, said, read_csv(predicted)


def test_a_project_is_opened_again_where_it_was(pool):
    folder, truth = pool
    _, project = projects(folder)
    service = Service(project)
    asked = label(service, truth, 40)
    service.close()
    again = Service(open_project(folder / "project"))
    assert len(again.view().labels) == 40
    assert again.next("ann").id not in {id for id, _ in asked}
    again.close()


def test_labels_are_imported_by_id(pool):
    folder, truth = pool
    some = list(truth)[::100]
    lines = [f"{id},{truth[id]}\n" for id in some]
    (folder / "known.csv").write_text("id,label\n" + "".join(lines))
    said = run(
        "init", folder / "project", "--shards", folder / "shards",
        "--classes", "dent", "--other", "fine", "--import-labels", folder / "known.csv",
    )  # fmt: skip
    assert "30 labels imported" in said.output
    assert "30 labels (30 imported)" in run("status", folder / "project").output


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--strategy", "badge"], "needs the whole pool at once"),
        (["--head", "mlp"], "needs the whole pool at once"),
        (["--column", "x"], "--column does not apply to a pool in shards"),
        (["--embedder", "clip"], "--embedder does not apply to a pool in shards"),
        ([], r"000002\.npy has changed"),
    ],
)
@pytest.mark.parametrize("imports", [False, True])
def test_a_project_that_is_refused_leaves_nothing(pool, options, match, imports):
    folder, truth = pool
    if not options:
        file = folder / "shards" / "000002.npy"
        file.write_bytes(file.read_bytes()[:-4] + b"none")
    if imports:
        (folder / "known.csv").write_text(f"id,label\n{next(iter(truth))},fine\n")
        options = [*options, "--import-labels", folder / "known.csv"]
    result = run(
        "init", folder / "project", "--shards", folder / "shards",
        "--classes", "dent", "--other", "fine", *options, fails=True,
    )  # fmt: skip
    assert re.search(match, f"{result.output} {result.exception}")
    assert not (folder / "project").exists()


@pytest.mark.parametrize("head", [LogisticRegression(), lambda seed: LogisticRegression()])
def test_a_classifier_that_needs_the_whole_pool_is_refused(pool, head):
    with pytest.raises(InvalidArgument, match=r"The head .* needs the whole pool at once"):
        Learner(ShardedPool(pool[0] / "shards"), n_classes=2, head=head)


def test_the_words_of_texts_are_refused(pool):
    shards, texts = ShardedPool(pool[0] / "shards"), ["a text"] * SIZE
    with pytest.raises(InvalidArgument, match=r"need the whole pool at once.* Leave out texts"):
        Learner(shards, n_classes=2, goal="find-all", texts=texts)
    Learner(shards, n_classes=2, texts=texts)  # this goal does not look at words


@pytest.fixture
def mails(tmp_path):
    """A table of texts, the same in shards by a model of its own, and a project with labels."""
    text_model(tmp_path / "model.onnx", ["input_ids"])
    write_tokenizer(tmp_path)
    rows = [f"m{i},{'win a prize' if i % 9 == 0 else 'mail'} number {i}\n" for i in range(60)]
    (tmp_path / "mails.csv").write_text("id,text\n" + "".join(rows))
    options = ("--embedder", tmp_path / "model.onnx", "--dtype", "float32")
    run("embed", tmp_path / "mails.csv", "--out", tmp_path / "shards", *options)
    known = "".join(f"m{i},{'spam' if i % 9 == 0 else 'ham'}\n" for i in range(40))
    (tmp_path / "known.csv").write_text(f"id,label\n{known}")
    run(
        "init", tmp_path / "project", "--shards", tmp_path / "shards",
        "--classes", "spam", "--other", "ham", "--import-labels", tmp_path / "known.csv",
    )  # fmt: skip
    return tmp_path


def test_the_model_that_made_the_shards_embeds_what_is_new(mails):
    run("train", mails / "project")
    run("predict", mails / "project" / "model", mails / "mails.csv", "--output", mails / "a.csv")
    run("predict", mails / "project" / "model", mails / "shards", "--output", mails / "b.csv")
    for one, other in zip(read_csv(mails / "a.csv"), read_csv(mails / "b.csv")):
        assert one["id"] == other["id"]
        assert float(one["p_spam"]) == pytest.approx(float(other["p_spam"]), rel=1e-4)
    service = Service(open_project(mails / "project"))
    found = Finder(service).like_text("win a prize number 45", 3)
    assert found.examples[0].id == "m45"
    service.close()


def with_another_model(shards):
    """The same shards, as if another model had made them."""
    text = (shards / "manifest.json").read_text()
    (shards / "manifest.json").write_text(re.sub(r'"(model|embedder)": ".*"', r'"\1": ""', text))
    return shards


def test_a_pool_by_a_model_that_is_not_known_is_not_searched_by_text(mails):
    with_another_model(mails / "shards")
    service = Service(open_project(mails / "project"))
    with pytest.raises(InvalidArgument, match="not known which model"):
        Finder(service).like_text("prize", 3)
    service.close()
    run("train", mails / "project")
    result = run("predict", mails / "project" / "model", mails / "mails.csv", fails=True)
    assert isinstance(result.exception, GalaxyError)


def test_shards_of_another_model_are_not_predicted(mails):
    run("train", mails / "project")
    shards, text = mails / "shards", (mails / "shards" / "manifest.json").read_text()
    (shards / "manifest.json").write_text(re.sub(r'"model": ".*"', '"model": "other 1"', text))
    result = run("predict", mails / "project" / "model", shards, fails=True)
    assert "were made by 'other 1'" in str(result.exception)


@pytest.mark.parametrize(
    ("pool", "option", "what"),
    [
        ("mails.csv", "--scheduler", "that is not in"),
        ("shards", "--column", "in"),
        ("shards", "--kind", "in"),
    ],
)
def test_options_that_would_be_ignored_are_refused(mails, pool, option, what):
    run("train", mails / "project")
    model = mails / "project" / "model"
    said = run("predict", model, mails / pool, option, "local", fails=True).output
    assert f"{option} does not apply to a pool {what} shards." in said


def test_a_model_whose_version_is_its_name_is_named_once():
    assert known_as("minilm", "minilm") == "minilm"
    assert known_as("clip", "2") == "clip 2"
    assert known_as("", "") == ""


@pytest.mark.parametrize("command", ["predict", "export"])
def test_tables_are_not_written_among_the_shards(mails, command):
    run("train", mails / "project")
    given = {
        "predict": ["predict", mails / "project" / "model", mails / "shards"],
        "export": ["export", mails / "project"],
    }
    before = sorted(path.name for path in (mails / "shards").iterdir())
    output = mails / "shards" / "000000.csv"
    result = run(*given[command], "--output", output, fails=True)
    assert isinstance(result.exception, GalaxyError)
    assert sorted(path.name for path in (mails / "shards").iterdir()) == before
