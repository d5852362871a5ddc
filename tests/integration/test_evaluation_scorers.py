"""Scorers of one's own and assertions in the dataset, as an engineer uses them: through `assay eval run`, `show` and `compare`."""

import importlib
import json
import linecache
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.assay_command import Assay, assay_in, write_cases, write_target


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    return assay_in(tmp_path, monkeypatch)


def target(folder: Path, *answers: str | None) -> str:
    return write_target(folder, {f"q{place}": answer for place, answer in enumerate(answers)}, f"t{uuid4().hex}")


def run(assay: Assay, dataset: str, name: str, *options: str, code: int = 0) -> str:
    return assay("eval", "run", "--dataset", dataset, "--name", name, "--progress", "none", *options, code=code).output


def scores(assay: Assay, name: str) -> list[dict[str, float | None]]:
    found = json.loads(assay("eval", "show", name, "--json").stdout)
    return [
        {key: value for key, value in each["metrics"].items() if key.startswith("score:")} for each in found["results"]
    ]


def test_assertions_of_a_dataset_are_metrics_with_intervals(assay: Assay, tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}}
    dataset = write_cases(
        tmp_path / "d.jsonl",
        [
            {
                "assert": [
                    {"type": "contains", "value": "VALVE", "ignore_case": True},
                    {"type": "regex", "value": "[0-9]+ bar"},
                ]
            },
            {
                "scorers": [
                    {"type": "json_schema", "value": schema},
                    {"type": "not_contains", "value": ["sorry", "cannot"]},
                ]
            },
            {"assert": [{"type": "equals", "value": "yes"}, {"type": "similarity", "value": "yes it is"}]},
            {"assert": [{"type": "contains", "value": "anything"}, {"type": "contains", "value": "more"}]},
        ],
    )
    answers = ("the valve holds 9 bar", '{"port": 80}', " yes ", "anything")
    told = run(assay, dataset, "one", "--target", target(tmp_path, *answers))
    assert scores(assay, "one") == [
        {"score:contains": 1.0, "score:regex": 1.0},
        {"score:json_schema": 1.0, "score:not_contains": 1.0},
        {"score:equals": 1.0, "score:similarity": 0.5},
        {"score:contains": 0.5},
    ]
    line = next(line for line in told.splitlines() if "score:json_schema" in line)
    assert "1.000  [0.0" in line, "one case that holds says little: no interval of width 0"


def test_an_answer_that_is_not_there_fails_its_assertions(assay: Assay, tmp_path: Path) -> None:
    cases = [{"assert": [{"type": "not_contains", "value": "sorry"}]}, {"assert": [{"type": "contains", "value": "x"}]}]
    run(assay, write_cases(tmp_path / "d.jsonl", cases), "one", "--target", target(tmp_path, None, "x"))
    assert scores(assay, "one") == [{"score:not_contains": 0.0}, {"score:contains": 1.0}]


def test_scorers_of_the_command_line_hold_for_all_cases_that_have_an_answer(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "own_scorers.py").write_text(
        "def short(case, answer):\n    return len(answer.answer) < 10\n"
        "async def half(case, answer):\n    return 0.5 if case.id == 'c0' else None\n"
    )
    dataset = write_cases(tmp_path / "d.jsonl", [{}, {"query_type": "null", "expected_ids": []}])
    options = ("--scorer", "polite=contains:please", "--scorer", "own_scorers:short", "--scorer", "h=own_scorers:half")
    run(assay, dataset, "one", "--target", target(tmp_path, "please", "I do not know that"), *options)
    assert scores(assay, "one") == [
        {"score:polite": 1.0, "score:short": 1.0, "score:h": 0.5},
        {"score:short": 0.0, "score:h": None},
    ]


def test_a_scorer_that_raises_makes_its_case_an_error_that_names_the_place(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "broken_scorers.py").write_text(
        "import sys\n"
        "def index(case, answer):\n    return {}[answer.answer]\n"
        "def leaves(case, answer):\n    sys.exit(0)\n"
        "def words(case, answer):\n    return 'good'\n"
        "def much(case, answer):\n    return 7\n"
    )
    dataset = write_cases(tmp_path / "d.jsonl", [{}])
    for name, told in (
        ("index", "errored: c0: score:index: KeyError (at broken_scorers.py:3)"),
        ("leaves", "errored: c0: score:leaves: SystemExit (at broken_scorers.py:5)"),
        (
            "words",
            "errored: c0: score:words: the function returned str: return a number from 0 to 1, a boolean, or None",
        ),
        ("much", "errored: c0: score:much: the function returned the number 7: return a number from 0 to 1"),
    ):
        options = ("--target", target(tmp_path, "secret words"), "--scorer", f"broken_scorers:{name}")
        output = run(assay, dataset, name, *options, code=1)
        assert told in output
        assert "secret" not in output


@pytest.mark.parametrize(
    ("scorer", "told"),
    [
        ("contians:please", "contians"),
        ("contains", "contains needs a value"),
        ("contains:", "contains needs a value"),
        ("regex:(", "not a regular expression"),
        ("regex:(?=a)", "no look-around"),
        ("json_schema:nowhere.json", "cannot be read"),
        ("nowhere_at_all:scorer", "cannot import nowhere_at_all"),
        (
            "polite=contain:please",
            "cannot import contain: No module named 'contain' (or did you mean the type contains?)",
        ),
        ("=x", "write NAME=TYPE:VALUE"),
        ("a b=contains:x", "write NAME=TYPE:VALUE"),
        ("rubric:Is it polite?", "--judge"),
    ],
)
def test_a_scorer_that_cannot_be_used_is_refused_before_anything_is_asked(
    assay: Assay, tmp_path: Path, scorer: str, told: str
) -> None:
    dataset = write_cases(tmp_path / "d.jsonl", [{}])
    options = ("--target", target(tmp_path, "x"), "--scorer", scorer)
    assert told in run(assay, dataset, "one", *options, code=2)
    assert not (tmp_path / "runs").exists()


