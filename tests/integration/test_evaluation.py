"""Evaluate before you ship, as an engineer would: the demo's search, its golden dataset, a baseline, and changes of every kind."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from stamina.instrumentation import get_on_retry_hooks, set_on_retry_hooks
from typer.testing import CliRunner

from assay_cli.main import app
from tests.support.ports import free_port

GOLDEN = str(resources.files("assay_demo") / "golden.jsonl")
SEARCH, NEUTRAL, DEGRADED, ABSTAINING = (
    f"timed_target:{name}" for name in ("search", "neutral", "degraded", "abstaining")
)
SLOW = "assay_demo.target:slow"
#: The demo's search, but for the time that it takes: that of a busy machine is no change of the search's.
TIMED_TARGET = """\
from assay_demo import target
def search(query, limit=10, detail=None, tool_name="query", expand_enabled=None):
    return target.search(query, limit, detail, tool_name, expand_enabled) | {"latency_ms": 20.0}
def neutral(query, limit=10, detail=None, tool_name="query"):
    return target.neutral(query, limit, detail, tool_name) | {"latency_ms": 20.0}
def degraded(query, limit=10, detail=None, tool_name="query"):
    return target.degraded(query, limit, detail, tool_name) | {"latency_ms": 20.0}
def abstaining(query, limit=10, detail=None, tool_name="query"):
    return target.abstaining(query, limit, detail, tool_name) | {"latency_ms": 20.0}
"""
QUESTIONS = (
    "measure how long a block of code takes",
    "parse JSON",
    "join paths",
    "run a subprocess",
    "compress a file with gzip",
)

Assay = Callable[..., Result]


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """The command, in a folder of its own; `code` is the exit code that is expected."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "timed_target.py").write_text(TIMED_TARGET)

    def run(*arguments: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == code, found.output
        return found

    return run


def capture(folder: Path, questions: tuple[str, ...] = QUESTIONS) -> Path:
    """Rows as `assay export` writes them, of what the demo's search returns today."""
    from assay_demo.target import search

    path = folder / "captured.ndjson"
    with path.open("w") as file:
        for number, question in enumerate(questions, start=1):
            found = search(question)
            row = {
                "schema_version": 1,
                "id": number,
                "tool_name": "query",
                "query": question,
                "retrieved_slugs": [each["slug"] for each in found["results"]],
                "source_ids": sorted({each["source_id"] for each in found["results"]}),
                "latency_ms": 100,
                "detail": None,
                "expand_enabled": True,
            }
            file.write(json.dumps(row) + "\n")
    return path


def golden_questions(count: int = 30) -> tuple[str, ...]:
    """So many that a gate can tell."""
    lines = (json.loads(line) for line in Path(GOLDEN).read_text().splitlines()[1:])
    return QUESTIONS + tuple(each["query"] for each in lines if each["query_type"] != "null")[: count - len(QUESTIONS)]


#: Written by hand, without any sources.
BY_HAND = (
    '{"schema_version":1,"id":1,"tool_name":"query","query":"who is alice","retrieved_slugs":["people/alice","people/alice-bio"],'
    '"expand_enabled":false,"detail":null,"latency_ms":0,"remote":false}\n'
    '{"schema_version":1,"id":2,"tool_name":"search","query":"acme deal","retrieved_slugs":["deals/acme-seed","companies/acme"],'
    '"latency_ms":0,"remote":false}\n'
)
BY_HAND_TARGET = """\
KNOWN = {"who is alice": ["people/alice", "people/alice-bio"], "acme deal": ["deals/acme-seed", "companies/acme"]}
def find(query):
    return KNOWN[query]
"""


@pytest.fixture
def baseline(assay: Assay, tmp_path: Path) -> str:
    assay("bench", "publish", "--from", str(capture(tmp_path, golden_questions())), "--to", "main.baseline.ndjson")
    return "main.baseline.ndjson"


@pytest.mark.slow
@pytest.mark.xdist_group("evaluation")
@pytest.mark.parametrize("judge", [(), ("--judge", "lexical")], ids=["unjudged", "judged"])
def test_a_change_that_refuses_most_questions_is_stopped(assay: Assay, judge: tuple[str, ...]) -> None:
    for name, target in (("main", SEARCH), ("change", ABSTAINING)):
        assay("eval", "run", "--dataset", GOLDEN, "--target", target, "--name", name, "--progress", "none", *judge)
    told = assay("eval", "compare", "main", "change", "--inconclusive", "pass", code=1).output
    assert "fewer answerable questions get an answer" in told
    assert "verdict: fail" in told
    assert [line.split()[0] for line in told.splitlines() if " mrr " in line] == ["pass"], "it retrieves as before"


@pytest.mark.slow
@pytest.mark.xdist_group("evaluation")
def test_a_regression_is_stopped_an_improvement_and_a_neutral_change_are_let_through(
    assay: Assay, tmp_path: Path
) -> None:
    for name, target in (("main", SEARCH), ("neutral", NEUTRAL), ("worse", DEGRADED)):
        assay("eval", "run", "--dataset", GOLDEN, "--target", target, "--name", name, "--progress", "none")
    assert "verdict: pass" in assay("eval", "compare", "main", "neutral").output
    reports = ("--markdown", "r.md", "--junit", "r.xml", "--html", "r.html", "--dataset", GOLDEN)
    assert "verdict: fail" in assay("eval", "compare", "main", "worse", *reports, code=1).output
    better = json.loads(assay("eval", "compare", "worse", "main", "--json").stdout)
    assert better["verdict"] == "pass"
    assert {each["metric"] for each in better["metrics"] if each["is_improvement"]} >= {"mrr", "recall@10", "ndcg@10"}
    assert [json.loads(line)["run_id"] for line in assay("eval", "list", "--json").stdout.splitlines()] == [
        "main",
        "neutral",
        "worse",
    ]
    (tmp_path / "runs/broken").mkdir()
    (tmp_path / "runs/broken/run.json").write_text("{")
    listed = assay("eval", "list", "--json")
    assert (len(listed.stdout.splitlines()), "skipped: runs/broken" in listed.stderr) == (3, True)
    shown = json.loads(assay("eval", "show", "main", "--json").stdout)
    assert (shown["cases"], shown["errored"], len(shown["results"])) == (367, 0, 367)
    assert "❌" in (tmp_path / "r.md").read_text()
    assert (tmp_path / "r.html").read_text().endswith("</html>\n")


@pytest.mark.xdist_group("evaluation")
def test_a_run_goes_on_where_it_stopped(assay: Assay, tmp_path: Path) -> None:
    assay("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", "r", "--limit", "20")
    results = tmp_path / "runs/r/results.ndjson"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:12]) + lines[12][:30])
    assay("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", "r", "--limit", "20", "--resume")
    ids = [json.loads(line)["case_id"] for line in results.read_text().splitlines()]
    assert len(ids) == len(set(ids)) == 20


