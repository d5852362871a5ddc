"""Each reason why something was not read or judged has a line of documentation: its meaning, and what to do."""

import re
from pathlib import Path

import pytest

from assay_judge.reasons import REASONS
from assay_sessions.readers.explained import EXPLANATIONS

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, section: str) -> dict[str, str]:
    """Return the rows of the table in a section: the last cell, which says what to do, by each name in the first one."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    return {name.strip("` "): row[-1] for row in cells[1:] for name in row[0].split(", ")}


@pytest.mark.parametrize("words", [each.words for each in EXPLANATIONS.values()])
def test_each_problem_of_an_import_is_documented_by_its_words(words: str) -> None:
    assert rows("agents.md", "What was not read")[words]


def test_the_documented_problems_of_an_import_exist() -> None:
    assert rows("agents.md", "What was not read").keys() == {each.words for each in EXPLANATIONS.values()}


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_of_the_judge_is_documented_with_a_setting_that_it_names(name: str) -> None:
    advice = rows("judging.md", "Reasons for errors")[name]
    settings = re.findall(r"judge\.\w+", REASONS[name])
    assert advice == "the same" or not settings or any(setting in advice for setting in settings)
