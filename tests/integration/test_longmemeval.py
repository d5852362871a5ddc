"""`assay eval longmemeval`: memories behind every kind of target, resuming after a kill, labels, floors and comparisons."""

import contextlib
import hashlib
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
import pytrec_eval
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app
from assay_evals.longmemeval.reading import RELEASES
from tests.support.cli import Cli, stop
from tests.support.longmemeval import TYPES, row, rows, write
from tests.support.wait import until

Assay = Callable[..., Result]
#: A memory of notes, as a team might write it: it keeps what it receives, and finds the session with the thing that is asked for.
MEMORY = """\
import json
import sys
import time
from pathlib import Path

KEPT = {}


def memory(query, limit=10, tool_name="query", params=None):
    call = {"query": query, "limit": limit, "tool_name": tool_name, "params": params}
    with Path("calls.ndjson").open("a") as file:
        file.write(json.dumps(call) + "\\n")
    if tool_name == "ingest":
        KEPT[params["memory"]] = params["sessions"]
        return None
    while Path("hold").exists() and Path("hold").read_text() in query:
        time.sleep(0.01)
    if Path("broken").exists() and Path("broken").read_text() in query:
        raise ValueError(query)
    thing = query.rstrip("?").split()[-1]
    found = [each for each in KEPT[params["memory"]] if any(f"my {thing} is" in turn["content"] for turn in each["turns"])]
    answer = "I don't know." if "_abs" in query else found[0]["turns"][0]["content"]
    return {"results": [each["session_id"] for each in found], "answer": answer, "latency_ms": 1.0}


if __name__ == "__main__":  # as a command, it keeps what it receives on disk
    asked = json.load(sys.stdin)
    kept = Path(f"{asked['params']['memory']}.json")
    if asked["tool_name"] == "ingest":
        kept.write_text(json.dumps(asked["params"]["sessions"]))
    else:
        KEPT[asked["params"]["memory"]] = json.loads(kept.read_text())
    print(json.dumps(memory(asked["query"], asked["limit"], asked["tool_name"], asked["params"])))
"""
TARGET = ("--target", "notes_memory:memory", "--concurrency", "1")


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes_memory.py").write_text(MEMORY)
    write(tmp_path / "lme.json", rows(12))

    def run(*arguments: str, code: int = 0, dataset: str = "lme.json") -> Result:
        found = CliRunner().invoke(app, ["eval", "longmemeval", dataset, "--progress", "none", *arguments])
        assert found.exit_code == code, found.output
        return found

    return run


def lines(path: Path | str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def summary_of(assay: Assay, *arguments: str, code: int = 0, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(assay(*arguments, "--json", code=code, **options).stdout)
    return found


def untimed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in each.items() if name not in ("latency_ms", "ingest_ms")} for each in found]


def calls() -> list[dict[str, Any]]:
    return lines("calls.ndjson")


def asked() -> Counter[str]:
    return Counter(each["query"] for each in calls() if each["tool_name"] == "query")


def test_without_a_target_and_a_key_a_memory_in_this_process_is_judged_offline(assay: Assay) -> None:
    found = assay("--by-type")
    *questions, last = [json.loads(line) for line in found.stdout.splitlines()]
    assert [each["question_id"] for each in questions] == [each["question_id"] for each in rows(12)]
    for each in questions:
        assert each["retrieved_session_ids"][0] == f"answer_{each['question_id']}_1"
        assert each["autoeval_label"]["model"] == "lexical"
        assert each.get("recall_hit") == (None if each["abstention"] else True)
        assert {"question", "question_type", "answer", "hypothesis"} <= each.keys()
    assert (last["schema_version"], last["kind"]) == (1, "by_type_summary")
    assert last["aggregate"]["hit"] == last["aggregate"]["total"] == 11
    assert last["recall_by_type"]["multi-session"]["rate"] == 1.0
    assert "no measure of quality" in found.stderr