@pytest.mark.xdist_group("evaluation")
def test_a_replay_says_how_far_a_change_moved(assay: Assay, tmp_path: Path) -> None:
    rows = str(capture(tmp_path))
    same = json.loads(assay("replay", "--against", rows, "--target", SEARCH, "--json").stdout)
    assert same["schema_version"] == 1
    assert (same["summary"]["mean_jaccard"], same["summary"]["top1_stability_rate"]) == (1.0, 1.0)
    moved = json.loads(assay("replay", "--against", rows, "--target", DEGRADED, "--json", "--verbose").stdout)
    assert moved["summary"]["mean_jaccard"] < 0.85
    assert len(moved["results"]) == 5
    assert "regression(s)" in assay("replay", "--against", rows, "--target", DEGRADED).output
    assert "of 2 captured" in assay("replay", "--against", rows, "--target", SEARCH, "--limit", "2").output


@pytest.mark.xdist_group("evaluation")
def test_a_replay_goes_on_after_the_rows_it_wrote(assay: Assay, tmp_path: Path) -> None:
    rows, kept = str(capture(tmp_path)), tmp_path / "out.ndjson"
    options = ("--against", rows, "--target", SEARCH, "--output", str(kept), "--json")
    whole = json.loads(assay("replay", *options).stdout)
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:2]) + lines[2][:20])
    again = json.loads(assay("replay", *options, "--resume").stdout)
    assert again["summary"]["rows_replayed"] == whole["summary"]["rows_replayed"] == 5
    assert [json.loads(line)["line"] for line in kept.read_text().splitlines()] == [1, 2, 3, 4, 5]
    assert "already exists" in assay("replay", *options, code=2).output


@pytest.mark.xdist_group("evaluation")
def test_the_regression_gate_tells_a_neutral_a_worse_and_a_slow_change_apart(assay: Assay, baseline: str) -> None:
    passed = json.loads(assay("gate", "--baseline", baseline, "--target", NEUTRAL, "--json").stdout)
    assert (passed["verdict"], passed["correctness_gate"]) == ("pass", {"ran": False})
    failed = json.loads(assay("gate", "--baseline", baseline, "--target", DEGRADED, "--json", code=1).stdout)
    metrics = [each["metric"] for each in failed["regression_gate"]["breaches"]]
    assert metrics == ["mean_jaccard", "top1_stability_rate"]
    slow = json.loads(assay("gate", "--baseline", baseline, "--target", SLOW, "--json", code=1).stdout)
    assert [each["metric"] for each in slow["regression_gate"]["breaches"]] == ["latency_multiplier"]
    assert slow["regression_gate"]["breaches"][0]["observed"] >= 2.5


@pytest.mark.xdist_group("evaluation")
def test_the_correctness_gate_holds_known_right_questions(assay: Assay, tmp_path: Path) -> None:
    from assay_demo.target import search

    first = search(QUESTIONS[1])["results"][0]
    right = {"source_id": first["source_id"], "slug": first["slug"]}
    entry = {"query": QUESTIONS[1], "relevant": [right], "expected_top1": right}
    wrong = entry | {"relevant": [right | {"source_id": "elsewhere"}]}
    without = {key: value for key, value in entry.items() if key != "expected_top1"}
    for name, entries in (
        ("right", [entry] * 12),
        ("wrong", [wrong] * 12),
        ("without", [without] * 12),
        ("few", [entry]),
    ):
        named = [each | {"query_id": f"q{number}"} for number, each in enumerate(entries, start=1)]
        (tmp_path / f"{name}.json").write_text(json.dumps({"schema_version": 1, "queries": named}))
    assay("gate", "--qrels", "right.json", "--target", SEARCH, "--threshold-recall", "1")
    few = assay("gate", "--qrels", "few.json", "--target", SEARCH, code=3).stdout
    assert "correctness: inconclusive" in few
    assert "against a threshold of 0.700: too few rows for a verdict, about 11 needed" in few
    assay("gate", "--qrels", "few.json", "--target", SEARCH, "--inconclusive", "pass")
    assay("gate", "--qrels", "few.json", "--target", SEARCH, "--inconclusive", "fail", code=1)
    assert "expected_top1_hit_rate -\n" in assay("gate", "--qrels", "without.json", "--target", SEARCH).stdout
    failed = json.loads(assay("gate", "--qrels", "wrong.json", "--target", SEARCH, "--json", code=1).stdout)
    metrics = [each["metric"] for each in failed["correctness_gate"]["breaches"]]
    assert metrics == ["mean_recall_at_k", "first_relevant_hit_rate"]
    assert [each["query_id"] for each in failed["correctness_gate"]["missed"]] == [f"q{n}" for n in range(1, 13)]
    told = assay("gate", "--qrels", "wrong.json", "--target", SEARCH, code=1).output
    assert f"q1: recall 0.000; missing elsewhere::{first['slug']}; first {first['source_id']}::{first['slug']}" in told
    assert "was returned with source" in told


