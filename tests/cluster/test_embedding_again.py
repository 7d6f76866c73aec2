"""Embedding into a folder that has something in it already: kept, renewed, or refused."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from galaxy_al.cluster.embedding import embed_into_shards, only_one
from galaxy_al.cluster.own_shards import write_manifest
from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.data import load_pool
from galaxy_al.errors import GalaxyError
from support.commands import run
from support.onnx_models import flat_model, text_model, write_tokenizer


@pytest.fixture
def make(client):
    """Embeds a pool with the cluster of the tests."""

    def embed(path, out, **options):
        address = client.scheduler.address
        return embed_into_shards(load_pool(path), path, str(out), scheduler=address, **options)

    return embed


@pytest.fixture
def mails(tmp_path):
    """Writes texts to a table, and says which model embeds them."""
    text_model(tmp_path / "model.onnx", ["input_ids"])
    write_tokenizer(tmp_path)
    path = tmp_path / "pool" / "mails.csv"
    path.parent.mkdir()

    def write(texts):
        path.write_text("id,text\n" + "".join(f"{id},{text}\n" for id, text in texts.items()))
        return path

    return write, {"embedder": str(tmp_path / "model.onnx"), "rows": 4, "dtype": "float32"}


def save(path, vectors):
    path.parent.mkdir(exist_ok=True)
    np.save(path, vectors)
    return path


def normal(rows, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_with_other_files_is_refused(tmp_path, client, make):
    own = save(tmp_path / "own" / "000000.npy", normal(30))
    before = files(own.parent)
    for path in (own, save(tmp_path / "other.npy", normal(20))):
        with pytest.raises(GalaxyError, match=r"is not empty: it has 000000\.npy"):
            make(path, own.parent)
    write_manifest(str(own.parent), scheduler=client.scheduler.address)
    with pytest.raises(GalaxyError, match="is not empty"):
        make(save(tmp_path / "other.npy", normal(20)), own.parent)
    assert before.items() <= files(own.parent).items()


def test_another_pool_is_refused(tmp_path, make):
    make(save(tmp_path / "x" / "a.npy", normal(30)), tmp_path / "shards", rows=10)
    before = files(tmp_path / "shards")
    for folder in ("x", "y"):
        other = save(tmp_path / folder / "b.npy", normal(30, seed=1))
        with pytest.raises(GalaxyError, match="holds the shards of another pool"):
            make(other, tmp_path / "shards", rows=10)
    assert files(tmp_path / "shards") == before


def test_a_pool_that_has_moved_is_the_same(tmp_path, make):
    make(save(tmp_path / "x" / "a.npy", normal(30)), tmp_path / "shards", rows=10)
    moved = save(tmp_path / "y" / "a.npy", normal(30))
    made = make(moved, tmp_path / "shards", rows=10)
    assert made.n_made == 0
    assert made.manifest.source == str(tmp_path / "y")


def test_a_text_that_has_changed_is_shown_as_it_is_now(tmp_path, mails, make):
    write, options = mails
    texts = {f"m{i}": f"mail number {i}" for i in range(9)}
    make(write(texts), tmp_path / "shards", **options)
    before = np.asarray(ShardedPool(tmp_path / "shards").vectors)
    texts["m1"] = "another text"
    assert make(write(texts), tmp_path / "shards", **options).n_made == 1
    pool = ShardedPool(tmp_path / "shards")
    assert [pool.items[i] for i in range(9)] == list(texts.values())
    assert pool.ids[:] == list(texts)
    is_same = (np.asarray(pool.vectors) == before).all(axis=1)
    assert is_same.tolist() == [i != 1 for i in range(9)]
    assert make(write(texts), tmp_path / "shards", **options).n_made == 0


def test_examples_that_are_gone_keep_their_vectors_and_others_are_renewed(tmp_path, mails, make):
    write, options = mails
    texts = {f"m{i}": f"mail number {i}" for i in range(9)}
    make(write(texts), tmp_path / "shards", **options)
    before = np.asarray(ShardedPool(tmp_path / "shards").vectors)
    texts["m5"] = "another text"
    del texts["m6"]
    assert make(write(texts), tmp_path / "shards", **options).n_made == 1
    pool = ShardedPool(tmp_path / "shards")
    assert pool.bad == {6: "'m6' is gone."}
    assert pool.items[5] == "another text"
    is_same = (np.asarray(pool.vectors) == before).all(axis=1)
    assert is_same.tolist() == [i != 5 for i in range(9)]
    assert make(write(texts), tmp_path / "shards", **options).n_made == 0


@pytest.mark.parametrize("harm", ["missing", "short", "changed"])
def test_a_shard_whose_file_is_not_what_it_was_is_made_again(tmp_path, make, harm):
    path = save(tmp_path / "x" / "a.npy", normal(30))
    make(path, tmp_path / "shards", rows=10)
    before, file = files(tmp_path / "shards"), tmp_path / "shards" / "000001.npy"
    if harm == "missing":
        file.unlink()
    elif harm == "short":
        os.truncate(file, 100)
    else:
        file.write_bytes(file.read_bytes()[:-4] + b"none")
        with pytest.raises(GalaxyError, match=r"has changed since .* run `galaxy-al embed` again"):
            ShardedPool(tmp_path / "shards").check()
    made = make(path, tmp_path / "shards", rows=10)
    assert made.n_made == 1
    assert made.changed == (("000001.npy",) if harm == "changed" else ())
    assert files(tmp_path / "shards") == before


def test_ids_that_have_changed_are_refused(tmp_path, mails, make):
    write, options = mails
    path = write({f"m{i}": f"mail number {i}" for i in range(9)})
    make(path, tmp_path / "shards", **options)
    file = tmp_path / "shards" / "000001.arrow"
    file.write_bytes(file.read_bytes().replace(b"m5", b"q5"))
    with pytest.raises(GalaxyError, match=r"000001\.arrow is missing or has changed.* Put it back"):
        make(path, tmp_path / "shards", **options)


def test_rows_are_remembered_and_others_are_for_new_shards(tmp_path, make):
    vectors, path = normal(60), tmp_path / "x" / "a.npy"
    made = []
    for count, rows in ((20, 10), (40, None), (60, 20)):
        options = {} if rows is None else {"rows": rows}
        made.append(make(save(path, vectors[:count]), tmp_path / "shards", **options))
    assert [shard.rows for shard in made[-1].manifest.shards] == [10, 10, 10, 10, 20]
    assert [each.has_other_rows for each in made] == [False, False, True]


def test_the_command_says_what_it_made_again_and_what_it_kept(tmp_path):
    path = save(tmp_path / "x" / "a.npy", normal(30))
    run("embed", path, "--out", tmp_path / "shards", "--rows", "10")
    file = tmp_path / "shards" / "000001.npy"
    file.write_bytes(file.read_bytes()[:-4] + b"none")
    said = run("embed", path, "--out", tmp_path / "shards", "--rows", "30").output
    assert "000001.npy had changed and was made again." in said
    assert "The shards that were there keep their rows. --rows is for new ones." in said
    assert "30 embeddings in 3 shards, 0 of them new" in said


def test_a_manifest_of_a_later_version_is_not_overwritten(tmp_path, make):
    path = save(tmp_path / "x" / "a.npy", normal(30))
    make(path, tmp_path / "shards")
    manifest = tmp_path / "shards" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    before = files(tmp_path / "shards")
    with pytest.raises(GalaxyError, match=r"manifest\.json was written by a newer galaxy-al"):
        make(path, tmp_path / "shards")
    assert files(tmp_path / "shards") == before
    manifest.write_text("{")  # it is made again from what is known about the shards
    assert len(make(path, tmp_path / "shards").manifest.shards) == 1


def test_a_scheduler_that_cannot_be_reached_leaves_nothing(tmp_path):
    path = save(tmp_path / "x" / "a.npy", normal(30))
    with pytest.raises(GalaxyError, match="Cannot reach a scheduler"):
        embed_into_shards(load_pool(path), path, str(tmp_path / "s"), scheduler="tcp://127.0.0.1:1")
    assert not (tmp_path / "s").exists()


def test_what_was_chosen_before_is_remembered(tmp_path, mails, make):
    write, options = mails
    path = write({f"m{i}": f"mail number {i}" for i in range(9)})
    first = make(path, tmp_path / "shards", **options)
    second = make(path, tmp_path / "shards")
    assert second.n_made == 0
    assert second.manifest == first.manifest


def test_one_process_at_a_time(tmp_path, make):
    path = save(tmp_path / "x" / "a.npy", normal(30))
    with (
        only_one(str(tmp_path / "shards")),
        pytest.raises(GalaxyError, match="Another process is running"),
    ):
        make(path, tmp_path / "shards")


def test_relative_paths_mean_the_same_to_the_workers(tmp_path, client, make, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the workers were started somewhere else
    assert str(tmp_path) not in client.run(os.getcwd).values()
    save(tmp_path / "x" / "a.npy", normal(30))
    make(Path("x/a.npy"), "shards", rows=10)
    flat_model(tmp_path / "model.onnx", ["batch", 3, 4, 4])
    (tmp_path / "photos").mkdir()
    for number in range(3):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / "photos" / f"{number}.png")
    made = make(Path("photos"), "images", embedder=str(tmp_path / "model.onnx"))
    assert made.manifest.shards[0].bad == {}


def test_file_names_that_are_not_unicode(tmp_path, make):
    flat_model(tmp_path / "model.onnx", ["batch", 3, 4, 4])
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in (b"a.png", b"b\xff.png"):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            Image.new("RGB", (8, 8)).save(file, "PNG")
    options = {"embedder": str(tmp_path / "model.onnx")}
    make(folder, tmp_path / "shards", **options)
    pool = ShardedPool(tmp_path / "shards")
    assert pool.ids[:] == ["a.png", r"b\xff.png"]
    assert pool.bad == {1: r"'b\\xff.png' is not valid Unicode."}
    assert make(folder, tmp_path / "shards", **options).n_made == 0


def test_labels_of_the_pool_are_not_lost_silently(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "pool.npz",
        embeddings=normal(30),
        labels=rng.integers(0, 2, 30),
        classes=np.array(["a", "b"]),
    )
    said = run("embed", tmp_path / "pool.npz", "--out", tmp_path / "shards")
    assert "Shards have no labels" in said.output


def test_all_problems_are_counted(tmp_path):
    vectors = normal(50)
    vectors[:40] = 1e9  # too large for half precision
    save(tmp_path / "x" / "a.npy", vectors)
    said = run("embed", tmp_path / "x" / "a.npy", "--out", tmp_path / "s", "--dtype", "float16")
    assert "Cannot be used: 40 of 50 examples" in said.output
    assert said.output.count("is not finite") == 20
