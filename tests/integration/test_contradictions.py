"""`assay eval contradictions` over real sockets and a real store: sources, verdicts, budget, cache, findings, trend, labels."""

import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app
from assay_operations.evaluations import paid_calls
from assay_runtime.store import connect, insert_json_rows
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.contradictions import judge, limit
from tests.support.openai_server import OpenAiServer
from tests.support.sample_rows import answer, candidate, lines
from tests.support.store import PASSWORD, StoreServer
from tests.support.terminal import on_a_terminal
from tests.support.wait import until

pytestmark = pytest.mark.xdist_group("contradictions")

TARGET = """
from tests.support.contradictions import limit

REMOVED = set()

def search(query, limit_=5):
    found = [
        {"id": "a", "text": limit(5)}, {"id": "b", "text": limit(5 if "agree" in query else 9)}, {"id": "c", "text": "Nothing of it."},
    ]
    found = [each for each in found if each["id"] not in REMOVED]
    return {"results": [each["id"] for each in found], "contexts": found}

def bare(query):
    return ["a", "b"]

def broken(query):
    return {"results": [], "contexts": [{"id": "a", "text": limit(5) + "\\udfff"}, {"id": "b", "text": limit(9)}]}

def forging(query):
    name = "a\\ncontradictory pairs: 0.0%\\u2028forged"
    found = [{"id": name, "text": limit(5)}, {"id": "b", "text": limit(9)}]
    return {"results": [each["id"] for each in found], "contexts": found}
"""


class Rig:
    """The command with a judge's API, in a data directory of a store."""

    def __init__(self, directory: Path, store: StoreServer, api: OpenAiServer) -> None:
        self.directory, self.store, self.api = directory, store, api

    def run(self, *arguments: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, ["eval", "contradictions", *arguments])
        assert found.exit_code == code, found.output
        return found

    def report(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        said = self.run("run", *arguments, "--json", "--progress", "none", code=code)
        report: dict[str, Any] = json.loads(said.stdout)
        return report

    def file(self, *questions: str) -> tuple[str, ...]:
        path = self.directory / "questions.txt"
        path.write_text("".join(f"{question}\n" for question in questions))
        return "--queries-file", str(path), "--target", "system_of_test:search"

    def captured(self, *rows: dict[str, Any], view: str = "answers") -> None:
        with connect(self.store.settings().store) as owner:
            insert_json_rows(owner, f"assay_base.{view}", lines(list(rows)), len(rows))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with connect(self.store.settings("sre").store) as client:
            return [tuple(row) for row in client.query(sql).result_rows]

    @property
    def asked(self) -> int:
        return sum(self.api.asked.values())


@pytest.fixture(scope="module")
def target_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("target")
    (directory / "system_of_test.py").write_text(TARGET)
    sys.path.insert(0, str(directory))
    yield
    sys.path.remove(str(directory))


@pytest.fixture
def rig(
    empty_store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target_module: None
) -> Iterator[Rig]:
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paid_calls, "RETRY_S", 0.0)
    (tmp_path / "data/secrets").mkdir(parents=True)
    for role in ("sre", "evaluator", "console", "owner"):
        file = tmp_path / f"data/secrets/{role}.toml"
        file.write_text(f'[store]\nurl = "{empty_store.url}"\nuser = "{role}"\npassword = "{PASSWORD}"\n')
        file.chmod(0o600)
    with OpenAiServer(reply=judge) as api:
        (tmp_path / "key").write_text(KEY)
        (tmp_path / "key").chmod(0o600)
        for name, value in {
            "BACKEND": "openai", "BASE_URL": api.url, "MODEL": "judge-2", "API_KEY_FILE": str(tmp_path / "key"),
            "PRICE_INPUT_USD": "0.1", "PRICE_OUTPUT_USD": "0.5",
        }.items():  # fmt: skip
            monkeypatch.setenv(f"ASSAY_JUDGE_{name}", value)
        yield Rig(tmp_path, empty_store, api)


def contexts(*numbers: int, name: str = "doc") -> list[dict[str, Any]]:
    """Return passages of an answer: one document for each number."""
    return [
        {"id": f"{name}-{place}", "source_id": "wiki", "text": limit(number, f" Page {place}."), "score": 0.5}
        for place, number in enumerate(numbers)
    ]


def test_captured_questions_are_judged_in_both_orders_and_the_rates_are_of_the_judged(rig: Rig) -> None:
    rig.captured(
        answer(1, query="how fast may I ask?", contexts=contexts(5, 9)),
        answer(2, query="How  fast may I ask?", contexts=contexts(5, 9)),
        answer(3, query="what is the limit?", contexts=contexts(5, 5, 5)),
        answer(4, query="one document only", contexts=contexts(5)),
    )
    passages = [
        {"id": "x", "source_id": None, "text": limit(2), "score": None},
        {"id": "y", "source_id": None, "text": limit(3), "score": None},
    ]
    rig.captured(candidate(5, query="of a retrieval", passages=passages), view="candidates")
    report = rig.report("--from-capture")
    assert (report["queries"], report["pairs_intended"], report["pairs_judged"]) == (3, 5, 5)
    assert rig.asked == 10, "each pair in both orders"
    assert report["verdict_breakdown"]["contradiction"] == 2
    assert report["rates"]["pairs"]["estimate"] == pytest.approx(2 / 5)
    assert report["rates"]["queries"]["estimate"] == pytest.approx(2 / 3)
    assert report["rates"]["pairs"]["lower"] < 2 / 5 < report["rates"]["pairs"]["upper"]
    (finding,) = [each for each in report["findings"] if each["query"] == "How  fast may I ask?"]
    assert finding["documents"] == ["wiki::doc-0", "wiki::doc-1"]
    assert finding["claims"] == ["The limit is 5 requests per second.", "The limit is 9 requests per second."]
    assert report["run_status"] == "completed"


