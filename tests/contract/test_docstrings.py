"""Exported names have a docstring, and its first line is a sentence that can be read alone, as a hover shows it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
#: All shipped packages.
PACKAGES = tuple(
    sorted(
        str(path.parent.relative_to(ROOT))
        for pattern in ("shared/*/assay_*", "services/*/assay_*", "deploy/demo/assay_*")
        for path in ROOT.glob(f"{pattern}/__init__.py")
    )
)
#: First words of noun clauses and fragments, and pronouns without a noun.
FRAGMENTS = ("What", "How", "Whether", "Who", "Whose", "Where", "Which", "Of", "Is", "It", "Those", "These")
LONGEST = 99


class Docstring(NamedTuple):
    """The first line of a definition's docstring; empty without one."""

    name: str
    line: str
    exported: bool


def documented(node: ast.AST, name: str, *, exported: bool = True) -> Iterator[Docstring]:
    """Yield the definitions below a node, private and nested ones included."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from documented(child, name, exported=exported)
        elif not is_setter(child):
            inner, public = f"{name}.{child.name}", exported and not child.name.startswith("_")
            yield Docstring(inner, first_line(child), public)
            yield from documented(child, inner, exported=public and isinstance(child, ast.ClassDef))


def is_setter(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a definition sets a property, which the getter documents."""
    return any(isinstance(each, ast.Attribute) and each.attr == "setter" for each in node.decorator_list)


def first_line(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the first line of a docstring; empty without one."""
    return (ast.get_docstring(node) or "").partition("\n")[0]


def docstrings(package: str) -> Iterator[Docstring]:
    """Yield every module, class and function of a package."""
    for file in sorted((ROOT / package).rglob("*.py")):
        tree, name = ast.parse(file.read_text()), str(file.relative_to(ROOT))
        yield Docstring(name, first_line(tree), exported=True)
        yield from documented(tree, name)


def problem(docstring: Docstring) -> str:
    """Return the rule that a docstring breaks, or an empty string."""
    line = docstring.line
    if line.startswith((*(f"{word} " for word in FRAGMENTS), "The same")):
        return "does not stand alone"
    if not docstring.exported:
        return ""
    if not line:
        return "is missing"
    if not line.endswith((".", ".)")):
        return "does not end with a full stop"
    if len(line) > LONGEST:
        return f"has {len(line)} characters, at most {LONGEST} are shown"
    return ""


@pytest.mark.parametrize("package", PACKAGES)
def test_first_lines_of_docstrings_stand_alone(package: str) -> None:
    found = [f"{each.name}: {broken}: {each.line}" for each in docstrings(package) if (broken := problem(each))]
    assert not found, "\n".join(found)


def test_every_shipped_package_is_checked() -> None:
    assert len(PACKAGES) == 22
    assert all(list(docstrings(package)) for package in PACKAGES)


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("Return the mean.", ""),
        ("Return the mean", "does not end with a full stop"),
        ("Whether it is healthy.", "does not stand alone"),
        ("Is it healthy.", "does not stand alone"),
        ("The same, for lists.", "does not stand alone"),
        ("Isolate the process.", ""),
        ("", "is missing"),
        ("x" * LONGEST + ".", f"has {LONGEST + 1} characters, at most {LONGEST} are shown"),
    ],
)
def test_the_broken_rule_of_an_exported_name_is_reported(line: str, broken: str) -> None:
    assert problem(Docstring("name", line, exported=True)) == broken


@pytest.mark.parametrize(
    ("line", "broken"), [("", ""), ("Return the mean", ""), ("What goes of a table.", "does not stand alone")]
)
def test_a_private_name_needs_no_docstring_but_a_sentence_if_it_has_one(line: str, broken: str) -> None:
    assert problem(Docstring("name", line, exported=False)) == broken


def test_definitions_within_others_are_found() -> None:
    source = """
class Shown:
    @property
    def size(self): ...
    @size.setter
    def size(self, value): ...
    def _hidden(self):
        "Of a table."
def outer():
    "Return."
    def inner(): ...
if True:
    def conditional(): ...
"""
    found = {each.name: each for each in documented(ast.parse(source), "m")}
    assert [name for name, each in found.items() if each.exported] == [
        "m.Shown",
        "m.Shown.size",
        "m.outer",
        "m.conditional",
    ]
    assert problem(found["m.Shown._hidden"]) == "does not stand alone"
    assert problem(found["m.outer.inner"]) == ""
