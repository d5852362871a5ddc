"""The pages of review and datasets with a real store: cases are ticked, saved, exported, and used by an evaluation."""

import asyncio
import html
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from assay_console.people import Role
from assay_evals.dataset.file_format import read_dataset
from assay_operations.golden.datasets import cases_of
from assay_operations.golden.retrievals import documents_of
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import new_event_id
from assay_schema.settings import RedisSettings, Settings
from assay_ui.formats import sentence
from tests.integration.test_golden_cases import TARGET, WORDS, slug
from tests.support.cli import Cli
from tests.support.console_pages import Pages, console, missing
from tests.support.sample_rows import answer, candidate, feedback, lines
from tests.support.store import StoreServer


@pytest.fixture
def owner(empty_store: StoreServer) -> Iterator[Client]:
    with connect(empty_store.settings().store) as client:
        yield client


@pytest.fixture
def settings(empty_store: StoreServer) -> Settings:
    redis = RedisSettings.model_validate({"url": "redis://127.0.0.1:1/0"})
    return empty_store.settings("console").model_copy(update={"redis": redis})


def captured(owner: Client, *queries: str, project: str = "shop") -> list[str]:
    rows = [
        candidate(n, query=query, pii_families={}, retrieved_slugs=[slug(query), "doc/b, c"], project=project)
        for n, query in enumerate(queries)
    ]
    insert_json_rows(owner, "assay_base.candidates", lines(rows), len(rows))
    return [row["event_id"] for row in rows]


async def save(pages: Pages, event: str, status: int = 303, **fields: str) -> httpx.Response:
    return await pages.post(
        "/datasets/golden/cases", status, **{"project": "shop", "event_id": event, "ranks": "1"} | fields
    )


async def test_twenty_cases_saved_over_http_are_exported_and_gate_a_change(
    settings: Settings, empty_store: StoreServer, owner: Client, tmp_path: Path
) -> None:
    captured(owner, *WORDS)
    async with console(settings, Role.LABELLER) as pages:
        for left in range(len(WORDS), 0, -1):
            document = await pages.json("/review?project=shop")
            assert len(document["queue"]["value"]) == left, "a saved question comes again"
            shown = document["current"]
            assert [each["name"] for each in shown["documents"]] == [
                slug(shown["question"]["pieces"][0]["text"]),
                "doc/b, c",
            ]
            await save(pages, shown["event_id"], inclusion_probability=str(shown["inclusion_probability"]))
        assert "No question is left to review" in await pages.html("/review?project=shop")
        (listed,) = (await pages.json("/datasets"))["rows"]["value"]
        assert (listed["name"], listed["cases"], listed["reviewers"]) == ("golden", len(WORDS), ["ada"])
        for path in ("/review?project=shop", "/datasets/golden"):
            assert (await pages.json(path))["enough"] == {"answerable": 20, "needed": 72, "threshold": 0.05}
            assert "20 cases with expected documents. A comparison usually needs 72 or more" in await pages.html(path)
        commands, page = await pages.json("/datasets/golden"), await pages.html("/datasets/golden")
        assert "compare main change --html report.html --dataset golden.jsonl" in commands["compare"], (
            "the report names questions"
        )
        for name in ("export", "run", "run_change", "compare"):
            assert html.escape(commands[name]) in page
        assert "a pass means only that, and a small loss can pass" in page
        file = await pages._client.get("/datasets/golden/export")
        assert file.headers["content-disposition"] == 'attachment; filename="golden-20.jsonl"'
        assert file.headers["content-type"] == "application/x-ndjson"
    made = read_dataset(file.text)
    assert made.fingerprint == listed["fingerprint"]
    (tmp_path / "golden.jsonl").write_bytes(file.content)
    (tmp_path / "target.py").write_text(
        f"{TARGET}\n\ndef worse(query):\n    return search(query) if 'x' in query else []\n"
    )
    cli = Cli(tmp_path, store_url=empty_store.url)
    printed = await asyncio.to_thread(cli.call, "dataset", "export", "golden", role="sre")
    assert printed.stdout == file.content
    strict = commands["compare"].removesuffix(" --inconclusive pass")
    worse = {name: commands[name].replace("change", "worse") for name in ("run_change", "compare")}
    for command, target, code in (
        (commands["run"], "search", 0),
        (commands["run_change"], "search", 0),
        (commands["compare"], "", 0),
        (strict, "", 3),  # 20 cases are too few to exclude a loss
        (worse["run_change"], "worse", 0),
        (worse["compare"], "", 1),
    ):
        words = command.replace("MODULE:FUNCTION", f"target:{target}").split()
        done = await asyncio.to_thread(cli.call, *words[1:], role="evaluator")
        assert done.returncode == code, (command, done.stdout, done.stderr)
    async with console(settings) as pages:
        (group,) = (await pages.json("/runs?project=shop"))["runs"]["value"]["groups"]
        assert sorted(each["name"] for each in group["runs"]) == ["change", "main", "worse"]
        found = (await pages.json("/compare?base=main&change=change&project=shop"))["found"]
        assert found["verdict"] == "inconclusive"
    shown = await asyncio.to_thread(cli.call, "eval", "show", "main", "--json", role="sre")
    report = json.loads(shown.stdout)
    assert report["config"]["dataset_fingerprint"] == made.fingerprint
    assert report["metrics"]["mrr"]["mean"] == 1.0


