"""Reads of captured events: pages that have each event once, whatever the rollups know, and the filters of every kind."""

import itertools
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from assay_operations.errors import OperationError
from assay_operations.events.bounds import counted_to
from assay_operations.events.differs import what_differs
from assay_operations.events.facets import facets
from assay_operations.events.filters import EventFilter, Range
from assay_operations.events.histogram import histogram
from assay_operations.events.listing import Page, list_events
from assay_operations.events.one import Event, MissingEvent, one_event
from assay_operations.events.queries import Queries
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.fields import Kind
from assay_schema.ids import first_row_at
from assay_schema.settings import RetentionSettings
from assay_store.config import BLOCK_ROWS
from tests.support.sample_rows import (
    Json,
    answer,
    candidate,
    event_id_at,
    failure,
    feedback,
    iso,
    lines,
    score,
    server_event,
    session_part,
    tool_call,
)
from tests.support.store import StoreServer, refresh_rollups

DEPLOYED = Path(__file__).parents[2] / "deploy/clickhouse/config.d/assay.xml"
NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000
#: So much that a busy machine does not end a search early.
BUDGET_S = 300.0
EVERYTHING, EVERY_EVENT = Range(), EventFilter()
TABLES = ("candidates", "answers", "feedback", "tool_calls", "server_events", "scores", "capture_failures")
ROLLUPS = ("rollup_minute", "rollup_hour", "rollup_day")
TABLE_OF = {
    Kind.RETRIEVAL: "candidates", Kind.ANSWER: "answers", Kind.FEEDBACK: "feedback", Kind.TOOL_CALL: "tool_calls",
    Kind.SERVER_EVENT: "server_events",
}  # fmt: skip


@pytest.fixture(scope="module")
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        yield client


@pytest.fixture(scope="module")
def sre(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings("sre").store) as client:
        yield client


@pytest.fixture
def empty(owner: Client) -> Client:
    for table in (*TABLES, *ROLLUPS):
        owner.command(f"TRUNCATE TABLE assay_base.{table}")
    return owner


def store(owner: Client, table: str, *rows: Json) -> None:
    insert_json_rows(owner, f"assay_base.{table}", lines(list(rows)), len(rows))


def at(ms: int, row: Json, **fields: Any) -> Json:
    """The row with its event at a Unix millisecond."""
    return {**row, "event_id": event_id_at(ms), **fields}


def all_pages(sre: Client, wanted: EventFilter = EVERY_EVENT, span: Range = EVERYTHING, limit: int = 20) -> list[Page]:
    pages = [list_events(sre, wanted, span, limit=limit, budget_s=BUDGET_S)]
    while pages[-1].next:
        pages.append(list_events(sre, wanted, span, limit=limit, after=pages[-1].next, budget_s=BUDGET_S))
        assert len(pages) < 500, "the pages never end"
    return pages


def listed(sre: Client, **fields: Any) -> set[str]:
    return {row.event_id for page in all_pages(sre, EventFilter(**fields)) for row in page.rows}


def test_an_empty_store_has_one_empty_page_that_is_complete(empty: Client, sre: Client) -> None:
    [page] = all_pages(sre)
    assert (page.rows, page.next, page.complete, counted_to(sre)) == ((), None, True, None)


def test_a_list_of_all_kinds_has_the_rows_of_the_lists_of_each_kind(empty: Client, sre: Client) -> None:
    long = "é" * 300
    traceparent = f"00-{'a' * 32}-{'b' * 16}-01"
    rows = {
        "candidates": [candidate(query=long, traceparent=traceparent), candidate(retrieved_chunk_ids=[])],
        "answers": [answer(query=long, session_id="one"), answer(citations=[])],
        "feedback": [feedback(text=None), feedback(verdict="negative")],
        "tool_calls": [tool_call(status="error", error_kind="timeout"), tool_call(args_summary=None)],
        "server_events": [server_event(), server_event(pii_families={"email": 2})],
    }
    for table, of_table in rows.items():
        store(empty, table, *(at(NOW_MS - 1_000 * place, row) for place, row in enumerate(of_table)))
    together = [row for page in all_pages(sre) for row in page.rows]
    apart = [row for kind in TABLE_OF for page in all_pages(sre, EventFilter(kinds=(kind,))) for row in page.rows]
    assert len(together) == 10
    assert sorted(together, key=lambda row: row.event_id) == sorted(apart, key=lambda row: row.event_id)


