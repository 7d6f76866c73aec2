"""Tables with one row per label: CSV, JSON lines and Parquet."""

from pathlib import Path

from galaxy_al.data.tables import write_table
from galaxy_al.labelling.exports.base import ExportFormat, columns_of
from galaxy_al.labelling.model import LabeledExamples


def _table(name: str, media_type: str) -> ExportFormat:
    suffix = f".{name}"

    def write(labeled: LabeledExamples, path: Path) -> None:
        write_table(path, columns_of(labeled), suffix)

    return ExportFormat(name, f"labels{suffix}", write, media_type, suffix)


CSV = _table("csv", "text/csv")
JSON_LINES = _table("jsonl", "application/jsonl")
PARQUET = _table("parquet", "application/vnd.apache.parquet")
