"""All that the command prints passes the filter of `assay_cli.output.terminal`, or of `assay_local.console` for tables."""

import ast
from pathlib import Path

import pytest

import assay_cli
import assay_local
import assay_operations

FOLDERS = [Path(str(package.__file__)).parent for package in (assay_cli, assay_local, assay_operations)]
MODULES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
#: The filter itself, and what prints nothing but its own words and numbers.
FILTERS = {"terminal.py", "console.py", "progress.py"}
#: What may be asked of a stream without writing to it.
ASKED = {"isatty", "fileno"}


def other_ways_to_print(source: str) -> list[str]:
    """Places in a module that write to a terminal by themselves."""
    tree = ast.parse(source)
    main = {id(inner) for node in tree.body if isinstance(node, ast.If) for inner in ast.walk(node)}
    found = []
    asked = {
        id(node.value)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in ASKED) or isinstance(node, ast.Compare)
        for node in ([node] if isinstance(node, ast.Attribute) else [])
    } | {id(each) for node in ast.walk(tree) if isinstance(node, ast.Compare) for each in node.comparators}
    for node in ast.walk(tree):
        if id(node) in main or id(node) in asked:
            continue
        match node:
            case ast.Call(func=ast.Name(id="print")):
                found.append(f"{node.lineno}: print")
            case ast.Attribute(
                value=ast.Name(id="typer" | "click"), attr="echo" | "secho" | "prompt" | "echo_via_pager"
            ):
                found.append(f"{node.lineno}: {node.attr}")
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" | "__stdout__" | "__stderr__"):
                found.append(f"{node.lineno}: sys.{node.attr}")
            case ast.ImportFrom(module="rich.console", names=names) if "Console" in {each.name for each in names}:
                found.append(f"{node.lineno}: rich's Console")
            case ast.ImportFrom(module="rich" | "typer" | "click", names=names) if {each.name for each in names} & {
                "print", "echo", "secho",
            }:  # fmt: skip
                found.append(f"{node.lineno}: import")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_module_prints_past_the_filter(module: Path) -> None:
    if module.name not in FILTERS:
        assert other_ways_to_print(module.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "print(1)",
        "typer.echo(1)",
        "f = typer.secho",
        "sys.stdout.write(1)",
        "sys.stdout.buffer.write(1)",
        "out = sys.stderr",
        "from rich.console import Console",
        "from rich import print",
        "from typer import echo",
    ],
)
def test_the_search_finds_each_way_to_print(source: str) -> None:
    assert other_ways_to_print(source)


def test_asking_a_stream_is_not_printing() -> None:
    assert other_ways_to_print("sys.stdout.isatty() or sys.stdout.fileno() or out is sys.stdout") == []
