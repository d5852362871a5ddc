"""Slices of a run: shown with intervals, held against floors of their own, and told in every report."""

import json
import re
from pathlib import Path
from uuid import uuid4
from xml.etree import ElementTree as ET

import pytest

from tests.support.assay_command import Assay, assay_in, write_cases, write_target

RULES = """\
[[scorers]]
name = "polite"
type = "contains"
value = "please"

[[slices]]
field = "tag"
value = "billing"
floors = {"score:polite" = 0.9}
"""
CASES = 160


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """Half of the cases are tagged `billing`, the others `shipping`."""
    cases = [{"tags": ["billing" if place % 2 else "shipping"]} for place in range(CASES)]
    write_cases(tmp_path / "d.jsonl", cases)
    (tmp_path / "rules.toml").write_text(RULES)
    return assay_in(tmp_path, monkeypatch)


def run(assay: Assay, folder: Path, name: str, rude: set[int], *options: str, code: int = 0) -> str:
    answers: dict[str, str | None] = {f"q{place}": "no" if place in rude else "please" for place in range(CASES)}
    target = write_target(folder, answers, f"t{uuid4().hex}")
    asked = ("--dataset", "d.jsonl", "--target", target, "--name", name, "--progress", "none")
    return assay("eval", "run", *asked, *options, code=code).output


def test_slices_are_shown_with_their_intervals(assay: Assay, tmp_path: Path) -> None:
    run(assay, tmp_path, "one", {1}, "--scorer", "polite=contains:please")
    told = assay("eval", "show", "one", "--slice", "tag", "--slice", "query_type").output
    line = next(each for each in told.splitlines() if "tag=billing score:polite" in each)
    assert "0.988 [0.9" in line
    assert "n=80" in line
    assert "query_type=technical ndcg@10" in told


def test_a_slice_below_its_floor_fails_though_the_whole_looks_well(assay: Assay, tmp_path: Path) -> None:
    rude = set(range(1, 81, 2))  # half of billing
    told = run(assay, tmp_path, "worse", rude, "--rules", "rules.toml", code=1)
    assert any(line.startswith("fail") and "tag=billing score:polite" in line for line in told.splitlines())
    assert not any(line.startswith("fail") and "shipping" in line for line in told.splitlines())


def test_a_floor_passes_or_is_undecided_by_the_number_of_cases(assay: Assay, tmp_path: Path) -> None:
    told = run(assay, tmp_path, "good", set(), "--rules", "rules.toml")
    assert any(line.startswith("pass") and "tag=billing score:polite" in line for line in told.splitlines())
    few = [{"tags": ["billing"]} for _ in range(6)]
    write_cases(tmp_path / "d.jsonl", few)
    told = run(assay, tmp_path, "few", set(), "--rules", "rules.toml", code=3)
    (line,) = [line for line in told.splitlines() if line.startswith("inconclusive") and "score:polite" in line]
    assert re.search(r"tag=billing .* n=6, floor 0.9: about \d+ cases needed", line)
    assert "verdict: inconclusive, because too few cases or scores: tag=billing score:polite" in told