def test_half_a_character_of_a_target_reaches_neither_the_judge_nor_a_file(rig: Rig) -> None:
    report = rig.report("--query", "how fast?", "--target", "system_of_test:broken", "--output", "report.json")
    assert report["total_contradictions_flagged"] == 1
    assert report["findings"][0]["documents"] == ["a", "b"]
    assert json.loads(Path("report.json").read_text()) == report
    assert Path("report.json").stat().st_mode & 0o077 == 0, "claims quote documents"


def test_the_two_orders_see_the_texts_swapped(rig: Rig) -> None:
    rig.report(*rig.file("how fast?"), "--no-store", "--top-k", "2")
    sent = [json.loads(body["messages"][-1]["content"]) for body in rig.api.bodies]
    assert [(each["first"], each["second"]) for each in sent] == [(limit(5), limit(9)), (limit(9), limit(5))]


def test_a_verdict_follows_from_both_orders_and_the_judges_own_answers(rig: Rig) -> None:
    for words, verdict, positive in (
        ("plain", "contradiction", True),
        ("biased", "uncertain", False),
        ("unsure", "no_contradiction", False),
        ("elsewhere", "no_contradiction", False),
        ("earlier", "temporal_evolution", False),
        ("superseded", "temporal_supersession", False),
    ):
        report = rig.report(*rig.file(words), "--no-store", "--top-k", "2")
        assert {name for name, count in report["verdict_breakdown"].items() if count} == {verdict}
        assert report["rates"]["pairs"]["estimate"] == float(positive), "uncertain pairs are in the denominator"
        assert report["rates"]["pairs"]["judged"] == 1


def test_a_pair_without_a_verdict_is_an_error_by_type_and_not_clean(rig: Rig) -> None:
    for words, kind in (
        ("misquote", "quote_not_found"),
        ("[malformed]", "parse_fail"),
        ("[refuse]", "refusal"),
        ("[fail:500]", "api_unavailable"),
        ("[fail:400]", "rejected"),
    ):
        report = rig.report(
            *rig.file(f"a question {words}", "another that can be judged"), "--no-store", "--top-k", "2"
        )
        assert report["judge_errors"] == {"total": 1, kind: 1}
        assert (report["pairs_judged"], report["pairs_intended"]) == (1, 2)
        assert report["rates"]["pairs"]["estimate"] == 1.0
        assert report["rates"]["pairs"]["coverage"] == 0.5


def test_if_no_pair_was_judged_there_is_no_rate_and_the_exit_code_is_2(rig: Rig) -> None:
    report = rig.report(*rig.file("misquote"), "--top-k", "2", code=2)
    assert report["run_status"] == "judge_failed"
    assert report["rates"]["pairs"]["estimate"] is None
    assert rig.rows("SELECT toString(status), rate, judged FROM contradiction_runs") == [("judge_failed", None, 0)]


def test_a_budget_stops_after_a_random_part_and_is_never_exceeded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_JUDGE_MAX_OUTPUT_TOKENS", "256")
    questions = (
        *rig.file(*(f"question {number}" for number in range(50))),
        "--no-store",
        "--top-k",
        "2",
        "--no-judge-cache",
    )
    full = rig.report(*questions)
    budget, asked = full["cost_usd"] / 2, rig.asked
    part = rig.report(*questions, "--budget-usd", f"{budget:.8f}", "--yes")
    assert part["run_status"] == "partial"
    assert part["cost_usd"] <= budget
    assert 10 < part["pairs_judged"] < 40
    assert part["rates"]["pairs"]["coverage"] == part["pairs_judged"] / 50
    assert rig.asked - asked < 100
    judged = {each["query"] for each in part["per_query"] if each["pairs_judged"]}
    assert judged != {f"question {number}" for number in range(len(judged))}, "the order is random"


def test_a_budget_below_one_call_is_no_broken_judge_and_the_exit_code_is_2(rig: Rig) -> None:
    report = rig.report(*rig.file("how fast?"), "--no-store", "--top-k", "2", "--budget-usd", "0.0005", code=2)
    assert (rig.asked, report["run_status"], report["pairs_judged"]) == (0, "partial", 0)
    assert report["stopped_by"] == "the budget is used up (--budget-usd)"
    said = rig.run("run", *rig.file("how fast?"), "--no-store", "--top-k", "2", "--budget-usd", "0.0005", code=2)
    assert "no pair was judged" in said.output
    assert "JUDGE FAILED" not in said.output


def test_failed_calls_count_in_the_budget(rig: Rig) -> None:
    report = rig.report(
        *rig.file("a question [malformed]", "one more"), "--no-store", "--top-k", "2", "--no-judge-cache"
    )
    assert report["cost_usd"] == pytest.approx(rig.api.nano / 1e9)
    assert rig.api.ended["malformed"] == 1


def test_an_estimate_above_the_budget_is_refused_before_a_call(rig: Rig) -> None:
    said = rig.run("run", *rig.file("how fast?"), "--budget-usd", "0.0000001", code=2)
    assert "--yes" in said.output
    assert rig.asked == 0


def test_a_reply_is_cached_by_everything_that_was_sent(rig: Rig) -> None:
    questions = (*rig.file("how fast?"), "--no-store", "--top-k", "2")
    rig.report(*questions)
    assert rig.asked == 2
    again = rig.report(*questions)
    assert (rig.asked, again["cost_usd"], again["cache"]["hits"]) == (2, 0, 2)
    rig.report(*questions, "--max-pair-chars", "100")  # cuts nothing: the same is sent
    assert rig.asked == 2 + (2 if len(limit(5)) > 100 else 0)
    rig.report(*questions, "--max-pair-chars", str(len(limit(5)) - 1) if len(limit(5)) > 101 else "100")
    before = rig.asked
    rig.report(*rig.file("how fast is it?"), "--no-store", "--top-k", "2")
    assert rig.asked == before + 2, "another question"


def test_a_reply_without_a_verdict_is_not_cached_and_is_asked_for_again(rig: Rig) -> None:
    file = rig.file("misquote: how fast?")
    assert rig.report(*file, "--top-k", "2", "--no-store", code=2)["judge_errors"]["quote_not_found"] == 1
    once = rig.asked
    again = rig.report(*file, "--top-k", "2", "--no-store", code=2)
    assert (rig.asked, again["cache"]["hits"]) == (2 * once, 0)
    assert again["cost_usd"] > 0


