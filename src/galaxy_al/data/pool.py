"""A pool: examples with ids that stay, as images, texts or ready embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError, InvalidArgument, UnreadableImage
from galaxy_al.snapshot import UNLABELED, row_blocks
from galaxy_al.system.files import digest, file_state
from galaxy_al.system.threads import n_threads

Kind = Literal["images", "texts", "embeddings"]


class Items(Protocol):
    """What the examples are; an item is an H x W x 3 image, a text or a vector."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, index: int, /) -> Any:
        """One of them; `UnreadableImage` if it is one."""


@dataclass(frozen=True)
class ImageFiles:
    """Images that are read from their files when they are wanted."""

    paths: Sequence[Path]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        return self.read(index)

    def read(self, index: int, side: int | None = None) -> NDArray[np.uint8]:
        """An image; if a side is given a JPEG may come smaller, but no smaller than that.

        Decoding a large photograph at an eighth of its size takes a fraction of the time.
        """
        from PIL import Image, ImageOps

        path = self.paths[index]
        try:
            with Image.open(path) as image:
                if side is not None:
                    image.draft("RGB", (side, side))
                return np.asarray(_as_rgb(ImageOps.exif_transpose(image)))
        except Exception as error:  # Pillow raises a dozen kinds, by the format and the damage
            raise UnreadableImage(f"Cannot read {path} as an image: {error}") from error

    def fingerprint(self) -> str:
        """What these files are now: changes when a file is replaced, and not when it is read."""
        return digest(map(file_state, self.paths))


def _as_rgb(image: Any) -> Any:
    """An image in RGB; deep greys are scaled, not cut, and what is transparent becomes white."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        values = np.asarray(image, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        scaled = (values - low) * (255 / (high - low) if high > low else 0)
        return Image.fromarray(scaled.astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        ground = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")


@dataclass(frozen=True)
class Pool:
    """Examples, the labels known of them and the classes there are.

    Parameters
    ----------
    ids
        A name for each example that is the same in every run.
    kind
        ``"images"``, ``"texts"`` or ``"embeddings"``.
    items
        The examples themselves, by index.
    classes
        Names, the big class last.
    labels
        The class of each example, ``-1`` where it is unknown.
    content
        Changes when the examples do; caches are kept by it.
    """

    ids: Sequence[str]
    kind: Kind
    items: Items
    classes: tuple[str, ...] = ()
    labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    content: str = ""

    def __post_init__(self) -> None:
        if not len(self.labels):
            object.__setattr__(self, "labels", np.full(len(self.ids), UNLABELED))
        if not len(self.ids) == len(self.items) == len(self.labels):
            raise InvalidArgument(
                f"A pool must have as many ids, items and labels, got {len(self.ids)}, "
                f"{len(self.items)} and {len(self.labels)}."
            )
        _check_distinct(self.ids)
        check_classes(self.classes)
        wrong = (self.labels < UNLABELED) | (self.labels >= max(len(self.classes), 1))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidArgument(
                f"The label of example {row} is {self.labels[row]}: there are "
                f"{len(self.classes)} classes, and {UNLABELED} is unknown."
            )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, kept: NDArray[np.intp]) -> Pool:
        """Some of the examples, in this order."""
        items: Items
        if isinstance(self.items, np.ndarray):
            items = self.items[kept]
        elif isinstance(self.items, ImageFiles):
            items = ImageFiles([self.items.paths[i] for i in kept])
        else:
            items = [self.items[int(i)] for i in kept]
        return replace(
            self,
            ids=[self.ids[i] for i in kept],
            items=items,
            labels=self.labels[kept],
            content=digest([self.content, kept.tobytes()]),
        )


def not_finite(pool: Pool) -> dict[int, str]:
    """The embeddings that hold something else than finite numbers, by index."""
    if pool.kind != "embeddings" or not isinstance(pool.items, np.ndarray):
        return {}
    bad: dict[int, str] = {}
    for low, high in row_blocks(len(pool), 1 << 14):
        finite = np.isfinite(pool.items[low:high]).all(axis=1)
        for row in (low + np.flatnonzero(~finite)).tolist():
            bad[row] = f"The embedding of {pool.ids[row]!r} is not finite."
    return bad


def without_unreadable(pool: Pool) -> tuple[Pool, dict[int, str]]:
    """The pool without the images that cannot be read, and why these cannot, by index."""
    bad = unreadable(pool)
    return (pool.take(np.setdiff1d(np.arange(len(pool)), list(bad))) if bad else pool), bad


def check_classes(classes: Sequence[str]) -> None:
    """Refuse names of classes that cannot be told apart."""
    if isinstance(classes, str):
        raise InvalidArgument(f"classes must be a list of names, got the text {classes!r}.")
    twice = [name for name in set(classes) if list(classes).count(name) > 1]
    if twice:
        raise InvalidArgument(f"Two classes are called {twice[0]!r}.")


def unreadable(pool: Pool) -> dict[int, str]:
    """The images that cannot be read, by index, and why. Reads them all, on all cores."""
    if pool.kind != "images":
        return {}

    def problem(index: int) -> str | None:
        try:
            pool.items[index]
        except UnreadableImage as error:
            return str(error)
        return None

    with ThreadPoolExecutor(n_threads()) as threads:
        problems = enumerate(threads.map(problem, range(len(pool))))
        return {index: found for index, found in problems if found is not None}


def label_codes(
    names: Sequence[str | None], classes: Sequence[str], where: Callable[[int], str]
) -> NDArray[np.int64]:
    """The numbers of class names; nothing or an empty text is unknown.

    Parameters
    ----------
    where
        Says where the i-th name stands, for the error about one that is no class.
    """
    number = {name: code for code, name in enumerate(classes)}
    codes = np.full(len(names), UNLABELED)
    for i, name in enumerate(names):
        if name is None or name == "":
            continue
        if name not in number:
            raise GalaxyError(
                f"{where(i)}: unknown class {name!r}. The classes are: {', '.join(classes)}."
            )
        codes[i] = number[name]
    return codes


def _check_distinct(ids: Sequence[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for position, name in enumerate(ids):
        if name in seen:
            raise GalaxyError(
                f"Two examples have the id {name!r}: numbers {seen[name]} and {position}."
            )
        seen[name] = position
