"""Runs handed over to experiment trackers, each a server over a real socket that answers in the shapes of its public API."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_evals.reporters import ReporterError, open_reporter
from assay_evals.reporters.api import TRIES, Api
from tests.support.assay_command import Assay, assay_in
from tests.support.tracker_server import Answer, Asked, TrackerServer

QUESTION, EXPECTED = "what is the secret of soup?", "salt"
TARGET = """
def search(query):
    if "fails" in query:
        raise LookupError(query)
    return {"results": ["a", "b"], "answer": "pepper", "contexts": [], "latency_ms": 12.0}
"""
KEYS = {
    "MLFLOW_TRACKING_TOKEN": "k3y",
    "BRAINTRUST_API_KEY": "k3y",
    "LANGFUSE_PUBLIC_KEY": "public",
    "LANGFUSE_SECRET_KEY": "k3y",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-key=k3y%3D",
}


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """The command, in a folder of its own with a finished run `one`; `code` is the exit code that is expected."""
    run = assay_in(tmp_path, monkeypatch)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    for name in ("MLFLOW_TRACKING_URI", "LANGFUSE_HOST", "BRAINTRUST_API_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    Path("reported_target.py").write_text(TARGET)
    cases = [
        {"id": "=c1", "query": QUESTION, "expected_ids": ["a"], "expected_answer": EXPECTED},
        {"id": "c2", "query": "and of bread?", "expected_ids": ["b"], "query_type": "actor"},
        {"id": "c3", "query": "what fails?", "expected_ids": ["b"]},
    ]
    Path("golden.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))

    run(
        "eval",
        "run",
        "--dataset",
        "golden.jsonl",
        "--target",
        "reported_target:search",
        "--name",
        "one",
        "--tag",
        "t",
        code=1,
    )
    return run


@pytest.fixture
def tracker() -> Iterator[Callable[[Callable[[Asked], Answer]], TrackerServer]]:
    """Starts trackers, and stops them."""
    started: list[TrackerServer] = []

    def start(answer: Callable[[Asked], Answer]) -> TrackerServer:
        started.append(TrackerServer(answer))
        return started[-1]

    yield start
    for each in started:
        each.close()


Tracker = Callable[[Callable[[Asked], Answer]], TrackerServer]


class FakeMLflow:
    """Experiments and runs by name and tag, as MLflow 2's tracking server answers."""

    def __init__(self) -> None:
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, dict[str, Any]] = {}

    def __call__(self, asked: Asked) -> Answer:
        match asked.path.removeprefix("/api/2.0/mlflow/"):
            case "experiments/get-by-name":
                name = asked.query["experiment_name"]
                if name not in self.experiments:
                    return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
                return 200, {"experiment": {"experiment_id": self.experiments[name], "name": name}}
            case "experiments/create":
                return 200, {
                    "experiment_id": self.experiments.setdefault(asked.body["name"], str(len(self.experiments) + 1))
                }
            case "runs/search":
                mark = asked.body["filter"].split("'")[1]
                return 200, {
                    "runs": [{"info": {"run_id": name}} for name, run in self.runs.items() if run["mark"] == mark]
                }
            case "runs/create":
                tags = {tag["key"]: tag["value"] for tag in asked.body["tags"]}
                name = f"r{len(self.runs)}"
                self.runs[name] = {"mark": tags["assay.run"], "tags": tags, "metrics": {}, "params": {}}
                return 200, {"run": {"info": {"run_id": name}}}
            case "runs/log-batch":
                run = self.runs[asked.body["run_id"]]
                run["metrics"] |= {each["key"]: each["value"] for each in asked.body["metrics"]}
                run["params"] |= {each["key"]: each["value"] for each in asked.body["params"]}
                return 200, {}
            case "runs/update":
                self.runs[asked.body["run_id"]]["status"] = asked.body["status"]
                return 200, {"run_info": {}}
        return 404, {}


def test_mlflow_holds_one_run_however_often_it_is_reported(assay: Assay, tracker: Tracker) -> None:
    mlflow = FakeMLflow()
    server = tracker(mlflow)
    for _ in range(2):
        assay("eval", "report", "one", "--to", f"mlflow={server.url}")
    assert list(mlflow.experiments) == ["assay/default/dataset"]
    (run,) = mlflow.runs.values()
    assert run["status"] == "FINISHED"
    assert run["tags"]["assay.tag.t"] == "true"
    assert run["metrics"]["mrr"] == pytest.approx(0.75)
    assert run["metrics"]["recall_at_5"] == 1.0
    assert run["metrics"]["errored"] == 1.0
    assert run["metrics"]["mrr/low"] < 0.75 < run["metrics"]["mrr/high"]
    assert run["params"]["target"] == "reported_target:search"
    assert {each.headers["authorization"] for each in server.asked} == {"Bearer k3y"}
    assert_no_texts(server)


