"""The commands for pools in shards: embed, manifest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from galaxy_al.cli.data import pool_options, report_problems, scheduler_option

if TYPE_CHECKING:
    from galaxy_al.cluster.planning import Made

_scheduler_option = scheduler_option(
    "A dask scheduler, as tcp://host:8786, or local.  [default: processes on this machine]"
)


@click.command()
@pool_options
@click.option("--out", required=True, help="The folder of the shards: a path, or s3://...")
@_scheduler_option
@click.option("--embedder", help="The model that embeds images or texts, as in `init`.")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    help="The rows of a new shard.  [default: as before, or what takes 32 MB, at most 4,096 images "
    "or texts]",
)
@click.option(
    "--dtype",
    type=click.Choice(["float16", "float32", "float64"]),
    help="The precision of the vectors.  [default: float16, or as they are given]",
)
def embed(
    pool: Path,
    kind: str | None,
    column: str | None,
    id_column: str | None,
    out: str,
    scheduler: str | None,
    embedder: str | None,
    rows: int | None,
    dtype: str | None,
) -> None:
    """Embed a pool into shards, on one machine or many.

    A run that was stopped continues where it was. Run it again after you have added examples: only
    these are embedded.

    \b
    Example:
      galaxy-al embed photos/ --out shards/
      galaxy-al embed mails.csv --out s3://bucket/mails --scheduler tcp://head-node:8786
      galaxy-al init mails --shards shards/ --classes spam --other ham
    """
    from rich.progress import Progress

    from galaxy_al.cluster.embedding import embed_into_shards
    from galaxy_al.data import load_pool
    from galaxy_al.snapshot import UNLABELED

    found = load_pool(pool, kind=kind, column=column, id_column=id_column)
    with Progress(transient=True) as progress:
        bar = progress.add_task("Shards")
        made = embed_into_shards(
            found,
            pool,
            out,
            embedder=embedder,
            scheduler=scheduler,
            rows=rows,
            dtype=dtype,
            on_progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    manifest = made.manifest
    bad = [reason for shard in manifest.shards for reason in shard.bad.values()]
    report_problems(bad, manifest.starts[-1], most=20)
    if (found.labels != UNLABELED).any():
        click.echo("Shards have no labels. Give yours to `galaxy-al init --import-labels`.")
    for name in made.changed:
        click.echo(f"{name} had changed and was made again.")
    if made.has_other_rows:
        click.echo("The shards that were there keep their rows. --rows is for new ones.")
    click.echo(f"{_summary(made)}, {made.n_made - len(made.changed):,} of them new: {out}")


def _summary(made: Made) -> str:
    """How many examples there are, in how many shards."""
    n_shards = len(made.manifest.shards)
    shards = "1 shard" if n_shards == 1 else f"{n_shards:,} shards"
    return f"{made.manifest.starts[-1]:,} {made.manifest.kind} in {shards}"


@click.command()
@click.argument("folder")
@_scheduler_option
@click.option("--model", default="", help="The model that made the vectors, to be remembered.")
def manifest(folder: str, scheduler: str | None, model: str) -> None:
    """Make a pool of shards that you already have.

    FOLDER contains .npy files (a row per example; ids in NAME.ids.npy or NAME.arrow, or the rows
    are numbered) or Parquet files (columns embedding and id; text or path if you want to see more
    than numbers). They stay as they are. Run it again when there are new files, or if some have
    changed.

    \b
    Example:
      galaxy-al manifest s3://bucket/vectors --scheduler tcp://head-node:8786
      galaxy-al init dents --shards s3://bucket/vectors --classes dent --other fine
    """
    from galaxy_al.cluster.own_shards import write_manifest

    made = write_manifest(folder, scheduler=scheduler, model=model)
    for name in made.changed:
        click.echo(f"{name} has changed and was read again.")
    changed = f" and {len(made.changed):,} of their files changed" if made.changed else ""
    click.echo(f"{_summary(made)}, {made.n_made:,} of them new{changed}: {folder}")