@pytest.mark.xdist_group("evaluation")
def test_a_target_that_errors_never_passes(assay: Assay, baseline: str, tmp_path: Path) -> None:
    (tmp_path / "broken_target.py").write_text(
        "from assay_demo.target import search\n"
        "def find(query, limit=10):\n"
        "    if 'JSON' in query:\n        raise LookupError(query)\n"
        "    return search(query, limit)\n"
    )
    gate = json.loads(assay("gate", "--baseline", baseline, "--target", "broken_target:find", "--json", code=1).stdout)
    (breach,) = gate["regression_gate"]["breaches"]
    assert (breach["metric"], breach["observed"]) == ("rows_errored", 1)
    assert "parse JSON" not in json.dumps(breach), "what was asked is in no error"


@pytest.mark.xdist_group("evaluation")
def test_a_gate_exits_2_when_its_target_answers_nothing(assay: Assay, baseline: str) -> None:
    gate = ("gate", "--baseline", baseline, "--retries", "0", "--target", f"http://127.0.0.1:{free_port()}/search")
    found = assay(*gate, code=2)
    assert "the target answered none of 30 questions, most often because of: ConnectError" in found.output
    assert "mean_jaccard -" in found.output
    assert "0.000" not in found.output
    document = json.loads(assay(*gate, "--json", code=2).stdout)
    assert (document["verdict"], document["error"][:22]) == ("fail", "the target answered no")


@pytest.mark.xdist_group("evaluation")
def test_what_a_target_or_a_scorer_prints_is_not_in_the_document(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "chatty_target.py").write_text(
        "print('loud: loaded')\n"
        "def find(query):\n    print('loud: asked')\n    return ['a']\n"
        "def score(case, answer):\n    print('loud: scored')\n    return 1.0\n"
    )
    rows, target = str(capture(tmp_path)), ("--target", "chatty_target:find", "--json")
    scorer = ("--scorer", "chatty_target:score")
    for command, code in (
        (("eval", "run", "--dataset", GOLDEN, "--limit", "3", "--name", "n", *scorer), 0),
        (("replay", "--against", rows), 0),
        (("replay", "--against", rows, "--verbose"), 0),
        (("gate", "--baseline", "b.ndjson", *scorer), 1),
    ):
        sys.modules.pop("chatty_target", None)
        assay("bench", "publish", "--from", rows, "--to", "b.ndjson", "--force")
        found = assay(*command, *target, code=code)
        json.loads(found.stdout)
        assert "loud: asked" in found.stderr
        assert "loud: loaded" in found.stderr


@pytest.mark.xdist_group("evaluation")
def test_a_replay_of_nothing_says_why_and_gives_no_figure(assay: Assay, tmp_path: Path) -> None:
    rows = [json.loads(line) | {"query": " "} for line in capture(tmp_path).read_text().splitlines()]
    (tmp_path / "blank.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    replay = ("replay", "--target", SEARCH, "--against")
    found = assay(*replay, "blank.ndjson", code=2)
    assert "nothing was replayed: 5 row(s) have an empty question" in found.stderr
    assert "Jaccard" not in found.output


@pytest.mark.xdist_group("evaluation")
def test_errors_beyond_those_that_are_named_are_counted_and_no_try_is_logged(assay: Assay, tmp_path: Path) -> None:
    away = ("--target", f"http://127.0.0.1:{free_port()}/search", "--retries", "1")
    set_on_retry_hooks(None)  # those that stamina brings
    found = assay("eval", "run", "--dataset", GOLDEN, "--limit", "5", "--name", "away", *away, code=1)
    assert found.output.count("errored: ") == 4
    assert "errored: and 2 more" in found.stdout
    assert get_on_retry_hooks() == ()
    found = assay("replay", "--against", str(capture(tmp_path)), *away, code=2)
    assert "errored: and 2 more" in found.stderr
    assert "nothing was replayed: 5 row(s) errored" in found.stderr


@pytest.mark.xdist_group("evaluation")
def test_errors_are_shown_in_full_to_who_asks_and_are_in_no_file(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "failing_target.py").write_text("def find(query):\n    raise LookupError('the words of ' + query)\n")
    (tmp_path / "failing_command.py").write_text("import sys\nsys.exit('the words of stderr')\n")
    rows = str(capture(tmp_path))
    command = f"command: {sys.executable} failing_command.py"
    for name, target in (("function", "failing_target:find"), ("command", command)):
        run = ("eval", "run", "--dataset", GOLDEN, "--limit", "5", "--target", target)
        quiet = assay(*run, "--name", name, code=1)
        assert "the words of" not in quiet.output
        assert quiet.stderr.count("--show-errors") == 1
        loud = assay(*run, "--name", f"{name}-loud", "--show-errors", code=1)
        assert loud.stderr.count("the words of") == 3 * (
            1 + (name == "function")
        )  # its line of code, and what it raised
        assert "the words of" not in loud.stdout
        gate = ("replay", "--against", rows, "--target", target, "--output", f"{name}.ndjson", "--show-errors")
        assert "the words of" in assay(*gate, code=2).stderr
    kept = [path for path in tmp_path.rglob("*") if path.suffix in (".json", ".ndjson")]
    assert len(kept) > 8
    assert not any("the words of" in path.read_text() for path in kept)
    assert "LookupError (at failing_target.py:2)" in (tmp_path / "runs/function/results.ndjson").read_text()


@pytest.mark.xdist_group("evaluation")
def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "stopping_target.py").write_text(
        "import asyncio, os, signal\n"
        "async def stops(query):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n    await asyncio.Event().wait()\n"
    )
    target = ("--target", "stopping_target:stops", "--progress", "none")
    capture(tmp_path)
    for arguments, words in (
        (
            ("eval", "run", "--dataset", GOLDEN, "--name", "r"),
            "; to continue, run the same command with: --name r --resume",
        ),
        (("replay", "--against", "captured.ndjson"), "nothing was kept: --output FILE keeps each row"),
    ):
        program = [str(Path(sys.executable).parent / "assay"), *arguments, *target]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, words in done.stderr) == (130, True), done.stderr