def braintrust(asked: Asked) -> Answer:
    if asked.path == "/v1/project":
        return 200, {"id": "p1", "name": asked.body["name"]}
    if asked.path == "/v1/experiment":
        return 200, {"id": "e1", "project_id": asked.body["project_id"], "name": asked.body["name"]}
    return 200, {"row_ids": [each["id"] for each in asked.body["events"]]}


def test_braintrust_gets_an_event_for_each_case(assay: Assay, tracker: Tracker) -> None:
    server = tracker(braintrust)
    for _ in range(2):
        assay("eval", "report", "one", "--to", f"braintrust={server.url}")
    first, second = (each.body["events"] for each in server.at("/v1/experiment/e1/insert"))
    assert [each["id"] for each in first] == [each["id"] for each in second], "so that the second replaces the first"
    assert [each["metadata"]["case_id"] for each in first] == ["=c1", "c2", "c3"]
    assert first[0]["scores"]["mrr"] == 1.0
    assert first[0]["metrics"] == {"latency_s": 0.012}
    assert all(0 <= score <= 1 for each in first for score in each["scores"].values())
    assert first[2]["error"].startswith("LookupError")
    assert server.at("/v1/experiment")[0].body["tags"] == ["t"]
    assert_no_texts(server)


def langfuse(asked: Asked) -> Answer:
    if asked.path == "/api/public/ingestion":
        return 207, {"successes": [{"id": each["id"], "status": 201} for each in asked.body["batch"]], "errors": []}
    return 200, {}


def test_langfuse_gets_an_item_for_each_case_and_its_scores(assay: Assay, tracker: Tracker) -> None:
    server = tracker(langfuse)
    assay("eval", "report", "one", "--to", f"langfuse={server.url}", "--report-text", "--dataset", "golden.jsonl")
    (traces,) = server.at("/api/public/otel/v1/traces")
    spans = traces.body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    found = [{each["key"]: each["value"]["stringValue"] for each in span["attributes"]} for span in spans]
    assert [each["langfuse.experiment.item.id"] for each in found] == ["=c1", "c2", "c3"]
    assert len({each["langfuse.experiment.id"] for each in found}) == 1
    assert found[0]["langfuse.observation.input"] == QUESTION
    assert found[0]["langfuse.experiment.item.expected_output"] == EXPECTED
    assert found[0]["langfuse.experiment.item.root_observation_id"] == spans[0]["spanId"]
    assert found[2]["langfuse.observation.level"] == "ERROR"
    scores = [each["body"] for asked in server.at("/api/public/ingestion") for each in asked.body["batch"]]
    assert {(each["name"], each["value"]) for each in scores if each["traceId"] == spans[0]["traceId"]} >= {
        ("mrr", 1.0)
    }
    assert len({each["id"] for each in scores}) == len(scores)
    assert traces.headers["x-langfuse-ingestion-version"] == "4"
    assert traces.headers["authorization"].startswith("Basic ")


def test_scores_that_langfuse_refuses_are_counted(assay: Assay, tracker: Tracker) -> None:
    def refusing(asked: Asked) -> Answer:
        if asked.path != "/api/public/ingestion":
            return 200, {}
        return 207, {"successes": [], "errors": [{"id": each["id"], "status": 400} for each in asked.body["batch"][:2]]}

    found = assay("eval", "report", "one", "--to", f"langfuse={tracker(refusing).url}", code=2)
    assert "refused 2 of" in found.stderr


def test_a_collector_gets_an_event_for_each_metric_of_each_case(assay: Assay, tracker: Tracker) -> None:
    server = tracker(lambda _: (200, {}))
    assay("eval", "report", "one", "--to", f"otel={server.url}")
    (logs,) = server.at("/v1/logs")
    records = logs.body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert {each["eventName"] for each in records} == {"gen_ai.evaluation.result"}
    pairs = [{each["key"]: next(iter(each["value"].values())) for each in record["attributes"]} for record in records]
    assert {"mrr", "recall@5", "answered"} <= {each["gen_ai.evaluation.name"] for each in pairs}
    (failed,) = [each for each in pairs if "error.type" in each]
    assert failed["assay.case_id"] == "c3"
    assert "gen_ai.evaluation.score.value" not in failed
    assert logs.headers["x-key"] == "k3y="
    assert_no_texts(server)


def test_a_collector_that_rejects_a_part_is_not_well(assay: Assay, tracker: Tracker) -> None:
    server = tracker(lambda _: (200, {"partialSuccess": {"rejectedLogRecords": "7"}}))
    assert "rejected 7 events" in assay("eval", "report", "one", "--to", f"otel={server.url}", code=2).stderr


