"""Searches: the likeliest of a class, examples like another one, and a walk through clusters."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument, NotFound
from galaxy_al.free_examples import FreeExamples
from galaxy_al.graphs.distances import squared_distances
from galaxy_al.labelling.project import embedder_of_pool
from galaxy_al.labelling.service import Service
from galaxy_al.labelling.views import Scores
from galaxy_al.server.nearest import Nearest, nearest
from galaxy_al.server.rendering import show
from galaxy_al.server.schemas import Clusters, Example, Found
from galaxy_al.shards import random_rows
from galaxy_al.strategies.scoring import lowest_among

_MOST_PIXELS = 80_000_000
_CLUSTERS, _WALKED, _LOOKED_AT = 12, 3000, 50_000

Vectors = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Cluster:
    """Similar examples: the one in the middle, and how many they are."""

    center: int
    size: int


def likeliest(proba: Vectors, target: int, count: int, without: Collection[int]) -> list[int]:
    """The examples most likely of a class, the likeliest first."""
    free = FreeExamples(len(proba), without)
    best = lowest_among(proba, free, count, lambda rows: -rows[:, target].astype(np.float64))
    found: list[int] = best.tolist()
    return found


def walk(
    vectors: Vectors,
    center: int | None,
    radius: int,
    rng: np.random.Generator,
    without: Collection[int] = (),
) -> list[Cluster]:
    """The clusters of the pool, or of the ``radius`` examples around one of them.

    To walk, continue with the center of a cluster, and its size as the radius. Large pools are
    sampled at random, and the sizes scaled.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    free = FreeExamples(len(vectors), without)
    n_among = len(free) if center is None else min(radius, len(free))
    if not n_among:
        return []
    if center is None:
        some = np.sort(free.at(_some_of(n_among, _WALKED, rng)))
    else:
        around = _around(vectors, center, n_among, free, rng)
        some = np.sort(around[_some_of(len(around), _WALKED, rng)])
    points = vectors[some].astype(np.float64)
    seed = int(rng.integers(1 << 31))
    means = KMeans(min(_CLUSTERS, len(some)), n_init=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cluster = means.fit_predict(points)
    found = []
    for k in np.unique(cluster):
        inside = np.flatnonzero(cluster == k)
        apart = squared_distances(points[inside], means.cluster_centers_[k : k + 1])
        size = round(len(inside) * n_among / len(some))
        found.append(Cluster(int(some[inside[apart.argmin()]]), size))
    return sorted(found, key=lambda cluster: -cluster.size)


def _around(
    vectors: Vectors, center: int, radius: int, free: FreeExamples, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The examples around one; of many in a large pool, those that are in a sample of it."""
    point = vectors[center].astype(np.float64)
    if radius <= _WALKED or len(free) <= _LOOKED_AT:
        return np.array(nearest(vectors, point, radius, free.busy.tolist()))
    sample = np.sort(free.at(random_rows(len(free), _LOOKED_AT, rng)))
    count = max(radius * len(sample) // len(free), 1)
    return sample[nearest(vectors[sample], point, count)]


def _some_of(count: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    return np.arange(count) if count <= most else rng.choice(count, most, replace=False)


class Finder:
    """Searches the free examples of a project."""

    def __init__(self, service: Service) -> None:
        self._service, self._project = service, service.project
        self._nearest = Nearest(self._project.vectors)
        self._embedder: Any = None

    def likeliest(self, class_name: str, count: int) -> Found:
        """The examples most likely of a class."""
        if class_name not in self._project.classes:
            raise NotFound(f"The project has no class {class_name!r}.")
        scores, target = self._service.scores(), self._project.classes.index(class_name)
        return self._found(likeliest(scores.proba, target, count, scores.busy), scores)

    def like(self, id: str, count: int) -> Found:
        """The examples most like another example."""
        index = self._project.find(id)
        point = np.asarray(self._project.vectors[index], dtype=np.float64)
        return self._near(point, count, {index})

    def like_text(self, text: str, count: int) -> Found:
        """The examples most like a text."""
        self._check_query("text")
        return self._near(self._embed(text), count)

    def like_image(self, data: bytes, count: int) -> Found:
        """The examples most like an image, given as the bytes of a file."""
        self._check_query("image")
        return self._near(self._embed(decode_image(data)), count)

    def walk(self, id: str | None, radius: int) -> Clusters:
        """The clusters of the pool, or of the examples around one. Repeatable."""
        center = None if id is None else self._project.find(id)
        radius, rng = min(radius, len(self._project.pool)), np.random.default_rng(0)
        clusters = walk(self._project.vectors, center, radius, rng, self._project.bad)
        examples = self._show(cluster.center for cluster in clusters)
        return Clusters(examples=examples, sizes=[cluster.size for cluster in clusters])

    def _near(self, point: Vectors, count: int, without: Collection[int] = ()) -> Found:
        scores = self._service.scores()
        return self._found(self._nearest(point, count, scores.busy.union(without)), scores)

    def _found(self, indices: list[int], scores: Scores) -> Found:
        proba = np.round(scores.proba[indices if scores.is_trained else []].astype(np.float64), 6)
        return Found(examples=self._show(indices), proba=proba.tolist())

    def _show(self, indices: Iterable[int]) -> list[Example]:
        return [show(self._project, index) for index in indices]

    def _check_query(self, query: str) -> None:
        pool = self._project.pool
        if query not in pool.modality.searched_by:
            raise InvalidArgument(f"A pool of {pool.kind} cannot be searched by {query}.")

    def _embed(self, item: Any) -> Vectors:
        if self._embedder is None:
            self._embedder = embedder_of_pool(self._project)
        if self._embedder is None:
            raise InvalidArgument("It is not known which model has made the vectors of this pool.")
        vector: Vectors = self._embedder.embed([self._embedder.prepare(item)])[0]
        return vector.astype(np.float64)


def decode_image(data: bytes) -> NDArray[np.uint8]:
    """The pixels of an image that an annotator sent; a large one is refused before decoding."""
    from PIL import Image, ImageOps

    formats = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
    try:
        with Image.open(BytesIO(data), formats=formats) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise InvalidArgument(f"An image may have at most {_MOST_PIXELS:,} pixels.")
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except GalaxyError:
        raise
    except Exception as error:  # Pillow raises a dozen kinds
        raise InvalidArgument("This file cannot be read as an image.") from error