@pytest.mark.parametrize("counted", ["all", "none", "half"])
def test_pages_together_have_each_event_once_and_newest_first(empty: Client, sre: Client, counted: str) -> None:
    makers = {
        "candidates": candidate,
        "answers": answer,
        "feedback": feedback,
        "tool_calls": tool_call,
        "server_events": server_event,
    }
    stored: dict[str, int] = {}

    def fill(ages_h: list[float]) -> None:
        for table, make in makers.items():
            rows = [
                at(NOW_MS - int(age * HOUR_MS), make(project=f"p{number % 3}")) for number, age in enumerate(ages_h)
            ]
            stored.update({row["event_id"]: UUID(row["event_id"]).int >> 80 for row in rows})
            store(empty, table, *rows)

    fill([0, 0, 0, 0, 0.001, 0.5, 30, 30, 30, 200, 1500])
    if counted != "none":
        refresh_rollups(empty)
    if counted != "all":
        fill([-20, 0, 0, 1, 29.9, 30, 199, 900, 2000])  # one from a clock ahead, and late ones
    rows = [row for page in all_pages(sre) for row in page.rows]
    assert [row.event_id for row in rows] == list(dict.fromkeys(row.event_id for row in rows)), "one is on two pages"
    assert {row.event_id for row in rows} == set(stored)
    times = [stored[row.event_id] for row in rows]
    assert times == sorted(times, reverse=True)


def test_many_events_of_one_millisecond_are_each_on_one_page(empty: Client, sre: Client) -> None:
    rows = [at(NOW_MS, candidate(project=f"p{number % 2}")) for number in range(25)]
    twice = {**answer(project="p1"), "event_id": rows[0]["event_id"]}  # one id in two kinds and two projects
    store(empty, "candidates", *rows, {**rows[0], "project": "p1"})
    store(empty, "answers", twice)
    keys = [(row.kind, row.project, row.event_id) for page in all_pages(sre, limit=3) for row in page.rows]
    assert len(keys) == len(set(keys)) == 27


def test_rows_that_were_deleted_since_they_were_counted_leave_no_gap(empty: Client, sre: Client) -> None:
    kept = at(NOW_MS - 50 * HOUR_MS, candidate(project="kept"))
    store(empty, "candidates", *(at(NOW_MS - number, candidate(project="pruned")) for number in range(60)), kept)
    refresh_rollups(empty)
    empty.command("ALTER TABLE assay_base.candidates DELETE WHERE project = 'pruned'", settings={"mutations_sync": 2})
    [page] = all_pages(sre, limit=10)
    assert ([row.event_id for row in page.rows], page.complete) == ([kept["event_id"]], True)


def test_a_range_is_half_open(empty: Client, sre: Client) -> None:
    rows = [at(NOW_MS - ago, candidate()) for ago in (3, 2, 1, 0)]
    store(empty, "candidates", *rows)
    pages = all_pages(sre, span=Range(NOW_MS - 2, NOW_MS))
    assert [row.event_id for page in pages for row in page.rows] == [rows[2]["event_id"], rows[1]["event_id"]]
    assert all_pages(sre, span=Range(NOW_MS, NOW_MS))[0].rows == ()


