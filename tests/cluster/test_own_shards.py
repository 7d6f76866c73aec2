"""Shards that other software has made: taken as they are, and refused with a reason."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from galaxy_al import Learner
from galaxy_al.cluster import own_shards
from galaxy_al.cluster.own_shards import check_distinct_ids, write_manifest
from galaxy_al.cluster.sharded_pool import ShardedPool
from galaxy_al.data.shard_files import Manifest
from galaxy_al.errors import GalaxyError
from galaxy_al.shards import LocalParts
from support.commands import run

WIDTH = 6


def vectors_of(rows, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=(rows, WIDTH)).astype(dtype)


def save_parquet(file, vectors, ids, metadata=None, fixed=True, **columns):
    file.parent.mkdir(parents=True, exist_ok=True)
    kind = pa.list_(pa.from_numpy_dtype(vectors.dtype), WIDTH if fixed else -1)
    table = pa.table({"id": ids, "embedding": pa.array(list(vectors), kind), **columns})
    pq.write_table(table.replace_schema_metadata(metadata), file)


def save_array(path, vectors, ids=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, vectors)
    if ids is not None:
        np.save(path.with_name(f"{path.stem}.ids.npy"), ids)


def manifest(folder, client, **options):
    return write(folder, client, **options).manifest


def write(folder, client, **options):
    return write_manifest(str(folder), scheduler=client.scheduler.address, **options)


@pytest.mark.parametrize("fixed", [True, False])
def test_parquet(tmp_path, client, fixed):
    vectors, ids = vectors_of(50), [f"row {i}" for i in range(50)]
    save_parquet(tmp_path / "b.parquet", vectors[30:], ids[30:], fixed=fixed)
    save_parquet(tmp_path / "a.parquet", vectors[:30], ids[:30], fixed=fixed)
    made = manifest(tmp_path, client)
    assert [shard.rows for shard in made.shards] == [30, 20]
    for scheduler in (None, client.scheduler.address):
        with ShardedPool(tmp_path, scheduler=scheduler) as pool:
            np.testing.assert_array_equal(np.asarray(pool.vectors), vectors)
            assert pool.ids[:] == ids
            assert pool.ids.find(["row 41", "nothing"]) == {"row 41": 41}


def test_large_lists_as_polars_writes_them(tmp_path, client):
    column = pa.array(vectors_of(9).tolist(), pa.large_list(pa.float32()))
    pq.write_table(pa.table({"id": list("abcdefghi"), "embedding": column}), tmp_path / "a.parquet")
    manifest(tmp_path, client)
    np.testing.assert_array_equal(np.asarray(ShardedPool(tmp_path).vectors), vectors_of(9))


def test_ids_that_were_mended_are_read_again(tmp_path, client):
    save_array(tmp_path / "a.npy", vectors_of(2), np.array(["x", "x"]))
    with pytest.raises(GalaxyError, match="the id 'x'"):
        manifest(tmp_path, client)
    np.save(tmp_path / "a.ids.npy", np.array(["x", "y"]))
    manifest(tmp_path, client)
    assert ShardedPool(tmp_path).ids[:] == ["x", "y"]


def test_an_address_with_file(tmp_path, client):
    save_array(tmp_path / "own" / "a.npy", vectors_of(5))
    manifest(f"file://{tmp_path}/own", client)
    assert len(ShardedPool(f"file://{tmp_path}/own")) == 5
    run(
        "init",
        tmp_path / "p",
        "--shards",
        f"file://{tmp_path}/own",
        "--classes",
        "a",
        "--other",
        "b",
    )


def test_a_relative_folder_means_the_same_to_the_workers(tmp_path, client, monkeypatch):
    save_array(tmp_path / "own" / "a.npy", vectors_of(5))
    monkeypatch.chdir(tmp_path)
    assert manifest("own", client).starts == [0, 5]


def test_texts_beside_vectors_are_shown(tmp_path, client):
    texts = [f"mail {i}" for i in range(9)]
    save_parquet(tmp_path / "a.parquet", vectors_of(9), list(range(9)), text=texts)
    made = manifest(tmp_path, client)
    assert made.kind == "texts"
    pool = ShardedPool(tmp_path)
    assert pool.items[7] == "mail 7"
    assert pool.ids[7] == "7"


@pytest.mark.parametrize("ids", [False, True])
def test_arrays(tmp_path, client, ids):
    vectors = vectors_of(50, dtype=np.float16)
    names = np.array([f"x{i}" for i in range(50)])
    for low, high in ((0, 20), (20, 50)):
        save_array(tmp_path / f"{low:03}.npy", vectors[low:high], names[low:high] if ids else None)
    manifest(tmp_path, client)
    pool = ShardedPool(tmp_path)
    np.testing.assert_array_equal(np.asarray(pool.vectors), vectors)
    assert pool.ids[33] == ("x33" if ids else "33")
    assert 0 <= Learner(pool, n_classes=2).ask() < 50


def test_new_files_come_after_those_that_are_known(tmp_path, client):
    save_array(tmp_path / "b.npy", vectors_of(10))
    first = manifest(tmp_path, client)
    save_array(tmp_path / "a.npy", vectors_of(4, seed=1))
    second = manifest(tmp_path, client)
    assert [shard.vectors.name for shard in second.shards] == ["b.npy", "a.npy"]
    assert second.shards[:1] == first.shards
    assert manifest(tmp_path, client) == second


@pytest.mark.parametrize("which", ["a.npy", "a.ids.npy"])
def test_a_file_of_the_same_size_that_has_changed_is_read_again(tmp_path, client, which):
    ids = [f"x{i}" for i in range(10)]
    save_array(tmp_path / "a.npy", vectors_of(6), np.array(ids[:6]))
    save_array(tmp_path / "b.npy", vectors_of(4, seed=1), np.array(ids[6:]))
    before = write(tmp_path, client)
    assert (before.n_made, before.changed) == (2, ())
    vectors = vectors_of(6, seed=2) if which == "a.npy" else vectors_of(6)
    ids[0] = "x0" if which == "a.npy" else "q0"
    save_array(tmp_path / "a.npy", vectors, np.array(ids[:6]))
    with pytest.raises(GalaxyError, match=r"has changed since .* run .*`galaxy-al manifest`"):
        ShardedPool(tmp_path).check()
    after = write(tmp_path, client)
    assert (after.n_made, after.changed) == (0, (which,))
    assert after.manifest.shards[1] == before.manifest.shards[1]
    pool = ShardedPool(tmp_path)
    np.testing.assert_array_equal(np.asarray(pool.vectors)[:6], vectors)
    assert pool.ids[:] == ids


def test_a_changed_file_keeps_the_model(tmp_path, client):
    save_array(tmp_path / "a.npy", vectors_of(3))
    manifest(tmp_path, client, model="clip")
    save_array(tmp_path / "a.npy", vectors_of(5))
    made = manifest(tmp_path, client)
    assert (made.model, made.shards[0].model, made.starts) == ("clip", "clip", [0, 5])


def test_a_model_can_be_named_later(tmp_path, client):
    save_array(tmp_path / "a.npy", vectors_of(3))
    assert manifest(tmp_path, client).model == ""
    made = manifest(tmp_path, client, model="clip")
    assert (made.model, made.shards[0].model) == ("clip", "clip")
    assert Manifest.read(str(tmp_path)) == made


def test_the_command_says_what_has_changed(tmp_path):
    save_array(tmp_path / "own" / "a.npy", vectors_of(3))
    assert "3 embeddings in 1 shard, 1 of them new: " in run("manifest", tmp_path / "own").output
    save_array(tmp_path / "own" / "a.npy", vectors_of(3, seed=1))
    said = run("manifest", tmp_path / "own").output
    assert "a.npy has changed and was read again." in said
    assert "in 1 shard, 0 of them new and 1 of their files changed: " in said


class TestRefused:
    def check(self, folder, client, match, **options):
        before = {path: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(GalaxyError, match=match):
            manifest(folder, client, **options)
        assert {path: path.read_bytes() for path in folder.iterdir()} == before

    def test_an_id_twice_in_two_shards(self, tmp_path, client):
        save_parquet(tmp_path / "a.parquet", vectors_of(3), ["x", "y", "z"])
        save_parquet(tmp_path / "b.parquet", vectors_of(2), ["w", "y"])
        self.check(tmp_path, client, r"the id 'y': in a\.parquet and b\.parquet")

    def test_an_id_twice_in_one_shard(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(3), np.array(["x", "y", "x"]))
        self.check(tmp_path, client, r"the id 'x': in a\.ids\.npy and a\.ids\.npy")

    def test_an_id_of_a_new_file_that_is_known(self, tmp_path, client):
        save_parquet(tmp_path / "a.parquet", vectors_of(3), ["x", "y", "z"])
        manifest(tmp_path, client)
        save_parquet(tmp_path / "b.parquet", vectors_of(1), ["z"])
        self.check(tmp_path, client, "the id 'z'")

    def test_two_widths(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(3))
        save_array(tmp_path / "b.npy", vectors_of(3)[:, :4])
        self.check(tmp_path, client, r"a\.npy has the width 6 and b\.npy has 4")

    def test_two_models(self, tmp_path, client):
        save_parquet(tmp_path / "a.parquet", vectors_of(2), ["x", "y"], {"model": "clip"})
        save_parquet(tmp_path / "b.parquet", vectors_of(1), ["z"], {"model": "siglip"})
        self.check(tmp_path, client, r"a\.parquet has the model 'clip' and b\.parquet has 'siglip'")

    def test_another_model_than_you_say(self, tmp_path, client):
        save_parquet(tmp_path / "a.parquet", vectors_of(1), ["z"], {"model": "siglip"})
        self.check(tmp_path, client, "was made by 'siglip' and not by 'clip'", model="clip")

    def test_another_model_later(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(3))
        manifest(tmp_path, client, model="clip")
        save_array(tmp_path / "b.npy", vectors_of(3))
        match = "were made by 'clip' and not by 'siglip'"
        self.check(tmp_path, client, match, model="siglip")

    def test_another_model_without_new_files(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(3))
        manifest(tmp_path, client, model="clip")
        match = "were made by 'clip' and not by 'siglip'"
        self.check(tmp_path, client, match, model="siglip")

    def test_some_shards_without_ids(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(2), np.array(["x", "y"]))
        save_array(tmp_path / "b.npy", vectors_of(2))
        self.check(tmp_path, client, "has the ids 'given' and .* has 'row numbers'")

    def test_numbers_that_are_not_finite(self, tmp_path, client):
        vectors = vectors_of(20)
        vectors[13, 2] = np.nan
        save_array(tmp_path / "a.npy", vectors)
        self.check(tmp_path, client, r"Cannot read .*a\.npy: row 13 is not finite")

    def test_too_few_ids(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(3), np.array(["x", "y"]))
        self.check(tmp_path, client, r"a\.ids\.npy: it has 2 ids for 3 vectors")

    def test_lists_of_different_lengths(self, tmp_path, client):
        table = pa.table({"id": ["x", "y"], "embedding": [[1.0, 2.0], [3.0]]})
        pq.write_table(table, tmp_path / "a.parquet")
        self.check(tmp_path, client, r"a\.parquet: the lists .* have different lengths")

    def test_no_vectors(self, tmp_path, client):
        pq.write_table(pa.table({"id": ["x"]}), tmp_path / "a.parquet")
        self.check(tmp_path, client, r"a\.parquet: it has no column 'embedding'")

    def test_no_ids(self, tmp_path, client):
        pq.write_table(pa.table({"embedding": [[1.0, 2.0]]}), tmp_path / "a.parquet")
        self.check(tmp_path, client, r"a\.parquet: it has no column 'id'")

    def test_numbers_of_another_kind(self, tmp_path, client):
        np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
        self.check(tmp_path, client, r"a\.npy: it has \(2, 3\) int64 numbers")

    def test_a_broken_file(self, tmp_path, client):
        (tmp_path / "a.parquet").write_bytes(b"no table")
        self.check(tmp_path, client, r"Cannot read .*a\.parquet")

    def test_no_files(self, tmp_path, client):
        self.check(tmp_path, client, r"has no \.npy or \.parquet files")

    def test_shards_made_by_embed(self, tmp_path, client):
        (tmp_path / "plan.json").write_text("{}")
        self.check(tmp_path, client, "was made by `galaxy-al embed`")

    def test_rows_that_would_get_other_ids(self, tmp_path, client):
        for name in ("a.npy", "b.npy"):
            save_array(tmp_path / name, vectors_of(3))
        manifest(tmp_path, client)
        save_array(tmp_path / "a.npy", vectors_of(4))
        self.check(tmp_path, client, r"a\.npy had 3 rows and now has 4, so all rows after it")

    def test_a_file_that_is_cut_short(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(300))
        os.truncate(tmp_path / "a.npy", 1000)
        self.check(tmp_path, client, r"Cannot read .*a\.npy: it is cut short\.")

    def test_a_manifest_of_a_later_format(self, tmp_path, client):
        save_array(tmp_path / "a.npy", vectors_of(3))
        (tmp_path / "manifest.json").write_text('{"format": 99}')
        self.check(tmp_path, client, r"manifest\.json was written by a newer galaxy-al")

    def test_a_known_file_that_is_gone(self, tmp_path, client):
        for name in ("a.npy", "b.npy"):
            save_array(tmp_path / name, vectors_of(3))
        manifest(tmp_path, client)
        (tmp_path / "a.npy").unlink()
        self.check(tmp_path, client, r"A shard is missing: .*a\.npy")


def test_images_are_found_by_their_paths(tmp_path, client):
    pixels = np.full((4, 5, 3), 7, dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    save_parquet(tmp_path / "a.parquet", vectors_of(1), ["x"], path=["one.png"])
    assert manifest(tmp_path, client).kind == "images"
    np.testing.assert_array_equal(ShardedPool(tmp_path).items[0], pixels)


def test_a_manifest_with_two_models_is_refused(tmp_path, client):
    save_array(tmp_path / "a.npy", vectors_of(3))
    made = manifest(tmp_path, client, model="clip")
    text = made.model_dump_json().replace('"model":"clip","bad"', '"model":"other","bad"')
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(GalaxyError, match=r"a\.npy was made by 'other', and the pool by 'clip'"):
        ShardedPool(tmp_path)


class _Names:
    """A shard of ids alone."""

    def __init__(self, number, ids):
        self._ids = ids
        self.record = type("Record", (), {"names": type("File", (), {"name": f"{number}"})})

    def names(self):
        return pa.table({"id": pa.array(self._ids, pa.string())})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1), min_size=1, max_size=5))
def test_ids_are_distinct_exactly_when_a_set_says_so(monkeypatch, shards):
    monkeypatch.setattr(own_shards, "_AT_ONCE", 2)
    record = {"rows": 1, "vectors": {"name": "a.parquet", "bytes": 1, "sha256": ""}}
    records = [record | {"rows": len(ids)} for ids in shards]
    described = Manifest(kind="embeddings", width=1, dtype="float32", shards=records)
    parts = LocalParts([_Names(number, ids) for number, ids in enumerate(shards)])
    everything = [id for ids in shards for id in ids]
    if len(set(everything)) == len(everything):
        check_distinct_ids(parts, described)
    else:
        with pytest.raises(GalaxyError, match="Two examples have the id"):
            check_distinct_ids(parts, described)


def test_the_command(tmp_path):
    save_array(tmp_path / "a.npy", vectors_of(30))
    said = run("manifest", tmp_path)
    assert "30 embeddings in 1 shard, 1 of them new" in said.output
    run("init", tmp_path / "project", "--shards", tmp_path, "--classes", "rare", "--other", "rest")
