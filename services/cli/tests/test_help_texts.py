"""Text of `--help`: plain English, and words in brackets are not swallowed by the markup of the terminal's library."""

import re
from collections.abc import Iterator

import click
import pytest
import typer
from typer.testing import CliRunner

from assay_cli.main import app
from tests.plain_english import hits

_IN_BRACKETS = re.compile(r"\[[a-z][a-z_.-]*\]")


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def texts_of(command: click.Command) -> list[str]:
    return [command.help or "", *(getattr(each, "help", None) or "" for each in command.params)]


def said_of(command: click.Command) -> str:
    return " ".join(texts_of(command))


def habits_in(command: click.Command) -> list[str]:
    """Return every habit of wording in the help of a command and its options."""
    return [f"{hit.words!r}: write {hit.instead}" for text in texts_of(command) for hit in hits(text)]


WITH_BRACKETS = [
    (path, set(found))
    for path, command in commands(typer.main.get_command(app))
    if (found := _IN_BRACKETS.findall(said_of(command)))
]


@pytest.mark.parametrize(("path", "words"), WITH_BRACKETS, ids=lambda each: " ".join(sorted(each)))
def test_words_in_brackets_are_shown(path: tuple[str, ...], words: set[str]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "400"}).stdout
    assert {word for word in words if word not in shown} == set()
    assert "\\[" not in shown


def test_every_option_of_a_gate_says_what_it_is() -> None:
    by_path = dict(commands(typer.main.get_command(app)))
    for path in (("gate",), ("bench", "publish")):
        assert [each.name for each in by_path[path].params if not getattr(each, "help", None)] == []


def test_every_help_text_is_plain_english() -> None:
    found = {" ".join(path): habits_in(command) for path, command in commands(typer.main.get_command(app))}
    assert {path: habits for path, habits in found.items() if habits} == {}


def test_a_habit_in_a_help_text_is_found() -> None:
    option = click.Option(["--retries"], help="Tries where the target may fare better.")
    assert habits_in(click.Command("ask", help="Run this to mend it.", params=[option])) == [
        "'mend': write fix",
        "'fare': write performs, does",
    ]