def test_every_filter_finds_its_events_with_and_without_rollups(empty: Client, sre: Client) -> None:
    plain = candidate(1)
    trace, other = "0af7651916cd43dd8448eb211c80319c", "00-" + "ab" * 16 + "-b7ad6b7169203331-01"
    nothing = candidate(
        2, retrieved_chunk_ids=[], project="other", tool_name="search", pii_families={}, latency_ms=500.0,
        traceparent=f"00-{trace}-b7ad6b7169203331-01",
    )  # fmt: skip
    good, bad = answer(3), answer(4, citations=[], model="model-2", answer="Straße NACH Rom", traceparent=other)
    failing = tool_call(5, status="error", error_kind="timeout", session_id="s-1", tool_name="bash", service="agent")
    comment = feedback(6, target_event_id=good["event_id"], verdict="negative", text="wrong")
    praise = feedback(7, target_event_id=plain["event_id"])
    started = server_event(8)
    store(empty, "candidates", plain, nothing)
    store(empty, "answers", good, bad)
    store(empty, "tool_calls", failing)
    store(empty, "feedback", comment, praise)
    store(empty, "server_events", started)
    verdict = {"event_id": good["event_id"], "checks": {"not_empty": False}}
    store(empty, "scores", score(faithfulness=0.5, **verdict), score(event_id=bad["event_id"], status="judge_error"))
    every = (plain, nothing, good, bad, failing, comment, praise, started)
    expected: list[tuple[dict[str, Any], tuple[Json, ...]]] = [
        ({}, every),
        ({"kinds": (Kind.ANSWER, Kind.FEEDBACK)}, (good, bad, comment, praise)),
        ({"project": "other"}, (nothing,)),
        ({"project": "nobody"}, ()),
        ({"services": ("agent",)}, (failing,)),
        ({"tools": ("search", "bash")}, (nothing, failing)),
        ({"models": ("model-2",)}, (bad,)),
        ({"models": ("embed-3",)}, (plain, nothing)),
        ({"statuses": ("error", "no_result", "negative")}, (failing, nothing, comment)),
        ({"statuses": ("found", "uncited", "server_start")}, (plain, bad, started)),
        ({"has": frozenset({"pii"})}, tuple(row for row in every if row is not nothing)),
        ({"has": frozenset({"no-result"})}, (nothing,)),
        ({"has": frozenset({"no-result", "pii"})}, ()),
        ({"has": frozenset({"feedback"})}, (plain, good)),
        ({"has": frozenset({"negative"})}, (good, comment)),
        ({"has": frozenset({"judged"})}, (good,)),
        ({"has": frozenset({"uncited"})}, (bad,)),
        ({"has": frozenset({"failed-check"})}, (good,)),
        ({"latency_over_ms": 499.0}, (nothing, good, bad)),
        ({"metrics_below": (("faithfulness", 0.6),)}, (good,)),
        ({"metrics_below": (("faithfulness", 0.5),)}, ()),
        ({"text": "nach ROM"}, (bad,)),
        ({"text": "strasse"}, ()),
        ({"text": "%"}, ()),
        ({"text": "timeout"}, (failing,)),
        ({"trace_id": trace}, (nothing,)),
        ({"session_id": "s-1"}, (failing,)),
    ]
    for when in ("before", "after"):
        for fields, rows in expected:
            assert listed(sre, **fields) == {row["event_id"] for row in rows}, f"{fields} {when} the rollups"
        refresh_rollups(empty)


def test_rows_show_judging_and_feedback_and_the_beginning_of_long_text(empty: Client, sre: Client) -> None:
    judged = answer(1, query="ä" * 1_000)
    store(empty, "answers", judged)
    store(empty, "scores", score(event_id=judged["event_id"], faithfulness=0.25))
    for number, verdict in enumerate(("positive", "negative")):
        store(empty, "feedback", feedback(number, target_event_id=judged["event_id"], verdict=verdict))
    [row] = list_events(sre, EventFilter(kinds=(Kind.ANSWER,)), EVERYTHING, budget_s=BUDGET_S).rows
    assert (row.text, row.text_chars) == ("ä" * 200, 1_000)
    assert (row.judged, row.faithfulness, row.feedback, row.status) == ("scored", 0.25, "mixed", "cited")
    assert orjson.loads(orjson.dumps(row))["kind"] == "answer"
    assert (row.metric, row.measured) == ("", None)


def test_a_list_by_another_metric_shows_its_values(empty: Client, sre: Client) -> None:
    judged = answer(1)
    store(empty, "answers", judged)
    store(
        empty, "scores", score(event_id=judged["event_id"], metrics={"faithfulness": 0.95, "citation_precision": 0.5})
    )
    wanted = EventFilter(kinds=(Kind.ANSWER,), metrics_below=(("citation_precision", 0.8),))
    [row] = list_events(sre, wanted, EVERYTHING, budget_s=BUDGET_S).rows
    assert (row.faithfulness, row.metric, row.measured) == (0.95, "citation_precision", 0.5)


