"""The page on session checks: it documents each rule and each tool name, and its examples are valid."""

import re
from pathlib import Path

import pytest

from assay_runtime.shares import wilson
from assay_sessions.checks.references import References, parse_references
from assay_sessions.checks.rules_file import RULES, parse_rules
from assay_sessions.checks.tools import TOOL_NAMES
from assay_sessions.trajectory import ToolCall, compare

PAGE = (Path(__file__).parents[3] / "docs" / "session-checks.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_in_the_table(rule: str) -> None:
    assert any(line.startswith("|") and f"`{rule}`" in line.split("|")[1] for line in PAGE.splitlines())


@pytest.mark.parametrize("agent", TOOL_NAMES)
def test_the_tools_of_each_agent_are_in_the_table(agent: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{agent}` |"))
    _, _, *cells, _ = (cell.strip() for cell in row.split("|"))
    names = TOOL_NAMES[agent]
    assert [set(filter(None, cell.split(", "))) for cell in cells] == [names.read, names.edit, names.write, names.run]


def test_the_rules_file_is_valid_and_changes_each_default_that_it_names() -> None:
    (text,) = blocks("toml")
    rules = parse_rules(text)
    assert rules.required == ["answered", "no_forbidden_tools", "trajectory_in_order", "pattern:no_apology"]
    assert "terminal" in rules.tools["opencode"].run


def test_the_references_are_valid() -> None:
    (text,) = blocks("json")
    references = References()
    for _, each in parse_references(text.encode().splitlines()):
        references.add(each)
    assert len(references) == 2


def test_the_examples_have_the_numbers_of_the_page() -> None:
    read, edit = ToolCall("read"), ToolCall("edit")
    score = compare([read, edit], [edit, read, read])
    assert (score.exact, score.in_order, score.any_order, score.unordered) == (False, False, True, False)
    assert (score.precision, score.recall) == (2 / 3, 1.0)
    share = wilson(36, 40)
    assert share is not None
    assert f"a share of {share.value:.1f} with the interval {share.low:.3f} to {share.high:.3f}" in " ".join(
        PAGE.split()
    )