def test_retrieval_alone_is_not_judged(assay: Assay) -> None:
    document = summary_of(assay, "--retrieval-only", "--output", "out.jsonl")
    assert document["accuracy"] is None
    assert document["judge"] is None
    for each in lines("out.jsonl"):
        assert each["hypothesis"] == ""
        assert "autoeval_label" not in each
    assert document["retrieval"]["standard"]["questions"] == 11
    assert document["retrieval"]["reference"]["recall_all@10"] == 1.0


def exported(*arguments: str, code: int = 0) -> Result:
    found = CliRunner().invoke(app, ["eval", "export", *arguments])
    assert found.exit_code == code, found.output
    return found


def test_trec_eval_computes_the_standard_metrics_from_the_exported_files(assay: Assay, tmp_path: Path) -> None:
    asked = [row(f"thing{n}", sessions=12, evidence=(n % 4, 4 + n % 5)[: 1 + n % 2]) for n in range(20)]
    asked.append(row("nothing_abs", answer="You did not say."))
    write(tmp_path / "many.json", asked)
    found = CliRunner().invoke(
        app, ["eval", "longmemeval", "many.json", "--retrieval-only", "--output", "out.jsonl", "--progress", "none"]
    )
    assert found.exit_code == 0, found.output
    results = exported("out.jsonl", "--format", "trec")
    judgements = exported("out.jsonl", "--format", "trec-qrels", "--dataset", "many.json")
    assert "1 case(s) without expected documents have no line" in judgements.stderr
    measures = {"recip_rank", "ndcg_cut", "P", "recall", "success"}
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judgements.stdout.splitlines()), measures)
    theirs = evaluator.evaluate(pytrec_eval.parse_run(results.stdout.splitlines()))
    compared = 0
    for each in lines("out.jsonl"):
        ours = each.get("metrics", {}).get("standard", {})
        for name, trec in (
            ("recall@5", "recall_5"), ("recall@10", "recall_10"), ("precision@5", "P_5"), ("ndcg@10", "ndcg_cut_10"),
            ("hit@1", "success_1"), ("mrr", "recip_rank"),
        ):  # fmt: skip
            if ours:
                compared += 1
                assert ours[name] == pytest.approx(theirs[each["question_id"]][trec], abs=1e-9), (name, each)
    assert compared == 20 * 6
    assert results.stdout.splitlines()[0].endswith(" out"), "the tag is the name of the file"


def test_an_output_is_exported_for_its_dataset_and_as_trec_alone(assay: Assay, tmp_path: Path) -> None:
    assay("--retrieval-only", "--output", "out.jsonl")
    write(tmp_path / "other.json", [row("another")])
    for arguments, said in (
        (("--format", "captured"), "use trec or trec-qrels"),
        (("--format", "trec-qrels"), "pass --dataset"),
        (("--format", "trec", "--dataset", "other.json"), "trec needs no --dataset"),
        (("--format", "trec-qrels", "--dataset", "other.json"), "is not the dataset of out.jsonl"),
        (("--format", "trec-qrels", "--dataset", "missing.json"), "cannot be read"),
    ):
        assert said in " ".join(exported("out.jsonl", *arguments, code=2).output.split())


def test_output_and_summary_are_private_files_and_the_output_has_questions_only(assay: Assay, tmp_path: Path) -> None:
    document = summary_of(assay, "--output", "out.jsonl")
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.glob("out.jsonl*")} == {
        "out.jsonl": "0o600",
        "out.jsonl.run.json": "0o600",
        "out.jsonl.summary.json": "0o600",
    }
    assert json.loads(Path("out.jsonl.summary.json").read_text()) == document
    assert all("question_id" in each for each in lines("out.jsonl"))
    assert document["dataset"]["quirks"] == {"abstention questions": 1}


def test_limit_and_flags_of_retrieval_reach_the_memory(assay: Assay) -> None:
    assay(*TARGET, "--limit", "2", "--top-k", "3", "--keyword-only", "--expansion")
    assert [each["tool_name"] for each in calls()] == ["ingest", "search", "ingest", "search"]
    assert {each["limit"] for each in calls()} == {3}


