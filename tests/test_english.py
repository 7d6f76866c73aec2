"""Help, the page, errors and docstrings avoid the worst patterns of the style guide."""

import ast
import re
from pathlib import Path

import click
import pytest

from galaxy_al.cli.main import cli

SOURCE = Path(__file__).parents[1] / "src" / "galaxy_al"
PRINTS = ("echo", "secho", "tell", "refused", "print")
REFUSED = {
    r"(?<!there )\bis no (?!longer|more)[a-z]+": "is not a",
    r"\bby chance\b": "at random",
    r"\b(nobody|somebody|whoever)\b": "name the actor",
    r"\blikewise\b": "the same",
    r"\bthe big (class|one)\b": "the majority class",
    r"\banew\b": "again",
    r"\bforetold\b": "announced",
    r"\bheard of\b": "last seen",
    r", too\b": "also",
    r"\bone a (core|file|line|class|method|setting|page)\b": "one per",
    r"\b(goes?|going|went) on\b": "resume",
    r"\bhow far\b": "progress",
    r"\btak(e|en|es|ing) back\b": "undo",
    r"\bsays otherwise\b": "set X to change this",
}


def problems(text):
    """What is wrong with a text, with what to write instead."""
    plain = " ".join(text.split())
    return [
        f"{plain[max(found.start() - 30, 0) : found.end() + 20]!r}: write {better!r}"
        for pattern, better in REFUSED.items()
        for found in re.finditer(pattern, plain, flags=re.I)
    ]


def commands(command, path="galaxy-al"):
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


def help_texts(command):
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""


def strings_of(node):
    """The text of a message, with what is filled in left out."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in inner.values
            )
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def messages(source):
    """The strings that a module raises, prints, or gives as the reason why an example is bad."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from strings_of(node.exc)
        elif isinstance(node, ast.Call):
            called = node.func
            if getattr(called, "id", getattr(called, "attr", "")) in PRINTS:
                yield from strings_of(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            yield from strings_of(node.value)  # bad[index] = ...
        elif isinstance(node, ast.DictComp):
            yield from strings_of(node.value)


def docstrings(source):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds):
            yield ast.get_docstring(node) or ""


def page_strings(path):
    text = path.read_text()
    if path.suffix == ".html":
        return [re.sub(r"<[^>]*>", " ", text), *re.findall(r'="([^"]*)"', text)]
    code = re.sub(r"^\s*(//|\*|/\*).*$", "", text, flags=re.M)
    return [found[1] for found in re.findall(r"([\"'`])(.*?)(?<!\\)\1", code, flags=re.S)]


@pytest.mark.parametrize(
    ("path", "command"), list(commands(cli)), ids=[path for path, _ in commands(cli)]
)
def test_help_is_plain_english(path, command):
    assert [problem for text in help_texts(command) for problem in problems(text)] == []


@pytest.mark.parametrize(
    "command", [c for _, c in commands(cli)], ids=[p for p, _ in commands(cli)]
)
def test_every_option_has_help(command):
    options = [p for p in command.params if isinstance(p, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_messages_and_docstrings_are_plain_english(path):
    source = path.read_text()
    texts = [*messages(source), *docstrings(source)]
    assert [problem for text in texts for problem in problems(text)] == []


@pytest.mark.parametrize(
    "path",
    [p for p in sorted((SOURCE / "server" / "static").rglob("*")) if p.suffix in (".html", ".js")],
    ids=lambda path: path.name,
)
def test_the_page_is_plain_english(path):
    assert [problem for text in page_strings(path) for problem in problems(text)] == []


@pytest.mark.parametrize(
    "text", ["x is no project", "Drawn by chance.", "one a core", "It goes on.", "that, too."]
)
def test_bad_english_is_found(text):
    assert len(problems(text)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "raise GalaxyError(f'{x} is no project')",
        "click.echo('Drawn ' 'by chance.', err=True)",
        "tell(f'{n} goes on')",
        "return refused(400, f'{x}, too.')",
        "bad[row] = f'{x} is no number.'",
        "bad = {i: f'{i} is no text.' for i in x}",
    ],
)
def test_every_message_is_found(source):
    assert any(problem for text in messages(source) for problem in problems(text))


@pytest.mark.parametrize(
    "text", ["is no longer there", "There is no file", "one at a time", "too many", "not on"]
)
def test_good_english_is_not(text):
    assert problems(text) == []
