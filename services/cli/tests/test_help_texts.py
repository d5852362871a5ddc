"""What `--help` prints: the markup of the terminal's library must not swallow words in brackets."""

import re
from collections.abc import Iterator

import click
import pytest
import typer
from typer.testing import CliRunner

from assay_cli.main import app

_IN_BRACKETS = re.compile(r"\[[a-z][a-z_.-]*\]")


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def said_of(command: click.Command) -> str:
    options = (getattr(each, "help", None) or "" for each in command.params)
    return " ".join([command.help or "", *options])


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