def test_a_finding_is_new_then_persists_is_resolved_and_reopens(rig: Rig) -> None:
    def look(*numbers: int) -> dict[str, Any]:
        rig.captured(answer(int(time.time() * 10) % 10_000, query="how fast?", contexts=contexts(*numbers)))
        return rig.report("--from-capture")

    states = []
    for numbers in ((5, 9), (5, 9), (5, 5), (5, 9)):
        report = look(*numbers)
        states.append({name: count for name, count in report["findings_by_state"].items() if count})
    assert states == [{"new": 1}, {"persisting": 1}, {"resolved": 1}, {"reopened": 1}]
    assert len({row[0] for row in rig.rows("SELECT finding_id FROM contradiction_pairs WHERE finding_id != ''")}) == 1


def without_rows(rig: Rig, table: str, where: str) -> None:
    with connect(rig.store.settings().store) as owner:
        owner.command(f"ALTER TABLE assay_base.{table} DELETE WHERE {where} SETTINGS mutations_sync = 2")


def test_pairs_of_a_run_whose_row_was_not_stored_do_not_count(rig: Rig) -> None:
    rig.captured(answer(1, query="how fast?", contexts=contexts(5, 9)))
    rig.report("--from-capture")
    without_rows(rig, "contradiction_runs", "1")
    assert reviewed(rig) == []
    assert rig.report("--from-capture")["findings_by_state"]["new"] == 1
    stored = rig.rows("SELECT run_id FROM contradiction_runs")
    rig.report("--from-capture")
    without_rows(rig, "contradiction_runs", f"run_id != '{stored[0][0]}'")
    (finding,) = reviewed(rig)
    rig.run("review", "--queue", "1", "--refute", finding["pair_id"])
    assert rig.rows("SELECT run_id FROM contradiction_labels") == stored


def test_a_finding_in_two_pairs_stays_open_until_both_are_repaired(rig: Rig) -> None:
    rig.captured(*(answer(n, query=f"how fast? {n}", contexts=contexts(5, 9, name=f"d{n}")) for n in range(2)))
    rig.report("--from-capture")

    def repair(n: int) -> int:
        rig.captured(answer(50 + n, query=f"how fast? {n}", contexts=contexts(5, 5, name=f"d{n}")))
        found: int = rig.report("--from-capture", "--limit", "1")["findings_by_state"]["resolved"]
        return found

    assert repair(0) == 0
    assert [each["query"] for each in reviewed(rig)] == ["how fast? 1"]
    assert repair(1) == 1
    assert [each["state"] for each in reviewed(rig, "--all")] == ["resolved"]
    assert reviewed(rig) == []


def test_a_finding_is_not_resolved_by_a_judge_that_is_uncertain(rig: Rig) -> None:
    rig.captured(answer(1, query="how fast?", contexts=contexts(5, 9)))
    rig.report("--from-capture")
    rig.api.reply = lambda document: judge({**document, "question": "biased"})
    report = rig.report("--from-capture", "--no-judge-cache")
    assert report["verdict_breakdown"]["uncertain"] == 1
    assert report["findings_by_state"]["resolved"] == 0
    assert [each["state"] for each in reviewed(rig)] == ["new"]


@pytest.fixture
def removed(target_module: None) -> Iterator[set[str]]:
    """Documents that the target's corpus no longer has."""
    found: set[str] = importlib.import_module("system_of_test").REMOVED
    yield found
    found.clear()


@pytest.mark.parametrize("role", [None, "evaluator"])
def test_a_finding_whose_document_is_no_longer_retrieved_is_gone(
    rig: Rig, removed: set[str], monkeypatch: pytest.MonkeyPatch, role: str | None
) -> None:
    def look(*options: str) -> dict[str, int]:
        with monkeypatch.context() as patch:
            if role:
                with_settings_of(rig, role, patch)
            report = rig.report(*rig.file("an urgent question"), *options)
        return {name: count for name, count in report["findings_by_state"].items() if count}

    assert look() == {"new": 1}
    removed.add("b")
    assert look("--max-pair-chars", "1000") == {}, "another way of measuring tells nothing"
    assert [each["state"] for each in reviewed(rig)] == ["new"]
    assert look() == {"gone": 1}
    assert look() == {}, "it is gone once"
    assert reviewed(rig) == []
    assert [each["state"] for each in reviewed(rig, "--all")] == ["gone"]
    assert contradictions_check(rig)["status"] == "ok"
    assert trend(rig)["rows"][1]["findings_by_state"]["gone"] == 1
    removed.clear()
    assert look() == {"reopened": 1}
    assert [each["state"] for each in reviewed(rig)] == ["reopened"]
    assert contradictions_check(rig)["status"] == "warn"


def test_a_finding_is_gone_if_its_question_is_left_with_one_document(rig: Rig, removed: set[str]) -> None:
    questions = (*rig.file("how fast?", "agree"), "--top-k", "2")
    assert rig.report(*questions)["findings_by_state"]["new"] == 1
    removed.update(("b", "c"))
    rig.run("run", *questions, code=2)
    removed.clear()
    rig.captured(
        answer(1, query="how fast?", contexts=contexts(5, 9)), answer(2, query="how slow?", contexts=contexts(5, 5))
    )
    assert rig.report("--from-capture")["findings_by_state"]["new"] == 0, "the same claims"
    rig.captured(answer(3, query="how fast?", contexts=contexts(5)))
    report = rig.report("--from-capture")
    assert report["queries_without_pairs"] == {"without two documents with text": 1}
    assert report["findings_by_state"]["gone"] == 0, "the question of the file still has it"
    assert [each["documents"] for each in reviewed(rig)] == [["a", "b"]]


def test_a_finding_of_a_captured_question_is_gone_once_its_newest_event_retrieved_less(rig: Rig) -> None:
    rig.captured(
        answer(1, query="how fast?", contexts=contexts(5, 9)), answer(2, query="how slow?", contexts=contexts(5, 5))
    )
    assert rig.report("--from-capture")["findings_by_state"]["new"] == 1
    rig.captured(answer(3, query="how fast?", contexts=contexts(5)))
    assert rig.report("--from-capture")["findings_by_state"]["gone"] == 1
    assert reviewed(rig) == []


