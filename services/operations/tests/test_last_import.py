"""What the last import of each agent did not read, as `assay doctor` finds it."""

from pathlib import Path

import pytest

from assay_operations.sessions.last_import import not_read, remember
from assay_sessions.readers import Problem
from assay_sessions.readers.explained import EXPLANATIONS
from assay_sessions.readers.reader import ProblemKind

VISION = Problem("unknown_type", "rollout.jsonl", 1, "row vision")
CUT = Problem("damaged", "chat.jsonl", 1, "line 7")


def test_an_import_of_another_agent_hides_nothing_and_one_of_the_same_agent_replaces(tmp_path: Path) -> None:
    remember(tmp_path, ["codex"], {("codex", VISION): 3}, partial=False)
    remember(tmp_path, ["jsonl"], {("jsonl", CUT): 1}, partial=False)
    assert not_read(tmp_path) == {
        "codex": [Problem("unknown_type", "rollout.jsonl", 3, "row vision")],
        "jsonl": [CUT],
    }
    remember(tmp_path, ["codex"], {}, partial=False)
    assert list(not_read(tmp_path)) == ["jsonl"]


def test_an_import_of_what_changed_lately_keeps_what_is_known_and_names_damaged_lines_anew(tmp_path: Path) -> None:
    remember(tmp_path, ["codex"], {("codex", VISION): 3, ("codex", CUT): 1}, partial=False)
    later = Problem("damaged", "chat.jsonl", 1, "lines 7, 9")
    remember(tmp_path, ["codex"], {("codex", VISION): 1, ("codex", later): 2}, partial=True)
    assert [(each.detail, each.count) for each in not_read(tmp_path)["codex"]] == [("row vision", 3), ("lines 7, 9", 2)]
    remember(tmp_path, ["codex"], {}, partial=True)
    assert len(not_read(tmp_path)["codex"]) == 2


@pytest.mark.parametrize("kind", EXPLANATIONS)
def test_every_kind_lasts_except_those_of_the_command_and_of_empty_files(tmp_path: Path, kind: ProblemKind) -> None:
    remember(tmp_path, ["codex"], {("codex", VISION): 1}, partial=False)
    remember(tmp_path, ["codex"], {("codex", Problem(kind, "x")): 2}, partial=False)
    passing = kind in ("other_format", "empty_file")
    assert not_read(tmp_path) == {"codex": [VISION if passing else Problem(kind, "x", 2)]}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "7",
        '[["damaged"]]',
        '[["future", "x", "", 1]]',
        '{"a": 1}',
        '[["damaged", "x", "", 1e400]]',
        "[" * 100_000,
    ],
    ids=lambda content: content[:40],
)
def test_a_file_that_is_damaged_or_of_a_newer_version_has_no_problems(tmp_path: Path, content: str) -> None:
    (tmp_path / "last-import-codex.json").write_text(content)
    assert not_read(tmp_path) == {}


def test_values_of_another_type_are_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / "last-import-codex.json").write_text('[["damaged", 3, ["x"], 1], ["damaged", "a", null, 1]]')
    assert [each.path for each in not_read(tmp_path)["codex"]] == ["3", "a"]
    remember(tmp_path, ["codex"], {}, partial=True)


def test_without_a_data_directory_nothing_is_written(tmp_path: Path) -> None:
    remember(tmp_path / "none", ["codex"], {("codex", VISION): 1}, partial=False)
    assert not (tmp_path / "none").exists()
