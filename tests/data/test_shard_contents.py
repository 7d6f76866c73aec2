"""The files of shards, as they are written and read."""

import errno
from pathlib import Path

import numpy as np
import pytest

from galaxy_al.data.shard_contents import read_vectors, save_array


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_is_reported_by_the_system_and_not_by_numpy():
    with pytest.raises(OSError, match="No space left on device") as raised:
        save_array(Path("/dev/full"), np.zeros((1000, 8)))
    assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_what_is_saved_is_what_numpy_saves(tmp_path, dtype):
    values = np.random.default_rng(0).normal(size=(300, 7)).astype(dtype)
    save_array(tmp_path / "ours.npy", values)
    np.save(tmp_path / "numpy.npy", values)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()
    np.testing.assert_array_equal(read_vectors(tmp_path / "ours.npy", ""), values)
