"""A system that stops answering fails the gate, as an engineer would hold it: run, change, compare."""

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.assay_command import Assay, assay_in

TARGET = """\
def _answer(query, text, contexts=True):
    number = query.split()[-1].strip("?")
    passage = f"The valve {number} opens at {number} bar of pressure."
    found = {"results": [f"d{number}"], "latency_ms": 10.0, "answer": passage if text is None else text}
    return found | {"contexts": [{"id": f"d{number}", "text": passage}] if contexts else [], "citations": [f"d{number}"]}

def _stops(query):
    return int(query.split()[-1].strip("?")) >= 6

def right(query):
    return _answer(query, None) if "valve" in query else _answer(query, "It opens at noon.")
def unsure(query):
    return _answer(query, "I don't know." if _stops(query) else None)
def empty(query):
    return _answer(query, "" if _stops(query) else None)
def nonsense(query):
    return _answer(query, "Blue dreams sleep." if _stops(query) else None, contexts=not _stops(query))
def silent(query):
    found = _answer(query, None)
    return {"results": found["results"], "latency_ms": 10.0} if _stops(query) else found
def refusing(query):
    return _answer(query, None) if "valve" in query else _answer(query, "I don't know.")
def uncited(query):
    return _answer(query, None) | {"citations": ["nowhere"]}
def in_finnish(query):
    return _answer(query, "Valitettavasti tämä ei selviä aineistosta." if _stops(query) else None)
def broken(query):
    return _answer(query, "Internal Server Error" if _stops(query) else None)
def english(query):
    return _answer(query, "There isn't enough information to answer this." if _stops(query) else None)
def no_desk(query):
    return _answer(query, "We have no information desk on Sundays.")
def polite(query):
    return _answer(query, "Thank you for asking!")
def misnamed(query):
    return {"slugs": ["d1"], "answer": "It opens."}

def search(query):
    return _answer(query, None)["results"]
"""


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """The command in a folder with a target and a dataset of 60 answerable questions, 20 of them asked for what nobody knows."""
    (tmp_path / "covered_target.py").write_text(TARGET)
    return assay_in(tmp_path, monkeypatch)


def dataset(answerable: int = 60, unanswerable: int = 0) -> str:
    cases = [
        {"id": f"q{n}", "query": f"When opens the valve {n}?", "expected_ids": [f"d{n}"]} for n in range(answerable)
    ]
    cases += [{"id": f"n{n}", "query": f"When opens the shop {n}?", "query_type": "null"} for n in range(unanswerable)]
    Path("golden.json").write_text(json.dumps({"version": "1", "cases": cases}))
    return "golden.json"


def evaluated(assay: Assay, golden: str, targets: Sequence[str], judge: Sequence[str] = ()) -> None:
    for name in targets:
        assay(
            "eval", "run", "--dataset", golden, "--target", f"covered_target:{name}", "--name", name,
            "--progress", "none", *judge,
        )  # fmt: skip


def metrics(assay: Assay, name: str) -> dict[str, float]:
    return {
        key: each["mean"] for key, each in json.loads(assay("eval", "show", name, "--json").stdout)["metrics"].items()
    }


@pytest.mark.parametrize("judge", [(), ("--judge", "lexical")], ids=["unjudged", "judged"])
@pytest.mark.parametrize(
    ("target", "metric", "words"),
    [
        ("unsure", "answered", "fewer answerable questions get an answer"),
        ("empty", "answered", "fewer answerable questions get an answer"),
        ("english", "answered", "fewer answerable questions get an answer"),
        ("broken", "answered", "fewer answerable questions get an answer"),
        ("silent", "answered", "fewer answerable questions get an answer"),
        ("nonsense", "no_context", "more answers have no passages"),
    ],
)
def test_a_system_that_stops_answering_fails_the_gate_and_the_reports_say_why(
    assay: Assay, target: str, metric: str, words: str, judge: tuple[str, ...]
) -> None:
    evaluated(assay, dataset(), ("right", target), judge)
    assert (metrics(assay, "right")["answered"], metrics(assay, "right")["no_context"]) == (1.0, 0.0)
    assert metrics(assay, target)[metric] == pytest.approx(0.1 if metric == "answered" else 0.9)
    reports = ("--markdown", "r.md", "--junit", "r.xml", "--html", "r.html", "--inconclusive", "pass")
    told = assay("eval", "compare", "right", target, *reports, code=1).output
    assert words in told
    assert words in Path("r.md").read_text()
    assert words in Path("r.html").read_text()
    cases = ET.fromstring(Path("r.xml").read_text()).iter("testcase")  # noqa: S314  # our own file
    failed = {case.get("name"): case.findall("failure") for case in cases}
    assert [words in (each.get("message") or "") for each in failed[metric]] == [True]
    document = json.loads(assay("eval", "compare", "right", target, "--json", "--inconclusive", "pass", code=1).stdout)
    assert [each["verdict"] for each in document["metrics"] if each["metric"] == metric] == ["fail"]


