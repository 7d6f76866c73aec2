"""Pools in shards: made, finished, extended, opened, and refused with a reason."""

import json
import os
import signal
import socket
import sys
import threading
from contextlib import closing, suppress

import numpy as np
import pytest
from distributed import LocalCluster
from PIL import Image

from galaxy_al import Learner
from galaxy_al.cluster import connecting, sharded_pool
from galaxy_al.cluster.connecting import check_versions
from galaxy_al.cluster.embedding import embed_into_shards
from galaxy_al.cluster.parts import ClusterParts
from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.data import load_pool
from galaxy_al.data.shard_files import ShardFile
from galaxy_al.errors import GalaxyError
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embed
from support.commands import run
from support.onnx_models import flat_model, text_model, write_tokenizer


def save_vectors(folder, size=5000, width=8, ids=False, dtype=np.float32):
    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.random.default_rng(0).normal(size=(size, width)).astype(dtype)
    path = folder / "vectors.npz"
    names = {"ids": np.array([f"example {i}" for i in range(size)])} if ids else {}
    np.savez(path, embeddings=vectors, **names)
    return path, vectors


def make(path, out, client=None, **options):
    pool = load_pool(path)
    scheduler = client.scheduler.address if client else "local"
    return embed_into_shards(pool, path, str(out), scheduler=scheduler, **options)


@pytest.fixture
def shards(tmp_path, client):
    """A folder of five shards, with the vectors that are in it."""
    path, vectors = save_vectors(tmp_path / "pool", ids=True)
    make(path, tmp_path / "shards", client, rows=1024)
    return tmp_path / "shards", vectors


@pytest.mark.parametrize("ids", [False, True])
def test_vectors_in_shards_are_the_vectors(tmp_path, client, ids):
    path, vectors = save_vectors(tmp_path / "pool", ids=ids)
    made = make(path, tmp_path / "shards", client, rows=1024)
    assert [shard.rows for shard in made.manifest.shards] == [1024] * 4 + [904]
    with ShardedPool(tmp_path / "shards", scheduler=client.scheduler.address) as pool:
        np.testing.assert_array_equal(np.asarray(pool.vectors), vectors)
        names = [f"example {i}" if ids else str(i) for i in (0, 1024, 4999)]
        assert [pool.ids[i] for i in (0, 1024, 4999)] == names
        assert pool.ids.find([*names, "no such"]) == dict(zip(names, (0, 1024, 4999)))
        fresh = ShardedPool(tmp_path / "shards")
        assert fresh.ids.find(names) == dict(zip(names, (0, 1024, 4999)))


def test_a_second_run_makes_only_what_is_missing(tmp_path, client, shards):
    folder, _ = shards
    path = tmp_path / "pool" / "vectors.npz"
    before = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.npy")}
    assert make(path, folder, client, rows=1024).n_made == 0
    (folder / "000002.json").unlink()
    assert make(path, folder, client, rows=1024).n_made == 1
    after = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.npy")}
    assert {name for name in before if before[name] != after[name]} == {"000002.npy"}


