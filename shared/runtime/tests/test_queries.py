"""The named queries and the table reference, against a freshly migrated engine with a few rows."""

import json
import math
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from assay_runtime.queries import named_queries
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.alerts import AlertState
from assay_writer.rows import alert_row
from docs.generate import table_reference
from docs.generate.table_wording import reworded
from tests.support.alert_samples import episode, transition
from tests.support.sample_rows import (
    FINGERPRINT,
    answer,
    by_column,
    candidate,
    failure,
    feedback,
    imported_call,
    iso,
    lines,
    score,
    server_event,
    session_part,
    tool_call,
)
from tests.support.store import StoreServer, refresh_rollups

#: Faithfulness, and how probable each answer was to be in the base stream; the last is boosted, and counts in no rate.
SCORES = [
    score(faithfulness=0.9),
    score(faithfulness=0.7),
    score(faithfulness=0.5, base_probability=0.5),
    score(status="skipped_budget"),
    score(status="not_sampled", base=False, checks={"not_empty": False}),
    score(faithfulness=0.0, base=False, boosts=["low_score"], inclusion_probability=0.5),
    score(faithfulness=0.25, project="other", fingerprint="ffffffffffffffff"),
    score(
        project="agents",
        session_id="s1",
        revision=1,
        fingerprint="eeeeeeeeeeeeeeee",
        metrics={"rubric_score": 0.5, "safety": 1.0},
        checks={},
        rubric=[
            {
                "dimension": "task_success",
                "criterion": "The total is said",
                "absence": False,
                "verdict": "no",
                "demoted": False,
                "turn": 0,
            }
        ],
    ),
]
#: The judge calls 8 of 40 answers good that people call bad.
CALIBRATION = {
    "calibration_id": str(uuid4()), "calibrated_at": "2026-01-01T00:00:00Z", "project": "default", "metric": "faithfulness",
    "fingerprint": FINGERPRINT, "threshold": 0.7, "labels": 40, "true_positives": 20, "false_negatives": 0,
    "false_positives": 8, "true_negatives": 12, "kappa": 0.6, "tpr": 1.0, "tnr": 0.6,
    "rectifier": -0.2, "rectifier_variance": 0.16, "pages": True,
}  # fmt: skip
#: One episode from beginning to end, and one that is open.
ALERTS = [
    *(transition(1, AlertState.CRITICAL, alert_id=uuid4(), project="order", effect=effect) for effect in (-0.3, -0.78)),
    *episode(),
    *episode(uuid4())[:2],
]
#: The calls of a session: one command four times, of which three failed, one refused, and one that the person ran.
CALLS = json.dumps(
    [
        *(imported_call("shell", {"command": "make"}, status="error", error_kind="exit_code", duration_ms=ms) for ms in (10, 20, 30)),
        imported_call("shell", {"command": "make"}, duration_ms=4_000),
        imported_call("shell", {"command": "rm -r build"}, status="refused", error_kind="rejected"),
        imported_call("shell", {"command": "git push"}, status="error", executed_by="user", duration_ms=9_000),
    ]
)  # fmt: skip
#: An operation that was killed.
OPERATION = {
    "schema_version": 1, "operation_id": str(uuid4()), "outcome": "started", "at": iso(time.time_ns() // 1_000_000),
    "operation": "prune", "actor": "ana", "identity": "owner", "host": "host", "through": "command line",
    "target": "{}", "planned": 7, "changed": 0, "comment": "", "error_kind": "", "version": "0.1.0",
}  # fmt: skip


@pytest.fixture(scope="module")
def sre(migrated: StoreServer) -> Iterator[Client]:
    by_text_ids = candidate(retrieved_chunk_ids=[], retrieved_ids=["kb#7", "kb#9"])
    slow = candidate(
        1, latency_ms=900.0, retrieved_chunk_ids=[], retrieved_slugs=[], retrieved_scores=[], query="é" * 100
    )
    tables = {
        "candidates": [candidate(), by_text_ids, slow, {**slow, "id": slow["id"] + 1}, candidate(project="other")],
        "answers": [answer(), answer(citations=[])],
        "feedback": [feedback(), feedback(verdict="negative")],
        "tool_calls": [
            *(tool_call(number, args_summary='{"path":"a"}') for number in range(3)),
            tool_call(3, tool_name="bash", status="error", error_kind="exit", duration_ms=900.0),
            tool_call(4, status="refused", error_kind="pii_blocked", project="other"),
        ],
        "server_events": [server_event()],
        "session_parts": [
            session_part(1),
            session_part(2, status="aborted", parts=2, session_id="ses_half"),
            session_part(3, parent_session_id="ses_1"),
            session_part(5, project="imported", source="codex", parent_session_id="ses_4", intermediate_events=CALLS),
        ],
        "capture_failures": [
            *(
                failure(stage=stage) for stage in ("drift", "writer", "notifier")
            ),  # one entry that three services refused
            failure(reason="db_down", stage="writer", entry_id=None),
            failure(days_old=2),
        ],
        "scores": SCORES,
        "calibrations": [CALIBRATION],
        "alerts": [by_column(*alert_row(alert.model_dump_json().encode())[:2]) for alert in ALERTS],
    }
    with connect(migrated.settings("writer").store) as writer:
        for table, stored in tables.items():
            insert_json_rows(writer, f"assay_base.{table}", lines(stored), len(stored))
    with connect(migrated.settings().store) as owner:
        insert_json_rows(owner, "assay_base.operations_audit", lines([OPERATION]), 1)
        refresh_rollups(owner)
    with connect(migrated.settings("sre").store) as client:
        yield client


def rows(client: Client, name: str, **parameters: str) -> list[dict[str, Any]]:
    query = named_queries()[name]
    result = client.query(query.sql, parameters={**query.defaults, **parameters})
    return [dict(zip(result.column_names, row, strict=True)) for row in result.result_rows]


@pytest.mark.parametrize("query", named_queries().values(), ids=lambda query: query.name)
def test_every_query_runs_with_its_defaults_as_an_sre(sre: Client, query: Any) -> None:
    assert rows(sre, query.name), "the sample rows make every query answer"
    assert query.summary.endswith(".")
    assert "--" not in query.sql


@pytest.mark.parametrize("query", named_queries().values(), ids=lambda query: query.name)
def test_a_query_declares_exactly_the_parameters_it_uses(query: Any) -> None:
    declared = {f"{{{parameter.name}:{parameter.type}}}" for parameter in query.parameters}
    assert all(parameter in query.sql for parameter in declared)
    assert query.sql.count("{") == sum(query.sql.count(parameter) for parameter in declared)


def test_the_queries_count_each_event_once(sre: Client) -> None:
    assert sum(row["events"] for row in rows(sre, "events-per-minute")) == 18
    assert [row["duplicates"] for row in rows(sre, "duplicates")] == [0] * 7
    assert sum(row["retrievals"] for row in rows(sre, "retrieval-latency", project="default")) == 3


def test_the_queries_answer_what_they_say(sre: Client) -> None:
    assert [row["without_result"] for row in rows(sre, "zero-results", project="default")] == [1]
    assert {row["reason"]: (row["lost"], row["incidents"]) for row in rows(sre, "failures")} == {
        "check_violation": (1, 0),
        "db_down": (0, 1),
    }
    assert {row["stage"] for row in rows(sre, "failures")} == {"writer"}
    assert sum(row["removed"] for row in rows(sre, "pii-findings")) == 36
    [slowest] = rows(sre, "slowest-retrievals", limit="1")
    assert (slowest["ms"], slowest["query_start"]) == (900.0, "é" * 80)
    [slowest] = rows(sre, "slowest-retrievals", limit="1", chars="90")
    assert slowest["query_start"] == "é" * 90
    assert [len(row["query_start"]) for row in rows(sre, "slowest-answers", chars="3")] == [3, 3]
    [verdicts] = rows(sre, "feedback")
    assert (verdicts["positive"], verdicts["negative"], verdicts["positive_rate"]) == (1, 1, 0.5)
    [model] = rows(sre, "answers-by-model")
    assert (model["answers"], model["without_citation"]) == (2, 1)
    assert rows(sre, "top-documents", project="default")[0]["share"] == 0.6667
    assert rows(sre, "watermark")[0]["watermark"] == 0
    assert sum(row["events"] for row in rows(sre, "storing-delay")) == 18


def test_the_queries_about_tools_answer_what_they_say(sre: Client) -> None:
    tools = {(row["project"], row["source"], row["tool"]): row for row in rows(sre, "tools")}
    assert {key: (row["calls"], row["errors"], row["refused"], row["error_rate"]) for key, row in tools.items()} == {
        ("default", "capture", "search_docs"): (3, 0, 0, 0),
        ("default", "capture", "bash"): (1, 1, 0, 1),
        ("other", "capture", "search_docs"): (1, 0, 1, 1),
        ("default", "opencode", "bash"): (2, 0, 0, 0),
        ("imported", "codex", "shell"): (5, 3, 1, 0.8),
    }
    assert tools["imported", "codex", "shell"]["p50_ms"] == 30.0
    assert tools["default", "opencode", "bash"]["max_ms"] is None
    errors = {(row["source"], row["tool_name"], row["status"], row["error_kind"]) for row in rows(sre, "tool-errors")}
    assert errors == {
        ("capture", "bash", "error", "exit"),
        ("capture", "search_docs", "refused", "pii_blocked"),
        ("codex", "shell", "error", "exit_code"),
        ("codex", "shell", "refused", "rejected"),
    }
    [failed] = [row for row in rows(sre, "tool-errors", project="imported") if row["status"] == "error"]
    assert (failed["calls"], failed["server_sessions"], failed["sessions"]) == (3, 0, 1)
    assert failed["latest_session_id"] == "ses_5"
    refused = {row["source"]: row for row in rows(sre, "refusals")}
    assert (refused["capture"]["project"], refused["capture"]["pii_attempted"]) == ("other", ["contact"])
    assert (refused["codex"]["session_id"], refused["codex"]["pii_blocked"]) == ("ses_5", [])
    slowest = [(row["source"], row["tool_name"], row["ms"]) for row in rows(sre, "slowest-tool-calls", limit="2")]
    assert slowest == [("codex", "shell", 4000.0), ("capture", "bash", 900.0)]
    loops = {row["source"]: row for row in rows(sre, "tool-loops")}
    assert loops.keys() == {"capture", "codex"}
    assert (loops["capture"]["calls"], loops["capture"]["arguments_start"]) == (3, '{"path":"a"}')
    assert (loops["codex"]["calls"], loops["codex"]["failed"], loops["codex"]["session_id"]) == (4, 3, "ses_5")
    assert rows(sre, "tool-loops", times="5") == []


def test_sessions_are_counted_by_day_and_agent_without_those_of_sub_agents(sre: Client) -> None:
    found = rows(sre, "sessions")
    assert len(found) == 1, found
    [day] = found
    assert (day["source"], day["sessions"], day["answered"], day["aborted"], day["incomplete"]) == (
        "opencode",
        2,
        1,
        1,
        1,
    )
    assert (day["turns"], day["tools"], day["tool_error_rate"]) == (4, 2, 0)


def test_the_rollups_queries_say_the_same_as_those_of_the_events(sre: Client) -> None:
    traffic = rows(sre, "traffic")
    assert sum(row["events"] for row in traffic) == 14
    assert (sum(row["failures"] for row in traffic), sum(row["incidents"] for row in traffic)) == (3, 1)
    assert {
        row["without_result_rate"] for row in rows(sre, "traffic", project="other") if row["kind"] == "retrieval"
    } == {0}
    retrievals = [row for row in rows(sre, "latency-trend", project="default") if row["kind"] == "retrieval"]
    assert sum(row["events"] for row in retrievals) == 3
    assert max(row["p99_ms"] for row in retrievals) == pytest.approx(900, rel=0.01)
    scores = rows(sre, "retrieval-scores", project="default")
    assert (sum(row["scored"] for row in scores), sum(row["without_result"] for row in scores)) == (2, 1)
    assert {row["mean_top_score"] for row in scores if row["scored"]} == {0.9}
    assert sum(row["removed"]["email"] for row in rows(sre, "pii-trend")) == 28


def test_an_episode_is_open_until_it_is_resolved(sre: Client) -> None:
    assert len(rows(sre, "alerts")) == len(ALERTS)
    [open_one] = rows(sre, "open-alerts", project="shop")
    assert (str(open_one["alert_id"]), open_one["state"]) == (str(ALERTS[-1].alert_id), "critical")
    assert rows(sre, "open-alerts", project="other") == []
    assert [row["effect"] for row in rows(sre, "open-alerts", project="order")] == [-0.78, -0.3], "the largest first"


def test_quality_counts_the_base_stream_by_its_weights_and_corrects_the_judge_where_people_labelled(
    sre: Client,
) -> None:
    [day] = rows(sre, "quality", project="default")
    assert (day["metric"], day["n"]) == ("faithfulness", 3)
    assert day["weighted_mean"] == pytest.approx((0.9 + 0.7 + 2 * 0.5) / 4)
    assert day["low"] < day["weighted_mean"] < day["high"]
    # Half of the weight is good by the judge; people say a fifth less.
    assert day["ppi_rate"] == pytest.approx(0.5 - 0.2)
    size = 16 / 6  # effective number of answers
    spread = math.sqrt((1 * 0.25 + 1 * 0.25 + 4 * 0.25) / 16 * size / (size - 1) + 0.16 / 40)
    assert day["ppi_high"] == pytest.approx(min(1, 0.3 + 1.96 * spread), abs=1e-4)
    assert day["ppi_low"] == pytest.approx(max(0, 0.3 - 1.96 * spread), abs=1e-4)
    [other] = rows(sre, "quality", project="other")
    assert (other["n"], other["weighted_mean"], other["ppi_rate"], other["labels"]) == (1, 0.25, None, None)


def test_coverage_says_what_is_missing_and_checks_count_every_answer(sre: Client) -> None:
    [day] = rows(sre, "judging", project="default")
    assert (day["seen"], day["sampled"], day["scored"], day["skipped_budget"]) == (6, 5, 4, 1)
    assert (day["coverage"], day["checks_failed"], day["cost_usd"]) == (0.8, 1, 0.01)
    [check] = rows(sre, "checks", project="default")
    assert (check["check"], check["passed_answers"], check["failed_answers"]) == ("not_empty", 5, 1)
    [hourly] = rows(sre, "checks", project="default", hours="2")
    assert (hourly["failed_answers"], hourly["period"].minute) == (1, 0)
    [problems] = rows(sre, "answer-problems", project="default")
    assert (problems["answers"], problems["judged"], problems["check_failed_rate"]) == (6, 3, 0.1667)
    [spend] = rows(sre, "spend", project="default")
    assert (spend["judged"], spend["skipped_budget"], spend["usd_per_answer"]) == (4, 1, 0.0025)


def test_the_worst_answers_of_a_metric_or_a_share_are_listed_worst_first(sre: Client) -> None:
    (session,) = rows(sre, "worst-sessions")
    assert (session["session_id"], session["value"], session["first_unmet"]) == ("s1", 0.5, "The total is said")
    assert rows(sre, "worst-answers", metric="rubric_score") == []
    assert [row["value"] for row in rows(sre, "worst-answers", project="default")] == [0.0, 0.5, 0.7, 0.9]
    assert [row["value"] for row in rows(sre, "worst-answers", limit="1", project="other")] == [0.25]
    assert len(rows(sre, "worst-answers", metric="check_failed_not_empty")) == 1
    assert rows(sre, "worst-answers", metric="abstained") == []
    now_ms = str(time.time_ns() // 1_000_000 + 3_600_000)
    assert rows(sre, "worst-answers", since_ms=now_ms) == []
    assert len(rows(sre, "worst-answers", until_ms=now_ms)) == 5


def test_the_table_reference_is_current() -> None:
    assert table_reference.main(["--check"]) == 0


def test_the_table_reference_has_every_column_of_every_view(sre: Client) -> None:
    engine = sre.query("SELECT table, name, type, comment FROM system.columns WHERE database = 'assay'").result_rows
    ours = [(view.name, *column) for view in table_reference.views() for column in view.columns]
    assert sorted(ours) == sorted((*row, reworded(comment)) for *row, comment in engine)