def test_pairs_from_before_the_key_of_the_question_end_too(rig: Rig, removed: set[str]) -> None:
    rig.report(*rig.file("how fast?"))
    with connect(rig.store.settings().store) as owner:
        key = owner.query(
            "SELECT DISTINCT query_key = lower(substring(hex(SHA256(query)), 1, 32)) FROM assay.contradiction_pairs"
        )
    assert [bool(row[0]) for row in key.result_rows] == [True], "as the store computes it"
    removed.add("b")
    assert rig.report(*rig.file("how fast?"))["findings_by_state"]["gone"] == 1


def test_pairs_are_stored_with_scrubbed_texts_by_an_identity_that_cannot_read_them(rig: Rig) -> None:
    rig.report(*rig.file("mail jo@example.com how fast?"), "--top-k", "2")
    ((query, texts, claims),) = rig.rows("SELECT query, texts, claims FROM contradiction_pairs")
    assert "jo@example.com" not in query
    assert texts == [limit(5), limit(9)]
    assert claims == ["The limit is 5 requests per second.", "The limit is 9 requests per second."]
    assert "jo@example.com" not in json.dumps(rig.api.bodies)
    with (
        connect(rig.store.settings("evaluator").store) as client,
        pytest.raises(Exception, match="Not enough privileges"),
    ):
        client.query("SELECT texts FROM contradiction_pairs")


def test_a_usage_error_exits_with_2_and_asks_no_judge(rig: Rig) -> None:
    for arguments, said in (
        ((), "name one source"),
        (("--from-capture", "--query", "x"), "name one source"),
        (("--query", "x"), "need --target"),
        (("--from-capture", "--target", "system_of_test:search"), "captured questions have their documents"),
        (("--query", "x", "--target", "system_of_test:search", "--budget-usd", "many"), "is not a number"),
        (("--query", "x", "--target", "system_of_test:search", "--budget-usd", "nan"), "is not a number"),
        (("--query", "x", "--target", "system_of_test:search", "--budget-usd", "-1"), "below 0"),
        (("--query", "x", "--target", "system_of_test:search", "--top-k", "1"), "--top-k must be 2"),
        (("--query", "x", "--target", "system_of_test:search", "--max-rate", "2"), "between 0 and 1"),
        (("--query", "x", "--target", "system_of_test:search", "--fail-on", "severe"), "one of"),
        (("--query", "x", "--target", "system_of_test:search", "--order", "oldest"), "newest or random"),
        (("--query", "x", "--target", "system_of_test:bare"), "`contexts`"),
        (("--queries-file", "missing.txt", "--target", "system_of_test:search"), "no file"),
        (("--from-capture", "--since", "yesterday"), "not a duration"),
        (("--from-capture",), "no question with two documents"),
        (("--from-capture", "--project", "a b"), "is not the name of a project"),
        (("--query", "x", "--target", "system_of_test:search", "--data", "elsewhere"), "; or pass --no-store"),
        (("--query", "x", "--target", "system_of_test:search", "--output", "x" * 254), "too long"),
        (("--query", "x", "--target", "system_of_test:search", "--concurrency", "0"), "--concurrency"),
    ):
        assert said in " ".join(rig.run("run", *arguments, code=2).output.split())
        assert rig.asked == 0


def test_findings_and_rates_exit_with_1_only_if_asked_to(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"urgent question {n}", contexts=contexts(5, 9, name=f"doc-{n}")) for n in range(12))
    )
    rig.report("--from-capture")
    rig.report("--from-capture", "--fail-on", "high", code=1)
    rig.report("--from-capture", "--max-rate", "0.2", code=1)
    rig.report("--from-capture", "--max-rate", "0.99")
    rig.report(*rig.file("agree"), "--no-store", "--top-k", "2", "--fail-on", "info", "--max-rate", "0")


def test_a_limit_is_exceeded_only_if_it_is_without_a_contradiction_in_pairs_with_an_error(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"question {n}", contexts=contexts(5, 9, name=f"doc-{n}")) for n in range(12)),
        *(answer(50 + n, query=f"misquote {n}", contexts=contexts(5, 9, name=f"m{n}")) for n in range(24)),
    )
    report = rig.report("--from-capture", "--no-store")
    rate = report["rates"]["queries"]
    assert (rate["estimate"], rate["errors"]) == (1.0, 24)
    assert rate["bounds"][0] < 12 / 36 < 0.6 < rate["lower"]
    rig.report("--from-capture", "--no-store", "--max-rate", "0.6")
    rig.report("--from-capture", "--no-store", "--max-rate", f"{rate['bounds'][0] - 0.01:.3f}", code=1)


def test_a_refuted_finding_does_not_fail_a_run_and_one_that_is_confirmed_again_does(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    urgent = (*rig.file("an urgent question"), "--top-k", "2", "--fail-on", "high")
    rig.report(*urgent, code=1)
    (finding,) = reviewed(rig)
    rig.run("review", "--refute", finding["pair_id"])
    with monkeypatch.context() as patch:
        with_settings_of(rig, "evaluator", patch)
        rig.report(*urgent)
    rig.run("review", "--confirm", finding["pair_id"])
    rig.report(*urgent, code=1)


def trend(rig: Rig, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rig.run("trend", "--json", *arguments).stdout)
    return found


def test_a_trend_is_a_series_for_each_change_of_the_measurement_and_a_failed_run_is_a_gap(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"question {n}", contexts=contexts(5, 9 if n < 3 else 5, name=f"d{n}")) for n in range(6))
    )
    rig.report("--from-capture")
    rig.captured(answer(50, query="question 0", contexts=contexts(5, 5, name="d0")))
    rig.report("--from-capture")
    rig.report("--from-capture", "--max-pair-chars", "1000")
    rig.api.keys = {"another"}
    rig.report("--from-capture", "--max-pair-chars", "1000", "--no-judge-cache", code=2)
    found = trend(rig)
    assert [(row["run_status"], row["series"]) for row in found["rows"]] == [
        ("judge_failed", 1), ("completed", 1), ("completed", 0), ("completed", 0),
    ]  # fmt: skip
    failed, *_, last, first = found["rows"]
    assert (failed["rate"], failed["coverage"]) == (None, 0)
    assert (first["rate"]["estimate"], last["rate"]["estimate"]) == (pytest.approx(3 / 6), pytest.approx(2 / 6))
    assert found["series"][0]["change"]["estimate"] == pytest.approx(-1 / 6)
    assert found["series"][0]["change"]["lower"] < -1 / 6 < found["series"][0]["change"]["upper"]
    assert found["series"][1]["change"] is None, "a failed run is compared with nothing"
    said = rig.run("trend").output
    assert "judge failed: no rate" in said
    assert said.count("#") > 10
    assert trend(rig, "--since", "2200-01-01")["rows"] == []
    assert trend(rig, "--project", "other")["rows"] == []


