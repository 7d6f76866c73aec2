"""The formats in which labels are exported: one file per kind, and the registry of all formats."""

from pathlib import Path

from galaxy_al.errors import InvalidArgument
from galaxy_al.labelling.exports.base import ExportFormat
from galaxy_al.labelling.exports.coco import COCO
from galaxy_al.labelling.exports.hugging_face import HUGGING_FACE
from galaxy_al.labelling.exports.label_studio import LABEL_STUDIO
from galaxy_al.labelling.exports.table import CSV, JSON_LINES, PARQUET
from galaxy_al.system.registry import Registry

EXPORTS: Registry[ExportFormat] = Registry(
    "export format",
    "galaxy_al.exports",
    {
        format.name: format
        for format in (CSV, JSON_LINES, PARQUET, COCO, LABEL_STUDIO, HUGGING_FACE)
    },
)

__all__ = ["EXPORTS", "ExportFormat", "format_of"]


def format_of(path: Path) -> ExportFormat:
    """The format for the suffix of a file; CSV if it has none.

    Examples
    --------
    >>> format_of(Path("labels.parquet")).name
    'parquet'
    """
    if not path.suffix:
        return CSV
    for format in EXPORTS.values():
        if format.suffix == path.suffix.lower():
            return format
    raise InvalidArgument(
        f"No export format has the suffix {path.suffix!r}. Choose a format: {', '.join(EXPORTS)}."
    )
