"""Texts: a column of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from galaxy_al.data.modalities.base import Items, Modality
from galaxy_al.data.tables import Table
from galaxy_al.system.files import digest


class Texts(Modality):
    """Texts of any length."""

    name = "texts"
    columns = ("text",)
    help = "A table of texts."
    is_embedded = True
    searched_by = ("text",)

    def read_column(self, table: Table, column: str) -> Items:
        """The texts of a column; none may be empty."""
        return table.texts(column)

    def content(self, items: Items, state: str, column: str) -> str:
        """The texts themselves, wherever their table is."""
        return digest(cast(Iterable[str], items))

    def words(self, items: Any) -> Sequence[str]:
        """The texts themselves."""
        return [str(text) for text in items]

    def label_studio(self, items: Any, index: int, id: str) -> tuple[str, str]:
        """The text."""
        return "text", items[index]