def reviewed(rig: Rig, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(rig.run("review", "--json", *arguments).stdout)["findings"]
    return found


def test_a_review_lists_open_findings_from_high_to_info_with_a_next_step(rig: Rig) -> None:
    rig.captured(
        answer(1, query="a minor question", contexts=contexts(5, 9, name="m")),
        answer(2, query="an urgent question", contexts=contexts(1, 7, name="u")),
        answer(3, query="superseded question", contexts=contexts(2, 8, name="s")),
        answer(4, query="a settled question", contexts=contexts(3, 4, name="f")),
    )
    rig.report("--from-capture")
    rig.captured(answer(50, query="a settled question", contexts=contexts(3, 3, name="f")))
    rig.report("--from-capture")
    found = reviewed(rig)
    assert (found[0]["severity"], found[0]["query"]) == ("high", "an urgent question")
    assert {each["query"] for each in found} == {"an urgent question", "a minor question", "superseded question"}
    assert all(each["next_step"] and len(each["claims"]) == 2 for each in found)
    assert [each["state"] for each in reviewed(rig, "--all") if each["query"] == "a settled question"] == ["resolved"]
    assert reviewed(rig, "--since", "2200-01-01") == []
    said = rig.run("review").output
    assert said.index("an urgent question") < said.index("a minor question")
    assert '  wiki::u-0: "The limit is 1 requests per second."' in said


def test_a_refuted_pair_leaves_the_same_claims_of_other_documents(rig: Rig) -> None:
    rig.captured(
        *(
            answer(n, query=f"urgent {word} question", contexts=contexts(5, 9, name=word))
            for n, word in ((1, "mail"), (2, "api"))
        )
    )
    rig.report("--from-capture")
    pairs = dict(rig.rows("SELECT query, pair_id FROM contradiction_pairs"))
    rig.run("review", "--refute", pairs["urgent mail question"])
    ((found, count),) = [(each, each["pairs"]) for each in reviewed(rig)]
    assert (found["query"], count, found["all_documents"]) == ("urgent api question", 1, ["wiki::api-0", "wiki::api-1"])
    assert contradictions_check(rig)["status"] == "warn"
    rig.report("--from-capture", "--fail-on", "high", code=1)
    rig.run("review", "--refute", pairs["urgent api question"])
    assert reviewed(rig) == []
    assert contradictions_check(rig)["status"] == "ok"
    rig.report("--from-capture", "--fail-on", "high")


def test_a_finding_says_in_how_many_pairs_and_documents_it_is(rig: Rig) -> None:
    rig.captured(*(answer(n, query=f"how fast? {n}", contexts=contexts(5, 9, name=f"d{n}")) for n in range(7)))
    extent = (
        "in 7 pairs; documents: "
        + ", ".join(f"wiki::d{n}-{place}" for n in range(5) for place in (0, 1))
        + ", ... (14)"
    )
    assert extent in rig.run("run", "--from-capture", "--progress", "none").output
    assert extent in rig.run("review").output
    (finding,) = reviewed(rig)
    assert (finding["pairs"], len(finding["all_documents"])) == (7, 14)
    assert rig.report("--from-capture")["findings"][0]["all_documents"] == finding["all_documents"]
    rig.captured(answer(50, query="how fast? 0", contexts=contexts(5, 5, name="d0")))
    rig.report("--from-capture")
    assert [(each["pairs"], len(each["all_documents"])) for each in reviewed(rig)] == [(6, 12)], "the open pairs"


def test_an_id_or_a_quote_of_a_document_forges_no_line_of_a_report(rig: Rig) -> None:
    question = (*rig.file("how fast?")[:2], "--target", "system_of_test:forging")
    for said in (rig.run("run", *question, "--progress", "none").output, rig.run("review").output):
        assert [line for line in said.splitlines() if "forged" in line] == [
            '  a contradictory pairs: 0.0% forged: "The limit is 5 requests per second."',
        ]


def test_a_finding_is_as_severe_as_its_most_severe_pair_that_is_not_refuted(rig: Rig) -> None:
    rig.captured(
        answer(1, query="an urgent question", contexts=contexts(5, 9, name="u")),
        answer(2, query="a minor question", contexts=contexts(5, 9, name="m")),
    )
    rig.report("--from-capture", "--fail-on", "high", code=1)
    ((urgent,),) = rig.rows("SELECT pair_id FROM contradiction_pairs WHERE severity = 'high'")
    rig.run("review", "--refute", urgent)
    rig.report("--from-capture", "--fail-on", "high")
    rig.report("--from-capture", "--fail-on", "low", code=1)
    assert contradictions_check(rig)["status"] == "ok"


def test_a_refuted_finding_leaves_the_review_and_keeps_its_label(rig: Rig) -> None:
    rig.captured(*(answer(n, query=f"how fast? {n}", contexts=contexts(5, 9, name=f"d{n}")) for n in range(3)))
    assert [each["pairs"] for each in rig.report("--from-capture")["findings"]] == [3]
    left = []
    while found := reviewed(rig):
        (finding,) = found
        left.append(finding["pairs"])
        rig.run("review", "--refute", finding["pair_id"], "--note", "ask jo@example.com")
    assert left == [3, 2, 1]
    rig.report("--from-capture")
    assert [each["label"] for each in reviewed(rig, "--all")] == ["refute"]
    label, probability, note = rig.rows("SELECT toString(label), probability, note FROM contradiction_labels")[0]
    assert (label, probability) == ("refute", None)
    assert "jo@example.com" not in note
    rig.run("review", "--confirm", finding["pair_id"])
    assert [each["label"] for each in reviewed(rig)] == ["confirm"]
    assert trend(rig)["rows"][0]["corrected"] is None, "a label outside of the queue is of no random pair"


def test_labels_of_the_queue_correct_the_rate_and_show_no_verdict(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"question {n}", contexts=contexts(5, 9 if n < 10 else 5, name=f"d{n}")) for n in range(40))
    )
    rig.report("--from-capture")
    left = json.loads(rig.run("review", "--queue", "20", "--json").stdout)
    assert len(left) == 20
    assert set(left[0]) == {"pair_id", "query", "documents", "texts"}
    wrong = 0
    for each in left:  # half of what the judge calls a contradiction is none to people
        positive = "9 requests" in "".join(each["texts"])
        wrong += positive
        rig.run("review", "--queue", "20", "--confirm" if positive and wrong % 2 else "--refute", each["pair_id"])
    assert wrong == 4
    corrected = trend(rig)["rows"][0]["corrected"]
    assert corrected["estimate"] == pytest.approx(10 / 40 * 1 / 2, abs=0.02)
    assert corrected["method"] == "ppi"
    assert json.loads(rig.run("review", "--queue", "20", "--json").stdout) == []
    assert {row[0] for row in rig.rows("SELECT round(probability, 4) FROM contradiction_labels")} == {
        0.4,
        round(16 / 30, 4),
    }
    assert len(json.loads(rig.run("review", "--queue", "30", "--json").stdout)) == 10, (
        "a larger queue contains the smaller one"
    )