def test_a_page_of_one_project_reads_few_of_the_stored_rows(empty: Client, sre: Client) -> None:
    per_project, projects, hours = 4_000, [f"p{number}" for number in range(5)], 20
    every_ms = hours * HOUR_MS // per_project
    for half in (0, 1):  # two parts of the table, each with events of all projects and all hours
        rows = [
            at(NOW_MS - number * every_ms, candidate(project=project))
            for project in projects
            for number in range(half, per_project, 2)
        ]
        store(empty, "candidates", *rows)
    refresh_rollups(empty)
    page = list_events(sre, EventFilter(project="p1"), Range(0, NOW_MS + 1), budget_s=BUDGET_S)
    assert len(page.rows) == 50
    # With blocks of 8,192 rows, as the engine has by default, it would be all rows of p0 and p1, and most of p2 and p3.
    assert page.rows_read <= 6_000, f"{page.rows_read} of {per_project * len(projects)} rows"


def test_tables_are_created_with_the_same_small_blocks_in_both_kinds_of_store(owner: Client) -> None:
    names = {"tables": [*TABLES, "rollup_minute"]}
    sql = (
        "SELECT DISTINCT extract(engine_full, 'index_granularity = ([0-9]+)') FROM system.tables"
        " WHERE database = 'assay_base' AND name IN {tables:Array(String)}"
    )
    [[rows]] = owner.query(sql, names).result_rows
    deployed = ET.parse(DEPLOYED).findtext("merge_tree/index_granularity")  # noqa: S314
    assert (rows, deployed) == (str(BLOCK_ROWS), str(BLOCK_ROWS))


def test_a_search_says_how_far_it_came_and_goes_on_from_there(empty: Client, sre: Client) -> None:
    needle = at(NOW_MS - 6 * HOUR_MS, candidate(query="needle"))
    store(empty, "candidates", *(at(NOW_MS - number * HOUR_MS, candidate()) for number in range(9)), needle)
    refresh_rollups(empty)
    wanted, span = EventFilter(text="NEEDLE"), Range(NOW_MS - 9 * HOUR_MS, NOW_MS + 1)
    pages = [list_events(sre, wanted, span, budget_s=0)]
    assert (pages[0].complete, pages[0].rows) == (False, ())
    while pages[-1].next:
        pages.append(list_events(sre, wanted, span, budget_s=0, after=pages[-1].next))
        assert pages[-1].searched_from < pages[-2].searched_from
    assert pages[-1].complete
    assert [row.event_id for page in pages for row in page.rows] == [needle["event_id"]]


def test_a_query_that_reaches_its_limit_of_time_says_what_helps(sre: Client) -> None:
    with pytest.raises(OperationError, match="longer than a query may take; try again") as refused:
        Queries(sre).rows("SELECT sum(cityHash64(number)) FROM numbers(1000000000000)", {}, seconds=1)
    assert refused.value.kind == "unavailable"


@pytest.mark.parametrize("after", ["x", "AAAA", "WzFd=", "W10", "WzEsMl0", "é", "a" * 401, "Wy0xXQ", "W3RydWVd"])
def test_a_cursor_that_no_page_wrote_is_refused(sre: Client, after: str) -> None:
    with pytest.raises(OperationError, match="is not a cursor") as refused:
        list_events(sre, EVERY_EVENT, EVERYTHING, after=after)
    assert refused.value.kind == "invalid"


def test_the_histogram_counts_each_event_once_in_buckets_without_gaps(empty: Client, sre: Client) -> None:
    store(empty, "candidates", *(at(NOW_MS - hour * HOUR_MS, candidate()) for hour in range(48)))
    store(empty, "candidates", at(NOW_MS, candidate(retrieved_chunk_ids=[], service="other")))
    store(empty, "feedback", at(NOW_MS, feedback(verdict="negative")))
    store(empty, "tool_calls", at(NOW_MS, tool_call(status="refused")), at(NOW_MS, tool_call()))
    refresh_rollups(empty)
    for span, unit in (
        (EVERYTHING, "minute"), (Range(NOW_MS - HOUR_MS, NOW_MS), "minute"), (Range(NOW_MS - 479 * HOUR_MS, NOW_MS), "hour"),
        (Range(NOW_MS - 480 * HOUR_MS, NOW_MS), "day"), (Range(NOW_MS - 5_000 * HOUR_MS, NOW_MS), "day"), (Range(1, NOW_MS), "day"),
    ):  # fmt: skip
        found = histogram(sre, EVERY_EVENT, span)
        starts = [bucket.start.timestamp() for bucket in found.buckets]
        assert found.unit == unit
        assert 0 < len(starts) <= 180
        assert {later - earlier for earlier, later in itertools.pairwise(starts)} == {found.width_s}
        last = found.buckets[-1]
        if span == EVERYTHING:
            assert sum(bucket.events.get("retrieval", 0) for bucket in found.buckets) == 49
            assert sum(bucket.events.get("feedback", 0) for bucket in found.buckets) == 1
        elif found.unit != "minute":
            assert (last.events["feedback"], last.events["tool_call"]) == (1, 2)
            assert counted_to(sre) is not None
    only = histogram(sre, EventFilter(services=("other",), text="x"), EVERYTHING)
    assert sum(sum(bucket.events.values()) for bucket in only.buckets) == 1
    assert only.not_applied == ("q",)