async def test_questions_to_review_are_of_the_range_and_a_saved_case_leads_back_to_them(
    settings: Settings, owner: Client
) -> None:
    first, second = captured(owner, *WORDS[:2])
    insert_json_rows(
        owner, "assay_base.candidates", lines([candidate(7, days_old=3, project="shop", pii_families={})]), 1
    )
    async with console(settings) as pages:
        asked = {"": 3, "&t=30d": 3, "&t=24h": 2, "&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z": 0}
        for times, number in asked.items():
            assert len((await pages.json(f"/review?project=shop{times}"))["queue"]["value"]) == number, times
        page = await pages.html("/review?project=shop&scrubbed=1&t=24h")
        form = page.partition('action="/datasets/golden/cases"')[2].partition("</form>")[0]
        for name, value in {"t": "24h", "scrubbed": "1"}.items():
            assert f'<input type="hidden" name="{name}" value="{value}">' in form
        answered = await save(pages, first, t="24h", scrubbed="1")
        assert answered.headers["location"] == "/review?project=shop&t=24h&scrubbed=1"
        (left,) = (await pages.json("/review?project=shop&t=24h"))["queue"]["value"]
        assert left["event_id"] == second


async def test_a_case_is_ticked_completed_changed_and_retired(settings: Settings, owner: Client) -> None:
    first, second = captured(owner, *WORDS[:2])
    async with console(settings) as pages:
        for _ in range(2):  # the form is sent twice
            answered = await save(
                pages,
                first,
                ranks="2",
                documents="doc/by-hand\r\n\r\n doc/other ",
                expected_answer="So.",
                unretrieved="1",
            )
            assert answered.headers["location"] == "/review?project=shop"
            assert f"event={first}" in await pages.html("/review?project=shop"), "what was saved can be changed"
            assert "Saved." not in await pages.html("/review?project=shop"), "it is said once"
        (case,) = cases_of(owner, "shop", "golden")
        assert (case.version, case.reviewer, case.expected_answer) == (1, "ada", "So.")
        assert case.expected_slugs == ("doc/b, c", "doc/by-hand", "doc/other")
        document, page = (
            await pages.json(f"/review?project=shop&event={first}"),
            await pages.html(f"/review?project=shop&event={first}"),
        )
        assert [each["expected"] for each in document["current"]["documents"]] == [False, True]
        assert document["current"]["others"] == ["doc/by-hand", "doc/other"]
        assert missing(document["current"], page, "characters", "shown") == []
        await save(pages, first, 409)  # saw no version
        await save(pages, first, base_version="1", ranks="", null_case="1")
        (case,) = cases_of(owner, "shop", "golden")
        assert (case.version, case.null_case, case.expected_slugs) == (2, True, ())
        await save(pages, second)
        listed, page = await pages.json("/datasets/golden"), await pages.html("/datasets/golden")
        assert missing(listed, page) == []
        assert "assay eval run --dataset golden.jsonl" in page
        path = f"/datasets/golden/cases/{case.case_id}/retire"
        await pages.post(path, 409, project="shop", base_version="1")
        for _ in range(2):
            gone = await pages.post(path, project="shop", base_version="2")
            assert gone.headers["location"] == "/datasets/golden?project=shop"
        assert [each.event_id for each in cases_of(owner, "shop", "golden")] == [second]
        await pages.post("/datasets/golden/cases/event-x/retire", 404, project="shop", base_version="1")