def test_files_hold_the_run_and_no_formula(assay: Assay) -> None:
    found = assay("eval", "report", "one", "--to", "files=out")
    assert "files: out/one" in found.stderr
    rows = table("one")
    assert [row["case_id"] for row in rows] == ["'=c1", "c2", "c3"]
    assert "query" not in rows[0]
    assert (rows[1]["mrr"], rows[2]["mrr"]) == ("0.5", "")
    assert json.loads(Path("out/one/report.json").read_text())["run_id"] == "one"
    assert Path("out/one/cases.csv").stat().st_mode & 0o777 == 0o600
    assay("eval", "report", "one", "--to", "files=out", "--report-text", "--dataset", "golden.jsonl")
    assert table("one")[0]["query"] == QUESTION


def test_texts_of_another_dataset_are_refused(assay: Assay) -> None:
    changed = Path("golden.jsonl").read_text().replace(QUESTION, "another question")
    Path("other.jsonl").write_text(changed)
    told = ("eval", "report", "one", "--to", "files=elsewhere", "--report-text", "--dataset", "other.jsonl")
    assert "is not the dataset of one" in assay(*told, code=2).stderr
    assert not Path("elsewhere").exists()


def test_a_tracker_that_is_busy_is_asked_again(assay: Assay, tracker: Tracker) -> None:
    server = tracker(braintrust)
    server.fail = [(503, {}), (429, {"Retry-After": "0"})]
    assay("eval", "report", "one", "--to", f"braintrust={server.url}")
    assert len(server.at("/v1/project")) == 3


def test_a_tracker_that_never_answers_well_keeps_the_run_from_no_other(assay: Assay, tracker: Tracker) -> None:
    server = tracker(lambda _: (503, None))
    found = assay("eval", "report", "one", "--to", f"mlflow={server.url}", "--to", "files=out", code=2)
    assert f"HTTP 503, {TRIES} times" in found.stderr
    assert "assay eval report one --to mlflow\n" in found.stderr
    assert Path("out/one/report.json").exists()


@pytest.mark.parametrize(
    ("status", "document", "words"),
    [
        (401, {"message": QUESTION}, "the key is refused"),
        (400, {"message": QUESTION}, "it does not accept such a report"),
        (200, {"message": QUESTION}, "its answer has no id"),
        (200, None, "its answer has no id"),
    ],
)
def test_what_a_tracker_says_is_never_quoted(
    assay: Assay, tracker: Tracker, status: int, document: Any, words: str
) -> None:
    found = assay("eval", "report", "one", "--to", f"braintrust={tracker(lambda _: (status, document)).url}", code=2)
    assert words in found.stderr
    assert QUESTION not in found.output
    assert "k3y" not in found.output


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("mlflov", "did you mean mlflow?"),
        ("mlflow", "MLFLOW_TRACKING_URI"),
        ("otel", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("mlflow=http://tracker.example", "not sent unencrypted"),
        ("langfuse=ftp://x", "https://host"),
        ("mlflow=http://user:word@127.0.0.1", "without a user"),
    ],
)
def test_a_reporter_that_cannot_be_is_refused(assay: Assay, to: str, words: str) -> None:
    found = assay("eval", "report", "one", "--to", to, code=2)
    assert words in found.stderr
    assert "word@" not in found.output


def test_a_missing_key_is_told_before_anything_is_asked(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAINTRUST_API_KEY")
    run = ("eval", "run", "--dataset", "golden.jsonl", "--target", "reported_target:search", "--name", "two")
    assert "set BRAINTRUST_API_KEY" in assay(*run, "--report", "braintrust", code=2).stderr
    assert not Path("runs/two").exists()


def test_a_run_is_handed_over_as_it_ends(assay: Assay) -> None:
    run = ("eval", "run", "--dataset", "golden.jsonl", "--target", "reported_target:search", "--name", "two")
    assay(*run, "--report", "files=out", "--report-text", code=1)
    assert table("two")[0]["expected_answer"] == EXPECTED


def test_texts_are_told_only_with_their_dataset(assay: Assay) -> None:
    assert "belong together" in assay("eval", "report", "one", "--to", "files", "--report-text", code=2).stderr


def test_every_shipped_reporter_is_an_entry_point() -> None:
    with pytest.raises(ReporterError) as refused:
        open_reporter("none")
    assert "there are: braintrust, clickhouse, files, langfuse, mlflow, otel" in str(refused.value)


def test_a_key_that_http_cannot_carry_is_told_at_once(
    assay: Assay, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAINTRUST_API_KEY", "k3y\n")
    server = tracker(braintrust)
    assert "a key or header" in assay("eval", "report", "one", "--to", f"braintrust={server.url}", code=2).stderr


def test_nobody_listening_is_one_line(assay: Assay) -> None:
    with pytest.raises(ReporterError, match="not reached"), Api("x", "http://127.0.0.1:1") as api:
        api.send("GET", "/")


def table(run: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path(f"out/{run}/cases.csv").read_text())))


def assert_no_texts(server: TrackerServer) -> None:
    sent = json.dumps([each.body for each in server.asked])
    for text in (QUESTION, EXPECTED, "pepper", "what fails"):
        assert text not in sent
