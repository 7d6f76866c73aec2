import numpy as np
import pytest
from PIL import Image

from support.commands import run
from support.projects import blobs


@pytest.fixture
def embeddings(tmp_path):
    vectors, names = blobs()
    np.save(tmp_path / "pool.npy", vectors)
    rows = [f"{i},{name}" for i, name in enumerate(names[:60])]
    (tmp_path / "known.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    return tmp_path


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos" / "more").mkdir(parents=True)
    rows = ["id,label"]
    for i in range(12):
        name = f"{'more/' if i % 2 else ''}{i:02}.png"
        noise = rng.integers(0, 255, (20 + i, 30, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "photos" / name)
        rows.append(f"{name},{'odd' if i % 3 == 0 else 'even'}")
    (tmp_path / "known.csv").write_text("\n".join(rows[:9]) + "\n")
    run(
        "init", tmp_path / "project", "--images", tmp_path / "photos",
        "--classes", "odd", "--other", "even", "--import-labels", tmp_path / "known.csv",
    )  # fmt: skip
    return tmp_path
