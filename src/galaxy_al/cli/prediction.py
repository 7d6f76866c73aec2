"""The command for a saved model: predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from galaxy_al.cli.data import pool_or_address_options, report_problems, scheduler_option
from galaxy_al.errors import GalaxyError


def numbers_by_class(text: str | None, option: str, classes: Sequence[str]) -> dict[str, float]:
    """Read one number for all rare classes, or NAME=NUMBER,... for some."""
    if not text:
        return {}
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        if len(parts) == 1 and not parts[0][1]:
            return dict.fromkeys(classes, float(text))
        numbers = {name.strip(): float(number) for name, _, number in parts}
        if len(numbers) < len(parts):
            raise ValueError("a class is named twice")
        return numbers
    except ValueError:
        raise click.BadParameter(
            f"give one number, or NAME=NUMBER,... once per class, got {text!r}.", param_hint=option
        ) from None


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@pool_or_address_options
@scheduler_option("For a pool in shards: a dask scheduler, local, or none: this process.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("predictions.csv"),
    show_default=True,
    help="The table to write: .csv, .jsonl or .parquet.",
)
@click.option(
    "--threshold",
    metavar="P",
    help="Decide for a rare class from this probability on, or NAME=P,... per class.",
)
@click.option(
    "--prevalence",
    metavar="SHARE",
    help="The share of the rare class in this pool, or NAME=SHARE,... per class.",
)
def predict(
    model: Path,
    pool: str,
    kind: str | None,
    column: str | None,
    id_column: str | None,
    scheduler: str | None,
    output: Path,
    threshold: str | None,
    prevalence: str | None,
) -> None:
    """Predict the classes of a pool with a saved model: decisions and probabilities.

    MODEL is a folder written by `galaxy-al train` or `save_model`. POOL may be the folder of a pool
    in shards, also at s3://... If a class is rarer or more frequent in this pool than in the one
    that the model was trained with, give its --prevalence: the probabilities follow it, and the
    decisions of all rules but `balanced` and `recall`.

    \b
    Example:
      galaxy-al predict scratches/model photos/ --output predictions.csv
      galaxy-al predict scratches/model photos/ --threshold 0.3
      galaxy-al predict scratches/model photos/ --prevalence scratch=0.001,dent=0.01
    """
    from galaxy_al.data import load_pool
    from galaxy_al.data.shard_files import MANIFEST
    from galaxy_al.data.tables import check_table_name
    from galaxy_al.labelling.predictions import check_options, predict
    from galaxy_al.models.saving import load_model
    from galaxy_al.system.addresses import absolute, exists, is_remote, join

    check_table_name(output)
    address = absolute(pool)
    if str(output.resolve()) == address:
        raise GalaxyError(f"{output} is the pool itself and must not be overwritten.")
    saved = load_model(model)
    thresholds, prevalences = (
        numbers_by_class(text, name, saved.classes[:-1])
        for text, name in ((threshold, "--threshold"), (prevalence, "--prevalence"))
    )
    check_options(saved, thresholds, prevalences)
    if is_remote(address) or exists(join(address, MANIFEST)):
        for name, value in (("kind", kind), ("column", column), ("id-column", id_column)):
            if value:
                raise click.UsageError(f"--{name} does not apply to a pool in shards.")
        if str(output.resolve().parent) == address:
            raise GalaxyError(f"{output} would be among the shards. Write it somewhere else.")
        options = {"thresholds": thresholds, "prevalence": prevalences}
        n_predicted = _predict_shards(saved, address, output, scheduler, options)
        click.echo(f"{n_predicted:,} examples in {output}")
        return
    if scheduler:
        raise click.UsageError("--scheduler does not apply to a pool that is not in shards.")
    found = load_pool(Path(pool), kind=kind, column=column, id_column=id_column)
    made = predict(saved, found, thresholds=thresholds, prevalence=prevalences)
    made.write(output)
    report_problems(made.bad, len(found))
    click.echo(f"{len(made.ids):,} examples in {output}")


def _predict_shards(
    saved: Any, folder: str, output: Path, scheduler: str | None, options: dict[str, Any]
) -> int:
    """Predict a pool in shards; returns how many examples it has."""
    from galaxy_al.cluster.sharded_pool import ShardedPool
    from galaxy_al.data.tables import write_blocks
    from galaxy_al.labelling.predictions import predicted_shards

    n_predicted, bad = 0, list[str]()

    def blocks() -> Iterator[dict[str, Any]]:
        nonlocal n_predicted
        for made in predicted_shards(saved, pool, **options):
            n_predicted += len(made.ids)
            bad.extend(made.bad)
            yield made.columns

    with ShardedPool(folder, scheduler=scheduler or None) as pool:
        write_blocks(output, blocks())
    report_problems(bad, n_predicted + len(bad), most=20)
    return n_predicted
