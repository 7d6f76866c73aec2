"""Embedding that is killed or runs out of space: what is there stays, and a second run finishes."""

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from galaxy_al.cluster.sharded_pool import ShardedPool

ROWS, WIDTH, PER_SHARD = 20_000, 16, 1000


@pytest.fixture
def vectors(tmp_path):
    """The path of an array, and what is in it."""
    made = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", made)
    return tmp_path / "vectors.npy", made


def embed(path, out, **options):
    """The command in a process of its own, with its workers in the same group."""
    command = [sys.executable, "-m", "galaxy_al", "embed", str(path), "--out", str(out)]
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(
        [*command, "--rows", str(PER_SHARD)], start_new_session=True, **more, **options
    )


def contents(folder):
    """The files of a folder, and what a killed process has left."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def finished(path, out):
    """The files after a whole run."""
    said, _ = embed(path, out).communicate(timeout=120)
    assert "20,000 embeddings in 20 shards" in said
    return contents(out)


@pytest.mark.parametrize("whom", ["the driver", "all of its processes"])
def test_killed_and_run_again(tmp_path, vectors, whom):
    path, made = vectors
    expected = finished(path, tmp_path / "whole")
    out = tmp_path / "killed"
    process = embed(path, out)
    while not list(out.glob("0000*.json")) and process.poll() is None:
        time.sleep(0.001)
    if whom == "the driver":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert not (out / "manifest.json").exists()
    n_made = len(list(out.glob("0000*.json")))
    assert 0 < n_made < ROWS // PER_SHARD
    kept = {file.name: file.stat().st_mtime_ns for file in out.glob("0000*.json")}
    assert finished(path, out) == expected
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept
    np.testing.assert_array_equal(np.asarray(ShardedPool(out).vectors), made)


def no_large_files():
    """Let the system refuse to write more than 20 kB to a file, as it does on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))


def test_a_disk_that_is_full(tmp_path, vectors):
    path, _ = vectors
    expected = finished(path, tmp_path / "whole")
    out = tmp_path / "full"
    process = embed(path, out, preexec_fn=no_large_files)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Cannot write" in said
    assert "0000" in said
    assert "File too large" in said  # what the system says; NumPy only counts bytes
    assert "Traceback" not in said
    assert not list(out.glob("*.npy"))
    assert not list(out.glob(".0*"))
    assert not (out / "manifest.json").exists()
    assert finished(path, out) == expected


def test_a_full_disk_leaves_earlier_shards_as_they_are(tmp_path, vectors):
    path, made = vectors
    out = tmp_path / "shards"
    before = finished(path, out)
    np.save(path, np.concatenate([made, made[:1500]]))
    process = embed(path, out, preexec_fn=no_large_files)
    process.communicate(timeout=120)
    assert process.returncode == 1
    assert {name: contents(out)[name] for name in before if name != "plan.json"} == {
        name: content for name, content in before.items() if name != "plan.json"
    }
    said, _ = embed(path, out).communicate(timeout=120)
    assert "21,500 embeddings in 22 shards, 2 of them new" in said


def test_what_a_killed_process_has_left_is_removed(tmp_path, vectors):
    path, _ = vectors
    out = tmp_path / "shards"
    expected = finished(path, out)
    (out / "000003.json").unlink()
    left = [out / f".000003-{letter * 32}.npy" for letter in "0f"]
    for file in left:
        file.write_bytes(b"half a file")
    other = out / ".000003-of mine.npy"
    other.write_bytes(b"")
    finished(path, out)
    assert not any(file.exists() for file in left)
    assert other.exists()
    other.unlink()
    assert contents(out) == expected
