"""Pools in shards on a server that speaks S3."""

import os
from uuid import uuid4

import numpy as np
import pytest

from galaxy_al import Learner
from galaxy_al.cluster.embedding import embed_into_shards
from galaxy_al.cluster.own_shards import write_manifest
from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.data import load_pool
from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.project import open_project
from support.commands import read_csv, run

pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")

NAMES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")


@pytest.fixture
def bucket(client, monkeypatch):
    """The address of an empty bucket, which the workers reach as well."""
    import boto3
    import s3fs

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = dict(zip(NAMES, (f"http://{host}:{port}", "key", "secret", "us-east-1")))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    client.run(_configure, settings)
    s3fs.S3FileSystem.clear_instance_cache()
    boto3.client("s3").create_bucket(Bucket="pools")
    yield "s3://pools"
    server.stop()


def _configure(settings):
    import s3fs

    os.environ.update(settings)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_pool_on_s3_is_the_pool(tmp_path, client, bucket):
    rng = np.random.default_rng(0)
    truth = (rng.random(3000) > 0.05).astype(int)
    vectors = (rng.normal(size=(3000, 12)) + 1.5 * truth[:, None]).astype(np.float32)
    np.savez(tmp_path / "pool.npz", embeddings=vectors, ids=[f"x{i}" for i in range(3000)])
    pool, out = load_pool(tmp_path / "pool.npz"), f"{bucket}/shards"
    options = {"scheduler": client.scheduler.address, "rows": 1024}
    assert embed_into_shards(pool, tmp_path / "pool.npz", out, **options).n_made == 3
    assert embed_into_shards(pool, tmp_path / "pool.npz", out, **options).n_made == 0
    asked = []
    in_process = ShardedPool(out)
    with ShardedPool(out, scheduler=client.scheduler.address) as on_cluster:
        for each in (vectors, in_process, on_cluster):
            learner = Learner(each, n_classes=2, batch_size=10)
            learner.resume({int(i): int(truth[i]) for i in range(0, 3000, 30)})
            asked.append([learner.ask() for _ in range(10)])
        assert on_cluster.ids[2999] == "x2999"
    assert asked[0] == asked[1] == asked[2]
    rows = [f"x{i},{'usual' if truth[i] else 'rare'}\n" for i in range(0, 3000, 5)]
    (tmp_path / "known.csv").write_text("id,label\n" + "".join(rows))
    run(
        "init", tmp_path / "project", "--shards", out, "--classes", "rare", "--other", "usual",
        "--import-labels", tmp_path / "known.csv",
    )  # fmt: skip
    assert open_project(tmp_path / "project").find("x77") == 77
    run("train", tmp_path / "project")
    predicted = tmp_path / "predicted.csv"
    run("predict", tmp_path / "project" / "model", out, "--output", predicted)
    assert len(read_csv(predicted)) == 3000


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_what_is_not_there_is_named(bucket):
    with pytest.raises(GalaxyError, match=r"s3://pools/none is not a pool in shards"):
        ShardedPool(f"{bucket}/none")
    with pytest.raises(GalaxyError, match=r"s3://no-bucket/none is not a pool in shards"):
        ShardedPool("s3://no-bucket/none")


@pytest.fixture
def shards(bucket, client, tmp_path):
    """Three shards on S3, fetched once, with what is in the middle one."""
    import s3fs

    folder = f"{bucket}/{uuid4().hex}"
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    np.savez(tmp_path / "pool.npz", embeddings=vectors, ids=[f"x{i}" for i in range(30)])

    def make():
        options = {"scheduler": client.scheduler.address, "rows": 10}
        pool = load_pool(tmp_path / "pool.npz")
        return embed_into_shards(pool, tmp_path / "pool.npz", folder, **options)

    make()
    ShardedPool(folder).check()
    return folder, make, f"{folder}/000001.npy", s3fs.S3FileSystem(use_listings_cache=False)


@pytest.mark.parametrize("harm", ["missing", "short", "changed"])
def test_what_has_changed_is_noticed_although_it_was_fetched_before(shards, client, harm):
    folder, make, middle, files = shards
    content = files.cat_file(middle)
    if harm == "missing":
        files.rm_file(middle)
    else:
        files.pipe_file(middle, content[:-4] if harm == "short" else content[:-4] + b"none")
    match = {"missing": "is missing", "short": "bytes instead of", "changed": "has changed"}[harm]
    for scheduler in (None, client.scheduler.address):
        with pytest.raises(GalaxyError, match=match), ShardedPool(folder, scheduler=scheduler) as p:
            p.check()
    made = make()
    assert made.n_made == 1
    assert made.changed == (("000001.npy",) if harm == "changed" else ())
    assert files.cat_file(middle) == content
    ShardedPool(folder).check()


def test_shards_of_your_own(bucket, client, tmp_path):
    import s3fs

    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    files = s3fs.S3FileSystem()
    for low, high in ((0, 10), (10, 30)):
        np.save(tmp_path / "part.npy", vectors[low:high])
        files.put_file(str(tmp_path / "part.npy"), f"{bucket}/own/{low:02}.npy")
        np.save(tmp_path / "part.npy", np.array([f"x{i}" for i in range(low, high)]))
        files.put_file(str(tmp_path / "part.npy"), f"{bucket}/own/{low:02}.ids.npy")
    write_manifest(f"{bucket}/own", scheduler=client.scheduler.address)
    files.put_file(str(tmp_path / "part.npy"), f"{bucket}/own/20.npy")
    with pytest.raises(GalaxyError, match=r"s3://pools/own/20\.npy: it has"):  # seen at once
        write_manifest(f"{bucket}/own", scheduler=client.scheduler.address)
    with ShardedPool(f"{bucket}/own", scheduler=client.scheduler.address) as pool:
        np.testing.assert_array_equal(np.asarray(pool.vectors), vectors)
        assert pool.ids.find(["x17"]) == {"x17": 17}