def test_every_report_of_a_comparison_tells_the_slices(assay: Assay, tmp_path: Path) -> None:
    run(assay, tmp_path, "main", set(), "--rules", "rules.toml")
    run(assay, tmp_path, "worse", set(range(1, 81, 2)), "--rules", "rules.toml", code=1)
    reports = ("--rules", "rules.toml", "--markdown", "r.md", "--junit", "r.xml", "--json")
    found = json.loads(assay("eval", "compare", "main", "worse", *reports, code=1).stdout)
    assert found["verdict"] == "fail"
    verdicts = {(each["value"], each["metric"]): each["verdict"] for each in found["slices"]}
    assert verdicts["billing", "score:polite"] == "fail"
    changes = {(each["value"], each["metric"]): each["verdict"] for each in found["slice_changes"]}
    assert (changes["billing", "score:polite"], changes["shipping", "score:polite"]) == ("fail", "pass")
    assert "tag=billing score:polite" in (tmp_path / "r.md").read_text()
    suite = ET.parse(tmp_path / "r.xml").getroot()  # noqa: S314  # what we wrote
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["tag=billing score:polite"]
    assert suite.get("failures") == "1"
    assert suite.get("tests") == str(len(suite))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ('[[slices]]\nfield = "tags"\n', "did you mean tag?"),
        ('[[slices]]\nfield = "tag"\nvalue = "biling"\nfloors = {mrr = 0.5}\n', "did you mean billing?"),
        ('[[slices]]\nfield = "tag"\nfloors = {mmr = 0.5}\n', "slices.0.floors.mmr: no metric of that name"),
        ('[[slices]]\nfield = "tag"\nfloors = {mrr = 1.5}\n', "slices.0.floors.mrr"),
        ('[[slices]]\nfield = "tag"\nvalue = "billing"\n', "needs floors"),
        ('[[slices]]\nfield = "tag"\nflors = {mrr = 0.5}\n', "did you mean floors?"),
    ],
)
def test_a_slice_that_is_misspelt_is_refused(assay: Assay, tmp_path: Path, given: str, told: str) -> None:
    run(assay, tmp_path, "main", set())
    (tmp_path / "rules.toml").write_text(given)
    assert told in assay("eval", "compare", "main", "main", "--rules", "rules.toml", code=2).output
    assert told in run(assay, tmp_path, "next", set(), "--rules", "rules.toml", code=2)
    assert not (tmp_path / "runs/next").exists()


def test_a_field_that_nothing_is_sliced_by_is_refused(assay: Assay, tmp_path: Path) -> None:
    assert "did you mean tag?" in run(assay, tmp_path, "one", set(), "--slice", "tags", code=2)


def test_a_field_that_no_case_has_is_refused_since_no_floor_of_it_would_be_held(assay: Assay, tmp_path: Path) -> None:
    write_cases(tmp_path / "d.jsonl", [{}] * CASES)
    (tmp_path / "rules.toml").write_text('[[slices]]\nfield = "tag"\nfloors = {mrr = 0.5}\n')
    assert "slices.0.field: no case has a tag" in run(assay, tmp_path, "one", set(), "--rules", "rules.toml", code=2)
    assert "--slice: no case has a tag" in run(assay, tmp_path, "one", set(), "--slice", "tag", code=2)
    run(assay, tmp_path, "one", set())
    assert "--slice: no case has a tag" in assay("eval", "show", "one", "--slice", "tag", code=2).output
    assert "--slice: no case has a tag" in assay("eval", "compare", "one", "one", "--slice", "tag", code=2).output


def test_a_floor_of_each_slice_whose_metric_is_not_measured_does_not_pass(assay: Assay, tmp_path: Path) -> None:
    rules = '[[slices]]\nfield = "tag"\nfloors = {"answer_f1" = 0.1}\n'
    (tmp_path / "rules.toml").write_text(rules)
    told = run(assay, tmp_path, "nowhere", set(), "--rules", "rules.toml", code=1)
    assert [line.split()[0] for line in told.splitlines() if "answer_f1" in line] == ["fail", "fail", "verdict:"]
    null = {"query_type": "null", "expected_ids": [], "tags": ["unanswerable"]}
    expected = [{"tags": ["billing"], "expected_answer": "please"} for _ in range(80)]
    write_cases(tmp_path / "d.jsonl", [*expected, *[{"tags": ["shipping"]}] * 2, null])
    told = run(assay, tmp_path, "in_one", set(), "--rules", "rules.toml", code=3)
    lines = {line.split()[1]: line.split()[0] for line in told.splitlines() if "tag=" in line and "answer_f1" in line}
    assert lines.pop("inconclusive,") == "verdict:"
    assert lines == {"tag=billing": "pass", "tag=shipping": "inconclusive"}


def test_a_floor_of_slices_for_what_is_no_share_is_refused(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('[[slices]]\nfield = "tag"\nfloors = {"judge_noise_flips" = 0.1}\n')
    told = run(assay, tmp_path, "one", set(), "--rules", "rules.toml", code=2)
    assert "slices.0.floors.judge_noise_flips: slices support shares only" in told
