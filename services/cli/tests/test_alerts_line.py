"""What `assay alerts list` prints of an episode."""

from datetime import UTC, datetime
from pathlib import Path

from assay_cli.alerts import line
from assay_cli.connect import DEFAULT_DATA

ROW = {
    "kind": "score_drift", "metric": "faithfulness", "project": "acme", "service": None, "state": "warn",
    "at": datetime(2026, 1, 5, tzinfo=UTC), "summary": "it fell", "acknowledge": "assay drift acknowledge 1",
}  # fmt: skip


def test_the_acknowledging_command_names_the_data_directory_that_was_given() -> None:
    assert line(ROW, Path("data/my run")).endswith("acknowledge: assay drift acknowledge 1 --data 'data/my run'")
    assert line(ROW, DEFAULT_DATA).endswith("acknowledge: assay drift acknowledge 1")


def test_an_episode_that_nobody_can_acknowledge_has_no_command() -> None:
    assert "acknowledge" not in line(ROW | {"acknowledge": ""}, Path("elsewhere"))