def test_the_histogram_of_nothing_has_no_bucket(empty: Client, sre: Client) -> None:
    found = histogram(sre, EVERY_EVENT, EVERYTHING)
    assert found.buckets == ()


def test_facets_count_all_events_where_the_rollups_can_and_say_where_not(empty: Client, sre: Client) -> None:
    store(
        empty, "candidates", *(at(NOW_MS, candidate(project="a")) for _ in range(3)), at(NOW_MS, candidate(project="b"))
    )
    store(empty, "tool_calls", at(NOW_MS, tool_call(project="a", status="error")))
    store(empty, "answers", at(NOW_MS, answer(project="a")))
    refresh_rollups(empty)

    def counts(wanted: EventFilter) -> dict[str, tuple[dict[str, int], str]]:
        shown = list_events(sre, wanted, EVERYTHING, limit=2, budget_s=BUDGET_S).rows
        return {
            facet.name: (dict(facet.values), facet.source) for facet in facets(sre, wanted, EVERYTHING, shown).facets
        }

    everything = counts(EVERY_EVENT)
    assert everything["project"] == ({"a": 5, "b": 1}, "all counted events")
    assert everything["kind"] == ({"retrieval": 4, "tool_call": 1, "answer": 1}, "all counted events")
    assert everything["tool"] == ({"query": 4, "search_docs": 1}, "all counted events")
    assert everything["status"][1] == "of the rows shown"
    one_kind = counts(EventFilter(kinds=(Kind.TOOL_CALL,), project="a"))
    assert one_kind["project"] == ({"a": 1}, "all counted events")
    assert one_kind["kind"][0] == {"retrieval": 3, "tool_call": 1, "answer": 1}, "the other values are offered too"
    assert one_kind["status"] == ({"error": 1}, "all counted events")
    assert counts(EventFilter(text="signing", project="a"))["service"][1] == "of the rows shown"


def test_an_answer_comes_with_all_that_belongs_to_it(empty: Client, sre: Client) -> None:
    trace = f"00-{'cd' * 16}-b7ad6b7169203331-01"
    retrieval = candidate(1, traceparent=trace)
    judged = answer(2, retrieval_event_id=retrieval["event_id"], traceparent=trace, session_id="s-9")
    called = tool_call(3, session_id="s-9")
    late = at(NOW_MS + HOUR_MS, candidate(traceparent=trace))
    comment = feedback(5, target_event_id=judged["event_id"], verdict="negative", text="no")
    span = {"demoted": False, "passage": 1, "quote_from": 0, "quote_to": 7}
    verdicts = [{"verdict": "supported", "answer_from": 0, "answer_to": 3, **span}]
    store(empty, "candidates", retrieval, late, candidate(6, project="other", traceparent=trace))
    store(empty, "answers", judged)
    store(empty, "tool_calls", called)
    store(empty, "feedback", comment)
    store(empty, "scores", {**score(event_id=judged["event_id"], faithfulness=1.0), "verdicts": verdicts})
    found = one_event(sre, judged["event_id"])
    assert isinstance(found, Event)
    assert found.record["contexts"][0]["text"] == "The rotation job ..."
    assert found.record["latency_ms"] == 900.0
    assert found.retrieval is not None
    assert found.retrieval["event_id"] == retrieval["event_id"]
    assert [each["text"] for each in found.feedback] == ["no"]
    assert [each["verdicts"] for each in found.scores] == [verdicts]
    assert [row.event_id for row in found.tool_calls] == [called["event_id"]]
    assert [row.event_id for row in found.related] == [retrieval["event_id"]]
    assert found.complete
    assert orjson.loads(orjson.dumps(found))["record"]["event_id"] == judged["event_id"]

    of_retrieval = one_event(sre, retrieval["event_id"].upper())
    assert isinstance(of_retrieval, Event)
    assert [(row.event_id, row.judged, row.feedback) for row in of_retrieval.answers] == [
        (judged["event_id"], "scored", "negative")
    ]
    of_feedback = one_event(sre, comment["event_id"])
    assert isinstance(of_feedback, Event)
    assert of_feedback.target is not None
    assert of_feedback.target.event_id == judged["event_id"]