@pytest.mark.xdist_group("evaluation")
def test_a_changed_baseline_is_refused(assay: Assay, baseline: str, tmp_path: Path) -> None:
    path = tmp_path / baseline
    lines = path.read_text().splitlines()
    row = json.loads(lines[1])
    row["retrieved_slugs"][0] += "x"
    path.write_text("\n".join([lines[0], json.dumps(row), *lines[2:]]))
    assert "changed after it was published" in assay("gate", "--baseline", baseline, "--target", SEARCH, code=2).output


BASELINE = ("--baseline", "main.baseline.ndjson")


@pytest.mark.xdist_group("evaluation")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gate", "--target", SEARCH), "pass --baseline, --qrels, or both"),
        (("gate", "--target", SEARCH, "--baseline", "none.ndjson"), "no file none.ndjson"),
        (("gate", "--target", SEARCH, "--qrels", "none.json"), "no file none.json"),
        (
            ("gate", "--target", SEARCH, *BASELINE, "--threshold-jaccard", "nan"),
            "--threshold-jaccard: 'nan' is not a number",
        ),
        (("gate", "--target", SEARCH, *BASELINE, "--threshold-top1", "high"), "is not a number"),
        (("gate", "--target", SEARCH, *BASELINE, "--threshold-latency-multiplier", "0"), "above 0"),
        (("gate", "--target", SEARCH, *BASELINE, "--threshold-recall", "inf"), "is not a number"),
        (("gate", "--target", SEARCH, *BASELINE, "--threshold-recall", "1.5"), "between 0 and 1"),
        (("gate", "--target", SEARCH, *BASELINE, "--threshold-latency-multiplier", "1_0"), "is not a number"),
        (("gate", "--target", SEARCH, *BASELINE, "--threshold-jaccard", "٠"), "is not a number"),
        (("gate", "--target", SEARCH, *BASELINE, "--threshold-recall", "0.5"), "of --qrels: pass that too"),
        (
            ("gate", "--target", SEARCH, "--qrels", "qrels.json", "--threshold-top1", "0.5"),
            "of --baseline: pass that too",
        ),
        (("gate", "--target", SEARCH, *BASELINE, "-k", "0"), "-k: 0 is below 1"),
        (("gate", "--target", SEARCH, *BASELINE, "-k", "x"), "'-k'"),
        (("gate", "--target", "nonsense", *BASELINE), "--target: 'nonsense' is not a target"),
        (("gate", "--target", SEARCH, *BASELINE, "--concurrency", "0"), "concurrency must be 1 or more"),
        (("bench", "publish", "--from", "none.ndjson", "--to", "x"), "no file none.ndjson"),
        (
            ("bench", "publish", "--from", "captured.ndjson", "--to", "main.baseline.ndjson"),
            "to overwrite it: --force",
        ),
        (("bench", "publish", "--from", "captured.ndjson", "--to", "x", "--threshold-jaccard", "2"), "between 0 and 1"),
        (("bench", "publish", "--from", "captured.ndjson"), "--to"),
        (("bench", "publish", "--from", "twice.ndjson", "--to", "x"), "--deduplicate"),
        (("bench", "publish", "--from", "empty.ndjson", "--to", "x"), "no rows"),
        (("bench", "publish", "--from", "captured.ndjson", "--to", "no/x"), "--to: no folder no"),
        (("bench", "publish", "--from", "captured.ndjson", "--to", "folder", "--force"), "--to: folder is a folder"),
        (("replay", "--target", SEARCH, "--against", "captured.ndjson", "--output", "no/x"), "--output: no folder no"),
        (("replay", "--target", "http:///v1", "--against", "captured.ndjson"), "is not a valid address"),
        (("replay", "--target", SEARCH, "--against", "none.ndjson"), "no file none.ndjson"),
        (("replay", "--target", SEARCH, "--against", "bad.ndjson"), "line 1: not JSON"),
        (("replay", "--target", SEARCH, "--against", "captured.ndjson", "--limit", "0"), "--limit: 0 is below 1"),
        (("replay", "--target", SEARCH, "--against", "captured.ndjson", "--resume"), "--resume needs --output"),
        (("replay", "--target", SEARCH, "--against", "captured.ndjson", "--verbose"), "--verbose needs --json"),
        (("replay", "--against", "captured.ndjson"), "--target"),
        (("eval", "run", "--dataset", "bad.ndjson", "--target", SEARCH), "line 1: not JSON"),
        (("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--cutoffs", "5,50"), "--cutoffs"),
        (("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--gain", "log"), "--gain"),
        (("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--resume"), "--resume needs --name"),
        (("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--resume", "--name", "r"), "no run r in"),
        (("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", "../r"), "is not the name of a folder"),
        (("bench", "publish", "--from", "captured.ndjson", "--to", "./captured.ndjson", "--force"), "--from reads"),
        (
            ("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", ""),
            "--name: '' is not the name of a folder",
        ),
        (("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", "a/b"), "is not the name of a folder"),
        (("dataset", "mine", "--from", "no_rows.ndjson"), "--from: no_rows.ndjson: line 1: feedback needs"),
        (("dataset", "mine", "--from", "bad.ndjson"), "--from: bad.ndjson: line 1: not JSON"),
        (("eval", "show", "none"), "runs/none contains no run: start one with `assay eval run`"),
        (("eval", "run", "--dataset", "cases.csv", "--target", SEARCH), "assay dataset import csv cases.csv >"),
        (("dataset", "import", "csv", "latin.csv"), "latin.csv: line 2 is not UTF-8 text"),
        (("eval", "compare", "none", "other"), "contains no run"),
        (("eval", "compare", "a", "b", "--threshold", "mrr=nan"), "is not a number"),
        (("eval", "compare", "a", "b", "--threshold", "0.1"), "METRIC=VALUE"),
        (("eval", "compare", "a", "b", "--stage", "mrr=maybe"), "is not one of informational, warn, block"),
        (("eval", "compare", "a", "b", "--floor", "mrr=2"), "--floor: mrr: 2 is not between 0 and 1"),
        (("eval", "compare", "a", "b", "--html", "no/x.html"), "--html: no folder no"),
        (("eval", "compare", "a", "b", "--junit", "folder"), "--junit: folder is a folder"),
        (("eval", "compare", "a", "b", "--markdown", "-"), "--markdown: - is not a file"),
        (
            ("gate", "--target", SEARCH, *BASELINE, "--deadline", "nan"),
            "--deadline must be a number of seconds above 0",
        ),
        (("gate", "--target", SEARCH, *BASELINE, "--retries", "-1"), "--retries must be 0 or more"),
        (("dataset", "stats", "bad.ndjson"), "line 1: not JSON"),
        (("dataset", "merge", GOLDEN), "pass at least two datasets"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_with_exit_2(
    assay: Assay, baseline: str, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "bad.ndjson").write_text("{]\n")
    (tmp_path / "empty.ndjson").write_text("\n")
    (tmp_path / "no_rows.ndjson").write_text('{"verdict": "positive"}\n')
    (tmp_path / "folder").mkdir()
    (tmp_path / "cases.csv").write_text("query,expected_ids\na,x\n")
    (tmp_path / "latin.csv").write_bytes(b"query,expected_ids\ncaf\xe9,x\n")
    (tmp_path / "qrels.json").write_text('{"schema_version": 1, "queries": [{"query": "q", "relevant_slugs": ["x"]}]}')
    rows = (tmp_path / "captured.ndjson").read_text()
    (tmp_path / "twice.ndjson").write_text(rows + rows)
    assert words in assay(*arguments, code=2).output


@pytest.mark.xdist_group("evaluation")
def test_a_misspelt_run_and_a_floor_of_an_unmeasured_scorer_are_met_with_the_next_step(
    assay: Assay, tmp_path: Path
) -> None:
    run = ("eval", "run", "--dataset", GOLDEN, "--limit", "3", "--target", SEARCH, "--name")
    assay(*run, "main")
    assert "runs/mian contains no run (did you mean main?)" in assay("eval", "show", "mian", code=2).output
    (tmp_path / "rules.toml").write_text(
        '[[scorers]]\nname = "polite"\ntype = "contains"\nvalue = "please"\n\n[metrics."score:polite"]\nfloor = 0.9\n'
    )
    told = assay("eval", "compare", "main", "main", "--rules", "rules.toml", code=2).output
    assert "do not both measure score:polite; run both with the same --rules or --scorer" in told


@pytest.mark.xdist_group("evaluation")
def test_a_nightly_evaluation_that_is_not_set_names_the_file_that_was_read(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.toml").write_text("")
    monkeypatch.setenv("ASSAY_CONFIG", "other.toml")
    told = assay("eval", "nightly", "--once", code=2).output
    assert "no nightly evaluation in other.toml (ASSAY_CONFIG): set evals.dataset and evals.target there" in told


@pytest.mark.xdist_group("evaluation")
def test_a_replay_marks_scrubbed_rows(assay: Assay, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in capture(tmp_path).read_text().splitlines()]
    rows[0] |= {"query": "mail of [REDACTED]"}
    (tmp_path / "some.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = assay("replay", "--against", "some.ndjson", "--target", SEARCH).stdout
    assert "personal data was removed from 1 row(s)" in told
    assert "'mail of [REDACTED]'  (scrubbed)" in told
    found = json.loads(assay("replay", "--against", "some.ndjson", "--target", SEARCH, "--json").stdout)
    assert found["summary"]["rows_scrubbed"] == 1


@pytest.mark.xdist_group("evaluation")
def test_datasets_are_checked_compared_and_joined(assay: Assay, tmp_path: Path) -> None:
    case: dict[str, Any] = {"id": "a", "query": "q", "expected_ids": ["x"]}
    for name, cases in (
        ("one", [case]),
        ("two", [case | {"notes": "n"}]),
        ("three", [case | {"id": "b"}]),
        ("bad", [{"id": "a"}]),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({"version": "1", "cases": cases}))
    assert json.loads(assay("dataset", "validate", "one.json", "--json").stdout)["valid"] is True
    assert "query" in assay("dataset", "validate", "bad.json", code=1).output
    assert json.loads(assay("dataset", "stats", GOLDEN, "--json").stdout)["cases"] == 367
    assert "~ a: notes" in assay("dataset", "diff", "one.json", "two.json", code=1).output
    assert "version" not in assay("dataset", "diff", "one.json", "one.json").output
    (tmp_path / "later.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"version": "2", "cases": [case]}).encode())
    assert "0 changed; version 1 became 2" in assay("dataset", "diff", "one.json", "later.json").stderr
    assert json.loads(assay("dataset", "diff", "one.json", "later.json", "--json").stdout)["new_version"] == "2"
    (tmp_path / "merged.ndjson").write_text(
        assay("dataset", "merge", "one.json", "three.json", "--version", "2").stdout
    )
    assert json.loads(assay("dataset", "stats", "merged.ndjson", "--json").stdout)["cases"] == 2
    assert "differs" in assay("dataset", "merge", "one.json", "two.json", code=2).output


@pytest.mark.xdist_group("evaluation")
@pytest.mark.parametrize(("k", "cutoffs"), [("5", [5]), ("3", [3]), ("20", [5, 10])])
def test_without_cutoffs_metrics_are_cut_off_where_k_reaches(assay: Assay, k: str, cutoffs: list[int]) -> None:
    run = ("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", "a", "--limit", "2", "--json")
    assert json.loads(assay(*run, "-k", k).stdout)["config"]["cutoffs"] == cutoffs


@pytest.mark.xdist_group("evaluation")
def test_a_report_takes_only_the_dataset_that_the_runs_were_asked(assay: Assay, tmp_path: Path) -> None:
    assay("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", "a", "--limit", "5")
    compare = ("eval", "compare", "a", "a", "--inconclusive", "pass", "--html", "report.html", "--dataset")
    assay(*compare, GOLDEN)
    (tmp_path / "other.json").write_text('[{"id": "c", "query": "q", "expected_ids": ["x"]}]')
    assert "is not the dataset of these runs" in assay(*compare, "other.json", code=2).output


@pytest.mark.xdist_group("evaluation")
def test_mining_says_how_many_cases_hold_that_nothing_should_come_back(assay: Assay, tmp_path: Path) -> None:
    path = capture(tmp_path, QUESTIONS[:2])
    assert "null cases" not in assay("dataset", "mine", "--from", str(path)).stderr
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    path.write_text("".join(json.dumps(row) + "\n" for row in (first, second | {"retrieved_slugs": []})))
    told = assay("dataset", "mine", "--from", str(path)).stderr
    assert "all of them are unreviewed; 1 became null cases" in told
    path.write_text("".join(json.dumps(row) + "\n" for row in (first, second | {"query": "mail of [REDACTED]"})))
    found = assay("dataset", "mine", "--from", str(path))
    assert "1 questions left out, since personal data was removed" in found.stderr
    assert "[REDACTED]" not in found.stdout
    assert "[REDACTED]" in assay("dataset", "mine", "--from", str(path), "--include-scrubbed").stdout


@pytest.mark.xdist_group("evaluation")
def test_what_cannot_be_read_of_results_is_counted_and_said_once(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "vague_target.py").write_text(
        "def find(query):\n"
        "    return [{'slug': 'a', 'time': 'yesterday', 'actors': 5}, {'slug': 'b', 'time': None, 'actors': []}]\n"
    )
    run = ("eval", "run", "--dataset", GOLDEN, "--target", "vague_target:find", "--name", "v", "--limit", "3")
    told = assay(*run).stderr
    for field in ("time", "actors"):
        assert told.count(f"3 result(s) have an unreadable `{field}`; treated as missing") == 1
    (tmp_path / "nested_target.py").write_text(
        "def find(query):\n    return {'results': ['a'], 'answer': {'text': 'x'}, 'context': []}\n"
    )
    told = assay(*run[:5], "nested_target:find", "--name", "nested", "--limit", "3").stderr
    assert "3 response(s) have an unreadable `answer`, treated as missing: it must be text" in told
    assert "3 response(s) have an unknown key `context`, which is ignored (did you mean contexts?)" in told


@pytest.mark.xdist_group("evaluation")
def test_a_rule_for_what_is_not_measured_is_refused(assay: Assay) -> None:
    for name in ("a", "b"):
        assay("eval", "run", "--dataset", GOLDEN, "--target", SEARCH, "--name", name, "--limit", "5")
    found = assay("eval", "compare", "a", "b", "--stage", "recal@10=warn", code=2).output
    assert "--stage: recal@10: no metric of that name (did you mean recall@10?)" in found
    for option, value in (("--floor", "0.7"), ("--threshold", "0.7"), ("--stage", "block")):
        found = assay("eval", "compare", "a", "b", option, f"recal@10={value}", code=2).output
        assert "do not both measure recal@10 (did you mean recall@10?); they do: mrr, recall@5" in found


@pytest.mark.xdist_group("evaluation")
def test_answers_are_judged_and_a_target_without_answers_is_not(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "plain_target.py").write_text(
        "from assay_demo.target import search\n"
        "def slugs(query, limit=10):\n    return [each['slug'] for each in search(query, limit)['results']]\n"
        "def huge(query, limit=10):\n    return search(query, limit) | {'answer': 'x' * 300_000}\n"
    )
    for name, target in (("with", SEARCH), ("without", "plain_target:slugs"), ("huge", "plain_target:huge")):
        options = ("--name", name, "--target", target, "--limit", "5", "--judge", "lexical")
        said = assay("eval", "run", "--dataset", GOLDEN, *options)
        assert ("answers too long or malformed" in said.stderr) == (name == "huge")
        metrics = json.loads(assay("eval", "show", name, "--json").stdout)["metrics"]
        assert ("faithfulness" in metrics) == (name == "with")


#: Answers every question but those on a list, and notes what it was asked.
NOTING_TARGET = """\
from pathlib import Path
from assay_demo.target import search
def find(query, limit=10):
    with open("asked", "a") as file:
        file.write(query + "\\n")
    if Path("broken").exists() and query in Path("broken").read_text():
        raise LookupError
    return search(query, limit)
"""


@pytest.mark.xdist_group("evaluation")
def test_a_replay_that_goes_on_asks_again_what_errored_and_nothing_else_twice(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "noting_target.py").write_text(NOTING_TARGET)
    (tmp_path / "broken").write_text(QUESTIONS[1] + QUESTIONS[4])
    kept, asked = tmp_path / "out.ndjson", tmp_path / "asked"
    replay = ("replay", "--against", str(capture(tmp_path)), "--target", "noting_target:find", "--output", str(kept))
    first = json.loads(assay(*replay, "--json", "--limit", "3").stdout)["summary"]
    assert (first["rows_total"], first["rows_errored"]) == (3, 1)
    (tmp_path / "broken").unlink()
    asked.unlink()
    again = json.loads(assay(*replay, "--json", "--verbose", "--resume").stdout)
    assert sorted(asked.read_text().splitlines()) == sorted([QUESTIONS[1], *QUESTIONS[3:]])
    assert (again["summary"]["rows_replayed"], again["summary"]["rows_errored"]) == (5, 0)
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [row["id"] for row in rows] == [row["id"] for row in again["results"]] == [1, 2, 3, 4, 5]
    assert not [row for row in rows if "errored" in row]
    assert list(tmp_path.glob("out.ndjson.part")) == []


@pytest.mark.xdist_group("evaluation")
@pytest.mark.parametrize("written", [0, 1, 3])
def test_a_replay_killed_while_it_went_on_loses_nothing(assay: Assay, tmp_path: Path, written: int) -> None:
    kept, part = tmp_path / "out.ndjson", tmp_path / "out.ndjson.part"
    replay = ("replay", "--against", str(capture(tmp_path)), "--target", SEARCH, "--output", str(kept), "--json")
    assay(*replay)
    lines = kept.read_bytes().splitlines(keepends=True)
    broken = json.dumps(json.loads(lines[0]) | {"errored": True, "error_message": "HTTP 503"}).encode() + b"\n"
    kept.write_bytes(broken + lines[1])  # the first had errored; two rows were done
    part.write_bytes(b"".join(lines[:written]) + lines[written][:10])  # and it was killed while it went on
    assert json.loads(assay(*replay, "--resume").stdout)["summary"]["rows_replayed"] == 5
    assert [json.loads(line)["id"] for line in kept.read_text().splitlines()] == [1, 2, 3, 4, 5]
    assert not part.exists()
    part.write_bytes(broken)
    kept.unlink()
    assay(*replay)  # anew: what an earlier file had is no part of it
    assert json.loads(assay(*replay, "--resume").stdout)["summary"]["rows_errored"] == 0


@pytest.mark.xdist_group("evaluation")
def test_a_replay_goes_on_only_with_what_it_was_begun_with(assay: Assay, tmp_path: Path) -> None:
    rows, kept = capture(tmp_path), tmp_path / "out.ndjson"
    (tmp_path / "ask.py").write_text("import json\nprint(json.dumps(['a']))\n")
    command = ("--target", f"command: {sys.executable} ask.py --token s3cret")
    replay = ("replay", "--output", str(kept), "--against", str(rows), "--limit", "2")
    assay(*replay, *command, "-k", "3")
    assert not [path.name for path in tmp_path.iterdir() if path.is_file() and b"s3cret" in path.read_bytes()]
    assay(*replay, *command, "-k", "3", "--resume")
    resume = (*replay, "--resume")
    assert "another -k: pass the same" in assay(*resume, *command, code=2).stderr
    assert "another --target and another -k" in assay(*resume, "--target", SEARCH, code=2).stderr
    secret = ("--target", command[1].replace("s3cret", "another"))
    assert "in a redacted part" in assay(*resume, *secret, "-k", "3", code=2).stderr
    rows.write_text(rows.read_text().replace('"id": 2', '"id": 22'))
    assert "another --against" in assay(*resume, *command, "-k", "3", code=2).stderr


@pytest.mark.xdist_group("evaluation")
def test_a_replay_does_not_go_on_with_a_file_of_something_else(assay: Assay, tmp_path: Path) -> None:
    kept = tmp_path / "out.ndjson"
    replay = ("replay", "--target", SEARCH, "--output", str(kept), "--against", str(capture(tmp_path)))
    assay(*replay)
    lines = kept.read_text().splitlines(keepends=True)
    for text, words in (
        ("{]\n", "line 1, does not belong to the file"),
        (lines[0] + lines[2], "line 2, does not belong to the file"),
    ):
        kept.write_text(text)
        assert words in assay(*replay, "--resume", code=2).stderr
        assert kept.read_text() == text
    (tmp_path / "out.ndjson.run.json").unlink()
    assert "does not contain the inputs it was started with" in assay(*replay, "--resume", code=2).stderr


@pytest.mark.xdist_group("evaluation")
def test_every_row_is_in_the_report_before_the_next_is_asked_for(assay: Assay, tmp_path: Path) -> None:
    rows = str(capture(tmp_path))
    whole = json.loads(assay("replay", "--against", rows, "--target", SEARCH, "--json", "--verbose").stdout)
    short = json.loads(assay("replay", "--against", rows, "--target", SEARCH, "--json").stdout)
    assert (set(whole), set(short)) == ({"schema_version", "summary", "results"}, {"schema_version", "summary"})
    assert whole["summary"].keys() == short["summary"].keys()
    (tmp_path / "captured.ndjson").write_text((tmp_path / "captured.ndjson").read_text() + "{]\n")
    begun = assay("replay", "--against", rows, "--target", SEARCH, "--json", "--verbose", "--concurrency", "1", code=2)
    assert '"id": 1' in begun.stdout, "rows are written as they are done, so that none has to be held"
    assert "line 6: not JSON" in begun.stderr


@pytest.mark.xdist_group("evaluation")
def test_a_gate_that_cannot_look_at_latency_says_so(assay: Assay, tmp_path: Path) -> None:
    rows = capture(tmp_path)
    rows.write_text(rows.read_text().replace('"latency_ms": 100', '"latency_ms": 0'))
    assay("bench", "publish", "--from", str(rows), "--to", "hand.baseline.ndjson")
    told = assay("gate", "--baseline", "hand.baseline.ndjson", "--target", SLOW, "--inconclusive", "pass").stderr
    assert "the baseline has no latency" in told


@pytest.mark.xdist_group("evaluation")
def test_rows_written_by_hand_are_replayed_published_and_gated_as_they_are(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "hand.ndjson").write_text(BY_HAND)
    (tmp_path / "hand_target.py").write_text(BY_HAND_TARGET)
    rows, target = ("--against", "hand.ndjson"), ("--target", "hand_target:find")
    summary = json.loads(assay("replay", *rows, *target, "--json").stdout)["summary"]
    assert (summary["rows_replayed"], summary["mean_jaccard"], summary["rows_over_2x_latency"]) == (2, 1.0, 0)
    with (tmp_path / "hand.ndjson").open("a") as file:
        file.write(BY_HAND.splitlines()[0].replace("who is alice", " ") + "\n")
    said = assay("bench", "publish", "--from", "hand.ndjson", "--to", "hand.baseline.ndjson")
    assert "left out 1 row(s) that have an empty question" in said.stderr
    found = json.loads(assay("gate", "--baseline", "hand.baseline.ndjson", *target, "--json", code=3).stdout)
    assert (found["verdict"], found["regression_gate"]["summary"]["rows_total"]) == ("inconclusive", 2)


@pytest.mark.xdist_group("evaluation")
def test_scrubbed_questions_do_not_fail_an_unchanged_system_and_are_counted_apart(assay: Assay, tmp_path: Path) -> None:
    rows = capture(tmp_path, golden_questions())
    kept = rows.read_text().splitlines()
    asked = [json.loads(line) for line in kept]
    scrubbed = [
        json.dumps(row | {"id": 1_000 + row["id"], "query": f"[REDACTED] {row['id']}", "pii_families": {"email": 1}})
        for row in asked
    ]
    rows.write_text("\n".join([*kept, *scrubbed]))
    said = assay("bench", "publish", "--from", str(rows), "--to", "mixed.baseline.ndjson").stderr
    assert "personal data was removed from 30 row(s): a gate counts those separately" in said
    told = assay("gate", "--baseline", "mixed.baseline.ndjson", "--target", SEARCH).stdout
    assert "counted separately, since personal data was removed: 30 row(s), mean_jaccard 0." in told
    found = json.loads(assay("gate", "--baseline", "mixed.baseline.ndjson", "--target", SEARCH, "--json").stdout)
    assert (found["verdict"], found["regression_gate"]["summary"]["rows_scrubbed"]) == ("pass", 30)
    assert found["regression_gate"]["scrubbed"]["mean_jaccard"] < 0.7
    rows.write_text("\n".join(scrubbed))
    assay("bench", "publish", "--from", str(rows), "--to", "scrubbed.baseline.ndjson")
    none = assay("gate", "--baseline", "scrubbed.baseline.ndjson", "--target", SEARCH, "--inconclusive", "pass", code=3)
    assert "personal data was removed from every row" in none.stdout


@pytest.mark.xdist_group("evaluation")
def test_every_attempt_to_publish_is_a_line_of_the_audit(assay: Assay, tmp_path: Path) -> None:
    rows = str(capture(tmp_path))
    publish = ("bench", "publish", "--to", "main.baseline.ndjson", "--label", "main", "--threshold-top1", "0.9")
    metadata = json.loads(assay(*publish, "--from", rows, "--json").stdout)
    assay(*publish, "--from", "none.ndjson", code=2)  # not an attempt: the baseline is there already
    assay(*publish, "--from", "none.ndjson", "--force", code=2)
    (tmp_path / "bad.ndjson").write_text('{"schema_version": 1, "query": "a private question"}\n')
    assay(*publish, "--from", "bad.ndjson", "--force", code=2)
    text = ""
    for file in sorted((tmp_path / "data/audit").iterdir()):
        text += file.read_text()
        for line in file.read_text().splitlines():
            year, week, _ = datetime.fromisoformat(json.loads(line)["ts"]).isocalendar()
            assert file.name == f"bench-publish-{year}-W{week:02}.jsonl"
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    starts, ends = (
        [line for line in map(json.loads, text.splitlines()) if (line["outcome"] == "started") == begun]
        for begun in (True, False)
    )
    assert [line["attempt_id"] for line in starts] == [line["attempt_id"] for line in ends]
    assert [line["outcome"] for line in ends] == ["done", "failed", "failed"]
    assert (starts[0]["replaces"], len(starts[1]["replaces"])) == ("", 64)
    done, missing, bad = ends
    told = ("label", "source_hash", "content_hash", "row_count", "output_path", "thresholds")
    assert {key: done[key] for key in told} == {key: metadata[key] for key in told}
    assert (done["success"], "failure_reason" in done, done["thresholds"]["top1"]) == (True, False, 0.9)
    assert (missing["success"], missing["failure_reason"]) == (False, "--from: no file none.ndjson")
    assert (bad["source_hash"], bad["row_count"]) == (None, 0)
    assert bad["failure_reason"].startswith("--from: ")
    assert ": line 1:" in bad["failure_reason"]
    assert "private" not in text
    assert QUESTIONS[1] not in text


@pytest.mark.xdist_group("evaluation")
def test_no_baseline_is_published_where_the_start_cannot_be_recorded(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("")
    options = ("--from", str(capture(tmp_path)), "--to", "main.baseline.ndjson", "--data", "occupied")
    said = assay("bench", "publish", *options, code=2).stderr
    assert "nothing was published, because there is no place for an audit record" in said
    assert "choose another with --data" in said
    assert not (tmp_path / "main.baseline.ndjson").exists()
