"""The page of labels with a real store: blind, one answer after the other, and what the labels say about the judge."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from assay_console.people import Role
from assay_console.shown_verdicts import ShownVerdicts
from assay_operations.labelling.queues import Queue, left_out, next_items
from assay_operations.labelling.submit import submit
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import new_event_id
from assay_schema.settings import DriftSettings, RedisSettings, Settings
from assay_ui.formats import sentence
from tests.support.console_pages import Pages, console, missing
from tests.support.sample_rows import answer, lines, score
from tests.support.store import StoreServer, refresh_rollups

ANSWERS = 6
#: Appears in verdicts only.
JUDGE = "7f7f7f7f7f7f7f7f"


@pytest.fixture
def owner(empty_store: StoreServer) -> Iterator[Client]:
    with connect(empty_store.settings().store) as client:
        yield client


@pytest.fixture
def settings(empty_store: StoreServer) -> Settings:
    redis = RedisSettings.model_validate({"url": "redis://127.0.0.1:1/0"})
    drift = DriftSettings.model_validate({"calibration_labels": 4})
    return empty_store.settings("console").model_copy(update={"redis": redis, "drift": drift})


@pytest.fixture
def judged(owner: Client) -> list[str]:
    """Ids of judged answers of the shop. The judge calls every third bad."""
    return [
        keep(owner, answer(number, project="shop", query=f"question {number}"), 0.0 if number % 3 == 0 else 1.0)
        for number in range(ANSWERS)
    ]


def keep(owner: Client, row: dict[str, Any], faithfulness: float) -> str:
    insert_json_rows(owner, "assay_base.answers", lines([row]), 1)
    made = score(event_id=row["event_id"], project=row["project"], faithfulness=faithfulness, fingerprint=JUDGE)
    insert_json_rows(owner, "assay_base.scores", lines([made]), 1)
    return str(row["event_id"])


def stored(owner: Client) -> list[tuple[Any, ...]]:
    found = owner.query("SELECT toString(event_id), label, labeller, note FROM labels ORDER BY labelled_at")
    return [tuple(row) for row in found.result_rows]


async def give(pages: Pages, event: str, label: str = "good", status: int = 303, **more: str) -> str:
    answered = await pages.post("/labels", status, **{"project": "shop", "event_id": event, "label": label} | more)
    return answered.headers.get("location", answered.text)


async def test_the_verdict_is_in_neither_page_nor_document_until_the_answer_is_labelled(
    settings: Settings, owner: Client, judged: list[str]
) -> None:
    async with console(settings) as pages:
        document = await pages.json("/labels?project=shop")
        event = document["item"]["value"]["event_id"]
        assert event in judged
        for path in ("?project=shop", f"?project=shop&item={event}"):
            blind, page = await pages.json(f"/labels{path}"), await pages.html(f"/label{path}")
            shown = blind["item"]["value"]
            assert (shown["event_id"], shown["label"], shown["verdicts"]) == (event, "", [])
            assert JUDGE not in page
            assert JUDGE not in str(blind)
            assert "faithfulness" not in page + str(blind)
            assert shown["question"]["pieces"][0]["text"] in page
            assert missing(blind, page, "characters", "shown") == []
        submit(
            owner, settings.store.model_copy(update={"user": "default"}), Queue("shop"), "bob", event, "bad"
        )  # another person's label opens nothing
        assert (await pages.json(f"/labels?project=shop&item={event}"))["item"]["value"]["verdicts"] == []
        target = await give(pages, event, "bad", note="no passage says it")
        assert target == "/label?project=shop"
        assert "Labelled " in await pages.html(target)
        assert "Labelled " not in await pages.html(target), "it is said once"
        await pages.html(f"/label?project=shop&last={event}", 422)
        following = (await pages.json("/labels?project=shop"))["item"]["value"]
        assert following["event_id"] != event
        assert following["verdicts"] == []
        opened, page = (
            await pages.json(f"/labels?project=shop&item={event}"),
            await pages.html(f"/label?project=shop&item={event}"),
        )
        assert [each["fingerprint"] for each in opened["item"]["value"]["verdicts"]] == [JUDGE]
        assert JUDGE in page
        assert "no passage says it" in page
        assert missing(opened["item"]["value"]["verdicts"], page) == []


async def test_a_fixed_range_holds_for_the_sample_and_for_the_way_back(settings: Settings, judged: list[str]) -> None:
    async with console(settings) as pages:
        before = "project=shop&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
        document = await pages.json(f"/labels?{before}")
        assert document["item"]["value"] is None
        assert document["standing"]["value"]["answers"] == 0
        times = {"from": "2026-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
        page = await pages.html(f"/label?project=shop&{urlencode(times)}")
        for name, value in times.items():
            assert f'<input type="hidden" name="{name}" value="{value}">' in page
        target = await give(pages, judged[0], **times)
        assert target == "/label?project=shop&from=2026-01-01T00%3A00%3A00Z&to=2100-01-01T00%3A00%3A00Z"
        assert await give(pages, judged[1], t="7d") == "/label?project=shop&t=7d"


@pytest.mark.parametrize(
    "by", ["/events/{event}?project=shop", "/events?project=shop&t=30d", "/labels?project=shop&item={event}"]
)
async def test_an_answer_whose_verdict_a_person_has_seen_is_not_labelled_by_that_person(
    settings: Settings, owner: Client, judged: list[str], by: str
) -> None:
    refresh_rollups(owner)
    async with console(settings) as pages:
        event = (await pages.json("/labels?project=shop"))["item"]["value"]["event_id"]
        if by.startswith("/labels"):  # it shows the verdict once there is a label
            await give(pages, event)
        shown = await pages.json(by.format(event=event))
        assert event in str(shown)
        refused = await pages.post("/labels", 409, project="shop", event_id=event, label="bad")
        assert "would not be blind" in refused.text
        document, page = await pages.json("/labels?project=shop"), await pages.html(f"/label?project=shop&item={event}")
        seen = ANSWERS if by.startswith("/events?") else 1
        assert document["left_out"] == (0 if by.startswith("/labels") else seen)
        assert 'name="label"' not in page
        following = document["item"]["value"]
        assert following is None if seen == ANSWERS else following["event_id"] != event
        if by.startswith("/labels"):
            await pages.post("/labels/undo", project="shop", event_id=event)
            await give(pages, event, status=409)
            assert (await pages.json("/labels?project=shop"))["left_out"] == 1
    assert stored(owner) == []


async def test_what_one_person_has_seen_does_not_keep_others_from_labelling(
    settings: Settings, owner: Client, judged: list[str]
) -> None:
    seen = ShownVerdicts()
    seen.add("ada", judged)
    assert (len(seen.to("ada")), seen.to("bob")) == (ANSWERS, ())
    reader = connect(settings.store)
    assert next_items(reader, Queue("shop"), "ada", seen=seen.to("ada")) == []
    assert left_out(reader, Queue("shop"), "ada", seen.to("ada")) == ANSWERS
    assert len(next_items(reader, Queue("shop"), "bob", count=ANSWERS, seen=seen.to("bob"))) == ANSWERS
    assert left_out(reader, Queue("shop"), "bob", seen.to("bob")) == 0


async def test_a_form_that_is_sent_twice_counts_once_and_undo_brings_the_answer_back(
    settings: Settings, owner: Client, judged: list[str]
) -> None:
    async with console(settings, Role.LABELLER) as pages:
        document = await pages.json("/labels?project=shop")
        event, key = document["item"]["value"]["event_id"], document["label_id"]
        first = await give(pages, event, label_id=key)
        assert await give(pages, event, label_id=key) == first
        assert stored(owner) == [(event, "good", "ada", "")]
        for _ in range(2):  # the second finds nothing to take back
            answered = await pages.post("/labels/undo", project="shop", event_id=event)
            assert answered.headers["location"] == f"/label?project=shop&item={event}"
        assert stored(owner) == []
        again = await pages.json("/labels?project=shop")
        assert (again["item"]["value"]["event_id"], again["mine"]) == (event, 0)
        await pages.post("/labels/undo", 422, project="shop")


async def test_what_cannot_be_labelled_is_refused(settings: Settings, owner: Client, judged: list[str]) -> None:
    other = keep(owner, answer(50, project="books"), 1.0)
    async with console(settings) as pages:
        await give(pages, other, status=404)
        await give(pages, new_event_id(), status=404)
        await give(pages, "nonsense", status=422)
        await give(pages, judged[0], "", status=422)
        await give(pages, judged[0], "splendid", status=422)
        await give(pages, judged[0], status=422, note="x" * 2001)
        await give(pages, judged[0], status=422, queue="no/name")
        await pages.json(f"/labels?project=shop&item={other}", 404)
    assert stored(owner) == []


async def test_a_viewer_reads_the_page_and_labels_nothing(settings: Settings, owner: Client, judged: list[str]) -> None:
    async with console(settings, Role.VIEWER) as pages:
        page = await pages.html("/label?project=shop")
        assert 'name="label"' not in page
        assert "it takes the role labeller" in page
        await give(pages, judged[0], status=403)
        await pages.post("/labels/undo", 403, project="shop", event_id=judged[0])
    assert stored(owner) == []


async def test_after_enough_labels_the_page_shows_what_the_judge_is_worth_and_where_people_differ(
    settings: Settings, owner: Client, judged: list[str]
) -> None:
    async with console(settings) as pages:
        assert (await pages.json("/labels?project=shop"))["standing"]["value"]["trust"] is None
        for number, event in enumerate(judged[:4]):
            before = (await pages.json("/labels?project=shop"))["standing"]["value"]
            assert before["trust"] is None, "it would sway the labeller"
            await give(pages, event, "bad" if number in (0, 1) else "good")
        submit(owner, settings.store.model_copy(update={"user": "default"}), Queue("shop"), "bob", judged[0], "bad")
        submit(owner, settings.store.model_copy(update={"user": "default"}), Queue("shop"), "bob", judged[2], "bad")
        document, page = await pages.json("/labels?project=shop"), await pages.html("/label?project=shop")
        state = document["standing"]["value"]
        (pair,) = state["pairs"]
        assert (pair["first"], pair["second"], pair["n"], pair["differ"]) == ("ada", "bob", 2, [judged[2]])
        assert (state["decided"], state["tied"]) == (3, 1)
        await give(pages, judged[4])
        document, page = await pages.json("/labels?project=shop"), await pages.html("/label?project=shop")
        trust = document["standing"]["value"]["trust"]
        # the judge calls answers 0 and 3 bad; people 0 and 1; 2 is tied
        assert [trust[name] for name in ("true_positives", "false_negatives", "false_positives", "true_negatives")] == [
            1,
            1,
            1,
            1,
        ]
        assert trust["tpr"]["low"] < trust["tpr"]["value"] == 0.5 < trust["tpr"]["high"]
        assert "assay judge calibrate --stored --project shop --queue default" in page
        assert missing(document, page, "characters", "shown") == []


async def test_a_sample_that_is_labelled_or_empty_says_so(settings: Settings, owner: Client, judged: list[str]) -> None:
    async with console(settings) as pages:
        for event in judged:
            await give(pages, event)
        document, page = await pages.json("/labels?project=shop"), await pages.html("/label?project=shop")
        assert document["item"]["value"] is None
        assert "You have labelled every answer" in page
        assert document["standing"]["value"]["trust"]["n"] == ANSWERS
        assert "No scored answer" in await pages.html("/label?project=empty")
        refresh_rollups(owner)
        assert (await pages.json("/labels"))["project"] == "shop"  # the only one with events


async def test_a_store_that_is_away_is_said_and_shows_no_older_answer(
    settings: Settings, empty_store: StoreServer, owner: Client, judged: list[str]
) -> None:
    async with console(settings) as pages:
        await give(pages, judged[0])
        assert JUDGE in await pages.html(f"/label?project=shop&item={judged[0]}")
        empty_store.kill()
        document, page = await pages.json("/labels?project=shop"), await pages.html("/label?project=shop")
        assert document["item"]["state"] == "unavailable"
        assert sentence(document["item"]["message"].partition("; ")[0]) in page
        assert JUDGE not in page
        await give(pages, judged[1], status=503)
