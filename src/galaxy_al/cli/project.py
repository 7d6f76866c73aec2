"""The commands for a project: init, label, status, export, train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from galaxy_al.cli.data import scheduler_option
from galaxy_al.errors import GalaxyError
from galaxy_al.models.hub_models import HUB_MODELS, stronger_model
from galaxy_al.system.extras import needs_extra

if TYPE_CHECKING:
    from galaxy_al.labelling.exports import ExportFormat

replaced_scheduler = scheduler_option(
    "Who works on the shards from now on: a dask scheduler, local, or none: this process."
)
PROJECT = click.argument("project", type=click.Path(path_type=Path))


class _Format(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions
    """The name of an export format; the registry is read only when it is needed."""

    name = "format"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        from galaxy_al.labelling.exports import EXPORTS

        return f"[{'|'.join(EXPORTS)}]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ExportFormat:
        from galaxy_al.labelling.exports import EXPORTS

        return EXPORTS[value]


class _WithModalities(click.Command):
    """A command with one more option per modality, as plugins add them."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's parameters: the project, the modalities, the other options."""
        from galaxy_al.data import MODALITIES

        project, *others = super().get_params(ctx)
        kind = click.Path(path_type=Path)
        pools = [
            click.Option([f"--{name}"], type=kind, help=modality.help)
            for name, modality in MODALITIES.items()
        ]
        return [project, *pools, *others]


@click.command(cls=_WithModalities)
@PROJECT
@click.option("--shards", help="A pool in shards, made by `galaxy-al embed`: a folder or s3://...")
@scheduler_option("Who works on the shards: a dask scheduler, local, or none: this process.")
@click.option("--classes", required=True, help="The rare classes, separated by commas.")
@click.option("--other", required=True, help="The majority class: everything else.")
@click.option(
    "--import-labels",
    type=click.Path(path_type=Path),
    help="A table with the columns id and label.",
)
@click.option("--column", default="", help="The column of the texts, image files or vectors.")
@click.option("--id-column", default="", help="The column of the ids in a table.  [default: id]")
@click.option(
    "--embedder",
    default="",
    help=f"The model that embeds images or texts: {', '.join(HUB_MODELS)}, another name on the "
    "Hugging Face Hub, a folder or an ONNX file.  [default: built in, works offline]",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="The number of answers between two trainings, at most.",
)
@click.option(
    "--goal",
    default="classifier",
    show_default=True,
    help="What the labels are for: classifier, or find-all to find all rare examples.",
)
@click.option("--strategy", default="", help="What to ask.  [default: fair-cuts, or find-all]")
@click.option("--head", default="auto", show_default=True, help="The model to train.")
@click.option(
    "--overlap",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="The share of the examples that several people are asked, to see whether they agree.",
)
@click.option(
    "--overlap-people",
    type=click.IntRange(2, 3),
    default=2,
    show_default=True,
    help="How many people these are asked.",
)
@click.option(
    "--target-recall",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="The share of the rare examples to find, as 0.95. You are told when it is found.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random choices.")
