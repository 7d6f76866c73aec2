"""The data that suites run on: embeddings or images, and the truth."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data import SETTINGS, Pool, Setting, load_pool, load_setting
from galaxy_al.errors import GalaxyError
from galaxy_al.simulation import noisy_annotator
from galaxy_al.system.files import checksum, digest, reading
from galaxy_al.system.folders import data_folder


@dataclass(frozen=True)
class LabeledPool:
    """What a simulated run needs.

    Parameters
    ----------
    items
        N x d embeddings, or images.
    truth
        Classes; the last one is the majority class.
    source
        Identifies the data.
    n_left_out
        Labelled examples that cannot be read or are not finite.
    answers
        What the annotator answers, if that is not always the truth.
    """

    items: Any
    truth: NDArray[np.int64]
    source: str
    n_left_out: int = 0
    answers: NDArray[np.int64] | None = None

    def answer(self, index: int) -> int:
        """What the annotator answers for an example."""
        return int((self.truth if self.answers is None else self.answers)[index])

    @property
    def n_rare(self) -> int:
        """How many examples are of a rare class."""
        return int(np.count_nonzero(self.truth != self.truth.max()))


@lru_cache(maxsize=2)  # a setting, and what it was made of
def load_labeled_pool(setting: str, takes_images: bool) -> LabeledPool:
    """The data of one of `setting_names`, or of a user's pool named by `own_pool`.

    A head gets the images of a setting as embeddings of the offline default, unless the folder
    ``GALAXY_AL_DATA`` already has embeddings.
    """
    if is_own_pool(setting):
        return _own_pool(setting)
    base, variant = _parsed(setting)
    if variant:
        return _VARIANTS[variant](load_labeled_pool(base.name, takes_images))
    ready = _ready_file(SETTINGS[setting].archive)
    if not takes_images and ready is not None:
        return _from_ready(ready, SETTINGS[setting].n_classes)
    pool = load_setting(setting)
    if takes_images:
        return LabeledPool(pool, pool.labels, pool.content)
    return LabeledPool(*_embed_pool(pool))


def setting_names() -> list[str]:
    """The settings, and variants: fewer examples, rarer classes, wrong answers."""
    return [*SETTINGS, *(f"{name}-{variant}" for variant in _VARIANTS for name in SETTINGS)]


def has_classes(setting: str, count: int) -> bool:
    """Whether a setting has at least so many classes; of a user's pool that is not known."""
    return is_own_pool(setting) or _parsed(setting)[0].n_classes >= count


