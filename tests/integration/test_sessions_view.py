"""The view of sessions: one row for each, imported or only captured."""

import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from assay_operations.events.filters import Range
from assay_operations.events.queries import Queries
from assay_operations.sessions.captured import CapturedEvents, captured_events
from assay_operations.sessions.summaries import newest_sessions, sessions_of_id
from assay_runtime.store import Client, connect, insert_json_rows
from tests.support.sample_rows import (
    Json,
    answer,
    candidate,
    feedback,
    iso,
    lines,
    score,
    server_event,
    session_part,
    tool_call,
)
from tests.support.store import StoreServer

NOW_MS, DAY_MS = int(time.time() * 1000), 86_400_000
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
    store(owner, "server_events", server_event(1, session_id="imported"), server_event(2, session_id="captured"))
    store(owner, "server_events", server_event(3, session_id="no session"))
    queries = Queries(owner)
    owner.database = "assay"
    listed = newest_sessions(queries, Range(), project="", source="", subagents=True, limit=100)
    assert {row["session_id"] for row in listed} == {"imported", "both", "incomplete", "captured"}
    for name in ("imported", "both", "incomplete", "captured", "no session", "none"):
        expected = sorted((row for row in listed if row["session_id"] == name), key=lambda row: str(row["project"]))
        found = sessions_of_id(queries, name, "")
        assert [{key: row[key] for key in of_list} for row, of_list in zip(found, expected, strict=True)] == expected


def test_every_event_of_a_session_is_read_whenever_it_happened_was_made_or_arrived(owner: Client) -> None:
    """Times of ids lead to the events. Each of these is the first or last by one of its times, and no kind is between the others."""
    owner.database = "assay"
    made = {
        "server_events": server_event(1, days_old=40, session_id="s", occurred_at=iso(NOW_MS - 3 * DAY_MS), seq=1, message="started"),
        "candidates": candidate(2, days_old=20, session_id="s", occurred_at=iso(NOW_MS - 60 * DAY_MS), query="backfilled"),
        "answers": answer(3, days_old=10, session_id="s", occurred_at=iso(NOW_MS - 2 * DAY_MS), query="in between"),
        "tool_calls": tool_call(4, days_old=5, session_id="s", occurred_at=iso(NOW_MS + DAY_MS), args_summary="clock ahead"),
        "feedback": feedback(5, session_id="s", occurred_at=iso(NOW_MS - 4 * DAY_MS), text="the newest id"),
    }  # fmt: skip
    for table, row in made.items():
        store(owner, table, row, row)  # a copy is not another event
    store(owner, "tool_calls", tool_call(9, session_id="other"))

    def texts(**options: Any) -> list[str]:
        [row] = sessions_of_id(Queries(owner), "s", "")
        return [each.text for each in captured_events(owner, row, **options).rows]

    assert [row["tools"] for row in sessions_of_id(Queries(owner), "s", "")] == [1]
    assert texts() == ["backfilled", "the newest id", "started", "in between", "clock ahead"]
    assert texts(page=2, limit=2) == ["started", "in between"]
    late = tool_call(
        6, days_old=50, session_id="s", occurred_at=iso(NOW_MS - 90 * DAY_MS), args_summary="late", status="error"
    )
    store(owner, "tool_calls", late)
    assert texts()[:2] == ["late", "backfilled"]
    assert texts(failed=True) == ["late"]


def test_events_of_a_session_that_happened_at_once_are_in_the_order_of_their_numbers(owner: Client) -> None:
    owner.database = "assay"
    at = iso(NOW_MS)
    # The ids have the opposite order, days apart.
    calls = [
        tool_call(n, days_old=n, session_id="s", occurred_at=at, seq=n, args_summary=f"call {n}") for n in (1, 2, 3)
    ]
    store(owner, "tool_calls", *calls)
    store(owner, "server_events", server_event(4, days_old=4, session_id="s", occurred_at=at, seq=0, message="started"))
    [row] = sessions_of_id(Queries(owner), "s", "")
    assert [each.text for each in captured_events(owner, row).rows] == ["started", "call 1", "call 2", "call 3"]


def test_a_session_of_one_day_reads_few_of_the_calls_of_other_days(owner: Client) -> None:
    """Blocks that end in another project than they begin in have keys around those of all days."""
    owner.database = "assay"
    for day in range(10):
        calls = [
            tool_call(number, days_old=day, project=f"p{project}", session_id=f"{day}-{project}-{number // 40}")
            for project in range(5)
            for number in range(400)
        ]
        store(owner, "tool_calls", *calls)
    queries = Queries(owner)
    [row] = sessions_of_id(queries, "3-2-5", "")
    assert (row["tools"], captured_events(owner, row).total) == (40, 40)
    assert queries.rows_read <= 4_000, f"{queries.rows_read} of 20,000 rows"


def test_the_scores_of_a_session_are_found_wherever_its_answers_are(owner: Client) -> None:
    owner.database = "assay"
    answers = [answer(number, days_old=20.0 * number, session_id="s") for number in range(3)]
    store(owner, "answers", *answers)
    store(owner, "scores", *(score(event_id=each["event_id"], faithfulness=0.5) for each in answers))
    [row] = sessions_of_id(Queries(owner), "s", "")
    assert (row["answers"], row["scored"], row["faithfulness"]) == (3, 3, 0.5)


def test_a_session_without_events_is_not_asked_for_them(owner: Client) -> None:
    store(owner, "session_parts", session_part(1, session_id="imported"))
    owner.database = "assay"
    [row] = sessions_of_id(Queries(owner), "imported", "")
    no_client = cast("Client", None)
    assert captured_events(no_client, row) == CapturedEvents((), 0, 1, 1)
