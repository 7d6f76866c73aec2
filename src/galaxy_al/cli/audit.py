"""The command for an audit."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from galaxy_al.cli.project import PROJECT
from galaxy_al.errors import GalaxyError


@click.command()
@PROJECT
@click.option(
    "--labels",
    type=click.IntRange(min=0),
    help="Let the next questions on the page be so many random examples; 0 ends that.",
)
@click.option("--mixed", is_flag=True, help="The strategy asks every other question meanwhile.")
@click.option("--again", is_flag=True, help="Begin a new audit, of the model as it is now.")
def audit(project: Path, labels: int | None, mixed: bool, again: bool) -> None:
    """Say how many rare examples are left and how good the model is, from random examples.

    \b
    Example:
      galaxy-al audit scratches --labels 150
      galaxy-al audit scratches
    """
    from galaxy_al.labelling.auditor import read_audit

    if labels is None and (mixed or again):
        raise click.UsageError("--mixed and --again need --labels.")
    if labels is not None:
        _plan(project, labels, mixed=mixed, again=again)
    report = read_audit(project)
    if report is None:
        raise GalaxyError(f"{project} has no audit yet. Begin one with --labels 150.")
    for line in report.lines():
        click.echo(line)
    if labels:
        click.echo(f"The next questions are the audit's. Next: galaxy-al label {project}")


def _plan(project: Path, labels: int, *, mixed: bool, again: bool) -> None:
    from galaxy_al.labelling.auditor import Plan
    from galaxy_al.labelling.project import LOCK_FILE, open_project, read_settings
    from galaxy_al.labelling.service import Service
    from galaxy_al.system.files import locked

    read_settings(project)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(project / LOCK_FILE, wait=False))
        except GalaxyError as error:
            message = "The page is open. Start the audit there, or stop the server first."
            raise GalaxyError(message) from error
        service = Service(open_project(project))
        try:
            service.start_audit(Plan(labels, mixed), again=again)
        finally:
            service.close()