def pool_size(setting: str) -> int:
    """How many examples a setting has, without loading them."""
    base, variant = _parsed(setting)
    *rare, majority = base.sizes
    if variant == "small":
        return min(SMALL_SIZE, sum(base.sizes))
    if variant == "thinned":
        return majority + sum(min(size, max(majority // THINNED_TO, 1)) for size in rare)
    return sum(base.sizes)


def _parsed(setting: str) -> tuple[Setting, str]:
    """The setting itself, and its variant or nothing."""
    base, _, variant = setting.rpartition("-")
    return (SETTINGS[base], variant) if variant in _VARIANTS else (SETTINGS[setting], "")


SMALL_SIZE = 10_000
THINNED_TO = 1000  # examples of the majority class per example of a rare class
FLIP_RATE = 0.1


def _thinned(data: LabeledPool) -> LabeledPool:
    """Keeps at most 1 example of a rare class per 1,000 of the majority class, and at least 1."""
    rng, counts = np.random.default_rng(0), np.bincount(data.truth)
    most = max(counts[-1] // THINNED_TO, 1)
    rare = [rng.permutation(np.flatnonzero(data.truth == k)) for k in range(len(counts) - 1)]
    kept = np.concatenate(
        [np.flatnonzero(data.truth == len(counts) - 1), *(i[:most] for i in rare)]
    )
    return _taken(data, np.sort(kept), f"rare ones 1 in {THINNED_TO}")


def _small(data: LabeledPool) -> LabeledPool:
    """10,000 random examples, as many of each class as the whole pool has of them."""
    rng, counts = np.random.default_rng(0), np.bincount(data.truth)
    wanted = _scaled(counts, min(SMALL_SIZE, len(data.truth)))
    kept = np.concatenate(
        [rng.permutation(np.flatnonzero(data.truth == k))[:count] for k, count in enumerate(wanted)]
    )
    return _taken(data, np.sort(kept), f"{SMALL_SIZE} of them")


def _scaled(counts: NDArray[np.int64], total: int) -> list[int]:
    """Whole numbers in about the same ratio that add up; the largest fractions are rounded up."""
    exact = counts * total / counts.sum()
    scaled = np.floor(exact).astype(int)
    most = np.argsort(scaled - exact, kind="stable")[: total - scaled.sum()]
    scaled[most] += 1
    return [int(count) for count in scaled]


def _taken(data: LabeledPool, kept: NDArray[np.intp], how: str) -> LabeledPool:
    """Some examples of a pool."""
    is_pool = isinstance(data.items, Pool)
    return LabeledPool(
        items=data.items.take(kept) if is_pool else data.items[kept],
        truth=data.truth[kept],
        source=f"{data.source}, {how}",
    )


def _noisy(data: LabeledPool) -> LabeledPool:
    """One answer in ten is wrong, and stays wrong when the example is asked again."""
    annotator = noisy_annotator(data.truth, FLIP_RATE, np.random.default_rng(0))
    answers = np.array([annotator(i) for i in range(len(data.truth))])
    return replace(data, answers=answers, source=f"{data.source}, {FLIP_RATE:.0%} wrong answers")


_VARIANTS = {"small": _small, "thinned": _thinned, "noisy": _noisy}

_OWN = "pool:"


def own_pool(path: Path, labels: str | None, kind: str | None, column: str | None) -> str:
    """A user's pool as a setting: everything that is needed to read it."""
    given = {"label_column": labels, "kind": kind, "column": column}
    options = {name: value for name, value in given.items() if value is not None}
    return _OWN + json.dumps({"path": str(path.resolve()), **options})


def setting_title(setting: str) -> str:
    """The name of a setting in tables and figures."""
    if not is_own_pool(setting):
        return setting
    return Path(json.loads(setting.removeprefix(_OWN))["path"]).stem


def _own_pool(setting: str) -> LabeledPool:
    options = json.loads(setting.removeprefix(_OWN))
    path = options["path"]
    pool = load_pool(**options)
    known = np.flatnonzero(pool.labels >= 0)
    if len(set(pool.labels[known].tolist())) < 2:
        raise GalaxyError(f"{path} must have labels of at least two classes.")
    pool = pool.take(known)
    source = digest([pool.content, pool.labels.tobytes()])
    if pool.modality.is_embedded:
        items, truth, by = _embed_pool(pool)
        return LabeledPool(items, truth, f"{source} {by}", len(pool) - len(truth))
    good, bad = pool.without_problems()
    table = good.modality.vectors(good.items).astype(np.float32, copy=False)
    return LabeledPool(table, good.labels, source, len(bad))


def is_own_pool(setting: str) -> bool:
    """Whether it is a user's pool, not one of the paper's settings."""
    return setting.startswith(_OWN)


def _embed_pool(pool: Pool) -> tuple[NDArray[np.float32], NDArray[np.int64], str]:
    from galaxy_al.models.embedders import load_embedder
    from galaxy_al.models.embedding import embed

    embedder = load_embedder(pool.kind)
    found = embed(pool, embedder)
    good = found.good()
    vectors = found.vectors[good] if found.bad else found.vectors
    return vectors, pool.labels[good], f"{pool.content} by {embedder.version}"


def _ready_file(archive: str) -> Path | None:
    folder = data_folder()
    path = None if folder is None else folder / f"{archive}-embeddings.npz"
    return path if path is not None and path.exists() else None


def _from_ready(path: Path, n_classes: int) -> LabeledPool:
    with reading(path), np.load(path, allow_pickle=False) as content:
        embeddings = content["embeddings"].astype(np.float32)
        truth = np.minimum(content["labels"].astype(np.int64), n_classes - 1)
    return LabeledPool(embeddings, truth, f"{path.name} {checksum(path, 'sha256')}")