async def test_an_answer_leads_to_its_retrieval_and_negative_feedback_comes_first(
    settings: Settings, owner: Client
) -> None:
    events = captured(owner, *WORDS[:3])
    told = answer(7, project="shop", query=WORDS[1], pii_families={}, retrieval_event_id=events[1])
    insert_json_rows(owner, "assay_base.answers", lines([told]), 1)
    said = feedback(project="shop", target_event_id=told["event_id"], verdict="negative")
    insert_json_rows(owner, "assay_base.feedback", lines([said]), 1)
    async with console(settings) as pages:
        document = await pages.json(f"/review?project=shop&event={told['event_id']}")
        assert document["current"]["event_id"] == events[1]
        queue = (await pages.json("/review?project=shop"))["queue"]["value"]
        assert queue[0]["negative"] == 1
        assert f"/review?project=shop&amp;event={events[1]}" in await pages.html(f"/e/{told['event_id']}")
        assert f"/review?project=shop&amp;event={events[0]}" in await pages.html(f"/e/{events[0]}")


async def test_what_is_no_case_is_refused(settings: Settings, owner: Client) -> None:
    (event,) = captured(owner, WORDS[0])
    (other,) = captured(owner, WORDS[1], project="books")
    async with console(settings) as pages:
        await save(pages, event, 422, ranks="")
        await save(pages, event, 422, null_case="1")
        await save(pages, event, 422, ranks="3")
        await save(pages, event, 422, ranks="1,x")
        await save(pages, event, 422, inclusion_probability="nan")
        await save(pages, event, 422, inclusion_probability="much")
        await save(pages, other, 404)
        await save(pages, new_event_id(), 404)
        await save(pages, "nonsense", 422)
        await pages.post("/datasets/no%20name/cases", 422, project="shop", event_id=event, ranks="1")
        await pages.json(f"/review?project=shop&event={other}", 404)
        await pages.json("/datasets/golden", 404)
        await pages.html("/datasets/golden/export", 404)
    async with console(settings, Role.VIEWER) as pages:
        assert "it takes the role labeller" in await pages.html("/review?project=shop")
        await save(pages, event, 403)
        await pages.post("/datasets/golden/cases/event-x/retire", 403, project="shop", base_version="1")
    assert cases_of(owner, "shop", "golden") == []


