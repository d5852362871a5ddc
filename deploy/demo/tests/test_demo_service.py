"""The service and its driver: what is asked is captured whole, and the run follows its seed."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from assay_capture import Capture
from assay_demo.driver import Pace, Plan, Tally, drive, judge
from assay_demo.golden import Case, read_cases
from assay_demo.leftover import Leftover, leftover
from assay_demo.pii import plant, planted_values
from assay_demo.regression import Regressed
from assay_demo.search import Search
from assay_demo.service import CONTEXTS, NO_ANSWER, QUOTED, Reply, SearchService, extract_answer
from assay_schema.streams import CAPTURE, FIELD
from assay_schema.validation import parse_event
from tests.support.demo import run_demo
from tests.support.ports import free_port
from tests.support.redis import RedisServer

CASES = read_cases()


class Recorder:
    """Keeps what the service hands to the SDK; no Redis is needed to see that."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def retrieval(self, **fields: Any) -> str:
        return self._keep("retrieval", fields)

    def answer(self, **fields: Any) -> str:
        return self._keep("answer", fields)

    def feedback(self, **fields: Any) -> str:
        return self._keep("feedback", fields)

    def _keep(self, kind: str, fields: dict[str, Any]) -> str:
        self.events.append((kind, fields))
        return f"event-{len(self.events)}"

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [fields for found, fields in self.events if found == kind]


def _service(search: Search, recorder: Recorder, seed: int = 0) -> SearchService:
    return SearchService(search, cast("Capture", recorder), seed=seed)


def _run(search: Search, plan: Plan) -> tuple[Recorder, Tally]:
    recorder = Recorder()
    *_, tally = drive(_service(search, recorder, plan.seed), CASES, plan, Pace(0))
    return recorder, tally


def test_a_question_is_captured_as_a_retrieval_and_an_answer_that_points_to_it(search: Search) -> None:
    recorder = Recorder()
    reply = _service(search, recorder).ask("How do I parse a JSON document that I have as a string?")
    (kind, retrieval), (other, answer) = recorder.events
    assert (kind, other) == ("retrieval", "answer")
    assert tuple(retrieval["retrieved_slugs"]) == reply.slugs
    assert "json.loads" in reply.slugs
    assert len(retrieval["retrieved_scores"]) == len(retrieval["retrieved_chunk_ids"]) == len(reply.slugs)
    assert retrieval["source_ids"] == list(dict.fromkeys(slug.partition(".")[0] for slug in reply.slugs))
    assert retrieval["latency_ms"] <= answer["latency_ms"]
    assert (answer["retrieval_event_id"], answer["answer"]) == (reply.retrieval_event_id, reply.text)


def test_every_citation_names_a_context_that_holds_its_claim(search: Search) -> None:
    answer = extract_answer(search.search("read a text file", 10).hits)
    texts = {context["id"]: " ".join(context["text"].split()) for context in answer.contexts}
    assert (len(answer.contexts), len(answer.citations)) == (CONTEXTS, QUOTED)
    for citation in answer.citations:
        assert citation["claim"] in texts[citation["context_id"]]
        assert citation["claim"] in answer.text


def test_a_signature_is_not_quoted_where_there_is_prose(search: Search) -> None:
    answer = extract_answer(search.search("time.monotonic", 1).hits)
    assert answer.text == "time.monotonic: Monotonic clock, cannot go backward."


def test_a_question_without_a_hit_is_answered_so() -> None:
    answer = extract_answer([])
    assert (answer.text, answer.contexts, answer.citations) == (NO_ANSWER, [], [])


def test_the_search_tool_never_expands_and_says_null(search: Search) -> None:
    recorder, _ = _run(search, Plan(limit=40, pii=False))
    by_tool = {tool: [e for e in recorder.of("retrieval") if e["tool_name"] == tool] for tool in ("query", "search")}
    assert {e["expand_enabled"] for e in by_tool["query"]} == {True}
    assert {(e["expand_enabled"], e["expansion_applied"]) for e in by_tool["search"]} == {(None, False)}


def test_a_run_asks_every_golden_question_once_and_then_the_planted_ones(search: Search) -> None:
    recorder, tally = _run(search, Plan())
    asked = [event["query"] for event in recorder.of("retrieval")]
    assert Counter(asked[: len(CASES)]) == Counter(case.query for case in CASES)
    assert tally.questions == len(asked) == len(CASES) + tally.planted.total()
    assert tally.captured == Counter(kind for kind, _ in recorder.events)
    assert len(tally.planted) == 7


def test_a_plan_knows_how_many_questions_it_asks(search: Search) -> None:
    for plan in (Plan(), Plan(limit=7), Plan(rounds=2, limit=7, pii=False)):
        assert _run(search, plan)[1].questions == plan.questions(CASES)


