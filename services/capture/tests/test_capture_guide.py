"""The guide: its examples run in the order they are read, and its tables name what the code has."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from assay_capture import CaptureStats
from assay_capture.stats import REASONS
from assay_schema.fields import ToolStatus
from assay_schema.settings import Settings
from tests.support.redis import RedisServer

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "capture.md").read_text(encoding="utf-8")
TOOLS = (DOCS / "tool-calls.md").read_text(encoding="utf-8")


def _blocks(language: str, page: str = GUIDE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


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
        "retrieval", "answer", "feedback", "retrieval", "retrieval", "retrieval", "feedback",
    ]  # fmt: skip
    assert names["capture"].stats().dropped == {}


def test_the_examples_for_tools_run_and_every_event_they_make_arrives(
    redis_server: RedisServer, arrived: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_CAPTURE", "1")
    monkeypatch.setenv("ASSAY_REDIS_URL", redis_server.url)
    monkeypatch.setenv("ASSAY_CAPTURE_SPOOL_DIR", str(tmp_path / "spool"))
    names: dict[str, Any] = {}
    for number, example in enumerate(_blocks("python", TOOLS)):
        exec(compile(example, f"example {number} of docs/tool-calls.md", "exec"), names)  # noqa: S102  (our own guide)
    names["capture"].close()
    shown = [(event["kind"], event["payload"].get("tool_name"), event["session_id"]) for event in arrived(redis_server)]
    assert shown == [
        ("tool_call", "get_metric", None), ("tool_call", "run_tests", None), ("tool_call", "find_tables", None),
        ("server_event", None, None), ("tool_call", "get_metric", None), ("server_event", None, None),
        ("tool_call", "get_metric", "chat-4711"), ("tool_call", "find_tables", "chat-4711"), ("feedback", None, "chat-4711"),
    ]  # fmt: skip
    assert names["capture"].stats().dropped == {}


async def test_describe_of_the_example_also_describes_calls_that_failed(
    redis_server: RedisServer, arrived: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = pytest.importorskip("mcp").Client
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_CAPTURE", "1")
    monkeypatch.setenv("ASSAY_REDIS_URL", redis_server.url)
    names: dict[str, Any] = {}
    exec(compile(_blocks("python", TOOLS)[0], "first example of docs/tool-calls.md", "exec"), names)  # noqa: S102
    async with client(names["server"]) as agent:
        await agent.call_tool("find_tables", {"query": "churn"})
        await agent.call_tool("find_tables", {"no": "query"})
        await agent.call_tool("unknown", {})
    await names["capture"].aclose()
    calls = [event["payload"] for event in arrived(redis_server) if event["kind"] == "tool_call"]
    assert [(call["status"], call["result_summary"]) for call in calls] == [
        ("success", {"matches": 1}), ("error", {}), ("error", {}),
    ]  # fmt: skip


def test_the_table_of_statuses_is_that_of_the_contract() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*\| (allowed )?\|$", TOOLS.partition("### Status")[2].partition("\n\nThe")[0], re.MULTILINE
    )
    assert [name for name, _ in rows] == list(get_args(ToolStatus))
    assert [name for name, allowed in rows if allowed] == ["error", "refused"]


@pytest.mark.parametrize("page", [GUIDE, TOOLS])
def test_the_settings_file_shown_is_valid(page: str) -> None:
    [example] = _blocks("toml", page)
    assert Settings.model_validate(tomllib.loads(example)).capture.enabled is True


def test_the_tables_name_every_counter_and_every_reason() -> None:
    assert _first_column("+ stats.queue_entries\n```\n") == [field.name for field in fields(CaptureStats)]
    assert _first_column("no call is under way.\n") == list(REASONS)