async def test_the_text_of_a_document_is_shown_from_the_answer_that_was_given_it(
    settings: Settings, owner: Client
) -> None:
    row = candidate(1, pii_families={}, retrieved_slugs=["doc/a", "doc/b", "doc/c"], project="shop")
    insert_json_rows(owner, "assay_base.candidates", lines([row]), 1)
    contexts = [
        {"id": "a#1", "source_id": "doc/a", "text": "the first <b>part</b>", "score": 0.9},
        {"id": "a#2", "source_id": "doc/a", "text": "the second", "score": 0.8},
        {"id": "doc/b", "source_id": None, "text": "x" * 5_000, "score": 0.7},
    ]
    told = answer(
        2, project="shop", pii_families={}, retrieval_event_id=row["event_id"], contexts=contexts, citations=[]
    )
    insert_json_rows(owner, "assay_base.answers", lines([told]), 1)
    async with console(settings) as pages:
        where = f"/review?project=shop&event={row['event_id']}"
        document, page = await pages.json(where), await pages.html(where)
        texts = {each["name"]: each["text"] for each in document["current"]["documents"]}
        assert texts["doc/a"]["pieces"][0]["text"] == "the first <b>part</b>\n\nthe second"
        assert (texts["doc/b"]["characters"], texts["doc/b"]["shown"], texts["doc/c"]) == (5_000, 4_000, None)
        assert "the first &lt;b&gt;part&lt;/b&gt;" in page
        assert "All 5,000 characters" in page
        assert "Assay has no text" not in page
        assert "x" * 5_000 in await pages.html(f"{where}&full=1")


async def test_a_document_without_a_text_says_what_to_send(settings: Settings, owner: Client) -> None:
    captured(owner, WORDS[0])
    async with console(settings) as pages:
        assert "Assay has no text of these documents" in await pages.html("/review?project=shop")


async def test_a_refused_decision_is_shown_again_with_what_was_entered(settings: Settings, owner: Client) -> None:
    (event,) = captured(owner, WORDS[0])
    async with console(settings) as pages:
        nothing = (await save(pages, event, 422, ranks="")).text
        assert "Not saved: name a document, the answer that is right, or make it a null case" in nothing
        assert f'name="event_id" value="{event}"' in nothing
        both = (
            await save(
                pages, event, 422, ranks="2", documents="doc/x\r\ndoc/y", null_case="1", expected_answer="So <i>."
            )
        ).text
        assert "Not saved: a null case expects no document and no answer" in both
        assert 'value="2" checked' in both
        assert 'name="ranks" value="1" checked' not in both
        assert ">doc/x\ndoc/y</textarea>" in both
        assert "So &lt;i&gt;.</textarea>" in both
        assert 'name="null_case" value="1" checked' in both
        too_long = (await save(pages, event, 422, ranks="1", expected_answer="y" * 200_000)).text
        assert "expected_answer: longer than" in too_long
        await save(pages, event)
        seen_late = (await save(pages, event, 409, ranks="", expected_answer="mine")).text
        assert "Not saved: the case was changed meanwhile" in seen_late
        assert ">mine</textarea>" in seen_late
        assert 'name="base_version" value="1"' in seen_late
        answered = await pages._client.post(
            "/api/v1/datasets/golden/cases", data={"project": "shop", "event_id": event}, headers={"sec-fetch-site": "same-origin"}
        )  # fmt: skip
        assert answered.json()["error"]["message"].startswith("name a document")
        assert "What you entered" not in (await save(pages, "nonsense", 422)).text, "no page has this event"


async def test_a_document_that_no_retrieval_returned_is_asked_about_before_it_is_saved(
    settings: Settings, owner: Client
) -> None:
    first, second, third = captured(owner, *WORDS[:3])
    async with console(settings, Role.LABELLER) as pages:
        typed = f"docs/mistyped\n{slug(WORDS[1])}\n<b>x</b>"
        page = (await save(pages, first, 422, documents=typed, t="24h")).text
        asked = page.partition('id="refused"')[2].partition("</p>")[0]
        assert "no captured retrieval of shop returned docs/mistyped, &lt;b&gt;x&lt;/b&gt;." in asked
        assert 'value="1" checked' in page
        assert ">docs/mistyped\n" in page
        assert '<button name="unretrieved" value="1">' in page, "without scripts too"
        assert cases_of(owner, "shop", "golden") == []
        await save(pages, first, documents=typed, unretrieved="1")
        assert "● Saved." in await pages.html("/review?project=shop")
        page = (await save(pages, second, documents="doc/b, c", ranks="9", status=422)).text
        assert '<button name="unretrieved"' not in page, "this one was retrieved"
        await save(pages, second, documents="doc/b, c")
        many = "\n".join(f"docs/{number} {'n' * 900}" for number in range(40))
        assert "and 35 more" in (await save(pages, third, 422, documents=many)).text
    [case] = [each for each in cases_of(owner, "shop", "golden") if each.event_id == first]
    assert case.expected_slugs == (slug(WORDS[0]), "docs/mistyped", slug(WORDS[1]), "<b>x</b>")


