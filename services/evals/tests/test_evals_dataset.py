"""Golden datasets: the forms that are read, what is refused and how, and what diff and merge say."""

import json
from importlib import resources

import pytest

from assay_evals.dataset.changes import dataset_stats, diff_datasets, merge_datasets
from assay_evals.dataset.file_format import read_dataset, write_dataset
from assay_evals.dataset.model import Dataset, DatasetError, document_id

CASE: dict[str, object] = {"id": "c1", "query": "what is slow?", "expected_ids": ["a", "b"]}
NULL: dict[str, object] = {"id": "n1", "query": "what is not there?", "query_type": "null"}


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def a_dataset(*records: dict[str, object]) -> Dataset:
    return read_dataset(json.dumps({"version": "1.0.0", "cases": list(records)}))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"version": "2.1.0", "name": "golden", "cases": [CASE, NULL]}, indent=2),
        lines({"record": "dataset", "version": "2.1.0", "name": "golden", "cases": 2}, CASE, NULL),
        "\n" + lines({"version": "2.1.0", "name": "golden"}, CASE, NULL),
    ],
)
def test_every_form_gives_the_same_dataset(text: str) -> None:
    dataset = read_dataset(text)
    assert (dataset.version, dataset.name) == ("2.1.0", "golden")
    assert [case.id for case in dataset.cases] == ["c1", "n1"]
    assert dataset.cases[0].relevance == {"a": 1, "b": 1}


def test_cases_alone_are_a_dataset_without_a_version() -> None:
    assert read_dataset(lines(CASE, NULL)).version == "0"
    assert read_dataset(json.dumps([CASE])).cases[0].id == "c1"


def test_what_is_written_reads_back_the_same() -> None:
    change = {"version": "1.0.0", "at": "2026-01-02", "note": "first", "added": ["c1"]}
    header = {"version": "1.0.0", "license": "CC0-1.0", "changelog": [change]}
    own = CASE | {"metadata": {"team": 7}, "tags": ["slow"], "reviewed": False, "graded_relevance": {"a": 3}}
    dataset = read_dataset(json.dumps(header | {"cases": [own, NULL]}))
    again = read_dataset("\n".join(write_dataset(dataset)))
    assert again == dataset
    assert again.fingerprint == dataset.fingerprint
    assert again.model_extra == {"license": "CC0-1.0"}
    assert not again.cases[0].reviewed


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("graded_relevence", "did you mean graded_relevance?"),
        ("qurey_type", "did you mean query_type?"),
        ("zzz", "not a field of a case;"),
    ],
)
def test_a_field_that_nobody_knows_is_refused_with_the_nearest_one(field: str, hint: str) -> None:
    with pytest.raises(DatasetError) as refused:
        a_dataset(NULL, CASE | {field: 1})
    (problem,) = refused.value.problems
    assert problem.startswith(f"case 2: {field}: ")
    assert hint in problem
    assert "metadata" in problem


def test_a_field_with_a_long_name_is_not_quoted_whole() -> None:
    with pytest.raises(DatasetError) as refused:
        a_dataset(CASE | {"x" * 50_000: 1})
    assert len(str(refused.value)) < 1000


def test_names_in_camel_case_are_the_same_fields() -> None:
    text = json.dumps(
        {
            "version": "1.0.0",
            "createdAt": "2026-01-02T00:00:00Z",
            "description": "d",
            "cases": [
                {
                    "id": "a",
                    "query": "q",
                    "queryType": "multi-hop",
                    "expectedObservationIds": ["o1"],
                    "expectedSourceIds": ["s1"],
                    "gradedRelevance": {"o1": 3},
                    "expectedAnswer": "yes",
                    "requiredCitations": ["o1"],
                    "requiredEntities": ["X"],
                    "complexity": "medium",
                    "source": "manual",
                },
                {
                    "id": "b",
                    "query": "r",
                    "queryType": "status",
                    "expectedObservationIds": [],
                    "expectedSourceIds": ["s2"],
                },
            ],
        }
    )
    dataset = read_dataset(text)
    one, other = dataset.cases
    assert dataset.created_at == "2026-01-02T00:00:00Z"
    assert (one.query_type, one.expected_ids, one.relevance) == ("multi-hop", ["o1"], {"o1": 3})
    assert (one.expected_answer, one.required_entities) == ("yes", ["X"])
    assert one.metadata == {"expected_source_ids": ["s1"]}
    assert other.expected_ids == ["s2"]


def test_a_field_in_two_spellings_is_refused() -> None:
    with pytest.raises(DatasetError, match="queryType: not a field of a case"):
        a_dataset(CASE | {"query_type": "status", "queryType": "actor"})


def test_judged_documents_may_name_their_source() -> None:
    judged = [{"slug": "x", "grade": 3}, {"slug": "x", "source_id": "wiki", "grade": 1}]
    case = a_dataset({"id": "c", "query": "q", "relevant": judged}).cases[0]
    assert case.relevance == {"x": 3, document_id("x", "wiki"): 1}


