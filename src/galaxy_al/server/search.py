"""Finding examples: like another one, like a text or an image, the likeliest, by cluster walk."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.distances import squared_distances
from galaxy_al.errors import GalaxyError
from galaxy_al.labelling.project import Project

_MOST_PIXELS = 80_000_000
_CLUSTERS, _WALKED = 12, 3000

Vectors = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Cluster:
    """Examples that are like each other: the one in the middle, and how many they are."""

    centre: int
    size: int


def nearest(vectors: Vectors, query: Vectors, count: int, without: Collection[int]) -> list[int]:
    """The examples nearest to a point, the nearest first."""
    return _best(squared_distances(vectors, query[None])[:, 0], count, without)


def likeliest(proba: Vectors, target: int, count: int, without: Collection[int]) -> list[int]:
    """The examples most likely of a class, the likeliest first."""
    return _best(-proba[:, target].astype(np.float64), count, without)


def _best(scores: NDArray[np.float64], count: int, without: Collection[int]) -> list[int]:
    scores[list(without)] = np.inf
    first = np.argpartition(scores, min(count, len(scores) - 1))[:count]
    ordered = first[np.lexsort((first, scores[first]))]
    found: list[int] = ordered[np.isfinite(scores[ordered])].tolist()
    return found


def walk(
    vectors: Vectors,
    centre: int | None,
    radius: int,
    rng: np.random.Generator,
    without: Collection[int] = (),
) -> list[Cluster]:
    """The clusters of the pool, or of the ``radius`` examples around one of them.

    To walk is to go on with a cluster's centre and its size as the radius. Of many examples
    some are drawn; sizes are scaled accordingly.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if centre is None:
        among = np.setdiff1d(np.arange(len(vectors)), list(without))
    else:
        among = np.array(nearest(vectors, vectors[centre].astype(np.float64), radius, without))
    if not len(among):
        return []
    some = among if len(among) <= _WALKED else np.sort(rng.choice(among, _WALKED, replace=False))
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
        size = round(len(inside) * len(among) / len(some))
        found.append(Cluster(int(some[inside[apart.argmin()]]), size))
    return sorted(found, key=lambda cluster: -cluster.size)


class Queries:
    """Turns what somebody looks for into a point among the vectors of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._embedder: Any = None

    def text(self, text: str) -> Vectors:
        """Where a text is."""
        if "text" not in self._project.pool.modality.searched_by:
            raise GalaxyError(
                f"A pool of {self._project.pool.kind} cannot be searched by text: "
                "what embeds it does not take texts."
            )
        return self._embedded(text)

    def image(self, data: bytes) -> Vectors:
        """Where an image is, from the bytes of a file."""
        if "image" not in self._project.pool.modality.searched_by:
            raise GalaxyError(
                f"A pool of {self._project.pool.kind} cannot be searched by an image."
            )
        return self._embedded(decoded(data))

    def _embedded(self, item: Any) -> Vectors:
        if self._embedder is None:
            from galaxy_al.models.embedders import load_embedder

            settings, records = self._project.settings, self._project.folder / "embeddings"
            name = settings.embedder or None
            self._embedder = load_embedder(settings.kind, name, records=records)
        vector: Vectors = self._embedder.embed([self._embedder.prepare(item)])[0]
        return vector.astype(np.float64)


def decoded(data: bytes) -> NDArray[np.uint8]:
    """An image that somebody sent, whoever that is: no larger than it may be, and only that."""
    from PIL import Image, ImageOps

    formats = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
    try:
        with Image.open(BytesIO(data), formats=formats) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise GalaxyError("The image has too many pixels.")
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except GalaxyError:
        raise
    except Exception as error:  # Pillow raises a dozen kinds
        raise GalaxyError("That is no image that can be read.") from error
