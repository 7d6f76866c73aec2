"""Every person's answer, in a table with one row per person and example."""

from __future__ import annotations

from pathlib import Path

from galaxy_al.data.tables import write_table
from galaxy_al.errors import InvalidArgument
from galaxy_al.labelling.exports.base import Columns, ExportFormat
from galaxy_al.labelling.exports.table import CSV, JSON_LINES, PARQUET
from galaxy_al.labelling.log import Log


def write_all_answers(log: Log, path: Path, format: ExportFormat = CSV) -> int:
    """Write the answers that were not undone, and return how many there are.

    Who cannot tell has answered, without a label. Skips are not answers.
    """
    tables = {table.name: table.suffix for table in (CSV, JSON_LINES, PARQUET)}
    if format.name not in tables:
        raise InvalidArgument(
            f"All answers are written as a table: {', '.join(tables)}, not as {format.name}."
        )
    columns = all_answers(log)
    write_table(path, columns, tables[format.name])
    return len(columns["id"])


def all_answers(log: Log) -> Columns:
    """One row per person and example, in the order of the log.

    Examples
    --------
    >>> from galaxy_al.labelling.log import Entry
    >>> log = Log([Entry("ann", "label", "a.jpg", "dent", number=1)])
    >>> log.add(Entry("bob", "cannot tell", "a.jpg", number=2))
    >>> columns = all_answers(log)
    >>> columns["annotator"], columns["label"], columns["counts"]
    (['ann', 'bob'], ['dent', None], [True, False])
    """
    current = {entry.number for entry in log.all_current()}
    entries = [entry for entry in log.all_answers() if entry.kind != "skip"]
    return {
        "id": [entry.example for entry in entries],
        "annotator": [entry.annotator for entry in entries],
        "answer": [entry.kind for entry in entries],
        "label": [entry.label for entry in entries],
        "created_at": [entry.created_at for entry in entries],
        "round": [entry.round for entry in entries],
        "source": [entry.source for entry in entries],
        "is_random": [entry.is_random for entry in entries],
        "counts": [entry.number in current for entry in entries],
    }
