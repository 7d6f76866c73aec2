"""Images at the size a network takes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.system.threads import n_threads

Image = NDArray[np.uint8]
Size = tuple[int, int]


def read_item(items: Any, index: int, side: int | None) -> Any:
    """One of a pool's items; an image file can come smaller than it is, but not than a side."""
    read = getattr(items, "read", None)
    return items[index] if read is None else read(index, side)


def resized(image: Image, size: Size) -> Image:
    """An H x W x 3 image at another height and width."""
    from PIL import Image as Pillow

    picture = Pillow.fromarray(np.ascontiguousarray(image))
    return np.asarray(picture.resize(size[::-1], Pillow.Resampling.BILINEAR))


@dataclass(frozen=True)
class ResizedImages:
    """Images of any size, read and scaled by threads when they are wanted."""

    items: Any
    size: Size

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> NDArray[np.uint8]:
        indices = np.arange(len(self))[rows].tolist()
        with ThreadPoolExecutor(n_threads()) as threads:
            made = list(threads.map(self._one, indices))
        return np.stack(made) if made else np.empty((0, *self.size, 3), dtype=np.uint8)

    def _one(self, index: int) -> Image:
        return resized(read_item(self.items, index, max(self.size)), self.size)