def test_a_dataset_runs_no_code_and_misspelt_assertions_are_named(assay: Assay, tmp_path: Path) -> None:
    for given, told in (
        ({"type": "function", "value": "os:getcwd"}, "a dataset runs no code"),
        ({"type": "contians", "value": "x"}, "did you mean contains?"),
        ({"type": "contains", "valu": "x"}, "did you mean value?"),
        ({"type": "json_schema", "value": {"$ref": "http://example.org/s.json"}}, "refers to itself alone"),
        ({"type": "json_schema", "value": {"type": "strin"}}, "no JSON Schema"),
        ({"type": "contains", "value": "x", "name": "a\nb"}, "a name is a letter"),
    ):
        dataset = write_cases(tmp_path / "d.jsonl", [{"assert": [given]}])
        assert told in assay("dataset", "validate", dataset, code=1).output


def test_two_runs_are_compared_by_their_scores_unless_a_scorer_was_changed(assay: Assay, tmp_path: Path) -> None:
    dataset = write_cases(tmp_path / "d.jsonl", [{} for _ in range(40)])
    good, bad = target(tmp_path, *["please"] * 40), target(tmp_path, *["no"] * 40)
    polite = ("--scorer", "polite=contains:please")
    for name, asked in (("main", good), ("worse", bad)):
        run(assay, dataset, name, "--target", asked, *polite)
    run(assay, dataset, "other", "--target", good, "--scorer", "polite=contains:no")
    told = assay("eval", "compare", "main", "worse", "--inconclusive", "pass")
    assert "the stage informational do not decide, and score:polite failed" in told.output
    rules = ("--floor", "score:polite=0.9"), ("--threshold", "score:polite=0.05")
    for rule in rules:
        assert "verdict: fail" in assay("eval", "compare", "main", "worse", *rule, code=1).output
    assert "its scorer was changed" in assay("eval", "compare", "main", "other", code=1).output
    assert "score:polite" in assay("eval", "compare", "main", "worse", "--floor", "score:polit=0.9", code=2).output


def test_a_function_that_cannot_take_a_case_and_an_answer_is_refused_before_the_run(
    assay: Assay, tmp_path: Path
) -> None:
    (tmp_path / "narrow_scorers.py").write_text("def short(answer):\n    return 1.0\n")
    dataset = write_cases(tmp_path / "d.jsonl", [{}])
    told = run(assay, dataset, "n", "--target", target(tmp_path, "x"), "--scorer", "narrow_scorers:short", code=2)
    assert "score:short: short cannot be called with (case, answer): too many positional arguments" in told
    assert not (tmp_path / "runs").exists()


def digest_of(assay: Assay, dataset: str, name: str, asked: str, file: Path, source: str) -> str:
    """What a run says of the scorer `polite` of a module that now says this."""
    file.write_text(source)
    sys.modules.pop(file.stem, None)
    importlib.invalidate_caches()
    linecache.clearcache()
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        run(assay, dataset, name, "--target", asked, "--scorer", f"polite={file.stem}:polite")
    finally:
        sys.dont_write_bytecode = before
    shown = json.loads(assay("eval", "show", name, "--json").stdout)
    return str(shown["config"]["scorers"]["score:polite"])


def test_a_function_that_was_changed_is_another_scorer(assay: Assay, tmp_path: Path) -> None:
    dataset, asked = write_cases(tmp_path / "d.jsonl", [{}]), target(tmp_path, "please")
    function = "def polite(case, answer):\n    {}\n\nRIGHT = {}\n"
    sources = {
        "one": function.format("return RIGHT", 1.0),
        "same": function.format("# as before\n    return (RIGHT)", 1.0),
        "beside": function.format("return RIGHT", 0.5),
        "other": function.format("return RIGHT * 0", 1.0),
        "object": "class Polite:\n    def __call__(self, case, answer):\n        return 1.0\n\npolite = Polite()\n",
        "object2": "class Polite:\n    def __call__(self, case, answer):\n        return 0.0\n\npolite = Polite()\n",
        "deep": "ONE = " + "+".join("1" * 900) + "\n" + function.format("return RIGHT", 1.0),
        "deep2": "ONE = " + "+".join("1" * 900) + "\n" + function.format("return RIGHT", 0.5),
        "partial": "import functools\n\npolite = functools.partial(lambda value, case, answer: value, 1.0)\n",
        "partial2": "import functools\n\npolite = functools.partial(lambda value, case, answer: value, 0.0)\n",
    }
    digests = {
        name: digest_of(assay, dataset, name, asked, tmp_path / "changing_scorer.py", source)
        for name, source in sources.items()
    }
    assert digests.pop("same") == digests["one"], "comments and layout change nothing"
    assert len(set(digests.values())) == len(digests)
    told = assay("eval", "compare", "one", "other", code=1).output
    assert "score:polite measures something different in the candidate: its scorer was changed" in told


def test_a_module_named_as_one_of_pythons_own_is_read_too(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "sched", raising=False)
    dataset, asked = write_cases(tmp_path / "d.jsonl", [{}]), target(tmp_path, "please")
    try:
        one, other = (
            digest_of(
                assay, dataset, name, asked, tmp_path / "sched.py", f"def polite(case, answer):\n    return {right}\n"
            )
            for name, right in (("one", 1.0), ("other", 0.5))
        )
    finally:
        sys.modules.pop("sched", None)
    assert one != other
