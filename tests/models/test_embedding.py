"""Embedding pools: the real network, the cache, kills and bad images."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from galaxy_al import GalaxyError
from galaxy_al.data import load_pool
from galaxy_al.models import vector_cache as module
from galaxy_al.models.embedders import load_embedder
from galaxy_al.models.embedding import embed
from support.mean_color import MeanColor


def write_colors(folder, n=10):
    folder.mkdir()
    colors = np.random.default_rng(0).integers(0, 256, size=(n, 3))
    for i, color in enumerate(colors.tolist()):
        Image.new("RGB", (4 + i, 6), tuple(color)).save(folder / f"{i:03d}.png")
    return colors


def test_every_example_gets_its_vector_and_a_second_run_computes_nothing(tmp_path):
    colors = write_colors(tmp_path / "photos")
    pool = load_pool(tmp_path / "photos")
    first, second = MeanColor(), MeanColor()
    found = embed(pool, first, cache=tmp_path / "cache", batch_size=3)
    np.testing.assert_array_equal(found.vectors, colors)
    assert found.bad == {}
    assert first.n_prepared == 10
    again = embed(load_pool(tmp_path / "photos"), second, cache=tmp_path / "cache")
    assert second.n_prepared == 0
    np.testing.assert_array_equal(again.vectors, colors)
    assert isinstance(again.vectors, np.memmap)
    assert not again.vectors.flags.writeable


def test_vectors_are_kept_by_the_content_and_the_model(tmp_path):
    write_colors(tmp_path / "photos")
    embed(load_pool(tmp_path / "photos"), MeanColor(), cache=tmp_path / "cache")
    Image.new("RGB", (9, 9), (1, 2, 3)).save(tmp_path / "photos" / "000.png")
    changed = MeanColor()
    found = embed(load_pool(tmp_path / "photos"), changed, cache=tmp_path / "cache")
    assert changed.n_prepared == 10
    assert found.vectors[0].tolist() == [1, 2, 3]
    other = MeanColor(version="2")
    embed(load_pool(tmp_path / "photos"), other, cache=tmp_path / "cache")
    assert other.n_prepared == 10


def test_bad_images_are_told_and_the_others_embedded_and_mended_ones_later(tmp_path):
    colors = write_colors(tmp_path / "photos")
    broken = tmp_path / "photos" / "004.png"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:40])
    pool = load_pool(tmp_path / "photos")
    found = embed(pool, MeanColor(), cache=tmp_path / "cache", batch_size=4)
    assert list(found.bad) == [4]
    assert "004.png as an image" in found.bad[4]
    assert found.good().tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    np.testing.assert_array_equal(found.vectors[found.good()], np.delete(colors, 4, axis=0))
    assert embed(pool, MeanColor(), cache=tmp_path / "cache").bad == found.bad
    broken.write_bytes(whole)
    mended = embed(load_pool(tmp_path / "photos"), MeanColor(), cache=tmp_path / "cache")
    assert mended.bad == {}


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from support.mean_color import MeanColor
from galaxy_al.data import load_pool
from galaxy_al.models.embedding import embed

class Dies(MeanColor):
    n_batches = 0
    def embed(self, batch):
        self.n_batches += 1
        if self.n_batches == 4:
            os._exit(9)
        return super().embed(batch)

folder = Path({folder!r})
embed(load_pool(folder / "photos"), Dies(), cache=folder / "cache", batch_size=5)
"""


