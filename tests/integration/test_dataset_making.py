"""Datasets and runs that come from elsewhere, reviews, releases, and what a run says of the checkout, through the command line."""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app
from assay_evals.dataset.file_format import read_dataset
from assay_evals.dataset.model import Dataset

Assay = Callable[..., Result]
TARGET = "def search(query):\n    return ['a', 'b']\n"


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """The command, in a folder of its own; `code` is the exit code that is expected."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made_target.py").write_text(TARGET)
    for name in ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, code: int = 0, said: str | None = None) -> Result:
        found = CliRunner().invoke(app, list(arguments), input=said)
        assert found.exit_code == code, found.output
        return found

    return run


def printed(found: Result) -> Dataset:
    return read_dataset("".join(line for line in found.stdout.splitlines(keepends=True) if line.startswith("{")))


def test_beirs_folder_and_trecs_files_make_the_same_dataset(assay: Assay) -> None:
    Path("qrels").mkdir()
    Path("qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n")
    Path("queries.jsonl").write_text(
        '{"_id": "1", "text": "one?"}\n{"_id": "2", "text": "two?"}\n{"_id": "3", "text": "three?"}\n'
    )
    Path("all.qrels").write_text("1 0 a 1\n2 0 b 1\n")
    beir, trec = (
        assay("dataset", "import", "beir", "."),
        assay("dataset", "import", "trec", "all.qrels", "--queries", "queries.jsonl"),
    )
    assert printed(beir).fingerprint == printed(trec).fingerprint
    assert "1 question(s) without a judgement" in beir.stderr
    assert "2 cases" in trec.stderr


def test_what_cannot_be_imported_exits_2_and_prints_nothing(assay: Assay) -> None:
    Path("bad.csv").write_text("query,expected_ids\na\nb\n")
    found = assay("dataset", "import", "csv", "bad.csv", code=2)
    assert (found.stdout, found.exception.__class__) == ("", SystemExit)
    assert "line 2" in found.stderr
    assert "line 3" in found.stderr
    assert "--queries" in assay("dataset", "import", "trec", "bad.csv", code=2).stderr
    assert "is not a folder" in assay("dataset", "import", "beir", "bad.csv", code=2).stderr
    assert "bad.csv" in assay("dataset", "import", "qrels", "bad.csv", code=2).stderr


def test_a_run_of_another_program_is_compared_with_ones_own(assay: Assay) -> None:
    Path("golden.jsonl").write_text(
        "".join(f'{{"id": "{n}", "query": "q{n}", "expected_ids": ["a"]}}\n' for n in range(200))
    )
    Path("bm25.run").write_text(
        "".join(f"{n} Q0 z 1 2.5 bm25\n{n} Q0 a 2 1.5 bm25\n" for n in range(199)) + "x Q0 a 1 1 bm25\n"
    )
    found = assay("eval", "import", "bm25.run", "--dataset", "golden.jsonl", "--name", "bm25")
    assert "1 case(s) missing in the file" in found.stderr
    assert "1 qid(s) skipped" in found.stderr
    assay("eval", "run", "--dataset", "golden.jsonl", "--target", "made_target:search", "--name", "own")
    shown = json.loads(assay("eval", "show", "bm25", "--json").stdout)
    assert shown["metrics"]["mrr"]["mean"] == pytest.approx(199 / 400)
    assert shown["latency"] == {}
    compared = json.loads(assay("eval", "compare", "bm25", "own", "--json").stdout)
    assert compared["verdict"] == "pass"
    other = assay("eval", "import", "bm25.run", "--dataset", "golden.jsonl", "--name", "bm25", code=2)
    assert "already contains a run" in other.stderr


def test_a_run_is_exported_to_other_programs_and_comes_back(assay: Assay) -> None:
    Path("golden.jsonl").write_text(
        "".join(f'{{"id": "{n}", "query": "question {n}", "expected_ids": ["{"ab"[n % 2]}"]}}\n' for n in range(100))
    )
    assay("eval", "run", "--dataset", "golden.jsonl", "--target", "made_target:search", "--name", "own")

    def export(form: str, *more: str, code: int = 0) -> Result:
        return assay("eval", "export", "own", "--format", form, *more, code=code)

    Path("own.run").write_text(export("trec").stdout)
    assay("eval", "import", "own.run", "--dataset", "golden.jsonl", "--name", "again")
    own, again = (json.loads(assay("eval", "show", name, "--json").stdout) for name in ("own", "again"))
    assert {name: own["metrics"][name] for name in again["metrics"]} == again["metrics"]
    Path("own.qrels").write_text(export("trec-qrels", "--dataset", "golden.jsonl").stdout)
    Path("topics.tsv").write_text("".join(f"{n}\tquestion {n}\n" for n in range(100)))
    judged = printed(assay("dataset", "import", "trec", "own.qrels", "--queries", "topics.tsv"))
    assert [case.relevance for case in judged.cases] == [{"ab"[n % 2]: 1} for n in range(100)]
    Path("own.ndjson").write_text(export("captured", "--dataset", "golden.jsonl").stdout)
    replayed = json.loads(
        assay("replay", "--against", "own.ndjson", "--target", "made_target:search", "--json").stdout
    )["summary"]
    assert (replayed["rows_total"], replayed["mean_jaccard"]) == (100, 1.0)
    Path("own.json").write_text(export("qrels", "--dataset", "golden.jsonl").stdout)
    assay("gate", "--qrels", "own.json", "--target", "made_target:search", "--threshold-first-relevant", "0.3")
    assert "pass --dataset" in export("captured", code=2).stderr
    assert "needs no --dataset" in export("trec", "--dataset", "golden.jsonl", code=2).stderr
    Path("other.jsonl").write_text('{"id": "1", "query": "another question", "expected_ids": ["a"]}\n')
    refused = export("captured", "--dataset", "other.jsonl", code=2)
    assert (refused.stdout, "is not the dataset of own" in refused.stderr) == ("", True)


def test_a_run_with_an_id_that_trec_cannot_hold_prints_nothing(assay: Assay) -> None:
    Path("golden.jsonl").write_text(
        '{"id": "1", "query": "q", "expected_ids": ["a"]}\n{"id": "2 b", "query": "r", "expected_ids": ["a"]}\n'
    )
    assay("eval", "run", "--dataset", "golden.jsonl", "--target", "made_target:search", "--name", "own")
    refused = assay("eval", "export", "own", "--format", "trec", code=2)
    assert refused.stdout == ""
    assert "case '2 b': its id is empty or contains white space" in refused.stderr


def test_gbrains_captured_rows_and_baselines_are_used_as_they_are(assay: Assay) -> None:
    rows: list[dict[str, object]] = [
        {
            "schema_version": 1, "id": n, "tool_name": "query", "query": f"question {n}", "retrieved_slugs": ["a", "b"],
            "retrieved_chunk_ids": [7, 7, 9], "source_ids": [], "expand_enabled": None, "detail": None,
            "detail_resolved": "medium", "vector_enabled": True, "expansion_applied": False, "latency_ms": 12,
            "remote": False, "job_id": None, "subagent_id": None, "embedding_column": None,
            "created_at": "2026-11-20T01:02:03.456Z",
        }
        for n in range(1, 101)
    ]  # fmt: skip
    Path("captured.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    replayed = assay("replay", "--against", "captured.ndjson", "--target", "made_target:search", "--json").stdout
    assert json.loads(replayed)["summary"]["mean_jaccard"] == 1.0
    hashes = [hashlib.sha256(f"question {n}".encode()).hexdigest()[:16] for n in range(1, 101)]
    hashed = sorted(
        ({**row, "query_hash": each} for row, each in zip(rows, hashes, strict=True)),
        key=lambda row: str(row["query_hash"]),
    )
    metadata = {
        "schema_version": 1, "_kind": "baseline_metadata", "label": "personal-20261120",
        "published_at": "2026-11-20T01:02:03.456Z", "source_hash": hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest(),
        "thresholds": {"jaccard": 0.9, "top1": 0.75, "latency_multiplier": 1000},
        "row_count": 100, "baseline_mean_latency_ms": 12,
    }  # fmt: skip
    Path("theirs.baseline.ndjson").write_text("".join(json.dumps(each) + "\n" for each in (metadata, *hashed)))
    gate = ("gate", "--target", "made_target:search", "--baseline")
    assert "assay bench publish --from" in assay(*gate, "theirs.baseline.ndjson", code=2).stderr
    publish = ("bench", "publish", "--from", "theirs.baseline.ndjson", "--to")
    made = json.loads(assay(*publish, "ours.baseline.ndjson", "--threshold-top1", "0.8", "--json").stdout)
    assert (made["label"], made["row_count"], made["source_hash"]) == (
        "personal-20261120",
        100,
        metadata["source_hash"],
    )
    assert made["thresholds"] == {"jaccard": 0.9, "top1": 0.8, "latency_multiplier": 1000}
    assay(*gate, "ours.baseline.ndjson")
    cut = Path("theirs.baseline.ndjson").read_text().splitlines(keepends=True)[:-1]
    Path("theirs.baseline.ndjson").write_text("".join(cut))
    assert "cut or changed" in assay(*publish, "cut.baseline.ndjson", code=2).stderr
    assert not Path("cut.baseline.ndjson").exists()


def test_a_review_in_a_terminal_is_not_needed_and_a_required_one_is(assay: Assay) -> None:
    Path("mined.jsonl").write_text(
        "".join(f'{{"id": "m{n}", "query": "q{n}", "expected_ids": ["a"], "reviewed": false}}\n' for n in range(3))
    )
    run = ("eval", "run", "--dataset", "mined.jsonl", "--target", "made_target:search")
    refused = assay(*run, "--require-reviewed", code=2)
    assert "3 of 3 cases of mined.jsonl are unreviewed" in refused.stderr
    assert "assay dataset review mined.jsonl" in refused.stderr
    assert not Path("runs").exists()
    assert "3 of 3 cases" in assay(*run, "--name", "asked").stderr
    listed = assay("dataset", "review", "mined.jsonl")
    assert listed.stderr.splitlines()[:3] == ["unreviewed: m0", "unreviewed: m1", "unreviewed: m2"]
    kept = assay("dataset", "review", "mined.jsonl", "--keep", "m0", "--keep", "m1", "--drop", "m2")
    assert "2 kept, 1 dropped, 0 unreviewed" in kept.stderr
    Path("golden.jsonl").write_text(kept.stdout)
    assay(
        "eval",
        "run",
        "--dataset",
        "golden.jsonl",
        "--target",
        "made_target:search",
        "--require-reviewed",
        "--name",
        "kept",
    )
    assert "zz" in assay("dataset", "review", "mined.jsonl", "--keep", "zz", code=2).stderr


def test_a_review_in_a_terminal_asks_case_by_case(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mined.jsonl").write_text(
        "".join(f'{{"id": "m{n}", "query": "q{n}", "expected_ids": ["a"], "reviewed": false}}\n' for n in range(4))
    )
    monkeypatch.setattr("assay_cli.commands.dataset.review.can_ask", lambda: True)
    found = assay("dataset", "review", "mined.jsonl", said="k\nd\n\nq\n")
    assert "1 kept, 1 dropped, 2 unreviewed" in found.stderr
    assert [case.id for case in printed(found).cases] == ["m0", "m2", "m3"]


def test_a_release_prints_the_changelog(assay: Assay) -> None:
    Path("old.jsonl").write_text('{"version": "1.0.0"}\n{"id": "a", "query": "q", "expected_ids": ["x"]}\n')
    Path("new.jsonl").write_text('{"id": "b", "query": "r", "expected_ids": ["x"]}\n')
    found = assay(
        "dataset", "release", "old.jsonl", "new.jsonl", "--version", "1.1.0", "--note", "b asks what people ask"
    )
    (change,) = printed(found).changelog
    assert (change.added, change.removed, change.note) == (["b"], ["a"], "b asks what people ask")
    assert "version 1.1.0: 1 added, 1 removed, 0 changed" in found.stderr
    refused = assay("dataset", "release", "old.jsonl", "old.jsonl", "--version", "1.1.0", "--note", "n", code=2)
    assert "nothing to release" in refused.stderr


def test_runs_are_found_by_branch_and_tag(assay: Assay) -> None:
    Path("golden.jsonl").write_text('{"id": "1", "query": "q", "expected_ids": ["a"]}\n')
    run = ("eval", "run", "--dataset", "golden.jsonl", "--target", "made_target:search")
    assay(*run, "--name", "outside")
    git("init", "--initial-branch", "main")
    git("add", "golden.jsonl")
    git("commit", "--message", "Begin")
    assay(*run, "--name", "clean", "--tag", "nightly", "--project", "other")
    git("switch", "--create", "change")
    Path("golden.jsonl").write_text('{"id": "1", "query": "q?", "expected_ids": ["a"]}\n')
    assay(*run, "--name", "dirty", "--tag", "nightly", "--tag", "slow")

    for wrong in ("", " ", "two\nlines", "x" * 65):
        assert "--tag" in assay(*run, "--name", "wrong", "--tag", wrong, code=2).stderr
    assert not Path("runs/wrong").exists()

    def listed(*options: str) -> list[str]:
        return [json.loads(line)["run_id"] for line in assay("eval", "list", "--json", *options).stdout.splitlines()]

    assert listed() == ["outside", "clean", "dirty"]
    assert listed("--limit", "1") == ["dirty"]
    assert listed("--branch", "main") == ["clean"]
    assert listed("--tag", "nightly") == ["clean", "dirty"]
    assert listed("--tag", "nightly", "--project", "default") == ["dirty"]
    assert "none of 3 run(s)" in assay("eval", "list", "--tag", "no").stderr
    found = {
        one["run_id"]: one for line in assay("eval", "list", "--json").stdout.splitlines() if (one := json.loads(line))
    }
    assert (found["outside"]["code_version"], found["outside"]["dirty"]) == (None, None)
    assert (found["clean"]["branch"], found["clean"]["dirty"]) == ("main", False)
    assert (found["dirty"]["branch"], found["dirty"]["dirty"]) == ("change", True)
    assert "change, changed files, nightly, slow" in assay("eval", "list").stdout


def git(*arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True, timeout=60)