def test_pairs_that_the_judge_failed_on_are_labelled_and_correct_the_rate(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"question {n}", contexts=contexts(5, 9 if n < 4 else 5, name=f"d{n}")) for n in range(30)),
        *(answer(50 + n, query=f"misquote {n}", contexts=contexts(5, 9, name=f"m{n}")) for n in range(10)),
    )
    report = rig.report("--from-capture")
    rate = report["rates"]["pairs"]
    assert (rate["estimate"], rate["errors"]) == (pytest.approx(4 / 30), 10)
    assert rate["bounds"][0] < 4 / 40 < 14 / 40 < rate["bounds"][1]
    assert "with the 10 pairs that have a judge error: from " in rig.run("trend").output
    left = json.loads(rig.run("review", "--queue", "25", "--json").stdout)
    errors = [each for each in left if "misquote" in each["query"]]
    assert len(errors) == 5, "a fifth"
    for each in left:
        label = "--confirm" if "9 requests" in "".join(each["texts"]) else "--refute"
        if each not in errors:
            rig.run("review", "--queue", "25", label, each["pair_id"])
    corrected = trend(rig)["rows"][0]["corrected"]
    assert (corrected["estimate"], corrected["method"]) == (pytest.approx(4 / 30), "ppi_bounds")
    assert corrected["upper"] > 14 / 40
    for each in errors:
        rig.run("review", "--queue", "25", "--confirm", each["pair_id"])
    corrected = trend(rig)["rows"][0]["corrected"]
    assert (corrected["estimate"], corrected["method"]) == (pytest.approx(14 / 40), "ppi")
    assert json.loads(rig.run("review", "--queue", "25", "--json").stdout) == []


def test_a_skipped_pair_is_replaced_so_that_labels_are_as_many_as_their_probability_says(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"question {n}", contexts=contexts(5, 9 if n < 10 else 5, name=f"d{n}")) for n in range(40))
    )
    rig.report("--from-capture")
    first = json.loads(rig.run("review", "--queue", "20", "--json").stdout)
    skipped = [next(each for each in first if (words in "".join(each["texts"])) is positive)
               for words, positive in (("9 requests", True), ("9 requests", False))]  # fmt: skip
    for each in skipped:
        rig.run("review", "--queue", "20", "--skip", each["pair_id"])
    left = json.loads(rig.run("review", "--queue", "20", "--json").stdout)
    assert len(left) == 20
    assert not {each["pair_id"] for each in skipped} & {each["pair_id"] for each in left}
    assert sum("9 requests" in "".join(each["texts"]) for each in left) == 4
    for each in left:
        label = "--confirm" if "9 requests" in "".join(each["texts"]) else "--refute"
        rig.run("review", "--queue", "20", label, each["pair_id"])
    row = trend(rig)["rows"][0]
    assert (row["corrected"]["estimate"], row["skipped_labels"]) == (pytest.approx(10 / 40), 2)
    ((counted,),) = rig.rows("SELECT sum(1 / probability) FROM contradiction_labels WHERE label != 'skip'")
    assert counted == pytest.approx(40)
    assert "2 skipped pairs" in rig.run("trend").output
    assert all(each["label"] is None or each["label"] == "confirm" for each in reviewed(rig)), "a skip is no label"
    rig.run("review", "--queue", "20", "--confirm", skipped[0]["pair_id"])
    assert trend(rig)["rows"][0]["skipped_labels"] == 1


def test_a_label_outside_of_the_queue_replaces_no_label_of_the_queue(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"question {n}", contexts=contexts(5, 9 if n < 10 else 5, name=f"d{n}")) for n in range(40))
    )
    rig.report("--from-capture")
    refuted: list[str] = []
    left = json.loads(rig.run("review", "--queue", "20", "--json").stdout)
    for each in sorted(left, key=lambda each: "9 requests" in "".join(each["texts"])):
        right = "9 requests" in "".join(each["texts"]) and len(refuted) == 2
        rig.run("review", "--queue", "20", "--confirm" if right else "--refute", each["pair_id"])
        refuted += [each["pair_id"]] if "9 requests" in "".join(each["texts"]) and not right else []
    before = trend(rig)["rows"][0]["corrected"]
    for pair in refuted:
        rig.run("review", "--refute", pair)
    assert trend(rig)["rows"][0]["corrected"] == before
    assert rig.rows("SELECT count() FROM contradiction_labels") == [(20 + 2,)]


