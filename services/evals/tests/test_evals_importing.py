"""Datasets and runs of other programs: what becomes of them, and that what cannot be read is named with its line."""

import json

import pytest

from assay_evals.dataset.file_format import read_dataset, write_dataset
from assay_evals.dataset.importing import (
    from_csv,
    from_judgements,
    from_known,
    read_judgements,
    read_queries,
    read_trec_run,
)
from assay_evals.dataset.model import DatasetError
from assay_evals.dataset.qrels import read_qrels

QUERIES = {"1": "what is slow?", "2": "what is lost?", "3": "what is not judged?"}


def test_trecs_judgements_are_grades_between_0_and_3() -> None:
    grades = read_judgements("1 0 a 4\r\n1 0 b -2\n\n2\t0\tc\t1\n")
    assert grades == {"1": {"a": 3, "b": 0}, "2": {"c": 1}}


@pytest.mark.parametrize("header", ["", "query-id\tcorpus-id\tscore\n"])
def test_beirs_judgements_may_have_a_header(header: str) -> None:
    assert read_judgements(header + "q1\tdoc 7\t1\n") == {"q1": {"doc 7": 1}}


@pytest.mark.parametrize(
    "text",
    [
        "1\twhat is slow?\n2\twhat\tis lost?\n",
        '{"_id": 1, "text": "what is slow?"}\n{"_id": "2", "text": "what\\tis lost?"}\n',
    ],
)
def test_questions_come_in_two_forms(text: str) -> None:
    assert read_queries(text) == {"1": "what is slow?", "2": "what\tis lost?"}


def test_only_judged_questions_with_a_relevant_document_are_cases() -> None:
    made, notes = from_judgements({"1": {"a": 2, "b": 0}, "2": {"c": 0}, "9": {"d": 1}}, QUERIES, name="set")
    assert [(case.id, case.relevance) for case in made.cases] == [("1", {"a": 2, "b": 0})]
    assert notes == [
        "left out: 1 question(s) without a judgement",
        "left out: 1 question(s) without a relevant document",
        "left out: 1 judged id(s) without a question",
    ]
    assert read_dataset("\n".join(write_dataset(made))).fingerprint == made.fingerprint


def test_files_that_do_not_belong_together_are_told() -> None:
    with pytest.raises(DatasetError, match="do the ids of both files belong together"):
        from_judgements({"x": {"a": 1}}, QUERIES, name="set")


def test_a_table_holds_every_field() -> None:
    made = from_csv(
        "id,query,queryType,expected_ids,graded_relevance,expected_answer,tags,reviewed,inclusion_probability,metadata.team\n"
        '1,"a, b?",actor,x; y,,,eu;slow,false,0.5,search\n'
        '2,"two\nlines",,,x=3;y::z=1,yes,,TRUE,,\n'
        ",,,,,,,,,\n"
        "3,only an answer,,,,Berlin,,,,\n",
        name="table",
    )
    one, two, three = made.cases
    assert (one.query, one.query_type, one.expected_ids, one.tags) == ("a, b?", "actor", ["x", "y"], ["eu", "slow"])
    assert (one.reviewed, one.inclusion_probability, one.metadata) == (False, 0.5, {"team": "search"})
    assert (two.query, two.relevance, two.reviewed) == ("two\nlines", {"x": 3, "y::z": 1}, True)
    assert (three.expected_answer, three.relevance) == ("Berlin", {})


def test_a_long_cell_is_a_cell() -> None:
    (case,) = from_csv(f"query,expected_answer\na,{'x' * 200_000}\n", name="t").cases
    assert case.expected_answer == "x" * 200_000


def test_a_table_without_ids_numbers_its_rows() -> None:
    assert [case.id for case in from_csv("query,expected_ids\na,x\nb,y\n", name="t").cases] == ["row-1", "row-2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no cases"),
        ("query,expected_idz\na,x\n", "did you mean expected_ids"),
        ("id,expected_ids\n1,x\n", "no column query"),
        ("id;query;expected_ids\n1;a;x\n", "parted by semicolons"),
        ("id\tquery\texpected_ids\n1\ta\tx\n", "parted by tabs"),
        ("query,query\na,b\n", "stands twice"),
        ("query,expected_ids\na\n", "line 2: 1 cells, and 2 columns"),
        ('query,expected_ids\n"a,x\n', "not CSV"),
        ("id,query,expected_ids\n1,a,x\n1,b,y\n", "line 3: the id 1 is already that of line 2"),
        ("query,graded_relevance\na,x\n", "line 2: graded_relevance: write id=grade"),
        ("query,graded_relevance\na,x=7\n", "line 2: graded_relevance.x"),
        ("query,expected_ids,inclusion_probability\na,x,often\n", "line 2"),
        ("query,expected_ids,reviewed\na,x,perhaps\n", "line 2: reviewed"),
        ("query,query_type\na,technical\n", "line 2: no expected id"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(text: str, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        from_csv(text, name="t")


def test_a_gates_questions_become_cases() -> None:
    whole = {
        "schema_version": 1,
        "queries": [
            {
                "query_id": "q",
                "query": "?!",
                "relevant": [{"source_id": "wiki", "slug": "a"}],
                "first_relevant_slug": "b",
            }
        ],
    }
    (case,) = from_known(read_qrels(json.dumps(whole)), name="known").cases
    assert (case.id, case.relevance) == ("q", {"wiki::a": 1, "b": 3})


def test_a_run_is_sorted_by_score_and_equal_ones_stand_as_they_came() -> None:
    found = read_trec_run("1 Q0 c 3 0.1 me\n1 Q0 a 1 0.9 me\n1 Q0 b 2 0.1 me\n2 Q0 x 1 1e-3 me\n")
    assert found == {"1": ["a", "c", "b"], "2": ["x"]}


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (read_judgements, "", "no judgements"),
        (read_judgements, "1 0 a\n", "line 1: write qid 0 docid grade"),
        (read_judgements, "1 0 a high\n", "line 1"),
        (read_judgements, "1 0 a 1\n1 0 a 2\n", "line 2: the same document has another grade"),
        (read_queries, "\n\n", "no questions"),
        (read_queries, "1 what\n", "line 1: write qid<TAB>question"),
        (read_queries, '{"_id": "1"}\n', "line 1"),
        (read_queries, "{" * 50_000, "line 1"),
        (read_queries, "1\ta\n1\tb\n", "line 2: the same id has another question"),
        (read_trec_run, "", "no results"),
        (read_trec_run, "1 Q0 a 1 nan me\n", "line 1: write qid Q0 docid rank score tag"),
        (
            read_trec_run,
            "1 Q0 a 1 1 me\n1 Q0 b 2 1 me\n1 Q0 a 3 1 me\n",
            "line 3: the question has this document above",
        ),
    ],
)
def test_what_is_wrong_in_a_line_is_named(read: object, text: str, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        read(text)  # type: ignore[operator]


def test_ten_thousand_wrong_lines_are_fifty_problems() -> None:
    with pytest.raises(DatasetError) as refused:
        read_judgements("secret question\n" * 10_000)
    assert len(refused.value.problems) == 51
    assert "secret" not in str(refused.value)
