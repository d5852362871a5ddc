"""Runs on disk: what is written, and going on after a kill."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from assay_evals.dataset.model import Case, Dataset
from assay_evals.metrics.case_metrics import PATH, case_metrics
from assay_evals.run.case_results import case_error, case_result, score
from assay_evals.run.folder import RESULTS_FILE, RUN_FILE, RunFolder, read_run
from assay_evals.run.model import Run, RunConfig, RunError
from assay_evals.target.redaction import redact_target
from assay_evals.target.response import ResultMetadata, TargetResponse
from assay_runtime.private import write_whole

CASES = [
    Case(id="a", query="qa", expected_ids=["x"], query_type="status"),
    Case(id="b", query="qb", expected_ids=["y", "z"], inclusion_probability=0.5),
    Case(id="n", query="qn", query_type="null"),
]
DATASET = Dataset(cases=CASES, version="1.0.0", name="golden")
CONFIG = RunConfig.of(DATASET, "module:function", seed=3)
ANSWERS = [TargetResponse(["x"], 10.0), TargetResponse(["q", "y"], 30.0), TargetResponse([], 20.0)]


def results() -> list[dict[str, float | None]]:
    return score(CASES, ANSWERS, CONFIG)


def a_run(folder: Path, cases: list[Case] = CASES, *, resume: bool = False) -> RunFolder:
    run = RunFolder(folder, CONFIG, resume=resume)
    for case, answer, metrics in zip(CASES, ANSWERS, results(), strict=True):
        if case in cases and case.id not in run.done:
            run.add(case_result(case, answer, metrics, tries=1))
    return run


def finished(folder: Path) -> Run:
    return a_run(folder).finish(case.id for case in CASES)


def test_a_run_reads_back_with_its_means_and_types(tmp_path: Path) -> None:
    run = finished(tmp_path / "r1")
    assert [result.case_id for result in run.results] == ["a", "b", "n"]
    summary = run.summary()
    assert summary["mrr"].n == 2
    assert summary["mrr"].mean == pytest.approx((1 * 1 + 2 * 0.5) / 3), "a case mined at 0.5 stands for two"
    assert summary["null_accuracy"].mean == 1.0
    assert run.latency()["latency_p50_ms"] == 20.0
    assert run.by_query_type()["status"] == {"cases": 1.0} | {
        name: value for name, value in run.results[0].metrics.items() if value is not None
    }
    assert run.as_json()["errored"] == 0
    assert run.completed_at is not None


def test_a_run_may_go_on_with_another_concurrency_which_is_then_not_one(tmp_path: Path) -> None:
    RunFolder(tmp_path / "r", replace(CONFIG, concurrency=5)).close()
    assert read_run(tmp_path / "r").config.concurrency == 5
    same = RunFolder(tmp_path / "r", replace(CONFIG, concurrency=5), resume=True)
    assert same.finish([]).config.concurrency == 5
    other = RunFolder(tmp_path / "r", replace(CONFIG, concurrency=1), resume=True)
    assert other.finish([]).config.concurrency is None


def test_a_run_is_written_by_one_at_a_time(tmp_path: Path) -> None:
    one = a_run(tmp_path / "r1", CASES[:1])
    for resume in (True, False):
        with pytest.raises(
            RunError, match="r1 is being written by another process: wait for that, or choose another name"
        ):
            RunFolder(tmp_path / "r1", CONFIG, resume=resume)
    one.add(case_result(CASES[1], ANSWERS[1], results()[1], tries=1))
    assert len(read_run(tmp_path / "r1").results) == 2, "whoever was refused changed nothing"
    one.close()
    RunFolder(tmp_path / "r1", CONFIG, resume=True).finish([])
    with pytest.raises(RunError, match="already contains a run"):
        RunFolder(tmp_path / "r1", CONFIG)
    RunFolder(tmp_path / "r1", CONFIG, resume=True).close()  # a refusal leaves no lock behind


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "r1"
    a_run(folder, CASES[:2]).close()
    with (folder / RESULTS_FILE).open("ab") as file:
        file.write(b'{"case_id":"n","query_ty')
    assert read_run(folder).completed_at is None
    resumed = a_run(folder, resume=True)
    run = resumed.finish(case.id for case in CASES)
    assert [result.case_id for result in run.results] == ["a", "b", "n"]


def test_a_case_that_errored_is_asked_again(tmp_path: Path) -> None:
    folder = tmp_path / "r1"
    first = a_run(folder, CASES[:1])
    first.add(case_error(CASES[1], "HTTP 503", tries=3))
    first.close()
    assert [result.error for result in read_run(folder).errored] == ["HTTP 503"]
    again = RunFolder(folder, CONFIG, resume=True)
    assert set(again.done) == {"a"}
    again.close()


def test_a_run_is_not_written_over_unless_it_is_continued(tmp_path: Path) -> None:
    finished(tmp_path / "r1")
    with pytest.raises(RunError, match="--resume"):
        RunFolder(tmp_path / "r1", CONFIG)


def test_a_run_of_something_else_cannot_be_continued(tmp_path: Path) -> None:
    finished(tmp_path / "r1")
    other = RunConfig.of(DATASET, "module:other", seed=4)
    with pytest.raises(RunError, match="differs in target, seed"):
        RunFolder(tmp_path / "r1", other, resume=True)


def test_a_run_holds_no_secret_of_its_target_and_goes_on_only_with_the_same(tmp_path: Path) -> None:
    secret, other = "http://host/v1?token=s3cret", "http://host/v1?token=another"
    config = RunConfig.of(DATASET, redact_target(secret))
    RunFolder(tmp_path / "r", config, target=secret).finish([])
    assert not [path for path in (tmp_path / "r").iterdir() if b"s3cret" in path.read_bytes()]
    RunFolder(tmp_path / "r", config, resume=True, target=secret).finish([])
    with pytest.raises(RunError, match="differs in target"):
        RunFolder(tmp_path / "r", config, resume=True, target=other)


def test_an_empty_folder_holds_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run"):
        read_run(tmp_path)


def test_a_line_that_is_no_result_is_named(tmp_path: Path) -> None:
    finished(tmp_path / "r1")
    with (tmp_path / "r1" / RESULTS_FILE).open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(RunError, match="line 4"):
        read_run(tmp_path / "r1")


def test_what_an_answer_must_cite_and_name_is_scored() -> None:
    case = Case(
        id="c", query="q", expected_ids=["x"], required_citations=["x", "y"], required_entities=["Alice", "Bob"]
    )
    answer = TargetResponse(["x"], 1.0, answer="alice wrote it", citations=[("x", None)])
    (row,) = score([case], [answer], CONFIG)
    assert (row["required_citations"], row["required_entities"]) == (0.5, 0.5)


def test_no_text_that_a_target_returned_is_written(tmp_path: Path) -> None:
    case = Case(id="c", query="q", expected_ids=["x"])
    answer = TargetResponse(["x"], 1.0, answer="call me at 555 0100")
    run = RunFolder(tmp_path / "r", CONFIG)
    run.add(case_result(case, answer, score([case], [answer], CONFIG)[0], 1))
    run.close()
    assert b"555" not in b"".join(path.read_bytes() for path in (tmp_path / "r").iterdir())


def test_the_interval_is_that_of_the_weighted_mean(tmp_path: Path) -> None:
    cases = [
        Case(id=f"c{n}", query="q", expected_ids=["x"], inclusion_probability=0.05 if n else 1.0) for n in range(9)
    ]
    run = RunFolder(tmp_path / "r", RunConfig.of(Dataset(cases=cases), "t"))
    for number, case in enumerate(cases):
        answer = TargetResponse(["x"] if number % 2 else ["y"], 1.0)
        run.add(case_result(case, answer, score([case], [answer], CONFIG)[0], 1))
    summary = run.finish(case.id for case in cases).summary()["mrr"]
    assert summary.low < summary.mean < summary.high
    assert summary.mean == pytest.approx(4 * 20 / (8 * 20 + 1))


@pytest.mark.parametrize("document", ["[]", '{"schema_version": 1}', '{"schema_version": 1, "config": {"more": 1}}'])
def test_a_file_that_says_too_little_is_no_run(tmp_path: Path, document: str) -> None:
    (tmp_path / "run.json").write_text(document)
    with pytest.raises(RunError, match=r"run\.json"):
        read_run(tmp_path)


@pytest.mark.parametrize("name", ["run.json", RESULTS_FILE])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    finished(tmp_path / "r1")
    (tmp_path / "r1" / name).unlink()
    (tmp_path / "r1" / name).mkdir()
    with pytest.raises(RunError, match=f"{name} cannot be read: Is a directory"):
        read_run(tmp_path / "r1")


def test_a_time_that_is_none_is_no_run(tmp_path: Path) -> None:
    finished(tmp_path / "r1")
    document = json.loads((tmp_path / "r1/run.json").read_text()) | {"started_at": 5}
    (tmp_path / "r1/run.json").write_text(json.dumps(document))
    with pytest.raises(RunError, match="of the wrong type"):
        read_run(tmp_path / "r1")


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": {"<script>alert(1)</script>": 1.0}},
        {"metrics": {"a\nb": 1.0}},
        {"metrics": {"\x1b[2J": 1.0}},
        {"metrics": {"x" * 200: 1.0}},
        {"metrics": {"mrr": "1"}},
        {"metrics": ["mrr"]},
        {"query_type": 1},
        {"retrieved": [["x"]]},
    ],
    ids=str,
)
def test_a_result_that_no_run_writes_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    folder = tmp_path / "r1"
    finished(folder)
    line = json.loads((folder / RESULTS_FILE).read_text().splitlines()[0]) | change
    (folder / RESULTS_FILE).write_text(json.dumps(line) + "\n")
    with pytest.raises(RunError, match="line 1 is not a result"):
        read_run(folder)


def test_a_path_of_any_name_is_measured_and_read_again(tmp_path: Path) -> None:
    hits = {"x": ResultMetadata(found_by=("<b>&\"'`|\x1b\n" + "y" * 300,))}
    folder = RunFolder(tmp_path / "r1", CONFIG)
    metrics = case_metrics(CASES[0], replace(ANSWERS[0], metadata=list(hits.values())), 10)
    folder.add(case_result(CASES[0], ANSWERS[0], {**metrics}, tries=1))
    (name,) = (each for each in folder.finish(["a"]).results[0].metrics if each.startswith(PATH))
    assert name.isprintable()


def test_files_of_a_run_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        finished(tmp_path / "r1")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "r1").iterdir()}
    assert modes == {"run.json": 0o600, RESULTS_FILE: 0o600}
    assert (tmp_path / "r1").stat().st_mode & 0o777 == 0o700


def test_a_link_left_beside_a_file_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "precious"
    theirs.write_text("precious")
    (tmp_path / "run.json.part").symlink_to(theirs)
    write_whole(tmp_path / "run.json", b"{}")
    assert theirs.read_text() == "precious"
    assert (tmp_path / "run.json").read_text() == "{}"
    assert not (tmp_path / "run.json").is_symlink()


def test_results_are_not_written_through_a_link(tmp_path: Path) -> None:
    theirs, folder = tmp_path / "precious", tmp_path / "r1"
    theirs.write_text("precious")
    folder.mkdir()
    (folder / RESULTS_FILE).symlink_to(theirs)
    with pytest.raises(OSError, match="symbolic"):
        a_run(folder)
    assert theirs.read_text() == "precious"


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (RUN_FILE, "[" * 100_000, "is not JSON"),
        (RUN_FILE, ('"seed": 3', '"seed": -1'), "is not a valid run"),
        (RUN_FILE, ('"seed": 3', '"seed": 1.5'), "is not a valid run"),
        (RESULTS_FILE, ('"mrr":1.0', '"mrr":[1.0]'), "line 1 is not a result"),
        (RESULTS_FILE, ('"metrics":{', '"metrics":[],"x":{'), "line 1 is not a result"),
    ],
)
def test_a_runs_file_that_somebody_changed_is_refused_with_its_name(
    tmp_path: Path, file: str, text: str | tuple[str, str], words: str
) -> None:
    finished(tmp_path / "r")
    path = tmp_path / "r" / file
    before = path.read_text()
    after = text if isinstance(text, str) else before.replace(*text)
    assert after != before
    path.write_text(after)
    with pytest.raises(RunError, match=words):
        read_run(tmp_path / "r")