def test_a_pair_that_was_refuted_from_the_list_is_still_in_the_queue(rig: Rig) -> None:
    rig.captured(*(answer(n, query=f"question {n}", contexts=contexts(5, n + 6, name=f"d{n}")) for n in range(5)))
    rig.report("--from-capture")
    listed = {each["pair_id"] for each in reviewed(rig)}
    for pair in listed:
        rig.run("review", "--refute", pair)
    assert len(listed) == 5
    assert {each["pair_id"] for each in json.loads(rig.run("review", "--queue", "5", "--json").stdout)} == listed


def test_a_run_whose_pairs_expire_keeps_its_rate_and_is_neither_corrected_nor_compared(rig: Rig) -> None:
    rig.captured(
        *(answer(n, query=f"question {n}", contexts=contexts(5, 9 if n < 10 else 5, name=f"d{n}")) for n in range(40))
    )
    rig.report("--from-capture")
    for each in json.loads(rig.run("review", "--queue", "20", "--json").stdout):
        label = "--confirm" if "9 requests" in "".join(each["texts"]) else "--refute"
        rig.run("review", "--queue", "20", label, each["pair_id"])
    rig.report("--from-capture")
    before = trend(rig)
    assert before["rows"][1]["corrected"]["estimate"] is not None
    assert before["series"][0]["change"] is not None
    without_rows(rig, "contradiction_pairs", f"run_id = '{before['rows'][1]['run_id']}' AND place < 5")
    after = trend(rig)
    assert after["rows"][1]["rate"] == before["rows"][1]["rate"]
    assert after["rows"][1]["corrected"] is None
    assert after["series"][0]["change"] is None


def test_other_questions_are_another_series(rig: Rig) -> None:
    def scope(*source: str) -> str:
        rig.report(*source, "--top-k", "2")
        return str(rig.rows("SELECT scope FROM contradiction_runs ORDER BY started_at DESC LIMIT 1")[0][0])

    target = ("--target", "system_of_test:search")
    one, other = (scope("--query", words, *target) for words in ("how fast?", "how slow?"))
    assert one != other
    assert one == scope("--query", "how fast?", *target)
    assert "fast" not in one
    assert scope(*rig.file("how fast?", "how slow?")) == scope(*rig.file("how slow?", "how fast?"))
    assert scope(*rig.file("how fast?", "how slow?")) != scope(*rig.file("how fast?", "how deep?"))


def test_a_usage_error_of_trend_and_review_exits_with_2(rig: Rig) -> None:
    for arguments, said in (
        (("review", "--confirm", "a", "--refute", "b"), "one label at a time"),
        (("review", "--confirm", "f" * 32), "no judged pair"),
        (("review", "--note", "why"), "--note needs"),
        (("review", "--skip", "f" * 32), "--skip needs --queue"),
        (("review", "--skip", "f" * 32, "--refute", "f" * 32), "one label at a time"),
        (("review", "--queue", "5"), "no run of project default"),
        (("review", "--since", "yesterday"), "--since"),
        (("trend", "--since", "yesterday"), "--since"),
        (("trend",), "no run of project default"),
    ):
        assert said in rig.run(*arguments, code=2).output


def contradictions_check(rig: Rig) -> dict[str, str]:
    found = CliRunner().invoke(app, ["doctor", "--json"])
    (check,) = [each for each in json.loads(found.stdout) if each["check"] == "contradictions"]
    return {name: check[name] for name in ("status", "summary", "hint")}


def test_doctor_warns_of_high_findings_until_a_person_refutes_them(rig: Rig) -> None:
    assert contradictions_check(rig)["summary"] == "none measured"
    rig.captured(answer(1, query="an urgent question", contexts=contexts(5, 9)))
    rig.report("--from-capture")
    found = contradictions_check(rig)
    assert found["status"] == "warn"
    assert found["summary"].startswith("default: 100.0% of pairs (")
    assert "1 open high finding(s), 0 h ago" in found["summary"]
    assert "urgent" not in str(found), "no captured text"
    rig.report(*rig.file("agree"), "--top-k", "2")
    assert "1 open high" in contradictions_check(rig)["summary"], "a run of other questions resolves nothing"
    (finding,) = reviewed(rig)
    rig.run("review", "--refute", finding["pair_id"])
    assert contradictions_check(rig)["status"] == "ok"
    rig.run("review", "--confirm", finding["pair_id"])
    assert contradictions_check(rig)["status"] == "warn"
    rig.captured(answer(2, query="an urgent question", contexts=contexts(5, 5)))
    rig.report("--from-capture")
    assert contradictions_check(rig)["status"] == "ok", "the documents were repaired"
    rig.run("run", *rig.file("misquote"), "--top-k", "2", "--project", "other", "--progress", "none", code=2)
    found = contradictions_check(rig)
    assert (found["status"], "other: the judge failed" in found["summary"]) == ("warn", True)


def test_anthropics_api_judges_too_and_the_cost_is_what_it_billed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer(reply=judge) as api:
        for name in ("MODEL", "PRICE_INPUT_USD", "PRICE_OUTPUT_USD"):
            monkeypatch.delenv(f"ASSAY_JUDGE_{name}")
        monkeypatch.setenv("ASSAY_JUDGE_BACKEND", "anthropic")
        monkeypatch.setenv("ASSAY_JUDGE_BASE_URL", api.url)
        report = rig.report(*rig.file("how fast?", "agree"), "--no-store", "--top-k", "2")
        assert report["verdict_breakdown"]["contradiction"] == 1
        assert report["cost_usd"] > 0
        assert sum(api.asked.values()) == 4 - 1, "two equal texts are one request in both orders"