def test_after_a_kill_only_what_is_missing_is_computed(tmp_path):
    colors = write_colors(tmp_path / "photos", n=40)
    code = KILLED.format(tests=str(Path(__file__).parents[1]), folder=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    rest = MeanColor()
    found = embed(load_pool(tmp_path / "photos"), rest, cache=tmp_path / "cache", batch_size=5)
    assert rest.n_prepared == 40 - 3 * 5
    np.testing.assert_array_equal(found.vectors, colors)


def test_cut_off_files_of_the_cache_are_made_again(tmp_path):
    colors = write_colors(tmp_path / "photos")
    (tmp_path / "photos" / "003.png").write_bytes(b"none")
    pool = load_pool(tmp_path / "photos")
    first = embed(pool, MeanColor(), cache=tmp_path / "cache")
    (folder,) = (tmp_path / "cache").iterdir()
    with (folder / "bad.jsonl").open("a") as file:
        file.write('\n[3, "Canno')  # a kill in the middle of a line
    assert embed(pool, MeanColor(), cache=tmp_path / "cache").bad == first.bad
    for name in ("vectors.npy", "states.npy"):
        whole = (folder / name).read_bytes()
        for kept in (0, 20, len(whole) - 1):
            (folder / name).write_bytes(whole[:kept])
            again = MeanColor()
            found = embed(pool, again, cache=str(tmp_path / "cache"))
            assert again.n_prepared == 9
            good = found.good()
            np.testing.assert_array_equal(found.vectors[good], colors[good])


def test_two_runs_at_once_do_the_work_once(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    colors = write_colors(tmp_path / "photos", n=40)
    pool = load_pool(tmp_path / "photos")
    embedders = [MeanColor() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        runs = threads.map(
            lambda e: embed(pool, e, cache=tmp_path / "cache", show_progress=False), embedders
        )
    for found in runs:
        np.testing.assert_array_equal(found.vectors, colors)
    assert sum(embedder.n_prepared for embedder in embedders) == 40


def test_what_the_model_fails_at_is_bad_and_the_rest_of_its_batch_is_not(tmp_path):
    class Picky(MeanColor):
        def embed(self, batch):
            if any(color[0] < 100 for color in batch):
                raise RuntimeError("too dark")
            return super().embed(batch)

    colors = write_colors(tmp_path / "photos", n=20)
    found = embed(load_pool(tmp_path / "photos"), Picky(), cache=tmp_path / "cache", batch_size=6)
    assert found.good().tolist() == np.flatnonzero(colors[:, 0] >= 100).tolist()
    assert set(found.bad.values()) == {"too dark"}
    np.testing.assert_array_equal(found.vectors[found.good()], colors[found.good()])


def test_a_model_that_cannot_be_had_ends_the_run_and_blames_no_example(tmp_path):
    class Missing(MeanColor):
        def embed(self, batch):
            raise GalaxyError("This needs pip install 'galaxy-al[images]'.")

    write_colors(tmp_path / "photos")
    pool = load_pool(tmp_path / "photos")
    with pytest.raises(GalaxyError, match="needs pip install"):
        embed(pool, Missing(), cache=tmp_path / "cache")
    assert embed(pool, MeanColor(), cache=tmp_path / "cache").bad == {}


def test_wrong_arguments_are_refused(tmp_path):
    write_colors(tmp_path / "photos")
    pool = load_pool(tmp_path / "photos")
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        embed(pool, MeanColor(), batch_size=0)
    texts = MeanColor()
    texts.kind = "texts"
    with pytest.raises(ValueError, match="mean color embeds texts, got a pool of images"):
        embed(pool, texts)


@pytest.mark.parametrize("other", ["another folder", "a table elsewhere", "replaced in a table"])
def test_vectors_of_other_images_are_never_taken(tmp_path, other):
    # Same names, sizes and times of change.
    for name, color in (("a", (200, 0, 0)), ("b", (0, 200, 0))):
        (tmp_path / name).mkdir()
        Image.new("RGB", (4, 4), color).save(tmp_path / name / "x.bmp")
        (tmp_path / name / "list.csv").write_text("image\nx.bmp\n")
        for path in (tmp_path / name).iterdir():
            os.utime(path, (0, 0))
    source = "" if other == "another folder" else "list.csv"
    embed(load_pool(tmp_path / "a" / source), MeanColor(), cache=tmp_path / "cache")
    place = tmp_path / "b" / source
    if other == "replaced in a table":
        (tmp_path / "b" / "x.bmp").replace(tmp_path / "a" / "x.bmp")
        place = tmp_path / "a" / source
    found = embed(load_pool(place), MeanColor(), cache=tmp_path / "cache")
    assert found.vectors[0].tolist() == [0, 200, 0]


def test_a_full_disk_is_one_clear_error_before_anything_is_computed(tmp_path, monkeypatch):
    write_colors(tmp_path / "photos")
    pool = load_pool(tmp_path / "photos")

    def no_space(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "posix_fallocate", no_space)
        with pytest.raises(GalaxyError, match=r"Cannot keep vectors in .*: No space left"):
            embed(pool, MeanColor(), cache=tmp_path / "cache")
    assert len(embed(pool, MeanColor(), cache=tmp_path / "cache").vectors) == 10


def test_the_offline_default_tells_pictures_apart(tmp_path):
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:48, :48]
    pictures = {
        "stripes": (x // 6) % 2 * 255,
        "checks": (x // 6 + y // 6) % 2 * 255,
        "disc": ((x - 24) ** 2 + (y - 24) ** 2 < 300) * 255,
    }
    (tmp_path / "photos").mkdir()
    for name, picture in pictures.items():
        for i in range(4):
            noisy = (picture[..., None] + rng.normal(scale=25, size=(48, 48, 3))).clip(0, 255)
            Image.fromarray(noisy.astype(np.uint8)).save(tmp_path / "photos" / f"{name}{i}.png")
    pool = load_pool(tmp_path / "photos")
    vectors = embed(pool, load_embedder("images"), cache=tmp_path / "cache", batch_size=5).vectors
    assert vectors.shape == (12, 1280)
    assert np.isfinite(vectors).all()
    kinds = np.array([name[:4] for name in pool.ids])
    for i in range(12):
        distance = ((vectors - vectors[i]) ** 2).sum(axis=1)
        distance[i] = np.inf
        assert kinds[distance.argmin()] == kinds[i]
