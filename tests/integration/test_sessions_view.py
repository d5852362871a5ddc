"""The view of sessions: one row for each, imported or only captured."""

from collections.abc import Iterator
from typing import Any

import pytest

from assay_operations.events.filters import Range
from assay_operations.events.queries import Queries
from assay_operations.sessions.summaries import newest_sessions, sessions_of_id
from assay_runtime.store import Client, connect, insert_json_rows
from tests.support.sample_rows import (
    Json,
    answer,
    candidate,
    feedback,
    lines,
    score,
    server_event,
    session_part,
    tool_call,
)
from tests.support.store import StoreServer

TABLES = ("candidates", "answers", "feedback", "tool_calls", "server_events", "session_parts", "scores")


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in TABLES:
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


def store(client: Client, table: str, *rows: Json) -> None:
    insert_json_rows(client, f"assay_base.{table}", lines(list(rows)), len(rows))


def sessions(client: Client) -> dict[str, dict[str, Any]]:
    result = client.query("SELECT * FROM assay.sessions")
    rows = [dict(zip(result.column_names, row, strict=True)) for row in result.result_rows]
    found = {row["session_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_events_without_a_session_make_none(owner: Client) -> None:
    store(owner, "candidates", candidate())
    store(owner, "answers", answer())
    store(owner, "feedback", feedback())
    store(owner, "tool_calls", tool_call())
    store(owner, "server_events", server_event())
    assert sessions(owner) == {}


def test_a_session_is_known_from_captured_events_alone(owner: Client) -> None:
    answers = [answer(number, session_id="chat-1") for number in range(2)]
    store(owner, "candidates", candidate(session_id="chat-1"))
    store(owner, "answers", *answers, answer(3, session_id="chat-2"))
    store(
        owner,
        "tool_calls",
        *(tool_call(n, session_id="chat-1", status=s) for n, s in enumerate(("success", "refused"))),
    )
    store(owner, "feedback", feedback(session_id="chat-1", verdict="negative"))
    store(
        owner,
        "scores",
        *(score(event_id=each["event_id"], faithfulness=f) for each, f in zip(answers, (0.5, 1.0), strict=True)),
    )
    found = sessions(owner)
    assert found.keys() == {"chat-1", "chat-2"}
    one = found["chat-1"]
    assert (one["source"], one["status"], one["complete"], one["revision"]) == ("capture", "open", True, 0)
    assert (one["turns"], one["tools"], one["tool_errors"], one["positive"], one["negative"]) == (2, 2, 1, 0, 1)
    assert (one["scored"], one["faithfulness"]) == (2, 0.75)
    assert one["first_at"] < one["last_at"]
    assert (found["chat-2"]["scored"], found["chat-2"]["faithfulness"]) == (0, None)


def test_the_newest_revision_counts_and_is_complete_only_with_all_of_its_parts(owner: Client) -> None:
    def part(number: int, revision: int, **fields: Any) -> Json:
        given = {"part": number, "parts": 2, "revision": revision, "session_id": "ses", "turns": revision, **fields}
        return session_part(10 * revision + number, **given)

    store(owner, "session_parts", part(1, 1), part(2, 1))
    assert (sessions(owner)["ses"]["complete"], sessions(owner)["ses"]["turns"]) == (True, 1)
    store(owner, "session_parts", part(1, 2), part(1, 2))  # its second part has not arrived, its first one twice
    half = sessions(owner)["ses"]
    assert (half["complete"], half["parts_stored"], half["turns"]) == (False, 1, 2)
    store(owner, "session_parts", part(2, 2))
    assert (sessions(owner)["ses"]["complete"], sessions(owner)["ses"]["parts_stored"]) == (True, 2)
    store(owner, "session_parts", part(1, 1), part(2, 1))  # an older one arrives again
    assert sessions(owner)["ses"]["revision"] == 2


def test_feedback_on_an_imported_session_is_counted_and_its_own_counts_are_those_of_its_log(owner: Client) -> None:
    store(owner, "session_parts", session_part(1, session_id="ses", tools=7, turns=4))
    store(owner, "tool_calls", tool_call(session_id="ses"))
    store(owner, "feedback", feedback(session_id="ses"))
    found = sessions(owner)["ses"]
    assert (found["source"], found["tools"], found["turns"], found["positive"]) == ("opencode", 7, 4, 1)


def test_sessions_of_two_projects_with_one_id_are_two(owner: Client) -> None:
    store(owner, "session_parts", session_part(1, session_id="ses"), session_part(2, session_id="ses", project="other"))
    rows = owner.query("SELECT project FROM assay.sessions ORDER BY project").result_rows
    assert rows == [("default",), ("other",)]


def test_the_row_of_one_session_is_that_of_the_list(owner: Client) -> None:
    imported = session_part(1, session_id="imported")
    store(
        owner,
        "session_parts",
        imported,
        session_part(2, session_id="both"),
        session_part(3, session_id="both", project="other"),
        session_part(4, session_id="incomplete", parts=2),
    )
    store(owner, "answers", answer(1, session_id="both"), answer(2, session_id="captured"))
    store(owner, "tool_calls", tool_call(1, session_id="both", status="error"), tool_call(2, session_id="captured"))
    store(owner, "feedback", feedback(1, session_id="both"), feedback(2, session_id="captured", verdict="negative"))
    queries = Queries(owner)
    owner.database = "assay"
    listed = newest_sessions(queries, Range(), project="", source="", subagents=True, limit=100)
    assert {row["session_id"] for row in listed} == {"imported", "both", "incomplete", "captured"}
    for name in ("imported", "both", "incomplete", "captured", "none"):
        found = sorted((row for row in listed if row["session_id"] == name), key=lambda row: str(row["project"]))
        assert sessions_of_id(queries, name, "") == found
