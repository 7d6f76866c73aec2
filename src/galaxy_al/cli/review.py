"""The command that lists labels to look at again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from galaxy_al.cli.project import PROJECT, replaced_scheduler

if TYPE_CHECKING:
    from galaxy_al.labelling.review import Item


@click.command()
@PROJECT
@replaced_scheduler
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many to list.",
)
def review(project: Path, scheduler: str | None, limit: int) -> None:
    """List labels to look at again: duplicates that differ, disagreements, suspected errors.

    Decide about them on the page, under Review.

    \b
    Example:
      galaxy-al review scratches
      galaxy-al review scratches --limit 100
    """
    from rich.console import Console

    from galaxy_al.labelling.review import review_project

    items = review_project(project, scheduler)
    if not items:
        click.echo(
            "Nothing to look at again: no label is suspected, no duplicates have different "
            "labels, and all annotators agree."
        )
        return
    Console(highlight=False).print(_table(items[:limit]))
    click.echo(f"{_summary(items)} Decide about them under Review: galaxy-al label {project}")


def _table(items: list[Item]) -> object:
    from rich.markup import escape
    from rich.table import Table

    table = Table("example", "label", "by", "error", "why", box=None, pad_edge=False)
    for item in items:
        for number, one in enumerate(item.examples):
            error = "" if item.error is None else f"{item.error:.2f}"
            why = "" if number else item.sentence
            table.add_row(*map(escape, (one.id, one.label, one.annotator, error, why)))
    return table


def _summary(items: list[Item]) -> str:
    names = {
        "duplicates": ("group of duplicates", "groups of duplicates"),
        "disagreement": ("disagreement", "disagreements"),
        "suspect": ("suspected error", "suspected errors"),
    }
    counts = {name: sum(item.reason == name for item in items) for name in names}
    parts = [f"{n:,} {names[name][n != 1]}" for name, n in counts.items() if n]
    return f"{', '.join(parts)}."
