"""The view of tool calls inside imported sessions: one row for each, and none that is counted elsewhere."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from assay_runtime.store import Client, connect, insert_json_rows
from assay_sessions.parts import split
from tests.support.sample_rows import Json, imported_call, lines, session_part, tool_call
from tests.support.store import StoreServer


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in ("tool_calls", "session_parts"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


def store(client: Client, table: str, *rows: Json) -> None:
    insert_json_rows(client, f"assay_base.{table}", lines(list(rows)), len(rows))


def calls(client: Client, where: str = "1") -> list[dict[str, Any]]:
    result = client.query(
        f"SELECT * FROM assay.session_tool_calls WHERE {where} ORDER BY project, session_id, part, place"
    )
    return [dict(zip(result.column_names, row, strict=True)) for row in result.result_rows]


def session(number: int, session_id: str, *events: Json, **fields: Any) -> Json:
    return session_part(number, session_id=session_id, intermediate_events=json.dumps(events), **fields)


def test_each_call_is_a_row_with_what_its_log_says(owner: Client) -> None:
    full = imported_call(
        "bash", {"command": "make test"}, call_id="call-1", status="error", error_kind="exit_code", exit_code=2,
        started_at="2026-05-17T14:32:07.114Z", duration_ms=12.5, child_session_id="child", turn=3,
    )  # fmt: skip
    store(owner, "session_parts", session(1, "ses", full, imported_call("read", executed_by="user")))
    one, other = calls(owner)
    assert (one["tool_name"], json.loads(one["args"]), one["status"]) == ("bash", {"command": "make test"}, "error")
    assert (one["error_kind"], one["exit_code"], one["duration_ms"], one["turn"]) == ("exit_code", 2, 12.5, 3)
    assert (one["call_id"], one["child_session_id"], one["source"]) == ("call-1", "child", "opencode")
    assert one["event_time"].isoformat().startswith("2026-05-17T14:32:07.114")
    assert (other["executed_by"], other["status"], other["duration_ms"], other["call_id"]) == (
        "user",
        "success",
        None,
        None,
    )
    assert other["event_time"] == other["session_at"].replace(microsecond=other["event_time"].microsecond)
    assert (one["counted"], other["counted"]) == (True, True)


def test_a_call_that_is_too_large_for_one_part_is_one_row_with_its_name_and_status(owner: Client) -> None:
    edits = {f"edit {number}": "x" * 2_000 for number in range(200)}  # 400 KiB of small values
    large = imported_call("multiedit", edits, status="error", error_kind="not_found", call_id="large")
    cut = imported_call("write", {"content": "y" * 300_000}, call_id="cut")
    document = {
        "session_id": "ses", "title": None, "created": "2026-05-17T14:32:07.114Z", "metadata": {},
        "request": {"contents": []}, "response": {"candidates": []},
        "intermediate_events": [imported_call("first"), large, cut, imported_call("last")],
    }  # fmt: skip
    parts = split(document)
    assert len(parts) > 3
    store(
        owner,
        "session_parts",
        *(session(n, "ses", *part["intermediate_events"], part=n, parts=len(parts)) for n, part in enumerate(parts, 1)),
    )
    found = calls(owner)
    assert [(row["tool_name"], row["status"], row["call_id"]) for row in found] == [
        ("first", "success", None), ("multiedit", "error", "large"), ("write", "success", "cut"), ("last", "success", None),
    ]  # fmt: skip
    assert [row["args"] is None for row in found] == [False, True, False, False]


def test_the_newest_revision_that_is_stored_whole_counts_once(owner: Client) -> None:
    store(owner, "session_parts", session(1, "ses", imported_call("old"), revision=1))
    arriving = session(2, "ses", imported_call("new"), revision=2, digest="cd34", part=1, parts=2)
    store(owner, "session_parts", arriving, arriving)
    assert [row["tool_name"] for row in calls(owner)] == ["old"]
    store(owner, "session_parts", session(3, "ses", imported_call("newer"), revision=2, digest="cd34", part=2, parts=2))
    assert [row["tool_name"] for row in calls(owner)] == ["new", "newer"]


def test_a_call_that_was_captured_too_is_not_counted(owner: Client) -> None:
    def events() -> list[Json]:
        return [
            imported_call("mcp__find", call_id="call-1"),  # captured under another name
            imported_call("find", call_id="call-9"),  # captured with another id
            imported_call("bash", call_id="call-2"),
        ]

    store(owner, "session_parts", session(1, "ses", *events()), session(2, "ses", *events(), project="other"))
    store(owner, "session_parts", session(3, "third", *events()))
    store(
        owner,
        "tool_calls",
        tool_call(1, session_id="ses", call_id="call-1", tool_name="find"),
        tool_call(2, session_id=None, call_id="call-2", tool_name="bash"),  # of no known session
    )
    counted = {(row["project"], row["session_id"], row["tool_name"]): row["counted"] for row in calls(owner)}
    assert {key for key, value in counted.items() if not value} == {
        ("default", "ses", "mcp__find"), ("default", "ses", "find"),
    }  # fmt: skip


def test_a_fork_counts_only_the_calls_that_its_session_does_not_have(owner: Client) -> None:
    first = [imported_call("bash", {"n": 1}, call_id="call-1"), imported_call("read", {"n": 2})]
    own = [imported_call("bash", {"n": 1}, call_id="call-3"), imported_call("read", {"n": 2}, turn=4)]
    store(owner, "session_parts", session(1, "ses", *first, imported_call("bash", call_id="call-2")))
    store(owner, "session_parts", session(2, "fork", *first, *own, forked_from="ses"))
    store(owner, "session_parts", session(3, "again", *first, *own, forked_from="fork"))
    store(owner, "session_parts", session(4, "orphan", *first, forked_from="gone"))
    found = [row for row in calls(owner) if row["counted"]]
    assert {name: [row["call_id"] for row in found if row["session_id"] == name] for name in ("ses", "fork", "again", "orphan")} == {
        "ses": ["call-1", None, "call-2"], "fork": ["call-3", None], "again": [], "orphan": ["call-1", None],
    }  # fmt: skip


def test_ten_thousand_calls_of_one_session_are_ten_thousand_rows(owner: Client) -> None:
    store(owner, "session_parts", session(1, "ses", *(imported_call("bash", {"n": n}) for n in range(10_000))))
    [[rows, distinct]] = owner.query(
        "SELECT count(), uniqExact(args) FROM assay.session_tool_calls WHERE counted"
    ).result_rows
    assert (rows, distinct) == (10_000, 10_000)


@pytest.mark.parametrize("events", ["[]", "[null]", '[{"turn":"x","function_call":7}]', '[{"turn":1}]'])
def test_events_of_any_shape_can_be_read(owner: Client, events: str) -> None:
    store(owner, "session_parts", session_part(1, session_id="ses", intermediate_events=events))
    assert all(row["status"] == "success" for row in calls(owner))