def init(
    project: Path,
    classes: str,
    other: str,
    import_labels: Path | None,
    strategy: str,
    shards: str | None,
    **options: Any,
) -> None:
    """Create a project: a folder with the settings, the labels and the vectors.

    \b
    Example:
      galaxy-al init scratches --images photos/ --classes scratch,dent --other fine
      galaxy-al init spam --texts mails.csv --classes spam --other ham --import-labels known.csv
      galaxy-al init claims --texts letters.csv --classes fraud --other fine --goal find-all
      galaxy-al init spam --texts mails.csv --classes spam --other ham --target-recall 0.95
      galaxy-al init dents --images photos/ --classes dent --other fine --embedder dinov2
      galaxy-al init dents --images photos/ --classes dent --other fine --embedder clip.onnx
      galaxy-al init dents --shards shards/ --classes dent --other fine
      galaxy-al init dents --images photos/ --classes dent --other fine --overlap 0.1
    """
    from galaxy_al.data import MODALITIES
    from galaxy_al.labelling.project import create_project
    from galaxy_al.labelling.service import Service
    from galaxy_al.labelling.summary import summarize

    given = {kind: options.pop(kind.replace("-", "_")) for kind in MODALITIES}
    given["shards"] = shards
    pools = [(kind, path) for kind, path in given.items() if path is not None]
    if len(pools) != 1:
        flags = ", ".join(f"--{kind}" for kind in given)
        raise click.UsageError(f"Give exactly one of {flags}.")
    _check_apply(options, shards is not None)
    if strategy:
        options["strategy"] = strategy
    names = [name.strip() for name in classes.split(",") if name.strip()]
    (kind, pool) = pools[0]
    if not options["embedder"] and (hint := stronger_model(kind)):
        click.echo(hint)  # before the default embeds the pool, which can take long
    if shards is not None:
        options["shards"] = True
    made = create_project(
        project,
        pool,
        kind=kind,
        classes=names,
        other=other.strip(),
        labels=import_labels,
        **options,
    )
    for problem in list(made.bad.values())[:20]:
        click.echo(problem, err=True)
    if made.bad:
        click.echo(f"Cannot be used: {len(made.bad):,} of {len(made.pool):,} examples", err=True)
    if not import_labels:
        Service(made).close()  # finds the first questions, which the page then has at once
    imported = f", {summarize(project).n_imported:,} labels imported" if import_labels else ""
    what = f"{len(made.pool):,} {made.pool.kind}"
    click.echo(f"{what} in {project}{imported}. Next: galaxy-al label {project}")


def _check_apply(options: dict[str, Any], is_sharded: bool) -> None:
    """Refuse options that would be ignored."""
    useless = ("column", "id_column", "embedder") if is_sharded else ("scheduler",)
    for name in useless:
        if options[name]:
            flag, where = name.replace("_", "-"), "in" if is_sharded else "that is not in"
            raise click.UsageError(f"--{flag} does not apply to a pool {where} shards.")
    options["scheduler"] = options["scheduler"] or ""


