"""The commands about a project: make one, label, see how far it is, export, train, predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from galaxy_al.errors import GalaxyError

PROJECT = click.argument("project", type=click.Path(path_type=Path))
FORMATS = {
    "csv": "labels.csv",
    "jsonl": "labels.jsonl",
    "parquet": "labels.parquet",
    "coco": "coco.json",
    "label-studio": "label-studio.json",
    "hf": "dataset",
}


class _WithModalities(click.Command):
    """A command with one more option per modality, as plugins add them."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's parameters: the project, the modalities, the other options."""
        from galaxy_al.data import MODALITIES

        project, *others = super().get_params(ctx)
        kind = click.Path(path_type=Path)
        pools = [click.Option([f"--{m.name}"], type=kind, help=m.help) for m in MODALITIES.values()]
        return [project, *pools, *others]


@click.command(cls=_WithModalities)
@PROJECT
@click.option("--classes", required=True, help="The rare classes, with commas between.")
@click.option("--other", required=True, help="The big class: all the rest.")
@click.option("--import-labels", type=click.Path(path_type=Path), help="A table with id and label.")
@click.option("--column", default="", help="Where a table has its texts, image files or vectors.")
@click.option("--id-column", default="", help="By default id, if there is one.")
@click.option("--embedder", default="", help="A model that makes vectors; by default offline.")
@click.option("--batch-size", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--strategy", default="", help="By default fair-cuts.")
@click.option("--seed", type=int, default=0, show_default=True)
def init(
    project: Path,
    classes: str,
    other: str,
    import_labels: Path | None,
    strategy: str,
    **options: Any,
) -> None:
    """Make a project: a folder with its settings, its labels and its vectors.

    \b
    Example:
      galaxy-al init scratches --images photos/ --classes scratch,dent --other fine
      galaxy-al init spam --texts mails.csv --classes spam --other ham --import-labels known.csv
    """
    from galaxy_al.data import MODALITIES
    from galaxy_al.labelling.model import summary
    from galaxy_al.labelling.project import create_project
    from galaxy_al.labelling.service import Service

    given = {kind: options.pop(kind.replace("-", "_")) for kind in MODALITIES}
    pools = [(kind, path) for kind, path in given.items() if path is not None]
    if len(pools) != 1:
        raise click.UsageError(f"Give one of {', '.join(f'--{kind}' for kind in MODALITIES)}.")
    if strategy:
        options["strategy"] = strategy
    names = [name.strip() for name in classes.split(",") if name.strip()]
    (kind, pool) = pools[0]
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
        click.echo(f"Left out: {len(made.bad):,} of {len(made.pool):,}", err=True)
    if not import_labels:
        Service(made).close()  # finds the first questions, which the page then has at once
    imported = f", {summary(project).n_imported:,} labels imported" if import_labels else ""
    click.echo(f"{len(made.pool):,} {kind} in {project}{imported}. Next: galaxy-al label {project}")


@click.command()
@PROJECT
@click.option("--host", default="127.0.0.1", show_default=True, help="Others need a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--name", default="", help="Of a proxy with TLS in front of it.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
def label(project: Path, host: str, port: int, name: str, opens: bool) -> None:
    """Start the labelling page of a project; several people can label at once.

    \b
    Example:
      galaxy-al label scratches
      galaxy-al label scratches --host 0.0.0.0 --port 9000 --no-open
    """
    try:
        from galaxy_al.server.run import serve
    except ImportError as error:
        raise GalaxyError("The page needs pip install 'galaxy-al[app]'.") from error
    serve(project, host=host, port=port, name=name, opens_page=opens, tell=click.echo)


@click.command()
@PROJECT
def status(project: Path) -> None:
    """Say how far a project is.

    \b
    Example:
      galaxy-al status scratches
    """
    from galaxy_al.labelling.model import summary

    found = summary(project)
    people = f"{found.n_annotators} annotator{'s' if found.n_annotators != 1 else ''}"
    click.echo(f"{project}: {found.n_labels:,} labels ({found.n_imported:,} imported), {people}")
    for name in found.classes:
        click.echo(f"{found.count(name):>10,} {name}")
    if found.n_cannot_tell:
        click.echo(f"{found.n_cannot_tell:>10,} can't tell")
    for record in found.rounds[-5:]:
        quality = (
            f"balanced accuracy {record.accuracy:.2f} ({record.low:.2f} to {record.high:.2f})"
            if record.accuracy is not None
            else "one class"
        )
        click.echo(f"Round {record.number}: {record.n_labels:,} labels, {quality}")


@click.command()
@PROJECT
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="By default that of the output's suffix, or csv.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="By default a file in the project's folder."
)
def export(project: Path, form: str | None, output: Path | None) -> None:
    """Write the labels of a project: who, when, which round, and the model's probabilities.

    \b
    Example:
      galaxy-al export scratches --format coco --output scratches.json
    """
    from galaxy_al.labelling.exports import export
    from galaxy_al.labelling.model import labelled_project
    from galaxy_al.labelling.project import check_output

    suffix = output.suffix.lower().lstrip(".") if output else ""
    form = form or (suffix if suffix in FORMATS else "csv")
    output = output or project / FORMATS[form]
    check_output(project, output)
    found = labelled_project(project)
    if not found.entries:
        raise GalaxyError(f"{project} has no labels yet.")
    export(found, output, form)
    click.echo(f"{len(found.entries):,} labels in {output}")


@click.command()
@PROJECT
@click.option(
    "--output", type=click.Path(path_type=Path), help="By default the folder model in the project."
)
def train(project: Path, output: Path | None) -> None:
    """Train the classifier on all labels of a project and save it.

    \b
    Example:
      galaxy-al train scratches
      galaxy-al predict scratches/model new-photos/
    """
    from galaxy_al.labelling.model import save_trained
    from galaxy_al.labelling.project import check_output

    output = output or project / "model"
    check_output(project, output)
    n_labels = save_trained(project, output)
    click.echo(f"Trained on {n_labels:,} labels: {output}")
