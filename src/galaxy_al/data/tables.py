"""Tables in CSV, JSON lines and Parquet; errors name the row."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError
from galaxy_al.system.extras import needs_extra
from galaxy_al.system.files import reading, writing

TABLE_SUFFIXES = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Table:
    """Named columns of a file.

    Parameters
    ----------
    lines
        The place of each row in the file, for messages.
    """

    path: Path
    columns: Mapping[str, Sequence[Any] | NDArray[Any]]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        unit = "row" if self.path.suffix.lower() == ".parquet" else "line"
        return f"{self.path}, {unit} {self.lines[row]}"

    def column(self, name: str) -> Sequence[Any] | NDArray[Any]:
        """A column; an error if there is none of this name."""
        if name not in self.columns:
            raise GalaxyError(
                f"{self.path} has no column {name!r}. Its columns are: {', '.join(self.columns)}."
            )
        return self.columns[name]

    def texts(self, name: str) -> list[str]:
        """A column that must have a text in every row."""
        texts: list[str] = []
        for row, text in enumerate(self.names(name)):
            if text is None:
                raise GalaxyError(f"{self.where(row)}: the column {name!r} is empty.")
            texts.append(text)
        return texts

    def names(self, name: str) -> list[str | None]:
        """A column of names, of which some may be missing."""
        names = [_as_text(value) for value in self.column(name)]
        for row, text in enumerate(names):
            if text is not None and not is_unicode(text):
                raise GalaxyError(f"{self.where(row)}: {name!r} has half a character in it.")
        return names

    def vectors(self, name: str) -> NDArray[np.floating[Any]]:
        """A column of equally long lists of numbers."""
        values = self.column(name)
        if isinstance(values, np.ndarray):
            return values if values.dtype.kind == "f" else values.astype(np.float64)
        rows: list[NDArray[Any]] = []
        for row, value in enumerate(values):
            vector = np.array(value, dtype=object) if _is_ragged(value) else np.asarray(value)
            if vector.ndim != 1 or vector.dtype.kind not in "fiu" or not len(vector):
                raise GalaxyError(f"{self.where(row)}: {name!r} is not a list of numbers.")
            if rows and len(vector) != len(rows[0]):
                raise GalaxyError(
                    f"{self.where(row)}: {name!r} has {len(vector)} numbers, "
                    f"the rows before have {len(rows[0])}."
                )
            rows.append(vector)
        table = np.stack(rows)
        return table if table.dtype.kind == "f" else table.astype(np.float64)


def is_unicode(text: str) -> bool:
    """Whether a text can be written; JSON and file names can hold what is not Unicode."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _as_text(value: Any) -> str | None:
    """A value as text; whole numbers that pandas has turned into floats lose their point."""
    if value is None or value == "" or value != value:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_ragged(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(inner, list) for inner in value)


