"""Write the command reference from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click

MARKER = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference where a page has the marker; mkdocs calls this for every page."""
    return markdown.replace(MARKER, command_reference()) if MARKER in markdown else markdown


def command_reference() -> str:
    """All commands of `galaxy-al`, with their arguments, options and examples."""
    from galaxy_al.cli.main import cli

    root = click.Context(cli, info_name="galaxy-al")
    return "\n\n".join(part for context in _contexts(root) for part in _sections(context))


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _contexts(click.Context(below, info_name=name, parent=context))


def _sections(context: click.Context) -> Iterator[str]:
    command = context.command
    text, _, example = inspect.cleandoc(command.help or "").partition("\b\nExample:\n")
    yield f"## {context.command_path}"
    yield text.strip()
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    rows = [_row(option, context) for option in command.params if isinstance(option, click.Option)]
    if rows:
        yield "\n".join(["| option | what it does | default |", "|---|---|---|", *rows])
    if example:
        yield f"For example:\n\n```sh\n{inspect.cleandoc(example)}\n```"


def _row(option: click.Option, context: click.Context) -> str:
    names, _ = option.get_help_record(context) or ("", "")
    shown = option.get_help_extra(context).get("default", "")
    cells = (f"`{names}`", option.help or "", f"`{shown}`" if shown else "")
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