def test_links_to_events_that_are_not_stored_are_left_out(empty: Client, sre: Client) -> None:
    lost = answer(1, retrieval_event_id=event_id_at(NOW_MS))
    odd = answer(2, retrieval_event_id="00000000-0000-4000-8000-000000000000")
    about_nothing = feedback(3, target_event_id="00000000-0000-4000-8000-000000000000")
    store(empty, "answers", lost, odd)
    store(empty, "feedback", about_nothing)
    for row in (lost, odd, about_nothing):
        found = one_event(sre, row["event_id"])
        assert isinstance(found, Event)
        assert (found.retrieval, found.target, found.related) == (None, None, ())


def test_an_event_that_is_not_stored_has_a_reason(empty: Client, sre: Client) -> None:
    retention = RetentionSettings(days=30, projects={"long": 90})
    empty.command("TRUNCATE TABLE assay_base.watermarks")
    store(empty, "watermarks", {"shard": 0, "watermark": first_row_at(NOW_MS - HOUR_MS), "updated_at": iso(NOW_MS)})

    def reason(days_old: float, **options: Any) -> str:
        event_id = options.pop("event_id", None) or event_id_at(NOW_MS - int(days_old * 86_400_000))
        found = one_event(sre, event_id, retention=retention, now_ms=NOW_MS, **options)
        assert isinstance(found, MissingEvent)
        return found.reason

    part = session_part(1, session_id="ses_one")
    store(empty, "session_parts", part)
    of_session = one_event(sre, part["event_id"])
    assert isinstance(of_session, MissingEvent)
    assert (of_session.reason, (of_session.record or {})["session_id"]) == ("part_of_session", "ses_one")
    assert reason(0) == "not_stored_yet"
    assert reason(-3) == "unknown"
    assert reason(1) == "unknown"
    assert reason(31) == "expired"
    assert reason(31, project="long") == "unknown"
    assert reason(91, project="long") == "expired"
    failed = event_id_at(NOW_MS - 31 * 86_400_000)
    store(empty, "capture_failures", failure(event_id=failed))
    assert reason(31, event_id=failed) == "failed"
    attempt = {
        "schema_version": 1, "operation_id": event_id_at(NOW_MS), "outcome": "done", "at": iso(NOW_MS), "operation": "prune", "actor": "a",
        "identity": "owner", "host": "h", "through": "command line", "planned": 1, "changed": 1, "comment": "", "error_kind": "",
        "version": "1", "target": orjson.dumps({"upto_ms": NOW_MS - 86_400_000, "project": "gone"}).decode(),
    }  # fmt: skip
    store(empty, "operations_audit", {**attempt, "outcome": "started", "changed": 0}, attempt)
    assert reason(2) == "pruned"
    assert reason(2, project="gone") == "pruned"
    assert reason(2, project="other") == "unknown"
    assert reason(0.5) == "unknown"


@pytest.mark.parametrize("event_id", ["", "x", "' OR 1", "00000000-0000-4000-8000-000000000000"])
def test_an_id_that_no_event_has_is_refused(sre: Client, event_id: str) -> None:
    with pytest.raises(OperationError, match="is not an event_id"):
        one_event(sre, event_id)


