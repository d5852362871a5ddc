"""People make a golden dataset from captured retrievals in the store, and evaluate a system with it."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_evals.dataset.file_format import read_dataset
from assay_operations.errors import OperationError
from assay_operations.golden.candidates import review_candidates
from assay_operations.golden.datasets import cases_of, dataset_of, list_datasets
from assay_operations.golden.save import Review, case_id_of, retire_case, save_case
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import new_event_id
from assay_schema.settings import StoreSettings
from tests.support.cli import Cli
from tests.support.sample_rows import answer, candidate, feedback, lines
from tests.support.store import StoreServer

#: Questions of which no two are alike.
WORDS = (
    "rotate signing keys", "parse json lines", "join two paths", "compress with gzip", "schedule a backup", "restore yesterday's dump",
    "limit memory use", "open a websocket", "read environment variables", "format a date", "send an email", "sort by column",
    "draw a histogram", "escape html", "merge two branches", "find slow queries", "renew certificates", "delete old logs",
    "count distinct users", "translate an error",
)  # fmt: skip
TARGET = "def search(query):\n    return ['doc/' + query.replace(' ', '-'), 'doc/other']\n"


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in ("candidates", "answers", "feedback", "dataset_cases"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


@pytest.fixture
def console(migrated: StoreServer, owner: Client) -> Iterator[Client]:
    with connect(migrated.settings("console").store) as client:
        yield client


@pytest.fixture
def settings(migrated: StoreServer) -> StoreSettings:
    return migrated.settings("console").store


def slug(query: str) -> str:
    return "doc/" + query.replace(" ", "-")


def captured(owner: Client, *queries: str, **fields: Any) -> list[str]:
    rows = [
        candidate(n, query=query, pii_families={}, retrieved_slugs=[slug(query), "doc/b"], **fields)
        for n, query in enumerate(queries)
    ]
    insert_json_rows(owner, "assay_base.candidates", lines(rows), len(rows))
    return [row["event_id"] for row in rows]


def judge(owner: Client, event: str, verdict: str) -> None:
    insert_json_rows(owner, "assay_base.feedback", lines([feedback(target_event_id=event, verdict=verdict)]), 1)


def save(client: Client, settings: StoreSettings, event: str, *slugs: str, who: str = "ana", **more: Any) -> Any:
    name, project = more.pop("name", "golden"), more.pop("project", "default")
    review = more.pop("review", Review(expected_slugs=slugs))
    return save_case(client, settings, project, name, review, who, event_id=event, **more)


def test_negative_feedback_comes_first_and_similar_questions_once(owner: Client, console: Client) -> None:
    events = captured(owner, *WORDS[:5], "  Rotate   SIGNING keys ")
    judge(owner, events[2], "positive")
    judge(owner, events[3], "negative")
    found = review_candidates(console, project="default", dataset="golden")
    assert [each.query for each in found][:2] == [WORDS[3], WORDS[2]]
    assert len(found) == 5
    (folded,) = [each for each in found if each.query.lower().split() == WORDS[0].split()]
    assert folded.times == 2
    assert folded.event_id in (events[0], events[5])
    worst = found[0]
    assert (worst.event_id, worst.negative, worst.slugs) == (events[3], 1, (slug(WORDS[3]), "doc/b"))
    assert (worst.chunk_ids, worst.project) == ((7, 9, 9), "default")
    assert [
        each.query for each in review_candidates(console, project="default", dataset="golden", negative_only=True)
    ] == [WORDS[3]]


def test_candidates_keep_the_probability_of_their_draw_and_other_projects_out(owner: Client, console: Client) -> None:
    captured(owner, *WORDS)
    captured(owner, "of another project", project="shop")
    found = review_candidates(console, project="default", dataset="golden", limit=5)
    assert [each.inclusion_probability for each in found] == [0.25] * 5
    assert found == review_candidates(console, project="default", dataset="golden", limit=5)
    assert review_candidates(console, project="empty", dataset="golden") == []


def test_a_reviewed_question_is_no_candidate_again_even_if_it_was_retired(
    owner: Client, console: Client, settings: StoreSettings
) -> None:
    kept, gone, *_ = captured(owner, *WORDS[:3])
    save(console, settings, kept, "doc/a")
    save(console, settings, gone, "doc/a")
    retire_case(console, settings, "default", "golden", case_id_of(gone), "ana", base_version=1)
    assert [each.query for each in review_candidates(console, project="default", dataset="golden")] == [WORDS[2]]
    assert len(review_candidates(console, project="default", dataset="other")) == 3


def test_a_question_with_personal_data_is_no_candidate_unless_asked_for(owner: Client, console: Client) -> None:
    row = candidate(query="who is [REDACTED]?")
    insert_json_rows(owner, "assay_base.candidates", lines([row]), 1)
    assert review_candidates(console, project="default", dataset="golden") == []
    (found,) = review_candidates(console, project="default", dataset="golden", include_scrubbed=True)
    assert found.event_id == row["event_id"]


def test_an_answer_alone_is_no_candidate_because_it_has_no_retrieval(owner: Client, console: Client) -> None:
    row = answer(query="only answered")
    insert_json_rows(owner, "assay_base.answers", lines([row]), 1)
    judge(owner, row["event_id"], "negative")
    assert review_candidates(console, project="default", dataset="golden") == []


def test_each_save_is_a_new_version_with_the_question_of_the_retrieval(
    owner: Client, console: Client, settings: StoreSettings
) -> None:
    (event,) = captured(owner, WORDS[0])
    first = save(console, settings, event, "doc/a", "doc/a", inclusion_probability=0.25)
    assert (first.version, first.query, first.expected_slugs, first.reviewer) == (1, WORDS[0], ("doc/a",), "ana")
    owner.command("TRUNCATE TABLE assay_base.candidates")
    second = save(console, settings, event, "doc/b", who="bob", base_version=1)
    assert (second.version, second.query, second.inclusion_probability) == (2, WORDS[0], 0.25)
    assert cases_of(console, "default", "golden") == [second]
    assert owner.query("SELECT count() FROM assay_base.dataset_cases").result_rows == [(2,)]


def test_a_retired_case_can_come_back(owner: Client, console: Client, settings: StoreSettings) -> None:
    (event,) = captured(owner, WORDS[0])
    save(console, settings, event, "doc/a")
    retire_case(console, settings, "default", "golden", case_id_of(event), "bob", base_version=1)
    assert cases_of(console, "default", "golden") == []
    assert list_datasets(console) == []
    with pytest.raises(OperationError, match="no such case"):
        retire_case(console, settings, "default", "golden", case_id_of(event), "bob", base_version=2)
    assert save(console, settings, event, "doc/c").version == 3


def test_a_reviewer_who_saw_an_older_version_is_told_of_the_conflict(
    owner: Client, console: Client, settings: StoreSettings
) -> None:
    (event,) = captured(owner, WORDS[0])
    save(console, settings, event, "doc/a")
    for base_version in (0, 2):
        with pytest.raises(OperationError, match="changed meanwhile") as refused:
            save(console, settings, event, "doc/b", who="bob", base_version=base_version)
        assert refused.value.kind == "conflict"
    assert [case.reviewer for case in cases_of(console, "default", "golden")] == ["ana"]


def test_of_reviewers_who_save_at_once_one_wins_and_the_others_know(
    owner: Client, migrated: StoreServer, settings: StoreSettings
) -> None:
    (event,) = captured(owner, WORDS[0])
    results: dict[str, str] = {}

    def review(who: str) -> None:
        with connect(migrated.settings("console").store) as client:
            try:
                save(client, settings, event, f"doc/{who}", who=who)
                results[who] = "saved"
            except OperationError as error:
                results[who] = error.kind

    threads = [threading.Thread(target=review, args=(who,)) for who in ("ana", "bob", "eve")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results.values()) == ["conflict", "conflict", "saved"]
    (case,) = cases_of(owner, "default", "golden")
    assert results[case.reviewer] == "saved"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"review": Review()}, "name a document"),
        ({"review": Review(null_case=True, expected_slugs=["a"])}, "a null case expects no document"),
        ({"review": Review(null_case=True, expected_answer="a")}, "a null case expects no document"),
        ({"review": Review(expected_slugs=[""])}, "of 1 to 1,024 characters"),
        ({"review": Review(expected_slugs=["x" * 1025])}, "of 1 to 1,024 characters"),
        ({"review": Review(expected_chunk_ids=[1 << 63])}, "64 bits"),
        ({"review": Review(expected_answer="word " * 11_000)}, "51,200 characters"),
        ({"name": "a b"}, "name of a dataset"),
        ({"project": "../x"}, "name of a project"),
        ({"who": " "}, "name of a person"),
        ({"event": "x"}, "UUIDv7"),
        ({"event": new_event_id()}, "no retrieval"),
        ({"inclusion_probability": 0.0}, "above 0 and at most 1"),
        ({"inclusion_probability": 1.5}, "above 0 and at most 1"),
    ],
)
def test_a_wrong_review_is_refused_with_the_reason(
    owner: Client, console: Client, settings: StoreSettings, wrong: dict[str, Any], message: str
) -> None:
    (event,) = captured(owner, WORDS[0])
    given = {"event": event, **wrong}
    with pytest.raises(OperationError, match=message):
        save(console, settings, given.pop("event"), "doc/a", **given)
    assert owner.query("SELECT count() FROM assay_base.dataset_cases").result_rows == [(0,)]


def test_expected_answers_are_scrubbed(owner: Client, console: Client, settings: StoreSettings) -> None:
    (event,) = captured(owner, WORDS[0])
    save(console, settings, event, review=Review(expected_answer="Ask jane.doe@example.com.\nThen wait."))
    (case,) = cases_of(console, "default", "golden")
    assert case.expected_answer
    assert "jane.doe" not in case.expected_answer
    assert case.expected_answer.endswith("\nThen wait.")


def test_datasets_are_listed_with_a_version_and_a_fingerprint_that_change_with_their_cases(
    owner: Client, console: Client, settings: StoreSettings
) -> None:
    first, second = captured(owner, *WORDS[:2])
    save(console, settings, first, "doc/a")
    save(console, settings, second, review=Review(null_case=True), who="bob")
    (before,) = list_datasets(console)
    assert (before.project, before.name, before.cases, before.null_cases) == ("default", "golden", 2, 1)
    assert (before.version, before.reviewers) == ("2", ("ana", "bob"))
    assert before.fingerprint == dataset_of(console, "golden").fingerprint
    retire_case(console, settings, "default", "golden", case_id_of(second), "ana", base_version=1)
    (after,) = list_datasets(console, project="default")
    assert (after.version, after.cases, after.null_cases) == ("3", 1, 0)
    assert after.fingerprint != before.fingerprint
    assert list_datasets(console, project="shop") == []


def test_a_dataset_of_two_projects_has_to_be_named_with_its_project(
    owner: Client, console: Client, settings: StoreSettings, migrated: StoreServer, tmp_path: Path
) -> None:
    (event,) = captured(owner, WORDS[0])
    (other,) = captured(owner, WORDS[1], project="shop")
    save(console, settings, event, "doc/a")
    save(console, settings, other, "doc/a", project="shop")
    cli = Cli(tmp_path, store_url=migrated.url)
    for arguments, message in (
        (["golden"], b"several projects have a dataset golden: default, shop; name one with --project"),
        (["missing"], b"no dataset missing is stored"),
        (["golden", "--project", "toys"], b"no dataset golden of project toys is stored"),
        (["a b"], b"the name of a dataset"),
    ):
        done = cli.call("dataset", "export", *arguments, role="sre")
        assert (done.returncode, done.stdout) == (2, b"")
        assert message in done.stderr
    done = cli.call("dataset", "export", "golden", "--project", "shop", role="sre")
    assert [case.query for case in read_dataset(done.stdout.decode()).cases] == [WORDS[1]]


def test_twenty_saved_cases_go_through_an_evaluation_run(
    owner: Client, console: Client, settings: StoreSettings, migrated: StoreServer, tmp_path: Path
) -> None:
    captured(owner, *WORDS)
    found = review_candidates(console, project="default", dataset="golden", limit=20)
    assert len(found) == 20
    for number, each in enumerate(found):
        review = (
            Review(null_case=True)
            if number == 0
            else Review(
                expected_slugs=[each.slugs[0]],
                expected_chunk_ids=[7],
                expected_answer="It is there." if number == 1 else "",
            )
        )
        save(console, settings, each.event_id, review=review, inclusion_probability=each.inclusion_probability)
    cli = Cli(tmp_path, store_url=migrated.url)
    done = cli.call("dataset", "export", "golden", role="sre")
    assert done.returncode == 0, done.stderr
    (tmp_path / "golden.jsonl").write_bytes(done.stdout)
    dataset = read_dataset(done.stdout.decode())
    assert (len(dataset.cases), dataset.name, dataset.version) == (20, "golden", "20")
    assert all(case.reviewed for case in dataset.cases)
    assert dataset.fingerprint in done.stderr.decode()
    (tmp_path / "golden_target.py").write_text(TARGET)
    checked = cli.run("dataset", "validate", "golden.jsonl", role="sre")
    assert checked.returncode == 0, checked.stderr
    ran = cli.run(
        *("eval", "run", "--dataset", "golden.jsonl", "--target", "golden_target:search", "--name", "main"),
        *("--require-reviewed", "--progress", "none"),
        role="sre",
    )
    assert ran.returncode == 0, ran.stderr
    shown = cli.run("eval", "show", "main", "--json", role="sre")
    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert document["config"]["dataset_fingerprint"] == dataset.fingerprint
    assert (document["cases"], document["errored"]) == (20, 0)
    assert document["metrics"]["recall@5"] | {"low": None, "high": None} == {
        "mean": 1.0,
        "n": 19,
        "low": None,
        "high": None,
    }