@pytest.fixture
def photos(tmp_path):
    """A folder of 30 images, one of them broken."""
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(30):
        pixels = rng.integers(0, 255, (12, 10, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:03}.png")
    (folder / "007.png").write_bytes(b"not an image")
    return folder


@pytest.fixture
def small_model(tmp_path):
    """The ONNX file of a tiny model, which workers load from the disk."""
    flat_model(tmp_path / "model.onnx", ["batch", 3, 4, 4])
    return str(tmp_path / "model.onnx")


def embedded_here(photos, small_model, tmp_path):
    """The vectors by this process alone."""
    return embed(load_pool(photos), load_embedder("images", small_model), cache=tmp_path / "cache")


def test_images_are_embedded_and_new_ones_become_new_shards(tmp_path, client, photos, small_model):
    out = tmp_path / "shards"
    first = make(photos, out, client, embedder=small_model, rows=8, dtype="float32")
    assert [shard.rows for shard in first.manifest.shards] == [8, 8, 8, 6]
    assert list(first.manifest.shards[0].bad) == ["7"]
    Image.fromarray(np.full((9, 9, 3), 200, dtype=np.uint8)).save(photos / "0005b.png")
    second = make(photos, out, client, embedder=small_model, rows=8, dtype="float32")
    assert second.n_made == 1
    assert second.manifest.shards[:4] == first.manifest.shards
    pool = ShardedPool(out)
    assert pool.ids[30] == "0005b.png"
    assert pool.ids[29] == "029.png"
    assert list(pool.bad) == [7]
    expected = embedded_here(photos, small_model, tmp_path).vectors
    order = [load_pool(photos).ids.index(pool.ids[i]) for i in range(31)]
    np.testing.assert_allclose(np.asarray(pool.vectors), expected[order], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(pool.items[3], np.asarray(Image.open(photos / "003.png")))


def test_an_image_that_has_changed_is_embedded_again(tmp_path, client, photos, small_model):
    out = tmp_path / "shards"
    make(photos, out, client, embedder=small_model, rows=8)
    Image.fromarray(np.zeros((20, 20, 3), dtype=np.uint8)).save(photos / "012.png")
    assert make(photos, out, client, embedder=small_model, rows=8).n_made == 1
    expected = embedded_here(photos, small_model, tmp_path).vectors
    np.testing.assert_allclose(ShardedPool(out).vectors[12], expected[12], rtol=1e-3)


def test_a_worker_killed_while_it_embeds_costs_only_its_shard(
    tmp_path, client, photos, small_model
):
    expected = make(photos, tmp_path / "one", client, embedder=small_model, rows=2)

    def kill():
        os.kill(min(client.run(os.getpid, on_error="ignore").values()), signal.SIGKILL)

    timer = threading.Timer(0.1, kill)
    timer.start()
    made = make(photos, tmp_path / "other", client, embedder=small_model, rows=2)
    timer.join()
    assert [shard.vectors for shard in made.manifest.shards] == [
        shard.vectors for shard in expected.manifest.shards
    ]


def test_texts_are_kept_with_their_vectors(tmp_path, client):
    folder = tmp_path / "pool"
    folder.mkdir()
    path = folder / "mails.csv"
    path.write_text("id,text\n" + "".join(f"m{i},mail number {i}\n" for i in range(9)))
    text_model(tmp_path / "model.onnx", ["input_ids"])
    write_tokenizer(tmp_path)
    out = str(tmp_path / "shards")
    make(path, out, client, embedder=str(tmp_path / "model.onnx"), rows=4)
    opened = ShardedPool(out)
    assert opened.items[5] == "mail number 5"
    assert opened.kind == "texts"


def test_two_models_are_not_mixed(tmp_path, client, photos, small_model):
    out = tmp_path / "shards"
    make(photos, out, client, embedder=small_model, rows=8)
    before = sorted(out.iterdir())
    path, _ = save_vectors(tmp_path / "pool", width=3)
    with pytest.raises(GalaxyError, match="holds shards with the kind 'images'"):
        make(path, out, client)
    with pytest.raises(GalaxyError, match="holds shards with the dtype 'float16'"):
        make(photos, out, client, embedder=small_model, dtype="float32")
    assert sorted(out.iterdir()) == before


class TestBrokenShards:
    def test_missing(self, shards):
        folder, _ = shards
        (folder / "000003.npy").unlink()
        with pytest.raises(GalaxyError, match=r"A shard is missing: .*000003\.npy"):
            ShardedPool(folder)

    def test_truncated(self, shards):
        folder, _ = shards
        file = folder / "000003.npy"
        file.write_bytes(file.read_bytes()[:-100])
        with pytest.raises(GalaxyError, match=r"000003\.npy has .* bytes instead of"):
            ShardedPool(folder)

    def test_changed(self, shards, client):
        folder, _ = shards
        file = folder / "000003.npy"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        for scheduler in (None, client.scheduler.address):
            with (
                ShardedPool(folder, scheduler=scheduler) as pool,
                pytest.raises(GalaxyError, match=r"000003\.npy has changed since the manifest"),
            ):
                Learner(pool, n_classes=2)

    def test_changed_while_it_is_open(self, shards):
        folder, _ = shards
        pool = ShardedPool(folder)
        assert pool.vectors[[3500]].shape == (1, 8)
        file = folder / "000003.npy"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        os.utime(file, ns=(1, 1))
        file.write_bytes(content)
        with pytest.raises(GalaxyError, match="has changed"):
            pool.vectors[[3501]]

    def test_changed_with_its_manifest_under_an_open_pool(self, shards, client):
        folder, vectors = shards
        opened = ShardedPool(folder)
        np.testing.assert_array_equal(opened.vectors[3500], vectors[3500])
        manifest = opened.manifest
        changed = np.load(folder / "000003.npy") + 1
        with (folder / "000003.npy").open("wb") as file:
            np.save(file, changed)
        new = ShardFile.of("000003.npy", folder / "000003.npy")
        records = list(manifest.shards)
        records[3] = records[3].model_copy(update={"vectors": new})
        manifest.model_copy(update={"shards": tuple(records)}).write(str(folder))
        assert ShardedPool(folder).vectors[3501][0] == vectors[3501][0] + 1
        with pytest.raises(GalaxyError, match="has changed"):
            opened.vectors[3501]

    def test_a_type_that_is_none(self, shards):
        folder, _ = shards
        text = (folder / "manifest.json").read_text().replace('"float32"', '"float33"')
        (folder / "manifest.json").write_text(text)
        with pytest.raises(GalaxyError, match="'float33' is not a type of numbers"):
            ShardedPool(folder)

    def test_no_manifest(self, tmp_path):
        match = r"is not a pool in shards.*`galaxy-al embed`.*`galaxy-al manifest`.* it continues"
        with pytest.raises(GalaxyError, match=match):
            ShardedPool(tmp_path)

    def test_a_manifest_that_is_none(self, shards):
        folder, _ = shards
        (folder / "manifest.json").write_text("{")
        with pytest.raises(GalaxyError, match=r"Cannot read .*manifest\.json"):
            ShardedPool(folder)
        (folder / "manifest.json").write_text(json.dumps({"kind": "texts"}))
        with pytest.raises(GalaxyError, match="is missing"):
            ShardedPool(folder)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tls://127.0.0.1:1"])
def test_a_scheduler_that_cannot_be_reached(shards, address):
    folder, _ = shards
    with pytest.raises(GalaxyError, match=f"Cannot reach a scheduler at {address}"):
        ShardedPool(folder, scheduler=address)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"", "no answer in 1 seconds"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "what answers there is not a dask scheduler"),
    ],
)
def test_a_port_that_is_not_a_scheduler(shards, monkeypatch, reply, reason):
    monkeypatch.setattr(connecting, "_SECONDS", 1)
    held = []

    def answer():
        with suppress(OSError):  # the test has ended
            while True:
                held.append(listening.accept()[0])
                held[-1].sendall(reply)

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=answer, daemon=True).start()
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(GalaxyError, match=f"Cannot reach a scheduler at {address}: {reason}"):
            ShardedPool(shards[0], scheduler=address)
        listening.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()