def test_questions_come_from_json_lines_and_documents_over_http(rig: Rig) -> None:
    file = rig.directory / "questions.jsonl"
    file.write_text('{"query": "how fast?", "more": 1}\n\nhow  FAST?\nanother\n')
    with Passages() as url:
        report = rig.report("--queries-file", str(file), "--target", url, "--no-store")
    assert (report["queries"], report["total_contradictions_flagged"]) == (2, 2), "a question that is repeated is one"
    assert [each["documents"] for each in report["findings"]] == [["one", "two"]]
    file.write_text('{"question": "how fast?"}\n')
    assert "line 1 has no query" in rig.run("run", "--queries-file", str(file), "--target", "app:search", code=2).output


def test_every_question_of_a_file_is_asked_and_a_limit_says_how_many_are_left(rig: Rig) -> None:
    file = rig.file(*(f"how fast is part {n}?" for n in range(60)), "how FAST is part 0?")
    report = rig.report(*file, "--top-k", "2", "--no-store")
    assert (report["queries"], report["queries_without_pairs"]) == (60, {})
    report = rig.report(*file, "--top-k", "2", "--no-store", "--limit", "50")
    left = "not asked (--limit: 50 of 60 questions in the file)"
    assert (report["queries"], report["queries_without_pairs"]) == (50, {left: 10})
    said = rig.run("run", *file, "--top-k", "2", "--no-store", "--limit", "50", "--progress", "none").stdout
    assert f"10 {left}" in said
    many = rig.file(*(f"how fast is part {n}?" for n in range(10_001)))
    assert "contains 10,001 questions: pass --limit" in rig.run("run", *many, "--no-store", code=2).output


class Passages:
    """A search over HTTP that returns two limits."""

    def __enter__(self) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                texts = {"one": limit(5), "two": limit(9)}
                body = {
                    "results": list(texts),
                    "contexts": [{"id": name, "text": text} for name, text in texts.items()],
                }
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}/search"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_a_killed_run_that_starts_again_pays_for_no_reply_twice(rig: Rig) -> None:
    rig.captured(*(answer(n, query=f"question {n}", contexts=contexts(5, 9, name=f"d{n}")) for n in range(30)))
    rig.api.latency_s = 0.05
    command = [
        str(Path(sys.executable).parent / "assay"),
        "eval",
        "contradictions",
        "run",
        "--from-capture",
        "--concurrency",
        "1",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: rig.asked >= 10, "ten calls", seconds=60)
        finally:
            process.kill()
    rig.api.latency_s = 0
    report = rig.report("--from-capture")
    assert report["pairs_judged"] == 30
    assert report["cache"]["hits"] >= 8
    assert rig.asked <= 60 + 1, "at most the call that was in flight is repeated"
    assert len(rig.rows("SELECT run_id FROM contradiction_runs")) == 1


def test_a_random_sample_of_captured_questions_depends_on_the_seed_alone(rig: Rig) -> None:
    rig.captured(*(answer(n, query=f"question {n}", contexts=contexts(5, 9, name=f"d{n}")) for n in range(30)))

    def questions(*options: str) -> set[str]:
        return {
            each["query"] for each in rig.report("--from-capture", "--limit", "8", "--no-store", *options)["per_query"]
        }

    newest, drawn = questions(), questions("--order", "random")
    assert newest == {f"question {n}" for n in range(22, 30)}
    assert len(drawn) == 8
    assert drawn == questions("--order", "random") != questions("--order", "random", "--seed", "1")


def test_a_person_labels_the_queue_in_a_terminal_and_stops_at_any_time(rig: Rig) -> None:
    rig.captured(*(answer(n, query=f"question {n}", contexts=contexts(5, 9, name=f"d{n}")) for n in range(6)))
    rig.report("--from-capture")
    command = [str(Path(sys.executable).parent / "assay"), "eval", "contradictions", "review", "--queue", "4"]
    shown = on_a_terminal(command, rig.directory, os.environ, "y\nn\nq\n", {0})
    assert "1 of 4" in shown
    assert limit(5, " Page 0.") in shown
    assert "contradiction," not in shown, "the judge's verdict is not shown"
    assert sorted(str(row[0]) for row in rig.rows("SELECT toString(label) FROM contradiction_labels")) == [
        "confirm",
        "refute",
    ]
    assert "1 of 2" in on_a_terminal(command, rig.directory, os.environ, "maybe\nq\n", {0}), (
        "another answer is asked again"
    )
    assert "2 of 2" in on_a_terminal(command, rig.directory, os.environ, "s\nq\n", {0})
    assert rig.rows("SELECT count() FROM contradiction_labels WHERE label = 'skip'") == [(1,)]
    assert "needs a terminal" in rig.run("review", "--queue", "4", code=2).output


def with_settings_of(rig: Rig, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CONFIG", str(rig.directory / f"data/secrets/{role}.toml"))


def test_the_evaluator_alone_asks_a_target_and_knows_earlier_findings(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_settings_of(rig, "evaluator", monkeypatch)
    states = [rig.report(*rig.file("how fast?"), "--top-k", "2")["findings_by_state"] for _ in range(2)]
    assert [(each["new"], each["persisting"]) for each in states] == [(1, 0), (0, 1)]


def test_a_run_whose_output_cannot_be_written_at_its_end_is_stored(rig: Rig) -> None:
    Path("out").mkdir()

    def remove_folder(document: dict[str, Any]) -> str:
        Path("out").rmdir()
        rig.api.reply = judge
        return judge(document)

    rig.api.reply = remove_folder
    said = rig.run("run", *rig.file("how fast?"), "--top-k", "2", "--output", "out/report.json", code=2)
    assert "--output: out/report.json: No such file or directory" in said.output
    assert rig.rows("SELECT judged FROM contradiction_runs") == [(1,)]


def test_an_identity_that_may_not_store_is_refused_before_a_call(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with_settings_of(rig, "sre", monkeypatch)
    said = " ".join(rig.run("run", *rig.file("how fast?"), code=2).output.split())
    assert "the store's user sre cannot insert; `evaluator` can; or pass --no-store" in said
    assert rig.asked == 0