def test_a_degraded_retriever_answers_on_and_its_passages_no_longer_hold_most_claims(search: Search) -> None:
    def held(service: SearchService) -> tuple[int, int]:
        recorder = cast("Recorder", service._capture)
        for case in CASES[:60]:
            service.ask(case.query)
        answers = [answer for answer in recorder.of("answer") if answer["citations"]]
        texts = [{each["id"]: " ".join(each["text"].split()) for each in answer["contexts"]} for answer in answers]
        claims = [
            citation["claim"] in text[citation["context_id"]]
            for answer, text in zip(answers, texts, strict=True)
            for citation in answer["citations"]
        ]
        return sum(claims), len(claims)

    well, degraded = _service(search, Recorder()), _service(search, Recorder())
    degraded.retriever = Regressed(search)
    assert len(set(held(well))) == 1, "every claim is held"
    kept, claims = held(degraded)
    assert claims > 100
    assert 0.1 < kept / claims < 0.5


def test_thumbs_are_given_for_about_a_third_and_point_to_answers(search: Search) -> None:
    recorder, tally = _run(search, Plan())
    assert 0.2 < tally.captured["feedback"] / tally.questions < 0.4
    answers = {f"event-{place}" for place, (kind, _) in enumerate(recorder.events, start=1) if kind == "answer"}
    assert {event["target_event_id"] for event in recorder.of("feedback")} <= answers
    assert {event["verdict"] for event in recorder.of("feedback")} == {"positive", "negative"}


def test_the_same_seed_captures_the_same_but_for_latencies(search: Search) -> None:
    first, second = (_run(search, Plan(limit=30, seed=5))[0] for _ in range(2))
    assert _without_latency(first) == _without_latency(second)
    assert _without_latency(first) != _without_latency(_run(search, Plan(limit=30, seed=6))[0])


def test_a_limit_bounds_each_round_and_the_planted_questions(search: Search) -> None:
    _, tally = _run(search, Plan(rounds=3, limit=5))
    assert (tally.questions, tally.planted.total()) == (20, 5)
    _, tally = _run(search, Plan(rounds=3, limit=5, pii=False))
    assert (tally.questions, tally.planted.total()) == (15, 0)


def test_the_pace_sleeps_off_what_it_is_ahead() -> None:
    now, slept = [100.0], []

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        now[0] += seconds

    pace = Pace(10.0, clock=lambda: now[0], sleep=sleep)
    pace.hold(2)
    now[0] += 0.5
    pace.hold(4)
    pace.hold(9)
    assert slept == [0.2, 0.2]


@pytest.mark.parametrize(
    ("relevant", "slugs", "verdict"),
    [
        ({"a": 3}, ("x", "y", "a"), "positive"),
        ({"a": 3}, ("x", "y", "z", "a"), "negative"),
        ({"a": 3}, (), "negative"),
        ({}, (), "positive"),
        ({}, ("x",), "negative"),
    ],
)
def test_a_user_is_content_when_a_right_document_is_among_the_first_three(
    relevant: dict[str, int], slugs: tuple[str, ...], verdict: str
) -> None:
    assert judge(Case("c", "q", "technical", relevant, "simple"), Reply("", slugs, "r", "a")) == verdict


@pytest.fixture(scope="module")
def run_and_entries(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], list[bytes]]:
    """A whole run against a Redis of its own, and all that is in the stream then."""
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    try:
        folder = tmp_path_factory.mktemp("run")
        environment = {
            "ASSAY_CAPTURE": "1",
            "ASSAY_REDIS_URL": server.url,
            "ASSAY_CAPTURE_SPOOL_DIR": str(folder / "spool"),
        }
        out = run_demo(folder, environment | {"ASSAY_CAPTURE_EXIT_DEADLINE_S": "60"})
        with server.client() as client:
            return out, [fields[FIELD.encode()] for _, fields in client.xrange(CAPTURE.key())]
    finally:
        server.stop()


@pytest.fixture
def whole_run(
    run_and_entries: tuple[subprocess.CompletedProcess[str], list[bytes]],
) -> subprocess.CompletedProcess[str]:
    return run_and_entries[0]


@pytest.fixture
def entries(run_and_entries: tuple[subprocess.CompletedProcess[str], list[bytes]]) -> list[bytes]:
    return run_and_entries[1]


def test_the_command_reports_what_it_captured_on_its_last_line(whole_run: subprocess.CompletedProcess[str]) -> None:
    assert whole_run.returncode == 0, whole_run.stderr
    report = json.loads(whole_run.stdout.splitlines()[-1])
    assert set(report) == {"captured", "planted", "questions", "seconds", "stats", "degraded_ms", "agent"}
    assert report["agent"] is None, "it plays only where its log has a place"
    assert report["questions"] == len(CASES) + sum(report["planted"].values())
    assert report["captured"]["retrieval"] == report["captured"]["answer"] == report["questions"]
    stats = report["stats"]
    sent = stats["published"] + stats["replayed"]  # through the spool, where Redis was slow to answer
    assert stats["captured"] == sent == sum(report["captured"].values())