class _Served(BaseHTTPRequestHandler):
    """Serves the memory of notes over HTTP: one address for both hooks, or one each."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.heard.append((self.path, body))  # type: ignore[attr-defined]
        kept = self.server.kept  # type: ignore[attr-defined]
        name = body["params"]["memory"]
        if body["tool_name"] == "ingest":
            kept[name] = body["params"]["sessions"]
            self.send_response(204)
            self.end_headers()
            return
        thing = body["query"].rstrip("?").split()[-1]
        results = [each["session_id"] for each in kept[name] if f"my {thing} is" in json.dumps(each)]
        reply = json.dumps({"results": results[:1], "answer": f"my {thing} is blue"}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Served) as served:
        served.heard, served.kept = [], {}  # type: ignore[attr-defined]
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served
        served.shutdown()


def test_a_memory_over_http_receives_the_sessions_in_time_without_marks_then_the_question(
    assay: Assay, server: ThreadingHTTPServer
) -> None:
    late_first = row("bike", haystack_dates=[f"2023/05/{9 - place:02d} (Mon) 10:00" for place in range(5)])
    write(Path("lme.json"), [late_first, row("car")])
    url = f"http://127.0.0.1:{server.server_address[1]}"
    for hooks in (("--target", f"{url}/memory"), ("--target", f"{url}/ask", "--ingest", f"{url}/sessions")):
        server.heard.clear()  # type: ignore[attr-defined]
        document = summary_of(assay, *hooks, "--concurrency", "1", "--output", f"{len(hooks)}.jsonl")
        assert document["recall"]["aggregate"]["hit"] == document["accuracy"]["overall"]["right"] == 2
        heard: list[tuple[str, dict[str, Any]]] = server.heard  # type: ignore[attr-defined]
        assert [body["tool_name"] for _, body in heard] == ["ingest", "query", "ingest", "query"]
        assert [path for path, _ in heard] == (["/memory"] * 4 if len(hooks) == 2 else ["/sessions", "/ask"] * 2)
        (_, stored), (_, question), (_, other), _ = heard
        assert stored["params"]["memory"] == question["params"]["memory"] != other["params"]["memory"]
        assert question["params"]["question_date"] == "2023/05/30 (Tue) 23:40"
        assert [each["date"] for each in stored["params"]["sessions"]] == sorted(late_first["haystack_dates"])
        assert "has_answer" not in json.dumps(stored)


def test_a_memory_receives_no_id_that_tells_what_is_evidence(assay: Assay) -> None:
    assert summary_of(assay, *TARGET, "--output", "out.jsonl")["recall"]["aggregate"]["hit"] == 11
    told = [each["params"] for each in calls()]
    ids = [each["session_id"] for params in told for each in params.get("sessions", ())]
    assert len({*ids}) == sum(len(each["haystack_session_ids"]) for each in rows(12))
    assert not [each for each in ids if "answer" in each]
    assert not [each["memory"] for each in told if "_abs" in each["memory"] or "thing" in each["memory"]]
    first = lines("out.jsonl")[0]["retrieved_session_ids"]
    assert first == ["answer_thing0_1"], "an output has the ids of the dataset"


@pytest.mark.parametrize("target", ["notes_memory:memory", "command: python notes_memory.py"])
def test_a_memory_can_be_a_function_or_a_command(assay: Assay, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(os.sys.executable).parent}:{os.environ['PATH']}")  # type: ignore[attr-defined]
    document = summary_of(assay, "--target", target, "--limit", "3", "--output", "out.jsonl")
    assert document["recall"]["aggregate"]["hit"] == document["accuracy"]["overall"]["right"] == 3
    assert document["errors"] == document["unknown_results"] == 0


def test_errors_are_wrong_and_are_the_only_questions_that_a_resumed_run_asks(assay: Assay) -> None:
    Path("broken").write_text("thing1")  # which three questions contain: thing1, thing10, thing11
    document = summary_of(assay, *TARGET, "--output", "out.jsonl", "--by-type")
    assert document["errors"] == 3
    overall = document["accuracy"]["overall"]
    assert (overall["right"], overall["total"], overall["without_errors"]["total"]) == (9, 12, 9)
    failed = [each for each in lines("out.jsonl")[:-1] if "error" in each]
    assert [each["question_id"] for each in failed] == ["thing1", "thing10", "thing11"]
    assert all("thing" not in each["error"] for each in failed), "an error quotes no question"
    Path("broken").unlink()
    Path("calls.ndjson").unlink()
    document = summary_of(assay, *TARGET, "--output", "out.jsonl", "--by-type", "--resume")
    assert set(asked()) == {"What colour is my thing1?", "What colour is my thing10?", "What colour is my thing11?"}
    assert (document["errors"], document["accuracy"]["overall"]["right"]) == (0, 12)
    assert [each.get("kind") for each in lines("out.jsonl")].count("by_type_summary") == 1
    assert lines("out.jsonl")[-1]["aggregate"]["total"] == 11


def test_a_killed_run_is_resumed_with_each_question_once(assay: Assay, tmp_path: Path) -> None:
    assay(*TARGET, "--output", "whole.jsonl", "--by-type")
    Path("calls.ndjson").unlink()
    Path("hold").write_text("thing7")
    command = ("eval", "longmemeval", "lme.json", *TARGET, "--output", "out.jsonl", "--by-type", "--progress", "none")
    process = Cli(tmp_path).start(*command, role="evaluator")
    try:
        until(
            lambda: Path("calls.ndjson").exists() and any("thing7" in query for query in asked()),
            "it did not get so far",
        )
        os.kill(process.pid, signal.SIGKILL)
    finally:
        stop(process)
    done = lines("out.jsonl")
    assert [each["question_id"] for each in done] == [f"thing{number}" for number in range(7)]
    with Path("out.jsonl").open("a") as file:
        file.write('{"question_id": "thing7", "question": "What col')  # a line that was cut off
    Path("hold").unlink()
    Path("calls.ndjson").unlink()
    assay(*command[3:], "--resume")
    assert sorted(asked()) == sorted(f"What colour is my {each['question_id']}?" for each in rows(12)[7:])
    assert untimed(lines("out.jsonl")) == untimed(lines("whole.jsonl"))
    before = Path("out.jsonl").read_bytes()
    Path("calls.ndjson").unlink()
    assay(*command[3:], "--resume")
    assert not Path("calls.ndjson").exists()
    assert Path("out.jsonl").read_bytes() == before


def test_a_slow_question_keeps_no_other_result_from_the_file(assay: Assay, tmp_path: Path) -> None:
    Path("hold").write_text("thing0")
    command = (
        "eval",
        "longmemeval",
        "lme.json",
        *TARGET,
        "--output",
        "out.jsonl",
        "--progress",
        "none",
        "--concurrency",
        "4",
    )
    process = Cli(tmp_path).start(*command, role="evaluator")
    try:
        until(lambda: Path("out.jsonl").exists() and len(lines("out.jsonl")) == 11, "the others were not stored")
        os.kill(process.pid, signal.SIGKILL)
    finally:
        stop(process)
    Path("hold").unlink()
    Path("calls.ndjson").unlink()
    assay(*command[3:], "--resume")
    assert asked() == {"What colour is my thing0?": 1}
    assert len(lines("out.jsonl")) == 12


def test_every_cut_of_the_output_is_resumed_to_the_same_file(assay: Assay) -> None:
    write(Path("lme.json"), rows(3))
    assay("--output", "out.jsonl", "--by-type")
    whole = Path("out.jsonl").read_bytes()
    for cut in range(0, len(whole), 97):
        Path("out.jsonl").write_bytes(whole[:cut])
        assay("--output", "out.jsonl", "--by-type", "--resume")
        assert untimed(lines("out.jsonl")) == untimed([json.loads(line) for line in whole.splitlines()]), cut


def test_a_longer_limit_continues_and_a_shorter_one_loses_nothing(assay: Assay) -> None:
    assay(*TARGET, "--limit", "4", "--output", "out.jsonl")
    assay(*TARGET, "--limit", "6", "--output", "out.jsonl", "--resume")
    document = summary_of(assay, *TARGET, "--limit", "2", "--by-type", "--output", "out.jsonl", "--resume")
    assert document["questions"] == document["dataset"]["questions"] == 2
    assert document["accuracy"]["overall"]["total"] == 2
    assert lines("out.jsonl")[-1]["aggregate"]["total"] == 2
    summary_of(assay, *TARGET, "--limit", "6", "--output", "out.jsonl", "--resume")
    assert [each["question_id"] for each in lines("out.jsonl")] == [f"thing{number}" for number in range(6)]
    assert set(asked().values()) == {1}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--top-k", "5"), "--top-k"),
        (("--retrieval-only",), "--retrieval-only"),
        (("--keyword-only",), "--keyword-only"),
        (("--target", "notes_memory:other"), "cannot import|no function"),
        (("--target", "bm25"), "--target"),
    ],
)
def test_a_run_is_not_resumed_with_other_inputs(assay: Assay, changed: tuple[str, ...], said: str) -> None:
    assay(*TARGET, "--output", "out.jsonl")
    before = Path("out.jsonl").read_bytes()
    found = assay(*TARGET, "--output", "out.jsonl", "--resume", *changed, code=2)
    assert any(each in found.output for each in said.split("|"))
    write(Path("lme.json"), rows(11))
    assert "another DATASET" in assay(*TARGET, "--output", "out.jsonl", "--resume", code=2).output
    assert Path("out.jsonl").read_bytes() == before


def test_two_processes_do_not_write_one_output(assay: Assay, tmp_path: Path) -> None:
    Path("hold").write_text("thing2")
    command = ("eval", "longmemeval", "lme.json", *TARGET, "--output", "out.jsonl", "--progress", "none")
    process = Cli(tmp_path).start(*command, role="evaluator")
    try:
        until(
            lambda: Path("calls.ndjson").exists() and any("thing2" in query for query in asked()),
            "it did not get so far",
        )
        found = assay(*TARGET, "--output", "out.jsonl", "--resume", code=2)
        assert "is being written by another process" in found.output
        Path("hold").unlink()
        assert process.wait(200) == 0
    finally:
        stop(process)
    assert len(lines("out.jsonl")) == 12


def test_a_damaged_output_is_refused_with_the_line(assay: Assay) -> None:
    assay("--output", "out.jsonl")
    kept = Path("out.jsonl").read_text().splitlines(keepends=True)
    for damaged in ("{}\n", "[]\n", "null\n", "x\n", kept[1].replace('"abstention": false', '"abstention": 1')):
        Path("out.jsonl").write_text("".join([kept[0], damaged, *kept[2:]]))
        assert "out.jsonl: line 2 is not a result" in assay("--output", "out.jsonl", "--resume", code=2).output
    Path("out.jsonl.run.json").write_text("{}")
    assert "does not contain the inputs" in assay("--output", "out.jsonl", "--resume", code=2).output


def test_a_floor_fails_by_type_also_when_nothing_is_left_to_ask(assay: Assay) -> None:
    Path("broken").write_text("thing3")  # the only question of its type below ten, with thing9_abs
    arguments = (*TARGET, "--output", "out.jsonl", "--by-type-floor", "0.9")
    found = assay(*arguments, code=1)
    assert f"{TYPES[3]}: recall 0.000 (0 of 1) is below --by-type-floor 0.9" in found.stderr
    assert lines("out.jsonl")[-1]["kind"] == "by_type_summary"
    Path("broken").unlink()
    assay(*arguments, "--resume")
    write(Path("lme.json"), [row("bike"), row("car", answer_session_ids=[])])
    assay("--by-type-floor", "1")
    found = assay("--by-type-floor", "0.5", "--limit", "1", dataset="lme.json")
    write(Path("lme.json"), [row("bike", answer_session_ids=[])])
    assert "no question has evidence" in assay("--by-type-floor", "0.5", code=2).output


def test_a_memory_that_never_answers_is_no_result(assay: Assay) -> None:
    Path("broken").write_text("thing")
    found = assay(*TARGET, "--output", "out.jsonl", code=2)
    assert "no question was answered; the first error: ValueError" in found.output
    assert [each["question_id"] for each in lines("out.jsonl")] == [each["question_id"] for each in rows(12)]


def test_a_memory_without_answers_can_only_be_measured_by_retrieval(assay: Assay) -> None:
    Path("silent_memory.py").write_text("def memory(query, tool_name, params):\n    return ['answer_thing0_1']\n")
    target = ("--target", "silent_memory:memory")
    assert (
        "the target returned no answer: have a model answer with --model"
        in assay(*target, "--limit", "1", code=2).output
    )
    assay(*target, "--limit", "1", "--retrieval-only")


def test_a_memory_that_finds_and_rarely_answers_is_summarized(assay: Assay) -> None:
    Path("rare_memory.py").write_text(
        "def memory(query, tool_name):\n"
        "    name = query.rstrip('?').split(' ')[-1]\n"
        "    return {'results': [f'answer_{name}_1']} | ({'answer': 'blue'} if name == 'thing0' else {})\n"
    )
    document = summary_of(assay, "--target", "rare_memory:memory", "--output", "out.jsonl")
    recall = document["recall"]["aggregate"]
    assert (recall["hit"], recall["total"], recall["errors"]) == (11, 11, 0)
    assert recall["rate"] == 1.0
    assert document["accuracy"]["overall"]["errors"] == 11


def test_a_new_run_with_the_name_of_a_deleted_one_begins_anew(assay: Assay) -> None:
    for name in ("judge.ndjson", "summary.json"):
        Path(f"out.jsonl.{name}").write_text('{"nano": 999999999}\n')
    assay("--output", "out.jsonl")
    assert not Path("out.jsonl.judge.ndjson").exists()
    assert "nano" not in Path("out.jsonl.summary.json").read_text()


def test_a_baseline_of_another_dataset_leaves_the_summary_of_the_run(assay: Assay) -> None:
    assay("--output", "base.jsonl")
    changed = rows(12)
    changed[0]["question"] = "What else?"
    write(Path("lme.json"), changed)
    assert "different datasets" in assay("--output", "out.jsonl", "--baseline", "base.jsonl", code=2).output
    assert json.loads(Path("out.jsonl.summary.json").read_text())["accuracy"]


def test_text_that_no_file_can_contain_and_a_flood_of_results_do_not_end_a_run(assay: Assay) -> None:
    Path("hostile_memory.py").write_text(
        "def memory(query, tool_name):\n"
        "    if 'thing0' in query:\n"
        "        return {'results': [str(n) for n in range(100_000)], 'answer': 'blue \\ud800 \\x1b[2J'}\n"
        "    if 'thing1' in query:\n"
        "        raise SystemExit(0)\n"
        "    return {'results': ['\\ud800'], 'answer': 'x'}\n"
    )
    for output in ((), ("--output", "out.jsonl")):
        found = assay("--target", "hostile_memory:memory", "--limit", "3", *output)
    first, second, third = lines("out.jsonl")
    assert first["hypothesis"] == "blue ? \x1b[2J"
    assert len(first["retrieved_session_ids"]) == 1_000
    assert (second["error"].split()[0], third["error"]) == (
        "SystemExit",
        "a result's id is not text: it contains a lone surrogate",
    )
    assert "\x1b" not in found.stdout


def test_what_a_memory_prints_does_not_mix_with_the_results(assay: Assay) -> None:
    Path("loud_memory.py").write_text(
        "def memory(query, tool_name):\n    print('hello')\n    return {'results': [], 'answer': 'x'}\n"
    )
    found = assay("--target", "loud_memory:memory")
    assert len([json.loads(line) for line in found.stdout.splitlines()]) == 12
    assert "hello" in found.stderr


def official_labels(path: Path, *, model: str = "gpt-4o-2024-08-06") -> list[dict[str, Any]]:
    """The lines that the benchmark's script writes: those of the hypotheses, each with its label."""
    return [
        each | {"autoeval_label": {"model": model, "label": each["question_id"] != "thing0"}} for each in lines(path)
    ]


