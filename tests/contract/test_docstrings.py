"""The first line of a docstring is a sentence that stands alone, as a hover shows it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Packages whose prose was rewritten; others are added as they are finished.
FINISHED = (
    "deploy/demo/assay_demo",
    "services/capture/assay_capture",
    "services/cli/assay_cli",
    "services/drift/assay_drift",
    "services/evals/assay_evals",
    "services/judge/assay_judge",
    "services/local/assay_local",
    "services/notifier/assay_notifier",
    "services/operations/assay_operations",
    "services/scrubber/assay_scrubber",
    "services/store/assay_store",
    "services/writer/assay_writer",
    "shared/access/assay_access",
    "shared/runtime/assay_runtime",
    "shared/schema/assay_schema",
)
#: Beginnings of noun clauses and of pronouns without a noun.
NOT_ALONE = ("What ", "How ", "Whether ", "Whose ", "Where ", "The same", "It ", "Those ", "These ")
LONGEST = 99


def documented(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Yield the public definitions below a node: the name, and the first line of the docstring."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name.startswith("_"):
                continue
            text = ast.get_docstring(child)
            inner = f"{name}.{child.name}"
            if text:
                yield inner, text.splitlines()[0]
            if isinstance(child, ast.ClassDef):
                yield from documented(child, inner)


def first_lines(package: str) -> Iterator[tuple[str, str]]:
    """Yield every public module, class and function of a package with the first line of its docstring."""
    files = sorted((ROOT / package).rglob("*.py"))
    assert files, f"{package} has no modules"
    for file in files:
        tree = ast.parse(file.read_text())
        name = str(file.relative_to(ROOT))
        yield name, (ast.get_docstring(tree) or "(no docstring)").splitlines()[0]
        yield from documented(tree, name)


def problem(line: str) -> str:
    """Return the rule that a first line breaks, or an empty string."""
    if not line.endswith((".", ".)")):
        return "does not end with a full stop"
    if len(line) > LONGEST:
        return f"has {len(line)} characters, at most {LONGEST} are shown"
    if line.startswith(NOT_ALONE):
        return "does not stand alone"
    return ""


@pytest.mark.parametrize("package", FINISHED)
def test_first_lines_of_docstrings_stand_alone(package: str) -> None:
    found = [f"{name}: {broken}: {line}" for name, line in first_lines(package) if (broken := problem(line))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("Return the mean.", ""),
        ("Return the mean", "does not end with a full stop"),
        ("Whether it is well.", "does not stand alone"),
        ("The same, for lists.", "does not stand alone"),
        ("x" * LONGEST + ".", f"has {LONGEST + 1} characters, at most {LONGEST} are shown"),
    ],
)
def test_a_line_that_does_not_stand_alone_is_named_with_its_rule(line: str, broken: str) -> None:
    assert problem(line) == broken
