"""What makes a test fail by chance, and can be seen in its text: values that differ from run to run."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for place in ("tests", "shared", "services", "deploy", "docs")
    for path in (ROOT / place).rglob("*.py")
    if "tests" in path.parts
)
#: Generators that begin somewhere else in each run unless they are given a seed.
UNSEEDED = {"Random", "default_rng", "RandomState", "SeedSequence"}


def chances(text: str) -> Iterator[str]:
    """Calls of `hash`, whose values differ from process to process, and of generators without a seed."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if (name == "hash" and isinstance(node.func, ast.Name)) or (
                name in UNSEEDED and not (node.args or node.keywords)
            ):
                yield f"line {node.lineno}: {name}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hash('word')", ["line 1: hash"]),
        ("random.Random()\nnumpy.random.default_rng()", ["line 1: Random", "line 2: default_rng"]),
        ("random.Random(7), default_rng(seed=7), hashlib.sha256(b''), self.hash('x')", []),
    ],
)
def test_chance_is_seen(text: str, found: list[str]) -> None:
    assert list(chances(text)) == found


def test_no_test_depends_on_a_value_that_is_another_in_each_run() -> None:
    assert len(FILES) > 200
    assert {str(path.relative_to(ROOT)): found for path in FILES if (found := list(chances(path.read_text())))} == {}