def test_labels_of_the_benchmark_s_script_replace_the_judge_and_are_comparable_on_a_release(
    assay: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    assay(*TARGET, "--output", "out.jsonl")
    Path("calls.ndjson").unlink()
    Path("labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in official_labels(Path("out.jsonl"))))
    labelled = (*TARGET, "--output", "out.jsonl", "--resume", "--labels", "labels.jsonl")
    assert not summary_of(assay, *labelled)["judge"]["comparable_with_published"], "these rows are no release"
    sha256 = hashlib.sha256(Path("lme.json").read_bytes()).hexdigest()
    monkeypatch.setitem(cast("dict[str, str]", RELEASES), sha256, "a release")
    document = summary_of(assay, *labelled)
    assert not summary_of(assay, *labelled, "--limit", "11")["judge"]["comparable_with_published"]
    assert not Path("calls.ndjson").exists()
    assert document["accuracy"]["overall"]["right"] == 11
    assert document["judge"] == {
        "models": ["gpt-4o-2024-08-06"],
        "offline_baseline": False,
        "comparable_with_published": True,
    }


def test_a_missing_label_and_one_of_another_answer_count_as_unjudged(assay: Assay) -> None:
    assay(*TARGET, "--output", "out.jsonl")
    labels = official_labels(Path("out.jsonl"))[1:]
    labels[0]["hypothesis"] = "another answer"
    Path("labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    document = summary_of(assay, *TARGET, "--output", "out.jsonl", "--resume", "--labels", "labels.jsonl")
    assert document["unjudged"] == 2
    assert (document["accuracy"]["overall"]["right"], document["accuracy"]["overall"]["errors"]) == (10, 2)
    unjudged = [each["judge_error"] for each in lines("out.jsonl") if "judge_error" in each]
    assert [each.rpartition(" ")[2] for each in unjudged] == ["it", "answer"]


@pytest.mark.parametrize(
    "line",
    [
        '{"question_id": "thing0", "llm_judge_correct": true, "llm_judge_raw": "Yes.", "model": "gpt-4o-2024-08-06"}',
        '{"question_id": "thing0", "autoeval_label": "Yes."}',
        '{"question_id": "thing0", "autoeval_label": true}',
        '{"question_id": "thing0", "label": "yes"}',
    ],
)
def test_labels_of_other_programs_are_read(assay: Assay, line: str) -> None:
    Path("labels.jsonl").write_text(line + "\n")
    document = summary_of(assay, *TARGET, "--limit", "1", "--output", "out.jsonl", "--labels", "labels.jsonl")
    assert document["accuracy"]["overall"]["right"] == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "contains no labels"),
        ("x\n", "line 1 is not JSON"),
        ("[]\n", "line 1 has no question_id"),
        ('{"question_id": "a"}\n', "line 1 has no label"),
        ('{"question_id": "a", "autoeval_label": "maybe"}\n', "line 1 has no label"),
        (
            '{"question_id": "a", "label": true}\n{"question_id": "a", "label": false}\n',
            "line 2 is a second label of question a",
        ),
    ],
)
def test_a_file_without_usable_labels_is_refused(assay: Assay, content: str, said: str) -> None:
    Path("labels.jsonl").write_text(content)
    assert said in assay("--labels", "labels.jsonl", code=2).output