async def test_captured_questions_are_searched_also_those_that_are_not_drawn(
    settings: Settings, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_console.views.review.review_candidates", nothing)
    captured(owner, *WORDS[:4], WORDS[0])
    async with console(settings, Role.VIEWER) as pages:
        assert (await pages.json("/review?project=shop"))["queue"]["value"] == []
        path = f"/review?project=shop&q={WORDS[0].upper()}"
        document, page = await pages.json(path), await pages.html(path)
        [found] = document["queue"]["value"]
        assert (found["question"], found["times"]) == (WORDS[0], 2)
        assert document["current"]["event_id"] == found["event_id"]
        assert missing(document["queue"], page) == []
        assert "1 questions contain" in page or "1 question contains" in page
        empty = "/review?project=shop&q=nobody+asked+this"
        assert (await pages.json(empty))["queue"]["value"] == []
        assert "0 questions contain" in await pages.html(empty)


def nothing(_: Client, **__: object) -> list[object]:
    """Draw no question, as if all had been reviewed."""
    return []


async def test_a_dataset_of_two_projects_is_opened_with_its_project(settings: Settings, owner: Client) -> None:
    (event,) = captured(owner, WORDS[0])
    (other,) = captured(owner, WORDS[1], project="books")
    async with console(settings) as pages:
        await save(pages, event)
        await save(pages, other, project="books")
        assert "Several projects" in await pages.html("/datasets/golden", 422)
        assert (await pages.json("/datasets/golden?project=books"))["cases"][0]["event_id"] == other
        assert len((await pages.json("/datasets?project=books"))["rows"]["value"]) == 1


async def test_empty_pages_say_why_and_a_store_that_is_away_is_said(
    settings: Settings, empty_store: StoreServer
) -> None:
    async with console(settings) as pages:
        assert "No dataset is stored" in await pages.html("/datasets")
        assert "No question is left to review" in await pages.html("/review?project=shop")
        empty_store.kill()
        for path in ("/review?project=shop&dataset=other", "/datasets?project=books"):
            document, page = await pages.json(path), await pages.html(path)
            panel = document.get("queue") or document["rows"]
            assert panel["state"] == "unavailable"
            assert sentence(panel["message"].partition("; ")[0]) in page
        await pages.html("/datasets/golden", 503)


def test_documents_are_named_by_what_the_producer_sends() -> None:
    row = {
        "retrieved_slugs": [], "retrieved_ids": [], "retrieved_chunk_ids": [7, 9, 9], "retrieved_scores": [0.9, 0.5, 0.1],
        "passage_ids": [], "passage_texts": [],
    }  # fmt: skip
    chunks, of_chunks = documents_of(row)
    assert ([(each.rank, each.name, each.score) for each in chunks], of_chunks) == (
        [(1, "7", 0.9), (2, "9", 0.5)],
        True,
    )
    passages, of_chunks = documents_of(row | {"passage_ids": ["a", "b"], "passage_texts": ["A", "B"]})
    assert ([(each.name, each.score, each.text) for each in passages], of_chunks) == (
        [("a", None, "A"), ("b", None, "B")],
        False,
    )
    slugs, _ = documents_of(row | {"retrieved_slugs": ["x"], "passage_ids": ["a", "b"], "passage_texts": ["A", "B"]})
    assert [(each.name, each.text) for each in slugs] == [("x", None)]
