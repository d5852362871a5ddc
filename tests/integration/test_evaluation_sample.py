"""`--sample N`: a part of a dataset that stands for the whole, and can be compared with it."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.assay_command import Assay, assay_in, write_cases, write_target

CASES = 240


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """A third of the cases is `temporal`."""
    cases = [{"query_type": "technical" if place % 3 else "temporal"} for place in range(CASES)]
    write_cases(tmp_path / "d.jsonl", cases)
    return assay_in(tmp_path, monkeypatch)


def run(assay: Assay, folder: Path, name: str, *options: str, code: int = 0) -> str:
    target = write_target(folder, {f"q{place}": "an answer" for place in range(CASES)}, f"t{uuid4().hex}")
    asked = ("--dataset", "d.jsonl", "--target", target, "--name", name, "--progress", "none")
    return assay("eval", "run", *asked, *options, code=code).output


def asked(assay: Assay, name: str) -> dict[str, str]:
    """Query types by case."""
    found = json.loads(assay("eval", "show", name, "--json").stdout)
    return {each["case_id"]: each["query_type"] for each in found["results"]}


def test_a_sample_is_stratified_nested_and_the_same_each_time(assay: Assay, tmp_path: Path) -> None:
    for name, count in (("small", "30"), ("again", "30"), ("large", "90")):
        run(assay, tmp_path, name, "--sample", count)
    run(assay, tmp_path, "other", "--sample", "30", "--seed", "7")
    small, large = asked(assay, "small"), asked(assay, "large")
    assert small == asked(assay, "again")
    assert small.keys() < large.keys()
    assert small.keys() != asked(assay, "other").keys()
    assert [list(each.values()).count("temporal") for each in (small, large)] == [10, 30]


def test_a_sample_is_compared_with_a_full_run_by_their_common_cases(assay: Assay, tmp_path: Path) -> None:
    run(assay, tmp_path, "full")
    run(assay, tmp_path, "part", "--sample", "90")
    for names in (("full", "part"), ("part", "full")):
        found = json.loads(assay("eval", "compare", *names, "--json").stdout)
        assert (found["paired"], found["verdict"]) == (90, "pass")
        assert not found["only_baseline"]
        assert not found["only_candidate"]
    told = assay("eval", "compare", "full", "part").output
    assert "part ran a sample of 90 cases" in told


def test_a_sample_that_was_not_asked_to_its_end_fails_the_comparison(assay: Assay, tmp_path: Path) -> None:
    run(assay, tmp_path, "full")
    run(assay, tmp_path, "part", "--sample", "90")
    results = tmp_path / "runs/part/results.ndjson"
    results.write_text("".join(results.read_text().splitlines(keepends=True)[:80]))
    told = assay("eval", "compare", "full", "part", code=1).output
    assert "part contains 80 of the 90 cases of its sample" in told


def test_a_sample_and_a_limit_are_not_taken_together(assay: Assay, tmp_path: Path) -> None:
    told = run(assay, tmp_path, "one", "--sample", "30", "--limit", "20", code=2)
    assert "pass one of them" in told


def test_a_run_goes_on_only_with_the_same_sample(assay: Assay, tmp_path: Path) -> None:
    target = write_target(tmp_path, {}, f"t{uuid4().hex}")
    command = ("eval", "run", "--dataset", "d.jsonl", "--target", target, "--name", "one", "--progress", "none")
    assay(*command, "--sample", "30")
    assert "differs in sample" in assay(*command, "--sample", "60", "--resume", code=2).output
