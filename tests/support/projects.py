"""Small projects to label in tests."""

from pathlib import Path

import numpy as np

from galaxy_al.labelling.project import create_project

# Made by commit 21ab5eb, with a pool and the labels as that commit exported them.
OLD_PROJECT = Path(__file__).parents[1] / "fixtures" / "project-21ab5eb"

# Settings as commit bd41846 wrote them.
FORMAT_2 = Path(__file__).parents[1] / "fixtures" / "project-bd41846"


def blobs(size=200, n_rare=20, seed=0):
    """Two rare classes and a majority class: embeddings, and the names of the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat([0, 1, 2], [n_rare, n_rare, size - 2 * n_rare]))
    embeddings = rng.normal(size=(size, 4)) + 4 * np.eye(3, 4)[truth]
    return embeddings.astype(np.float32), np.array(["scratch", "dent", "fine"])[truth]


def small_project(folder, size=200, seed=0, **options):
    """A project of embeddings, and the true classes by id."""
    embeddings, names = blobs(size, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "pool.npy", embeddings)
    project = create_project(
        folder / "project",
        folder / "pool.npy",
        kind="embeddings",
        classes=["scratch", "dent"],
        other="fine",
        **{"batch_size": 20, **options},
    )
    return project, dict(zip(project.pool.ids, names.tolist()))


def sharded_project(folder, **options):
    """A project of the same embeddings in four shards, on a cluster of its own."""
    from galaxy_al.cluster.embedding import embed_into_shards
    from galaxy_al.data import load_pool

    embeddings, names = blobs()
    np.save(folder / "pool.npy", embeddings)
    pool = load_pool(folder / "pool.npy")
    embed_into_shards(pool, folder / "pool.npy", str(folder / "shards"), rows=50)
    project = create_project(
        folder / "project",
        folder / "shards",
        shards=True,
        scheduler="local",
        classes=["scratch", "dent"],
        other="fine",
        **{"batch_size": 20, **options},
    )
    return project, dict(zip(pool.ids, names.tolist()))


def numbered_project(folder, size=20_000, width=8, n_classes=4, **options):
    """A project of random embeddings with the classes "class 0" and so on."""
    rng = np.random.default_rng(0)
    np.save(folder / "pool.npy", rng.normal(size=(size, width)).astype(np.float32))
    return create_project(
        folder / "project",
        folder / "pool.npy",
        kind="embeddings",
        classes=[f"class {k}" for k in range(n_classes - 1)],
        other=f"class {n_classes - 1}",
        **{"batch_size": 200, **options},
    )
