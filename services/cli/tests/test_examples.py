"""Examples at the end of each command's help: realistic command lines that the command parses."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer
from typer.testing import CliRunner

from assay_cli.lazy import all_examples, examples_of
from assay_cli.main import app

#: A terminal of 80 columns shows a line of this length whole.
LINE_CHARS = 78


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    commands: dict[str, click.Command] = getattr(command, "commands", {})
    if not commands:
        yield path, command
    for name, each in commands.items():
        yield from leaves(each, (*path, name))


LEAVES = dict(leaves(typer.main.get_command(app)))


def arguments_of(example: str) -> list[str]:
    """Return the arguments that the shell passes: without redirections and what follows in a pipe."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars="<>|")
    lexer.whitespace_split = True
    program, *words = list(lexer)
    assert program == "assay"
    end = next((place for place, word in enumerate(words) if word in ("<", ">", "|")), len(words))
    return words[:end]


@pytest.mark.parametrize("example", all_examples())
def test_every_example_is_parsed_by_its_command_and_fits_on_a_line(example: str) -> None:
    arguments = arguments_of(example)
    path = next(path for path in LEAVES if tuple(arguments[: len(path)]) == path)
    LEAVES[path].make_context(" ".join(path), arguments[len(path) :]).close()
    assert len(example) <= LINE_CHARS


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_has_two_different_examples_and_its_help_ends_with_them(path: tuple[str, ...]) -> None:
    examples = examples_of(path)
    assert len(set(examples)) == len(examples) == 2, (
        f"write two examples of `assay {' '.join(path)}` in assay_cli/examples.txt"
    )
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).stdout
    assert [line.strip() for line in shown.splitlines() if line.strip()][-3:] == ["Examples:", *examples]


def test_every_command_is_on_a_page_of_the_docs() -> None:
    root = Path(__file__).parents[3]
    files = (root / "README.md", *sorted((root / "docs").glob("*.md")))
    pages = " ".join(page.read_text(encoding="utf-8") for page in files)

    def is_named(path: tuple[str, ...]) -> bool:  # also in `assay dataset validate|stats`
        return bool(re.search(rf"\b{' '.join(('assay', *path[:-1]))} (?:[a-z]+\|)*{path[-1]}\b", pages))

    assert [" ".join(path) for path in LEAVES if not is_named(path)] == []


def test_an_example_with_an_unknown_option_is_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        LEAVES["doctor",].make_context("doctor", ["--jsno"])


def test_flags_have_no_type_in_the_help() -> None:
    for path in ((), ("dead",), ("eval",), *LEAVES):
        assert "<bool>" not in CliRunner().invoke(app, [*path, "--help"]).stdout, path
