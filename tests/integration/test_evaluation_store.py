"""Evaluation runs in a real store: once however often they are written, read back as they were, by an identity that sees nothing else."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from clickhouse_connect.driver.exceptions import DatabaseError
from typer.testing import CliRunner

from assay_cli.main import app
from assay_evals.run.model import CaseResult, Run, RunConfig, RunError
from assay_evals.run.run_store import identity, list_stored, load_stored, store_run
from assay_operations.actor import Actor
from assay_operations.errors import OperationError
from assay_operations.evaluations.run_store import apply, plan_store, store
from assay_runtime.store import Client, connect, insert_json_rows
from tests.support.sample_rows import answer, candidate, feedback, lines
from tests.support.store import PASSWORD, StoreServer

pytestmark = pytest.mark.xdist_group("evaluation-store")

STARTED, ENDED = "2026-11-20T01:02:03.456+00:00", "2026-11-20T01:03:03.456+00:00"
Assay = Callable[..., Result]
ANA = Actor("ana", "laptop", "command line")


@pytest.fixture
def evaluator(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings("evaluator").store) as client:
        yield client


@pytest.fixture
def assay(migrated: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """The command in a folder of its own; `role` says with whose settings, `code` is the exit code that is expected."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0, role: str = "evaluator") -> Result:
        file = tmp_path / f"{role}.toml"
        file.write_text(f'[store]\nurl = "{migrated.url}"\nuser = "{role}"\npassword = "{PASSWORD}"\n')
        monkeypatch.setenv("ASSAY_CONFIG", str(file))
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == code, found.output
        return found

    return run


def a_run(name: str = "r", *, cases: int = 3, started: str = STARTED, label: str | None = None) -> Run:
    config = RunConfig("golden", "1.2.0", "f" * 64, "module:search", label=label, options={"mode": "fast"})
    results = [
        CaseResult(
            f"case-{number}", "technical", [f"doc-{number}", "docs::other"], 1.5 * number,
            {"mrr": 1 / (number + 1), "null_accuracy": None}, cluster="session" if number else None, weight=1.0 + number,
        )
        for number in range(cases)
    ]  # fmt: skip
    results.append(CaseResult("broken", "status", [], None, {}, "HTTP 500", 3))
    return Run(name, config, started, ENDED, results)


def count(migrated: StoreServer, table: str, run: Run) -> int:
    with connect(migrated.settings("sre").store) as client:
        where = f"run_id = '{identity(run)}'"
        return int(client.query(f"SELECT count() FROM {table} WHERE {where}").result_rows[0][0])


def test_a_run_comes_back_from_the_store_as_it_was(migrated: StoreServer, evaluator: Client) -> None:
    run = a_run("back")
    run_id = store_run(evaluator, migrated.settings().store, run)
    for name in ("back", str(run_id)):
        found = load_stored(evaluator, name)
        assert found == run
        assert found.as_json() == run.as_json()
    (listed,) = [each for each in list_stored(evaluator) if each.name == "back"]
    assert (listed.cases, listed.errored, listed.started_at, listed.completed_at) == (4, 1, STARTED, ENDED)
    assert listed.means == pytest.approx({"mrr": (1 + 2 / 2 + 3 / 3) / 6})


def test_a_run_that_is_stored_again_or_went_on_is_there_once(migrated: StoreServer, evaluator: Client) -> None:
    stopped, whole = a_run("again", cases=2), a_run("again", cases=5)
    for run in (stopped, stopped, whole, whole):
        store_run(evaluator, migrated.settings().store, run)
    assert (count(migrated, "eval_runs", whole), count(migrated, "eval_results", whole)) == (1, 6)
    assert load_stored(evaluator, "again") == whole


def test_of_two_runs_with_one_name_the_later_is_found_and_both_are_kept(
    migrated: StoreServer, evaluator: Client
) -> None:
    earlier, later = a_run("main"), a_run("main", started="2026-11-21T00:00:00.000+00:00", label="later")
    for run in (later, earlier):
        store_run(evaluator, migrated.settings().store, run)
    assert load_stored(evaluator, "main") == later
    assert load_stored(evaluator, str(identity(earlier))) == earlier


def test_a_run_that_is_not_there_is_an_error_that_says_where_to_look(evaluator: Client) -> None:
    with pytest.raises(RunError, match="assay eval list --store"):
        load_stored(evaluator, "nobody")


def recorded(migrated: StoreServer, run: Run) -> list[tuple[str, str, str, int, int]]:
    with connect(migrated.settings("operator").store) as client:
        rows = client.query(
            "SELECT actor, outcome, identity, planned, changed FROM operations WHERE operation = 'eval store'"
            " AND JSONExtractString(target, 'run_id') = {run:String} ORDER BY started_at",
            parameters={"run": str(identity(run))},
        ).result_rows
    return [tuple(row) for row in rows]