def test_what_differs_finds_the_service_that_fails_first(empty: Client, sre: Client) -> None:
    calls = [tool_call(n, service="bad", status="error", error_kind="timeout") for n in range(40)]
    calls += [tool_call(n, service=("good", "bad")[n % 20 == 0], tool_name=("a", "b")[n % 2]) for n in range(200)]
    store(empty, "tool_calls", *(at(NOW_MS - 1 - n, call) for n, call in enumerate(calls)))
    span = Range(NOW_MS - HOUR_MS, NOW_MS)
    found = what_differs(sre, EventFilter(kinds=(Kind.TOOL_CALL,), statuses=("error",)), span)
    assert (found.selected, found.rest) == (40, 200)
    by_key = {(each.dimension, each.value): each for each in found.differences}
    service = by_key["service", "bad"]
    assert (service.selected, service.rest, service.significant) == (40, 10, True)
    assert service.difference == pytest.approx(1 - 10 / 200)
    assert found.differences[0].strength >= service.strength > 0.5
    assert ("pii", "email") not in by_key, "all events of both sides have it"
    strengths = [each.strength for each in found.differences]
    assert strengths == sorted(strengths, reverse=True)


def test_what_differs_from_the_hours_before(empty: Client, sre: Client) -> None:
    before = [candidate(n, latency_ms=5.0) for n in range(50)]
    now = [candidate(n, tool_name="search", retrieved_chunk_ids=[] if n < 25 else [1]) for n in range(50)]
    store(
        empty, "candidates", *(at(NOW_MS - 5 * HOUR_MS, row) for row in before), *(at(NOW_MS - 1, row) for row in now)
    )
    store(empty, "candidates", *(at(NOW_MS - 2 * HOUR_MS, candidate(service="between")) for _ in range(3)))
    span, against = Range(NOW_MS - HOUR_MS, NOW_MS), Range(NOW_MS - 6 * HOUR_MS, NOW_MS - 4 * HOUR_MS)
    found = what_differs(sre, EventFilter(kinds=(Kind.RETRIEVAL,)), span, against=against)
    shares = {(each.dimension, each.value): (each.selected, each.rest) for each in found.differences}
    assert (found.selected, found.rest) == (50, 50)
    assert shares["tool", "search"] == (50, 0)
    assert shares["status", "no_result"] == (25, 0)
    assert ("service", "between") not in shares


def test_what_differs_names_documents_and_passages_and_leaves_out_what_the_filter_decides(
    empty: Client, sre: Client
) -> None:
    def given(*documents: str) -> list[Json]:
        return [{"id": f"{name}#1", "source_id": name, "text": "t", "score": 1.0} for name in documents]

    bad = [answer(n, citations=[], contexts=given("stale") if n % 2 else []) for n in range(30)]
    good = [
        answer(n, contexts=given("fresh", "common", "fresh"), citations=[{"context_id": "fresh#1", "claim": None}])
        for n in range(300)
    ]
    store(empty, "answers", *(at(NOW_MS - 1 - n, row) for n, row in enumerate([*bad, *good])))
    span = Range(NOW_MS - HOUR_MS, NOW_MS)
    for wanted in (EventFilter(statuses=("uncited",)), EventFilter(has=frozenset({"uncited"}))):
        found = what_differs(sre, wanted, span)
        counts = {(each.dimension, each.value): (each.selected, each.rest) for each in found.differences}
        assert (found.selected, found.rest) == (30, 300)
        assert (counts["document", "stale"], counts["document", "fresh"]) == ((15, 0), (0, 300))
        assert (counts["passages", "0"], counts["passages", "3"]) == ((15, 0), (0, 300))
        assert not {"status", "kind"} & {name for name, _ in counts}, (
            "a filter's own field, or what all have, is no news"
        )


def test_a_comparison_needs_two_ranges_that_end_and_do_not_overlap(sre: Client) -> None:
    span = Range(NOW_MS - HOUR_MS, NOW_MS)
    for ranges in ((EVERYTHING, None), (span, Range(NOW_MS - 2 * HOUR_MS, NOW_MS - 1))):
        with pytest.raises(OperationError, match="range"):
            what_differs(sre, EVERY_EVENT, ranges[0], against=ranges[1])


def test_what_differs_of_nothing_is_nothing(empty: Client, sre: Client) -> None:
    found = what_differs(sre, EventFilter(has=frozenset({"pii"})), Range(NOW_MS - HOUR_MS, NOW_MS))
    assert (found.differences, found.selected, found.rest) == ((), 0, 0)
    assert what_differs(sre, EventFilter(kinds=(Kind.FEEDBACK,), tools=("x",)), Range(1, 2)).differences == ()
