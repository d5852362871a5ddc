"""A gate with scorers and floors of a team's own: what the system answers to captured and known-right questions is held too."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from assay_evals import run_gate
from assay_evals.errors import EvalsError
from tests.support.anthropic_server import KEY, AnthropicServer, verdict
from tests.support.assay_command import Assay, assay_in, write_target

ROWS = 40
RULES = """\
[[scorers]]
name = "polite"
type = "contains"
value = "please"

[metrics."score:polite"]
floor = 0.9
"""


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    (tmp_path / "rules.toml").write_text(RULES)
    command = assay_in(tmp_path, monkeypatch)
    write_rows(tmp_path, [f"q{place}" for place in range(ROWS)])
    command("bench", "publish", "--from", "rows.ndjson", "--to", "b.ndjson", "--data", str(tmp_path / "data"))
    return command


def write_rows(folder: Path, questions: list[str]) -> None:
    row = {"schema_version": 1, "tool_name": "query", "retrieved_slugs": ["a"], "latency_ms": 20.0}
    lines = [json.dumps(row | {"query": question}) + "\n" for question in questions]
    (folder / "rows.ndjson").write_text("".join(lines))


def polite(times: int) -> dict[str, str | None]:
    return {f"q{place}": "please" if place < times else "no" for place in range(ROWS)}


def gate(assay: Assay, folder: Path, answers: Mapping[str, str | None], *options: str, code: int = 0) -> dict[str, Any]:
    target = write_target(folder, answers, f"t{uuid4().hex}")
    found = assay(
        "gate", "--baseline", "b.ndjson", "--target", target, "--progress", "none", "--json", *options, code=code
    )
    document: dict[str, Any] = json.loads(found.stdout)
    return document


def told(assay: Assay, folder: Path, answers: Mapping[str, str | None], *options: str, code: int) -> str:
    target = write_target(folder, answers, f"t{uuid4().hex}")
    return assay("gate", "--baseline", "b.ndjson", "--target", target, "--progress", "none", *options, code=code).output


def test_a_floor_of_ones_own_scorer_blocks_a_gate(assay: Assay, tmp_path: Path) -> None:
    passed = gate(assay, tmp_path, polite(ROWS), "--rules", "rules.toml")
    assert (passed["verdict"], passed["rules_gate"]["rules_path"]) == ("pass", "rules.toml")
    assert passed["rules_gate"]["summary"]["metrics"]["score:polite"]["mean"] == 1.0
    failed = gate(assay, tmp_path, polite(ROWS // 2), "--rules", "rules.toml", code=1)
    (breach,) = failed["rules_gate"]["breaches"]
    assert (breach["metric"], breach["observed"], breach["threshold"]) == ("score:polite", 0.5, 0.9)
    assert failed["regression_gate"]["breaches"] == [], "what was retrieved did not change"
    words = told(assay, tmp_path, polite(ROWS // 2), "--rules", "rules.toml", code=1)
    assert "rules: FAIL   answers 40 of 40, score:polite 0.500" in words
    assert "score:polite: 0.500 [" in words


def test_a_floor_that_only_warns_is_told_and_a_scorer_without_one_informs(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "warn.toml").write_text(RULES + 'stage = "warn"\n')
    assert "(does not block)" in told(assay, tmp_path, polite(0), "--rules", "warn.toml", code=0)
    found = gate(assay, tmp_path, polite(0), "--scorer", "polite=contains:please")
    assert found["rules_gate"]["summary"]["metrics"]["score:polite"]["mean"] == 0.0
    assert found["verdict"] == "pass"


def test_a_gate_without_rules_is_what_it_was(assay: Assay, tmp_path: Path) -> None:
    assert set(gate(assay, tmp_path, {})) == {"schema_version", "verdict", "regression_gate", "correctness_gate"}


def test_a_target_that_gives_results_alone_is_told_so(assay: Assay, tmp_path: Path) -> None:
    failed = gate(assay, tmp_path, {}, "--rules", "rules.toml", code=1)
    assert failed["rules_gate"]["summary"]["without_answer"] == ROWS
    assert "returned only results and no answers" in failed["rules_gate"]["breaches"][0]["reason"]
    assert "returned only results and no answers" in told(assay, tmp_path, {}, "--scorer", "contains:x", code=0)


def test_answers_that_are_not_text_are_the_reason_of_a_missed_floor(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "nested_answers.py").write_text(
        "def find(query):\n    return {'results': ['a'], 'answer': {'text': 'please'}, 'latency_ms': 20.0}\n"
    )
    command = ("gate", "--baseline", "b.ndjson", "--target", "nested_answers:find", "--progress", "none")
    told = assay(*command, "--rules", "rules.toml", code=1).output
    assert f"{ROWS} response(s) have an `answer` that is not text" in told


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ('[[scorers]]\nname = "like"\ntype = "similarity"\n', "score:like needs a reference"),
        (RULES + '[[slices]]\nfield = "tag"\nfloors = {"score:polite" = 0.5}\n', "check slices with `assay eval run`"),
        ("[metrics.mrr]\nthreshold = 0.1\n", "no scorer and no floor"),
        ("[metrics.mrrr]\nfloor = 0.1\n", "did you mean mrr?"),
        ('[[scorers]]\nname = "kind"\ntype = "rubric"\nvalue = "is kind"\n', "--judge anthropic"),
    ],
)
def test_what_a_gate_cannot_hold_is_refused_with_the_reason(
    assay: Assay, tmp_path: Path, rules: str, words: str
) -> None:
    (tmp_path / "rules.toml").write_text(rules)
    assert words in told(assay, tmp_path, polite(ROWS), "--rules", "rules.toml", code=2)


def test_a_similarity_with_a_text_of_its_own_is_measured(assay: Assay, tmp_path: Path) -> None:
    found = gate(assay, tmp_path, polite(ROWS), "--scorer", "like=similarity:please")
    assert found["rules_gate"]["summary"]["metrics"]["score:like"]["mean"] == 1.0


def test_a_floor_of_what_a_gate_does_not_measure_fails_and_latency_is_measured(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[metrics.faithfulness]\nfloor = 0.5\n[metrics.latency_p95_ms]\nfloor = 50\n")
    failed = gate(assay, tmp_path, polite(ROWS), "--rules", "rules.toml", code=1)
    (breach,) = failed["rules_gate"]["breaches"]
    assert (breach["metric"], breach["observed"]) == ("faithfulness", None)
    assert "a gate measures" in breach["reason"]


def test_a_function_is_called_with_the_question_and_what_was_captured(assay: Assay, tmp_path: Path) -> None:
    module = f"own{uuid4().hex}"
    (tmp_path / f"{module}.py").write_text(
        "def kept(case, answer):\n    return case.query.startswith('q') and answer.slugs == case.metadata['retrieved_slugs']\n"
        "def broken(case, answer):\n    raise KeyError(case.query)\n"
    )
    found = gate(assay, tmp_path, {}, "--scorer", f"{module}:kept")
    assert found["rules_gate"]["summary"]["metrics"]["score:kept"]["mean"] == 1.0
    failed = gate(assay, tmp_path, {}, "--scorer", f"{module}:broken", code=1)
    (errored, *_) = failed["regression_gate"]["breaches"]
    assert (errored["metric"], errored["observed"]) == ("rows_errored", ROWS)
    assert "score:broken: KeyError" in errored["error_tail"]


def test_questions_that_personal_data_was_taken_out_of_are_not_scored(assay: Assay, tmp_path: Path) -> None:
    write_rows(tmp_path, [*(f"q{place}" for place in range(ROWS)), "who is [REDACTED]"])
    assay("bench", "publish", "--from", "rows.ndjson", "--to", "b.ndjson", "--force", "--data", str(tmp_path / "data"))
    found = gate(assay, tmp_path, polite(ROWS), "--rules", "rules.toml")["rules_gate"]["summary"]
    assert (found["answers"], found["rows_scrubbed"]) == (ROWS, 1)
    write_rows(tmp_path, ["who is [REDACTED]"])
    assay("bench", "publish", "--from", "rows.ndjson", "--to", "b.ndjson", "--force", "--data", str(tmp_path / "data"))
    none = gate(assay, tmp_path, {}, "--rules", "rules.toml", "--inconclusive", "pass", code=3)
    assert none["rules_gate"]["breaches"] == []


def test_known_right_questions_are_scored_too(assay: Assay, tmp_path: Path) -> None:
    entries = [{"query_id": f"k{place}", "query": f"q{place}", "relevant_slugs": ["a"]} for place in range(ROWS)]
    (tmp_path / "known.json").write_text(json.dumps({"schema_version": 1, "queries": entries}))
    found = gate(assay, tmp_path, polite(ROWS), "--qrels", "known.json", "--rules", "rules.toml")
    assert found["rules_gate"]["summary"]["answers"] == 2 * ROWS


def test_a_gate_as_a_function_takes_rules(assay: Assay, tmp_path: Path) -> None:
    target = write_target(tmp_path, polite(10), f"t{uuid4().hex}")
    assert run_gate(target, baseline="b.ndjson", rules="rules.toml")["verdict"] == "fail"
    (tmp_path / "rubric.toml").write_text('[[scorers]]\nname = "kind"\ntype = "rubric"\nvalue = "is kind"\n')
    with pytest.raises(EvalsError, match="is a rubric"):
        run_gate(target, baseline="b.ndjson", rules="rubric.toml")


def reply(document: dict[str, Any]) -> str:
    if "criterion" not in document:
        return verdict(document)
    return json.dumps({"reason": "it does, or does not", "met": "yes" if "please" in document["answer"] else "no"})


def test_a_rubric_is_answered_within_its_budget_and_what_got_no_score_does_not_pass(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnthropicServer(reply=reply) as api:
        (tmp_path / "judge.toml").write_text(f'[judge]\napi_key = "{KEY}"\nbase_url = "{api.url}"\n')
        (tmp_path / "judge.toml").chmod(0o600)
        monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "judge.toml"))
        options = ("--scorer", "kind=rubric:is kind", "--judge", "anthropic")
        found = gate(assay, tmp_path, polite(30), *options)
        assert found["rules_gate"]["summary"]["metrics"]["score:kind"]["mean"] == 0.75
        assert len(api.bodies) == ROWS
        none = gate(assay, tmp_path, polite(30), *options, "--judge-budget", "0", code=1)
        assert none["rules_gate"]["breaches"][0]["observed"] == 0
        for inconclusive in ("fail", "pass"):
            some = gate(
                assay, tmp_path, polite(30), *options, "--judge-budget", "0.004", "--inconclusive", inconclusive,
                code=1 if inconclusive == "fail" else 3,
            )  # fmt: skip
        (undecided,) = some["rules_gate"]["undecided"]
        assert 0 < undecided["observed"] < ROWS
        assert "the judge's budget" in undecided["reason"]
        words = told(assay, tmp_path, {}, "--scorer", "polite=contains:x", "--judge", "anthropic", code=2)
        assert "no scorer is one" in words
    assert "there is none" in told(assay, tmp_path, {}, "--judge", "anthropic", code=2)


def test_a_row_that_cannot_be_read_is_told_with_its_file(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "bad.ndjson").write_text("{]\n")
    replayed = assay("replay", "--against", "bad.ndjson", "--target", "http://127.0.0.1:1/x", code=2).output
    published = assay("bench", "publish", "--from", "bad.ndjson", "--to", "c.ndjson", code=2).output
    assert "--against: bad.ndjson: line 1: not JSON" in replayed
    assert "--from: bad.ndjson: line 1: not JSON" in published
