"""What a modality must know, so that the rest of the package need not ask what a pool holds."""

from __future__ import annotations

import mimetypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from galaxy_al.data.tables import Table
from galaxy_al.errors import GalaxyError, InvalidArgument
from galaxy_al.system.files import digest, read_bytes

MEDIA = ("image", "audio")


class Items(Protocol):
    """What the examples are; an item is an H x W x 3 image, a text or a vector."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, index: int, /) -> Any:
        """One of them; `UnreadableImage` if its file cannot be read."""


@dataclass(frozen=True)
class Source:
    """What a folder or a file that is not a table holds.

    Parameters
    ----------
    content
        Changes when the items do.
    labels
        Numbers or names of classes, if the file has any.
    classes
        The names of the classes, if the file has them.
    """

    ids: Sequence[str]
    items: Items
    content: str
    labels: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()


class Modality(ABC):
    """One kind of example: how to read, check, show, search and export it.

    Parameters
    ----------
    name
        As in settings and in the options of the command line: ``images``.
    columns
        The usual names of a table's column that holds items, the most usual first.
    help
        What the option of ``galaxy-al init`` takes.
    is_embedded
        Whether an embedder makes the vectors; otherwise `vectors` does.
    goes_to_networks
        Whether a network can be trained on the items themselves.
    searched_by
        What can be searched for beside other examples: ``"text"``, ``"image"``.
    media
        ``"image"`` or ``"audio"`` if an example is shown as such a file; see `media_path`.
    """

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    help: ClassVar[str] = "A table."
    is_embedded: ClassVar[bool] = False
    goes_to_networks: ClassVar[bool] = False
    searched_by: ClassVar[tuple[str, ...]] = ()
    media: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        if cls.media not in (None, *MEDIA):
            raise InvalidArgument(f"media must be None or one of {MEDIA}, got {cls.media!r}.")

    def reads(self, path: Path) -> bool:
        """Whether `read` takes a folder, or a file that is not a table."""
        return False

    def read(self, path: Path) -> Source:
        """What a folder or a file that is not a table holds."""
        raise GalaxyError(f"{path} is not a table of {self.name}.")

    @abstractmethod
    def read_column(self, table: Table, column: str) -> Items:
        """The items in a column of a table."""

    def content(self, items: Items, state: str, column: str) -> str:
        """A short text that changes when the items do.

        Parameters
        ----------
        state, column
            The state of the table's file, and the column.
        """
        return digest([state, column])

    def take(self, items: Any, kept: NDArray[np.intp]) -> Items:
        """Some of the items, in this order."""
        taken: Items = [items[i] for i in kept.tolist()]
        return items[kept] if isinstance(items, np.ndarray) else taken

    def problems(self, items: Items, ids: Sequence[str]) -> dict[int, str]:
        """Why items cannot be used, by index."""
        return {}

    def vectors(self, items: Items) -> NDArray[Any]:
        """The vectors of items that need no embedder."""
        return np.asarray(items)

    def words(self, items: Items) -> Sequence[str] | None:
        """The items as texts, if their words tell what they are about."""
        return None

    def show(self, items: Items, index: int) -> dict[str, Any]:
        """What the page shows of an example, as JSON."""
        return {"text": str(items[index])}

    def media_path(self, items: Any, index: int) -> Path:
        """The file that the page shows, if `media` is set."""
        return Path(items[index])

    def media_bytes(self, items: Any, index: int, side: int | None) -> tuple[bytes, str]:
        """What the page gets of that file, and its type; ``side`` is for images that are small."""
        path = self.media_path(items, index)
        found = mimetypes.guess_type(path.name)[0] or ""
        is_media = found.startswith(f"{self.media}/")
        return read_bytes(path), found if is_media else "application/octet-stream"

    def bytes_of(self, items: Items, index: int) -> bytes:
        """An example as bytes; those that are the same have the same."""
        item = items[index]
        return item.encode() if isinstance(item, str) else np.asarray(item).tobytes()

    def look(self, items: Items, index: int) -> NDArray[np.float32] | None:
        """What an example looks like, as a short vector; None if it is not something to see."""
        return None

    def label_studio(self, items: Items, index: int, id: str) -> tuple[str, str]:
        """The key and the value of an example in a task of Label Studio."""
        return "id", id

    def hugging_face(
        self, items: Any, indices: Sequence[int]
    ) -> tuple[str, list[Any], dict[str, Any]]:
        """The name of a dataset's column, its values and its feature."""
        return "text", [str(items[i]) for i in indices], {"dtype": "string", "_type": "Value"}