def read_table(path: Path) -> Table:
    """A table by its suffix."""
    readers = {".csv": _read_csv, ".jsonl": _read_json_lines, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise GalaxyError(f"{path} is not a table: its name must end in {', '.join(readers)}.")
    with reading(path):
        try:
            table = readers[path.suffix.lower()](path)
        except UnicodeDecodeError as error:
            raise GalaxyError(f"{path}, line {_bad_line(path)} is not UTF-8.") from error
    if not len(table):
        raise GalaxyError(f"{path} has no rows.")
    return table


def _bad_line(path: Path) -> int:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 0


def write_table(
    path: Path, columns: Mapping[str, Sequence[Any] | NDArray[Any]], suffix: str | None = None
) -> None:
    """Write named columns; an existing file is replaced when all is written.

    Parameters
    ----------
    suffix
        The format; by default that of the path.
    """
    write_blocks(path, [columns], suffix)


def write_blocks(
    path: Path,
    blocks: Iterable[Mapping[str, Sequence[Any] | NDArray[Any]]],
    suffix: str | None = None,
) -> None:
    """As `write_table`, for columns that come block by block, at least one."""
    writers = {".csv": _write_csv, ".jsonl": _write_json_lines, ".parquet": _write_parquet}
    form = path.suffix.lower() if suffix is None else suffix
    check_table_name(path.with_suffix(form))
    with writing(path) as part:
        writers[form](part, blocks)


def check_table_name(path: Path) -> None:
    """Refuse a name that a table cannot be written to, before any work is done."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise GalaxyError(f"{path} must end in {', '.join(TABLE_SUFFIXES)}.")
    if not path.parent.is_dir():
        raise GalaxyError(f"There is no folder {path.parent} to write {path.name} into.")


def _read_csv(path: Path) -> Table:
    with path.open(encoding="utf-8-sig", newline="") as file:
        csv.field_size_limit(1 << 30)  # a text may be a whole book
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            columns: dict[str, list[Any]] = {name: [] for name in header}
            if len(columns) < len(header):
                raise GalaxyError(f"{path} has two columns of the same name: {', '.join(header)}.")
            lines, begin = [], reader.line_num + 1
            for fields in reader:
                if fields and len(fields) != len(header):
                    raise GalaxyError(
                        f"{path}, line {begin} has {len(fields)} fields, the header {len(header)}."
                    )
                if fields:
                    lines.append(begin)
                    for name, value in zip(header, fields):
                        columns[name].append(value)
                begin = reader.line_num + 1
        except csv.Error as error:
            raise GalaxyError(f"{path}, line {reader.line_num}: {error}.") from error
    return Table(path, dict(columns), lines)


def _read_json_lines(path: Path) -> Table:
    rows, lines = [], []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise GalaxyError(f"{path}, line {number} is not JSON: {error.msg}.") from error
            if not isinstance(row, dict):
                raise GalaxyError(f"{path}, line {number} is not a JSON object.")
            rows.append(row)
            lines.append(number)
    names = dict.fromkeys(name for row in rows for name in row)
    return Table(path, {name: [row.get(name) for row in rows] for name in names}, lines)


def _read_parquet(path: Path) -> Table:
    content = load_pyarrow().parquet.read_table(path)
    return Table(path, _ArrowColumns(content), range(content.num_rows))


class _ArrowColumns(Mapping[str, Sequence[Any] | NDArray[Any]]):
    """Columns that become Python's own values when they are read; vectors stay in an array."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content.column_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._content.column_names)

    def __getitem__(self, name: str) -> Sequence[Any] | NDArray[Any]:
        column = self._content.column(name).combine_chunks()
        kind = str(column.type)
        if "list" in kind and ("float" in kind or "double" in kind) and not column.null_count:
            flat, size = column.flatten(), len(column)
            lengths = column.value_lengths().to_numpy() if "fixed" not in kind else None
            if flat.null_count == 0 and (lengths is None or len(set(lengths.tolist())) == 1):
                vectors: NDArray[Any] = flat.to_numpy(zero_copy_only=False).reshape(size, -1)
                return vectors
        values: list[Any] = column.to_pylist()
        return values


def _write_csv(path: Path, blocks: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for number, columns in enumerate(blocks):
            if number == 0:
                writer.writerow(columns)
            writer.writerows(zip(*map(plain, columns.values())))


def _write_json_lines(path: Path, blocks: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for columns in blocks:
            for row in zip(*map(plain, columns.values())):
                file.write(json.dumps(dict(zip(columns, row)), ensure_ascii=False) + "\n")


def _write_parquet(path: Path, blocks: Iterable[Mapping[str, Any]]) -> None:
    pyarrow = load_pyarrow()
    tables = (pyarrow.table(dict(columns)) for columns in blocks)
    first = next(tables)
    with pyarrow.parquet.ParquetWriter(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def plain(column: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    """Python's own values; single precision with the seven digits it has."""
    if not isinstance(column, np.ndarray):
        return column
    values: list[Any] = column.tolist()
    return [float(f"{value:.7g}") for value in values] if column.dtype == np.float32 else values


def load_pyarrow() -> Any:
    """Arrow with its Parquet module; an error if it is not installed."""
    with needs_extra("Parquet", "data"):
        import pyarrow.parquet
    return pyarrow