@pytest.fixture
def data(migrated: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with the settings of evaluator and operator."""
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/secrets").mkdir(parents=True)
    for role in ("evaluator", "operator"):
        file = tmp_path / f"data/secrets/{role}.toml"
        file.write_text(f'[store]\nurl = "{migrated.url}"\nuser = "{role}"\npassword = "{PASSWORD}"\n')
        file.chmod(0o600)
    return tmp_path / "data"


def test_replacing_rows_of_a_stored_run_is_recorded_and_storing_the_same_again_is_not(
    migrated: StoreServer, evaluator: Client, data: Path
) -> None:
    run = a_run("edited", cases=4)
    long = replace(run.results[-1], error="HTTP 500 " * 500)
    run = replace(run, results=[*run.results[:-1], long])
    assert store(run, data, ANA).replaced == 0
    assert store(run, data, ANA).replaced == 0
    assert recorded(migrated, run) == []
    better = replace(run.results[0], metrics={"mrr": 1.0, "null_accuracy": 1.0})
    edited = replace(run, results=[better, *run.results[1:]])
    plan = plan_store(edited, data)
    assert (plan.replaces, apply(plan, ANA).replaced) == (2, 2)
    assert recorded(migrated, run) == [("ana", "done", "evaluator", 2, 2)]
    assert load_stored(evaluator, "edited").results[0] == better
    assert apply(plan, ANA).replaced == 0
    assert len(recorded(migrated, run)) == 1


def test_a_run_that_goes_on_and_is_stored_again_is_recorded_by_the_rows_that_change(
    migrated: StoreServer, data: Path
) -> None:
    stopped, whole = replace(a_run("onwards", cases=2), completed_at=None), a_run("onwards", cases=2)
    more = replace(whole, results=[*whole.results, CaseResult("new", "status", [], None, {})])
    assert [store(run, data, ANA).replaced for run in (stopped, more)] == [0, 1]
    assert [row[3:] for row in recorded(migrated, whole)] == [(1, 1)]


def test_without_the_operators_settings_the_record_waits_in_the_data_directory(
    migrated: StoreServer, data: Path
) -> None:
    (data / "secrets/operator.toml").unlink()
    run = a_run("alone")
    store(run, data, ANA)
    store(replace(run, completed_at=None), data, ANA)
    lines = [json.loads(line) for line in (data / "audit/operations-waiting.jsonl").read_text().splitlines()]
    assert [(line["operation"], line["outcome"], line["changed"]) for line in lines] == [
        ("eval store", "started", 0),
        ("eval store", "done", 1),
    ]


def test_rows_are_not_replaced_if_the_record_has_no_place(evaluator: Client, data: Path) -> None:
    run = a_run("placeless")
    store(run, data, ANA)
    (data / "secrets/operator.toml").unlink()
    (data / "audit").write_text("occupied")
    with pytest.raises(OperationError, match="no place for an audit record"):
        store(replace(run, completed_at=None), data, ANA)
    assert load_stored(evaluator, "placeless") == run


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM assay.candidates",
        "SELECT * FROM assay.answers",
        "SELECT * FROM assay.feedback",
        "SELECT * FROM assay_base.eval_runs",
        "SELECT * FROM assay_base.candidates",
        "ALTER TABLE assay_base.eval_runs DELETE WHERE 1",
        "TRUNCATE TABLE assay_base.eval_results",
        "DROP TABLE assay_base.eval_outcomes",
        "SELECT * FROM assay.contradiction_pairs",
        "SELECT texts FROM assay.contradiction_pairs",
        "SELECT finding_id FROM assay.contradiction_pairs WHERE query = ''",
        "SELECT * FROM assay.contradiction_labels",
        "SELECT note FROM assay.contradiction_labels",
        "ALTER TABLE assay_base.contradiction_labels DELETE WHERE 1",
        "INSERT INTO assay_base.contradiction_labels (schema_version) VALUES (1)",
        "INSERT INTO assay_base.candidates SELECT * FROM assay_base.candidates",
        "INSERT INTO assay_base.eval_runs (name) SELECT query FROM assay.candidates",
        "CREATE TABLE assay_base.mine (a UInt8) ENGINE = Memory",
        "SYSTEM FLUSH LOGS",
    ],
)
def test_an_evaluator_sees_nothing_that_was_captured_and_deletes_nothing(evaluator: Client, statement: str) -> None:
    with pytest.raises(DatabaseError) as refused:
        evaluator.command(statement)
    assert refused.value.code in {497, 164}, statement


def test_the_command_stores_lists_shows_and_compares(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "stored_target.py").write_text(
        "def find(query, limit=10):\n    return {'results': [query[::-1], query], 'latency_ms': 1.0}\n"
    )
    cases = [{"id": f"c{number}", "query": f"doc{number}", "expected_ids": [f"doc{number}"]} for number in range(80)]
    (tmp_path / "golden.json").write_text(json.dumps({"version": "1", "name": "cli", "cases": cases}))
    run = ("eval", "run", "--dataset", "golden.json", "--target", "stored_target:find", "--progress", "none")
    assay(*run, "--name", "one", "--store", "--project", "shop", "--tag", "weekly")
    assay(*run, "--name", "two")
    assert "eval store two" in assay("eval", "store", "two", role="sre", code=2).output
    assert "clickhouse: run " in assay("eval", "report", "two", "--to", "clickhouse").stderr
    listed = [json.loads(line) for line in assay("eval", "list", "--store", "--json").stdout.splitlines()]
    assert {(each["name"], each["project"]) for each in listed if each["dataset"] == "cli"} == {
        ("one", "shop"),
        ("two", "default"),
    }
    tagged = assay(
        "eval", "list", "--store", "--json", "--tag", "weekly", "--project", "shop", "--limit", "5"
    ).stdout.splitlines()
    assert [json.loads(line)["name"] for line in tagged] == ["one"]
    assert assay("eval", "list", "--store", "--json", "--tag", "weekly", "--branch", "nowhere").stdout == ""
    shown = json.loads(assay("eval", "show", "one", "--store", "--json").stdout)
    assert shown == json.loads(assay("eval", "show", "one", "--json").stdout)
    assert "verdict: pass" in assay("eval", "compare", "one", "two", "--store").output
    in_trec = assay("eval", "export", "one", "--format", "trec", "--store").stdout
    assert in_trec == assay("eval", "export", "one", "--format", "trec").stdout
    assert in_trec.splitlines()[:2] == ["c0 Q0 0cod 1 2 one", "c0 Q0 doc0 2 1 one"]
    assert "contains no run" in assay("eval", "show", "nobody", "--store", code=2).output


@pytest.fixture
def traffic(migrated: StoreServer) -> None:
    """Two retrievals, an answer on one of them, and what three people thought."""
    bad, good = (
        candidate(number, query=query, pii_families={})
        for number, query in enumerate(("why is the disk full", "rotate the signing key"), start=1)
    )
    said = answer(3, query="rotate the signing key", citations=[{"context_id": "c1", "claim": None}])
    verdicts = [
        feedback(4, target_event_id=bad["event_id"], verdict="negative", text="useless words"),
        feedback(5, target_event_id=said["event_id"], user_hash="u1"),
        feedback(6, target_event_id="0190a000-0000-7000-8000-000000000000", verdict="negative"),
    ]
    with connect(migrated.settings("writer").store) as client:
        owner = {"candidates": [bad, good], "answers": [said], "feedback": verdicts}
        watermark = {"shard": 0, "watermark": 2**53 - 1}  # exports read no further
        for table, rows in {**owner, "watermarks": [watermark]}.items():
            insert_json_rows(client, f"assay_base.{table}", lines(rows), len(rows))


@pytest.mark.usefixtures("traffic")
def test_production_is_mined_from_the_store_and_from_its_exports_alike(assay: Assay, tmp_path: Path) -> None:
    mined = assay("dataset", "mine", "--since", "1d", role="sre").stdout
    for kind in ("retrieval", "answer", "feedback"):
        exported = assay("export", "--kind", kind, "--since", "1d", "--quiet", role="exporter").stdout
        (tmp_path / f"{kind}.ndjson").write_text(exported)
    files = [part for kind in ("feedback", "answer", "retrieval") for part in ("--from", f"{kind}.ndjson")]
    cases = [json.loads(line) for line in mined.splitlines()[1:]]
    assert {case["query"]: case["expected_ids"] for case in cases} == {
        "why is the disk full": ["guides/keys", "guides/rotation"],
        "rotate the signing key": ["c1"],
    }
    assert cases[0]["query"] == "why is the disk full", "what people found bad comes first"
    assert "useless words" not in mined
    again = assay("dataset", "mine", *files, role="sre").stdout
    assert sorted(again.splitlines()[1:]) == sorted(mined.splitlines()[1:])
    (tmp_path / "mined.ndjson").write_text(mined)
    assay("dataset", "validate", "mined.ndjson")
    assert "nothing to mine" in assay("dataset", "mine", *files, "--known", "mined.ndjson", code=2).output


@pytest.mark.usefixtures("traffic")
def test_feedback_is_counted_beside_what_it_judges(assay: Assay) -> None:
    rows = [json.loads(line) for line in assay("feedback", "summary", "--json", role="sre").stdout.splitlines()]
    found = {row["kind"]: (row["positive"], row["negative"], row["events"], row["service"]) for row in rows}
    assert set(found) == {"answer", "retrieval", "unknown"}
    assert found["answer"][3] == "search"
    assert found["answer"][0] >= 1
    assert found["retrieval"][1] >= 1
    assert "negative" in assay("feedback", "summary", role="sre").output


def test_a_hand_made_file_is_scrubbed_before_it_is_mined(assay: Assay, tmp_path: Path) -> None:
    row = {"schema_version": 1, "query": "mail alice@example.com about keys", "retrieved_slugs": ["a"]}
    (tmp_path / "rows.ndjson").write_text(json.dumps(row) + "\n")
    assert "alice@example.com" not in assay("dataset", "mine", "--from", "rows.ndjson", "--include-scrubbed").output
    told = assay("dataset", "mine", "--from", "rows.ndjson", code=2).output
    assert "1 questions left out, since personal data was removed" in told