def test_the_demos_golden_dataset_is_one() -> None:
    dataset = read_dataset((resources.files("assay_demo") / "golden.jsonl").read_text())
    stats = dataset_stats(dataset)
    assert stats.cases == 367
    assert stats.duplicate_queries == 0
    assert stats.by_query_type["null"] > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no cases"),
        ("{]", "line 1: not JSON"),
        (lines(CASE, CASE), "line 2: the id c1 is already that of line 1"),
        (lines({"id": "c", "query": "q"}), "no expected id"),
        (lines({"id": "c", "query": "q", "query_type": "null", "expected_ids": ["a"]}), "a null case expects nothing"),
        (lines(CASE | {"query_type": "other"}, NULL), "line 1: query_type"),
        (lines(CASE | {"graded_relevance": {"a": 4}}, NULL), "graded_relevance.a"),
        (lines(CASE | {"expected_ids": ["a", "a"]}, NULL), "twice"),
        (lines(CASE | {"inclusion_probability": 0}, NULL), "inclusion_probability"),
        (json.dumps({"version": "1", "cases": [CASE, {"id": "x"}]}), "case 2"),
        (lines(CASE, [1]), "line 2"),
        (lines({"id": "a", "qurey": "q", "expected_ids": ["x"]}, CASE), "line 1: query: is missing"),
        (lines({"expected_ids": ["x"]}, CASE), "line 1"),
        (lines({"id": "c", "query": "q", "relevant": "abc"}), "relevant must be a list"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        read_dataset(text)


def test_problems_are_told_all_at_once_and_quote_no_query() -> None:
    with pytest.raises(DatasetError) as caught:
        read_dataset(lines({"id": "c", "query": "my secret"}, {"id": "", "query": "my secret", "expected_ids": ["a"]}))
    assert len(caught.value.problems) == 2
    assert "secret" not in str(caught.value)


def test_the_fingerprint_covers_every_field_and_no_order() -> None:
    one, two = a_dataset(CASE, NULL), a_dataset(NULL, CASE)
    assert one.fingerprint == two.fingerprint
    assert one.fingerprint != a_dataset(CASE | {"notes": "x"}, NULL).fingerprint


def test_a_diff_names_what_came_went_and_changed() -> None:
    diff = diff_datasets(a_dataset(CASE, NULL), a_dataset(CASE | {"expected_ids": ["a"]}, CASE | {"id": "c2"}))
    assert (diff.added, diff.removed, diff.changed) == (["c2"], ["n1"], {"c1": ["expected_ids"]})
    assert diff_datasets(a_dataset(CASE), a_dataset(CASE)).same


def test_a_merge_keeps_one_of_equal_cases_and_refuses_different_ones() -> None:
    merged = merge_datasets(a_dataset(CASE), [a_dataset(CASE, NULL)], version="1.1.0")
    assert ([case.id for case in merged.cases], merged.version) == (["c1", "n1"], "1.1.0")
    with pytest.raises(DatasetError, match="case c1 differs"):
        merge_datasets(a_dataset(CASE), [a_dataset(CASE | {"query": "other"})])


def test_a_line_separator_within_a_question_does_not_end_its_line() -> None:
    dataset = a_dataset(CASE | {"query": "one\u2028two\u0085three\x0cfour"})
    assert read_dataset("\n".join(write_dataset(dataset))) == dataset


def test_every_broken_line_is_named_and_every_id_that_stands_twice() -> None:
    text = "{]\n" + lines(CASE) + '{"id": \n' + lines({"id": "c1"}, CASE, [1])
    with pytest.raises(DatasetError) as found:
        read_dataset(text)
    assert [problem.partition(" (")[0] for problem in found.value.problems] == [
        "line 1: not JSON",
        "line 3: not JSON",
        "line 4: the id c1 is already that of line 2",
        "line 4: query: is missing",
        "line 5: the id c1 is already that of line 2",
        "line 6: must be an object of keys and values",
    ]


def test_one_document_that_is_broken_is_one_problem_at_its_line() -> None:
    document = json.dumps({"version": "1", "cases": [CASE, NULL]}, indent=2).splitlines()
    document[5] += "]"
    with pytest.raises(DatasetError) as found:
        read_dataset("\n".join(document))
    (problem,) = found.value.problems
    assert problem.startswith("line 6: not JSON")


def test_a_byte_order_mark_is_no_part_of_a_dataset() -> None:
    assert read_dataset("\ufeff" + lines(CASE)).fingerprint == read_dataset(lines(CASE)).fingerprint


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "b", "query": "  ", "expected_ids": ["x"]}', "line 2: query is blank"),
        ('{"id": "b", "query": "q", "query": "r", "expected_ids": ["x"]}', "line 2: a key appears twice"),
    ],
)
def test_a_case_that_asks_nothing_or_says_two_things_is_refused(line: str, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        read_dataset('{"id": "a", "query": "q", "expected_ids": ["x"]}\n' + line)