def test_one_phrase_for_all_questions_fails_in_words_that_no_rule_knows(assay: Assay) -> None:
    evaluated(assay, dataset(), ("right", "in_finnish"))
    assert metrics(assay, "in_finnish")["answered"] == 1.0
    assert (metrics(assay, "right")["repeated_answer"], metrics(assay, "in_finnish")["repeated_answer"]) == (
        0.0,
        53 / 60,
    )
    told = assay("eval", "compare", "right", "in_finnish", "--inconclusive", "pass", code=1).output
    assert "more questions get the same answer as another question" in told


def test_a_refusal_counts_as_irrelevant_and_what_is_no_longer_measured_fails(assay: Assay) -> None:
    evaluated(assay, dataset(), ("right", "unsure"), ("--judge", "lexical"))
    found = metrics(assay, "unsure")
    assert found["answer_relevancy"] == pytest.approx(0.1)
    assert (found["coverage"], found["abstained"]) == (pytest.approx(0.1), pytest.approx(0.9))
    assert found["faithfulness"] == 1.0, "of the answers that are left"
    told = assay("eval", "compare", "right", "unsure", "--inconclusive", "pass", code=1).output
    assert "faithfulness" in told
    assert "measured for 6 of 60 answerable cases, in the baseline of 60" in told
    # Even where nobody looks at the new metrics, a mean over fewer cases is not let through.
    stages = [f"--stage={name}=informational" for name in ("answered", "coverage", "abstained", "answer_relevancy")]
    assert "measured for 6 of 60" in assay("eval", "compare", "right", "unsure", *stages, code=1).output


def test_a_model_overrules_what_rules_take_for_a_refusal(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_JUDGE_API_KEY", KEY)
    with AnthropicServer() as api:
        monkeypatch.setenv("ASSAY_JUDGE_BASE_URL", api.url)
        evaluated(assay, dataset(2), ("no_desk",), ("--judge", "anthropic"))
        assert metrics(assay, "no_desk")["answered"] == 1.0
        api.reply = lambda _: json.dumps({"claims": [], "relevancy": "no"})
        assay("eval", "run", "--dataset", dataset(2), "--target", "covered_target:no_desk", "--name", "again",
              "--judge", "anthropic", "--no-judge-cache", "--progress", "none")  # fmt: skip
    found = metrics(assay, "again")
    assert (found["answered"], found["abstained"], found["answer_relevancy"]) == (0.0, 1.0, 0.0)
    assay("eval", "run", "--dataset", dataset(2), "--target", "covered_target:no_desk", "--name", "by_rules",
          "--progress", "none")  # fmt: skip
    assert metrics(assay, "by_rules")["answered"] == 0.0, "which is what the model overruled"


def test_to_refuse_what_cannot_be_answered_is_not_punished(assay: Assay) -> None:
    evaluated(assay, dataset(200, 100), ("right", "refusing"), ("--judge", "lexical"))
    assert "verdict: pass" in assay("eval", "compare", "right", "refusing").output


def test_answers_made_up_to_questions_without_one_are_told(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated(assay, dataset(20, 60), ("refusing", "right"))
    assert (metrics(assay, "refusing")["null_refused"], metrics(assay, "right")["null_refused"]) == (1.0, 0.0)
    told = json.loads(assay("eval", "compare", "refusing", "right", "--json", "--inconclusive", "pass").stdout)
    (found,) = [each for each in told["metrics"] if each["metric"] == "null_refused"]
    assert (found["verdict"], found["rule"]["stage"], found["n"]) == ("fail", "warn", 60)
    monkeypatch.setenv("ASSAY_JUDGE_API_KEY", KEY)
    with AnthropicServer(reply=lambda _: json.dumps({"claims": [], "relevancy": "no"})) as api:
        monkeypatch.setenv("ASSAY_JUDGE_BASE_URL", api.url)
        for name, judge in (("rules", "lexical"), ("model", "anthropic")):
            assay("eval", "run", "--dataset", dataset(0, 5), "--target", "covered_target:polite", "--name", name,
                  "--judge", judge, "--progress", "none")  # fmt: skip
    assert (metrics(assay, "rules")["null_refused"], metrics(assay, "model")["null_refused"]) == (0.0, 1.0)


def test_a_check_that_fails_more_often_fails_the_gate(assay: Assay) -> None:
    evaluated(assay, dataset(), ("right", "uncited"), ("--judge", "lexical"))
    document = json.loads(assay("eval", "compare", "right", "uncited", "--json", code=1).stdout)
    (check,) = [each for each in document["metrics"] if each["metric"] == "check_failed_citations_exist"]
    assert (check["baseline"], check["candidate"], check["verdict"]) == (0.0, 1.0, "fail")


def test_a_search_without_answers_has_none_of_these_metrics(assay: Assay) -> None:
    evaluated(assay, dataset(), ("search",), ("--judge", "lexical"))
    assert not {"answered", "coverage", "abstained", "no_context"} & metrics(assay, "search").keys()


def test_a_reply_whose_results_have_another_name_is_told(assay: Assay) -> None:
    run = ("eval", "run", "--dataset", dataset(5), "--progress", "none", "--target")
    words = "a response needs them under `results`"
    assert words in assay(*run, "covered_target:misnamed").output
    assert words not in assay(*run, "covered_target:right", "--name", "right").output
    told = assay(*run, "covered_target:misname", "--name", "wrong", code=2).output
    assert "no function misname (did you mean misnamed?)" in told