@click.command()
@PROJECT
@replaced_scheduler
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Any but this one asks for a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port; 0 takes any that is free.",
)
@click.option("--name", default="", help="The host name of a TLS proxy in front of the server.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
def label(
    project: Path, scheduler: str | None, host: str, port: int, name: str, opens: bool
) -> None:
    """Start the labelling page of a project. Several people can label at once.

    \b
    Example:
      galaxy-al label scratches
      galaxy-al label scratches --host 0.0.0.0 --port 9000 --no-open
      galaxy-al label dents --scheduler tcp://head-node:8786
    """
    with needs_extra("The page", "app"):
        from galaxy_al.server.run import serve
    serve(
        project,
        scheduler=scheduler,
        host=host,
        port=port,
        name=name,
        opens_page=opens,
        tell=click.echo,
    )


@click.command()
@PROJECT
def status(project: Path) -> None:
    """Show the progress of a project, and how many rare examples are left.

    \b
    Example:
      galaxy-al status scratches
    """
    from galaxy_al.goals import GOALS
    from galaxy_al.labelling.advice_reading import read_advice
    from galaxy_al.labelling.missing import missing_classes
    from galaxy_al.labelling.project import read_settings
    from galaxy_al.labelling.summary import summarize
    from galaxy_al.strategies import make_strategy

    found, settings = summarize(project), read_settings(project)
    people = f"{found.n_annotators} annotator{'s' if found.n_annotators != 1 else ''}"
    click.echo(f"{project}: {found.n_labels:,} labels ({found.n_imported:,} imported), {people}")
    click.echo(f"Goal: {GOALS[settings.goal].summary}")
    for name in found.classes:
        click.echo(f"{found.count(name):>10,} {name}")
    if found.n_cannot_tell:
        click.echo(f"{found.n_cannot_tell:>10,} can't tell")
    strategy, batch_size = make_strategy(settings.strategy), settings.batch_size
    missing = missing_classes(found.classes, found.entries, strategy, batch_size)
    for name, text in missing.items():
        click.echo(f"{name}: {text}")
    try:
        advice = read_advice(project)
    except GalaxyError as error:  # the pool is away; the rest needs only the log
        click.echo(f"How many are left cannot be told: {error}", err=True)
    else:
        if advice is not None:
            click.echo(advice.sentence)
    for warning in found.warnings:
        click.echo(warning, err=True)
    for line in found.agreement_lines():
        click.echo(line)
    for record in found.rounds[-5:]:
        if record.accuracy is not None:
            about = (
                f"balanced accuracy {record.accuracy:.2f} ({record.low:.2f} to {record.high:.2f})"
            )
        elif settings.head == "auto" and record.rare_found in (0, record.n_labels):
            about = "labels of one class only"
        else:
            about = "accuracy not estimated for this head"
        click.echo(f"Round {record.number}: {record.n_labels:,} labels, {about}")


@click.command()
@PROJECT
@replaced_scheduler
@click.option(
    "--format", type=_Format(), help="By default the format of the output's suffix, or csv."
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="By default a file in the project's folder."
)
@click.option(
    "--all-answers",
    is_flag=True,
    help="One row per person and example, as a table.",
)
def export(
    project: Path,
    scheduler: str | None,
    format: ExportFormat | None,
    output: Path | None,
    all_answers: bool,
) -> None:
    """Export the labels: annotator, time, round, and the model's probabilities.

    \b
    Example:
      galaxy-al export scratches --output labels.csv
      galaxy-al export scratches --format coco --output scratches.json
      galaxy-al export scratches --all-answers --output answers.csv
    """
    from galaxy_al.labelling.exports import EXPORTS, format_of
    from galaxy_al.labelling.exports.all_answers import write_all_answers
    from galaxy_al.labelling.model import labeled_examples
    from galaxy_al.labelling.project import check_output
    from galaxy_al.labelling.summary import summarize

    if output is None:
        format = format or EXPORTS["csv"]
        output = project / (f"answers{format.suffix}" if all_answers else format.file_name)
    check_output(project, output)
    format = format or format_of(output)
    if all_answers:
        n_answers = write_all_answers(summarize(project).log, output, format)
        click.echo(f"{n_answers:,} answers in {output}")
        return
    found = labeled_examples(project, scheduler)
    for warning in found.warnings:
        click.echo(warning, err=True)
    if not found.entries:
        raise GalaxyError(f"{project} has no labels yet.")
    format.write(found, output)
    click.echo(f"{len(found.entries):,} labels in {output}")


@click.command()
@PROJECT
@replaced_scheduler
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="By default the folder `model` in the project's folder.",
)
@click.option(
    "--decide",
    default="f1",
    show_default=True,
    metavar="RULE",
    help="What decisions should be good at: f1, balanced, precision=P, recall=R or "
    "cost=MISSED:FALSE.",
)
@click.option("--onnx", is_flag=True, help="Also write model.onnx.")
def train(
    project: Path, scheduler: str | None, output: Path | None, decide: str, onnx: bool
) -> None:
    """Train the classifier on all labels of a project and save it with its thresholds.

    It prints how good the decisions are expected to be on data like the pool.

    \b
    Example:
      galaxy-al train scratches
      galaxy-al train scratches --decide precision=0.9
      galaxy-al predict scratches/model new-photos/
    """
    from galaxy_al.experiments.plots import save_decision_figure
    from galaxy_al.labelling.model import save_trained_model
    from galaxy_al.labelling.project import check_output

    output = output or project / "model"
    check_output(project, output)
    trained = save_trained_model(project, output, decide, onnx=onnx, scheduler=scheduler)
    report = trained.report
    save_decision_figure(output / "precision-recall.png", report, trained.curves)
    click.echo(f"Trained on {sum(report.counts):,} labels: {output}")
    for line in report.lines():
        click.echo(line)