def test_a_scheduler_that_dies(shards):
    folder, _ = shards
    with (
        LocalCluster(n_workers=1, dashboard_address=":0", silence_logs=50) as cluster,
        ShardedPool(folder, scheduler=cluster.scheduler_address) as pool,
    ):
        assert pool.ids[3] == "example 3"
        cluster.close()
        with pytest.raises(GalaxyError, match="connection to the scheduler was lost"):
            pool.ids.find(["example 4000"])


def test_workers_without_galaxy_al(client):
    def hide():
        sys.modules["galaxy_al.version"] = None  # it cannot be imported then

    def show():
        del sys.modules["galaxy_al.version"]

    client.run(hide)
    try:
        with pytest.raises(GalaxyError, match="has no galaxy-al, and you have"):
            check_versions(client)
    finally:
        client.run(show)


def test_a_file_that_a_worker_cannot_read_is_named(tmp_path, client):
    parts = ClusterParts.of(client, [str(tmp_path / "nothing")]).map(_read)
    with pytest.raises(GalaxyError, match="nothing"):
        parts.reduce(len, max)


def _read(path):
    with open(path) as file:
        return file.read()


def test_ids_are_found_however_many_are_remembered(tmp_path, client, monkeypatch):
    path, _ = save_vectors(tmp_path / "pool", size=500, ids=True)
    make(path, tmp_path / "shards", client, rows=100)
    monkeypatch.setattr(sharded_pool, "_REMEMBERED", 100)
    pool = ShardedPool(tmp_path / "shards")
    rng, names = np.random.default_rng(0), [f"example {i}" for i in range(500)]
    for _ in range(50):
        some = rng.integers(0, 500, rng.integers(1, 150)).tolist()
        assert pool.ids.at(some) == [names[i] for i in some]
        some = rng.integers(0, 500, rng.integers(1, 150)).tolist()
        assert pool.ids.find(names[i] for i in some) == {names[i]: i for i in some}


def test_workers_with_another_version(shards, client, monkeypatch):
    folder, _ = shards
    monkeypatch.setattr("galaxy_al.cluster.connecting.__version__", "99.0")
    with pytest.raises(GalaxyError, match=r"has galaxy-al 0.*, and you have 99\.0"):
        ShardedPool(folder, scheduler=client.scheduler.address)


def test_the_command(tmp_path):
    path, vectors = save_vectors(tmp_path / "pool")
    said = run("embed", path, "--out", tmp_path / "shards", "--rows", "2000", "--dtype", "float16")
    assert "5,000 embeddings in 3 shards, 3 of them new" in said.output
    said = run("embed", path, "--out", tmp_path / "shards", "--dtype", "float16")
    assert "0 of them new" in said.output
    np.testing.assert_array_equal(
        np.asarray(ShardedPool(tmp_path / "shards").vectors), vectors.astype(np.float16)
    )
