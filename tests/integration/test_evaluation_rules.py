"""A checked-in rules file: what it holds a run and a comparison against, and what it refuses."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.assay_command import Assay, assay_in, write_cases, write_target

TOML = """\
[[scorers]]
name = "polite"
type = "contains"
value = "please"

[metrics."score:polite"]
floor = 0.9
threshold = 0.1
"""
YAML = """\
scorers:
  - {name: polite, type: contains, value: please}
metrics:
  "score:polite": {floor: 0.9, threshold: 0.1}
"""


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    write_cases(tmp_path / "d.jsonl", [{} for _ in range(80)])
    return assay_in(tmp_path, monkeypatch)


def run(assay: Assay, folder: Path, name: str, polite: int, *options: str, code: int = 0) -> str:
    """A run whose system is polite so many times in 80."""
    answers: dict[str, str | None] = {f"q{place}": "please" if place < polite else "no" for place in range(80)}
    target = write_target(folder, answers, f"t{uuid4().hex}")
    asked = ("--dataset", "d.jsonl", "--target", target, "--name", name, "--progress", "none")
    return assay("eval", "run", *asked, *options, code=code).output


@pytest.mark.parametrize(("name", "text"), [("rules.toml", TOML), ("rules.yaml", YAML)], ids=["toml", "yaml"])
def test_a_floor_of_ones_own_scorer_blocks_in_run_and_compare(
    assay: Assay, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    run(assay, tmp_path, "main", 80, "--rules", name)
    told = run(assay, tmp_path, "worse", 40, "--rules", name, code=1)
    assert "floor: score:polite: 0.500 misses its floor of 0.9" in told
    assert "verdict: pass" in assay("eval", "compare", "main", "main", "--rules", name).output
    assert "verdict: fail" in assay("eval", "compare", "main", "worse", "--rules", name, code=1).output


def test_a_floor_that_only_warns_is_told_and_does_not_decide(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(TOML + 'stage = "warn"\n')
    assert "floor (warn): score:polite" in run(assay, tmp_path, "one", 40, "--rules", "rules.toml")


def test_a_floor_of_what_is_not_measured_fails(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[metrics.faithfulness]\nfloor = 0.9\n")
    assert "faithfulness: not measured" in run(assay, tmp_path, "one", 80, "--rules", "rules.toml", code=1)
    assert "measure faithfulness" in assay("eval", "compare", "one", "one", "--rules", "rules.toml", code=2).output


def test_the_report_as_json_holds_the_floors(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(TOML)
    told = run(assay, tmp_path, "one", 40, "--rules", "rules.toml", "--json", code=1)
    (floor,) = json.loads(told[: told.rindex("}") + 1])["floors"]
    assert (floor["metric"], floor["verdict"], floor["n"]) == ("score:polite", "fail", 80)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[metrics.mrrr]\nfloor = 0.5\n", "metrics.mrrr: no metric of that name (did you mean mrr?)"),
        (TOML.replace("score:polite", "score:polit"), "no scorer of that name (did you mean score:polite?)"),
        ('[metrics."score:x"]\nthreshold = 0.1\n', "metrics.score:x: no scorer of that name"),
        ("[metrics.mrr]\nflor = 0.5\n", "metrics.mrr.flor: unknown key (did you mean floor?)"),
        ("[metric.mrr]\nfloor = 0.5\n", "metric: unknown key (did you mean metrics?)"),
        ("[metrics.mrr]\nfloor = 1.5\n", "must be between 0 and 1"),
        ("[metrics.mrr]\nfloor = nan\n", "metrics.mrr.floor"),
        ("[metrics.mrr]\nthreshold = -1\n", "metrics.mrr.threshold"),
        ("[metrics.mrr]\nstage = 'blok'\n", "metrics.mrr.stage"),
        ("[metrics.mrr]\n", "has no effect"),
        ("[[scorers]]\ntype = 'contains'\nvalue = 'x'\n", "scorers.0.name"),
        ("[[scorers]]\nname = 'p'\ntype = 'contians'\nvalue = 'x'\n", "did you mean contains?"),
        ("[[scorers]]\nname = 'p'\ntype = 'function'\nvalue = 'x'\n", "module:function"),
        ("mrr = [", "not TOML"),
        ("x = 1\n", "x: unknown key"),
        ("# nothing\n", "no rules"),
    ],
)
def test_what_nobody_knows_is_refused_with_the_nearest_known_name(
    assay: Assay, tmp_path: Path, text: str, told: str
) -> None:
    run(assay, tmp_path, "main", 80)
    (tmp_path / "rules.toml").write_text(text)
    assert told in run(assay, tmp_path, "one", 80, "--rules", "rules.toml", code=2)
    if "score:x" not in text:
        assert told in assay("eval", "compare", "main", "main", "--rules", "rules.toml", code=2).output


def test_a_file_that_is_none_is_refused(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text("{}")
    (tmp_path / "rules.yaml").write_text("a: [")
    for name, told in (("nowhere.toml", "no file"), ("rules.json", "name it .toml"), ("rules.yaml", "not YAML")):
        assert told in run(assay, tmp_path, "one", 80, "--rules", name, code=2)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("rules.yaml", "metrics:\n  mrr: {floor: 0.5}\n  mrr: {floor: 0.1}\n", "line 3: the key mrr appears twice"),
        ("rules.toml", "[metrics]\nmrr = 3\n", "metrics.mrr: must be an object of keys and values"),
        ("rules.toml", '[metrics.mrr]\nthreshold = "a"\n', "metrics.mrr.threshold: must be a number"),
        ("rules.toml", "[[slices]]\nvalue = 'a'\n", "slices.0.field: is missing"),
    ],
)
def test_what_does_not_fit_is_told_in_words_with_its_place(
    assay: Assay, tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    assert told in run(assay, tmp_path, "one", 80, "--rules", name, code=2)


def test_misspelt_names_on_the_command_line_are_told_with_the_nearest(assay: Assay, tmp_path: Path) -> None:
    told = run(assay, tmp_path, "one", 80, "--scorer", "polite=contain:please", code=2)
    assert "did you mean the type contains?" in told
    run(assay, tmp_path, "main", 80, "--scorer", "polite=contains:please")
    for option in ("--threshold=score:polit=0.1", "--stage=score:polit=warn"):
        assert "did you mean score:polite?" in assay("eval", "compare", "main", "main", option, code=2).output