def test_everything_it_captured_is_in_the_stream_and_keeps_the_contract(
    whole_run: subprocess.CompletedProcess[str], entries: list[bytes]
) -> None:
    report = json.loads(whole_run.stdout.splitlines()[-1])
    events = [parse_event(entry) for entry in entries]
    assert Counter(event.kind.value for event in events) == report["captured"]
    assert {event.service for event in events} == {"stdlib-search"}


def test_every_planted_value_reaches_the_stream_and_no_output(
    whole_run: subprocess.CompletedProcess[str], entries: list[bytes]
) -> None:
    stream = b"\n".join(entries).decode()
    values = [value for family in planted_values(plant(CASES)).values() for value in family]
    assert [value for value in values if value not in stream] == []
    assert [value for value in values if value in whole_run.stdout + whole_run.stderr] == []


def test_the_command_says_when_events_did_not_leave(tmp_path: Path) -> None:
    environment = {
        "ASSAY_CAPTURE": "1",
        "ASSAY_REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
        "ASSAY_CAPTURE_DURABILITY": "memory",
        "ASSAY_CAPTURE_EXIT_DEADLINE_S": "0.2",
    }
    out = run_demo(tmp_path, environment, "--limit", "1", "--json")
    report = json.loads(out.stdout.splitlines()[-1])
    assert out.returncode == 1
    assert sum(report["stats"]["dropped"].values()) + report["stats"]["queue_entries"] == sum(
        report["captured"].values()
    )
    assert json.loads(out.stderr.splitlines()[-1])["lost"] == sum(report["captured"].values())


def test_what_an_earlier_run_left_in_the_spool_is_told_apart_from_what_is_this_runs_own(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    environment = {
        "ASSAY_CAPTURE": "1",
        "ASSAY_CAPTURE_SPOOL_DIR": str(tmp_path / "spool"),
    }
    away, there = f"redis://127.0.0.1:{free_port()}/0", redis_server.url
    first = run_demo(
        tmp_path,
        environment | {"ASSAY_REDIS_URL": away, "ASSAY_CAPTURE_EXIT_DEADLINE_S": "1"},
        "--limit",
        "2",
        "--json",
    )
    waiting = sum(json.loads(first.stdout.splitlines()[-1])["captured"].values())
    assert json.loads(first.stderr.splitlines()[-1])["spooled"] == waiting > 0
    second = run_demo(
        tmp_path,
        environment
        | {"ASSAY_REDIS_URL": there, "ASSAY_CAPTURE_EXIT_DEADLINE_S": "60", "ASSAY_CAPTURE_SPOOL_ADOPT": "all"},
        "--limit",
        "1",
        "--json",
    )
    assert json.loads(second.stderr.splitlines()[-1])["earlier"] == waiting
    assert "wait in the spool" not in second.stderr


@pytest.mark.parametrize(
    ("spooled", "replayed", "adopted", "still", "left"),
    [
        (0, 2017, 3, 0, Leftover(0, 2017)),
        (100, 2117, 3, 0, Leftover(0, 2017)),
        (100, 150, 3, 100, Leftover(100, 150)),
        (100, 40, 0, 0, Leftover(60, 0)),
        (100, 100, 0, 0, Leftover(0, 0)),
    ],
)
def test_counts_of_the_spool_are_never_negative(
    spooled: int, replayed: int, adopted: int, still: int, left: Leftover
) -> None:
    assert leftover({"spooled": spooled, "replayed": replayed, "adopted_segments": adopted}, still) == left


@pytest.mark.parametrize("environment", [{}, {"ASSAY_CAPTURE": "0"}, {"ASSAY_CAPTURE": "true"}])
def test_the_command_refuses_to_run_with_capture_off(tmp_path: Path, environment: dict[str, str]) -> None:
    out = run_demo(tmp_path, environment, "--limit", "1")
    assert (out.returncode, out.stdout) == (2, "")
    assert "ASSAY_CAPTURE=1" in out.stderr


@pytest.mark.parametrize("arguments", [("--rate", "fast"), ("--rate", "-1"), ("--limit", "0"), ("--rounds", "-1")])
def test_a_bad_argument_is_a_usage_error_that_names_it(tmp_path: Path, arguments: tuple[str, str]) -> None:
    out = run_demo(tmp_path, {"ASSAY_CAPTURE": "1"}, *arguments)
    assert (out.returncode, out.stdout) == (2, "")
    assert arguments[0] in out.stderr


def test_a_setting_that_does_not_fit_is_named(tmp_path: Path) -> None:
    out = run_demo(tmp_path, {"ASSAY_CAPTURE": "1", "ASSAY_CAPTURE_DURABILITY": "sometimes"}, "--limit", "1")
    assert (out.returncode, out.stdout) == (2, "")
    assert "durability" in out.stderr.lower()
    assert "Traceback" not in out.stderr


def _without_latency(recorder: Recorder) -> str:
    events = [
        (kind, {key: value for key, value in fields.items() if key != "latency_ms"}) for kind, fields in recorder.events
    ]
    return json.dumps(events)