def test_two_outputs_are_compared_question_by_question(assay: Assay) -> None:
    assay(*TARGET, "--output", "before.jsonl")
    Path("broken").write_text("thing1")
    document = summary_of(assay, *TARGET, "--output", "after.jsonl", "--baseline", "before.jsonl")
    change = document["comparison"]["changes"]["correct"]
    assert (change["n"], change["gained"], change["lost"], change["test"]) == (12, 0, 3, "mcnemar")
    assert change["p_value"] == 0.25
    text = assay(*TARGET, "--output", "again.jsonl", "--baseline", "before.jsonl").stdout
    assert "compared on 12 questions" in text
    assert "p=0.2500 (mcnemar)" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--top-k", "0"), "--top-k: 0 is below 1"),
        (("--top-k", "1000000000"), "is above 1,000"),
        (("--limit", "0"), "--limit: 0 is below 1"),
        (("--limit", "x"), "Error"),
        (("--resume",), "--resume needs --output"),
        (("--json",), "--json needs --output"),
        (("--by-type-floor", "nan"), "--by-type-floor: 'nan' is not a number"),
        (("--by-type-floor", "1.1"), "is not between 0 and 1"),
        (("--by-type-floor", "-0.1"), "is not between 0 and 1"),
        (("--judge-budget", "inf"), "--judge-budget: 'inf' is not a number"),
        (("--judge-budget", "-1"), "--judge-budget: below 0"),
        (("--judge", "oracle"), "--judge: 'oracle' is not one of"),
        (("--judge", "anthropic"), "needs a key"),
        (("--judge", "openai"), "judge.backend"),
        (("--model", "claude-sonnet-5"), "needs a key"),
        (("--retrieval-only", "--judge", "lexical"), "--retrieval-only has none"),
        (("--retrieval-only", "--model", "m"), "--retrieval-only has none"),
        (("--retrieval-only", "--labels", "l"), "--retrieval-only has none"),
        (("--labels", "none"), "no file none"),
        (("--labels", "l", "--judge", "lexical"), "pass --labels or --judge"),
        (("--baseline", "none"), "--baseline: none"),
        (("--target", "nowhere"), "'nowhere' is not a target"),
        (("--target", "no_module_here:memory"), "cannot import"),
        (("--target", "http://h/{query}"), "cannot carry sessions"),
        (("--target", "http://h/ask", "--ingest", "http://h/{query}"), "cannot carry sessions"),
        (("--target", "http://h/ask", "--ingest", "nowhere"), "--ingest: 'nowhere' is not a target"),
        (("--ingest", "http://h/ingest"), "pass --target"),
        (("--concurrency", "0"), "concurrency must be 1 or more"),
        (("--deadline", "0"), "deadline must be"),
        (("--deadline", "nan"), "deadline must be"),
        (("--retries", "-1"), "retries must be 0 or more"),
        (("--output", "."), "is a folder"),
        (("--output", "none/out.jsonl"), "no folder none"),
        (("--output", "lme.json"), "already exists"),
        (("--unknown",), "No such option"),
    ],
)
def test_every_usage_error_exits_with_2_and_says_what_is_wrong(
    assay: Assay, arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_JUDGE_API_KEY", raising=False)
    before = Path("lme.json").read_bytes()
    found = assay(*arguments, code=2)
    assert said in found.output
    assert "Traceback" not in found.output
    assert Path("lme.json").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "contains no questions"),
        ('{"sample_id": "conv-26", "conversation": {}, "qa": []}', "LoCoMo"),
        ('{"id": "q", "domain": "web", "question": "Where?"}', "LongMemEval-V2"),
        ("[{", "cut off"),
    ],
)
def test_a_file_that_is_not_a_dataset_exits_with_2(assay: Assay, content: str, said: str) -> None:
    Path("other.json").write_text(content)
    assert said in assay("--output", "out.jsonl", code=2, dataset="other.json").output
    assert not Path("out.jsonl").exists()
    assert "no file missing.json" in assay(code=2, dataset="missing.json").output


def test_ctrl_c_keeps_what_is_done_and_names_the_way_on(assay: Assay, tmp_path: Path) -> None:
    Path("hold").write_text("thing3")
    command = ("eval", "longmemeval", "lme.json", *TARGET, "--output", "out.jsonl", "--progress", "none")
    process = Cli(tmp_path).start(*command, role="evaluator")
    try:
        until(
            lambda: Path("calls.ndjson").exists() and any("thing3" in query for query in asked()),
            "it did not get so far",
        )
        process.send_signal(signal.SIGINT)
        Path("hold").unlink()
        _, said = process.communicate(timeout=200)
    finally:
        with contextlib.suppress(OSError):
            stop(process)
    assert process.returncode == 130
    assert b"3 of 12 questions are done and kept; to continue, run the same command with: --resume" in said
    assert len(lines("out.jsonl")) == 3
