"""The guide: its examples run in the order they are read, and its tables name what the code has."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from assay_capture import CaptureStats
from assay_capture.stats import REASONS
from assay_schema.settings import Settings
from tests.support.redis import RedisServer

GUIDE = (Path(__file__).parents[3] / "docs" / "capture.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def _first_column(after: str) -> list[str]:
    table = GUIDE.partition(after)[2].lstrip().partition("\n\n")[0]
    return [name for row in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_the_examples_run_and_every_event_they_make_arrives(
    redis_server: RedisServer, arrived: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_CAPTURE", "1")
    monkeypatch.setenv("ASSAY_REDIS_URL", redis_server.url)
    monkeypatch.setenv("ASSAY_CAPTURE_SPOOL_DIR", str(tmp_path / "spool"))
    names: dict[str, Any] = {}
    for number, example in enumerate(_blocks("python")):
        exec(compile(example, f"example {number} of docs/capture.md", "exec"), names)  # noqa: S102  (our own guide)
    assert [event["kind"] for event in arrived(redis_server)] == [
        "retrieval", "answer", "feedback", "retrieval", "retrieval", "retrieval",
    ]  # fmt: skip
    assert names["capture"].stats().dropped == {}


def test_the_settings_file_shown_is_valid() -> None:
    [example] = _blocks("toml")
    assert Settings.model_validate(tomllib.loads(example)).capture.enabled is True


def test_the_tables_name_every_counter_and_every_reason() -> None:
    assert _first_column("+ stats.queue_entries\n```\n") == [field.name for field in fields(CaptureStats)]
    assert _first_column("no call is under way.\n") == list(REASONS)
