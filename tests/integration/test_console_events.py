"""Pages of events with a real store: each event once, the chain of one, hostile texts, empty, the store away."""

import asyncio
import html
import re
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from assay_operations.events.rows import from_unix_ms
from assay_runtime.store import connect, insert_json_rows
from assay_schema.settings import RedisSettings, Settings
from assay_ui.formats import sentence
from tests.support.console_pages import Pages, console, missing, shown
from tests.support.redis import RedisServer
from tests.support.sample_rows import (
    Json,
    answer,
    candidate,
    event_id_at,
    feedback,
    lines,
    score,
    server_event,
    session_part,
    tool_call,
)
from tests.support.store import StoreServer, refresh_rollups

NOW_MS = int(time.time() * 1000)
HOSTILE = {
    "script": "<script>document.title='x'</script><img src=x onerror=alert(1)>",
    "template": "{{ 7*7 }} {% raw %} ${7*7} <%= 7 %>",
    "bidi": "a\u202egnirts\u202c b \u2066isolated\u2069 \u200f",
    "control": "bell\u0007 escape\u001b[31m zero\u200bwidth \ufeff",
    "attribute": "\" onmouseover=alert(1) x='",
    "markdown": "![x](http://example.com/x.png) [y](javascript:alert(1))",
    "formula": '=HYPERLINK("http://example.com")',
    "entity": "&lt;b&gt; &amp;amp; &#0; </textarea></bdi></table>",
    "lines": "one\n\ntwo\r\nthree\ttab",
    "astral": "𝒳 \U000e0041 👩‍👩‍👧 ﷽",
}


def of(store: StoreServer, redis: RedisServer) -> Settings:
    settings = store.settings("console")
    return settings.model_copy(update={"redis": RedisSettings.model_validate({"url": redis.url})})


def fill(store: StoreServer, **tables: list[Json]) -> None:
    with connect(store.settings().store) as owner:
        for table, rows in tables.items():
            insert_json_rows(owner, f"assay_base.{table}", lines(rows), len(rows))
        refresh_rollups(owner)


def at(ms: int, row: Json, **fields: Any) -> Json:
    return {**row, "event_id": event_id_at(ms), **fields}


def looking(settings: Settings, look: Callable[[Pages], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with console(settings) as pages:
            await look(pages)

    asyncio.run(run())


def texts_of(page: str) -> list[str]:
    """Return the captured texts of a page as the DOM has them: what a person copies."""
    found = re.findall(r'<bdi class="captured">(.*?)</bdi>', page, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", each)) for each in found]


def test_a_value_with_a_comma_is_filtered_by_the_link_of_its_facet(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    names = ("search, beta", "search", "beta", "back\\slash,")
    fill(
        empty_store,
        candidates=[at(NOW_MS - 1000 * place, candidate(), service=name) for place, name in enumerate(names, 1)],
    )

    async def look(pages: Pages) -> None:
        everything = await pages.json("/events?t=1h")
        (facet,) = (each for each in everything["facets"]["value"] if each["name"] == "service")
        links = {each["value"]: each["toggled"] for each in facet["values"]}
        assert sorted(links) == sorted(names)
        for name, toggled in links.items():
            path = f"/events?t=1h&{urlencode({'service': toggled})}"
            document = await pages.json(path)
            assert [row["service"] for row in document["listed"]["value"]["rows"]] == [name]
            (own,) = (each for each in document["facets"]["value"] if each["name"] == "service")
            (chosen,) = (each for each in own["values"] if each["chosen"])
            assert (chosen["value"], chosen["toggled"]) == (name, "")

    looking(of(empty_store, redis_server), look)


def test_the_longest_names_can_be_filtered_by_the_links_of_their_facets(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    long, services = "t" * 1_024, [f"{number} {'s' * 120}" for number in range(8)]
    rows = [at(NOW_MS - 1000 * place, candidate(), service=name) for place, name in enumerate(services, 1)]
    fill(empty_store, candidates=rows, tool_calls=[at(NOW_MS - 500, tool_call(), tool_name=long, session_id=long)])

    async def look(pages: Pages) -> None:
        for chosen, n in (({"tool": long}, 1), ({"session": long}, 1), ({"service": ",".join(services)}, 8)):
            listed = (await pages.json(f"/events?t=1h&{urlencode(chosen)}"))["listed"]["value"]["rows"]
            assert len(listed) == n

    looking(of(empty_store, redis_server), look)


def test_pages_together_have_each_event_once_over_http(empty_store: StoreServer, redis_server: RedisServer) -> None:
    times = [NOW_MS - 1000 * number for number in range(60)] + [NOW_MS - 5000] * 60
    fill(empty_store, candidates=[at(ms, candidate()) for ms in times], answers=[at(ms, answer()) for ms in times[:20]])

    async def look(pages: Pages) -> None:
        seen, path = [], "/events?t=1h"
        while path:
            document = await pages.json(path)
            listed = document["listed"]["value"]
            seen += [(row["kind"], row["event_id"]) for row in listed["rows"]]
            page = await pages.html(path)
            assert page.count("<tr data-href") == len(listed["rows"])
            following = re.search(r'<a class="button" rel="next" href="([^"]+)"', page)
            assert bool(following) == bool(listed["next"])
            path = html.unescape(following[1]) if following else ""
        assert len(seen) == len(set(seen)) == 140

    looking(of(empty_store, redis_server), look)


def test_every_number_of_the_document_is_on_the_page(empty_store: StoreServer, redis_server: RedisServer) -> None:
    rows = [candidate(number, project="shop", latency_ms=12.5 + number) for number in range(5)]
    judged = answer(20)
    fill(
        empty_store,
        candidates=rows,
        answers=[judged],
        feedback=[feedback(21, target_event_id=judged["event_id"], verdict="negative", text="wrong")],
        tool_calls=[tool_call(22, status="error", error_kind="timeout")],
        server_events=[server_event(23)],
        scores=[score(event_id=judged["event_id"], faithfulness=0.25)],
    )

    async def look(pages: Pages) -> None:
        document, page = await pages.json("/events"), await pages.html("/events")
        assert len(document["listed"]["value"]["rows"]) == 9
        # The length of a bucket is drawn as the width of a bar; what is searched is only said if it ends early.
        assert missing(document, page, "start", "bucket_s", "searched_from", "counted_to", "text_chars") == []
        counts = {
            each["name"]: {v["value"]: v["events"] for v in each["values"]} for each in document["facets"]["value"]
        }
        assert counts["project"] == {"shop": 5, "default": 4}
        assert counts["kind"]["retrieval"] == 5
        one = await pages.json("/events?project=shop&kind=retrieval&latency>=14&q=" + rows[0]["query"][:5].upper())
        assert [row["latency_ms"] for row in one["listed"]["value"]["rows"]] == [16.5, 15.5, 14.5]
        assert one["histogram"]["value"]["not_applied"] == ["latency>", "q"]
        judged_only = await pages.json("/events?has=judged,negative&metric.faithfulness<=0.5")
        assert [row["event_id"] for row in judged_only["listed"]["value"]["rows"]] == [judged["event_id"]]
        page = await pages.html("/events?t=1h&kind=answer")
        [fixed] = re.findall(r'<a href="([^"]+)"[^>]*>Link to these times</a>', page)
        assert {"from", "to", "kind"} == {name for name, _ in parse_qsl(urlsplit(html.unescape(fixed)).query)}
        shared = await pages.json(html.unescape(fixed))
        assert [row["event_id"] for row in shared["listed"]["value"]["rows"]] == [judged["event_id"]]
        assert "Link to these times" not in await pages.html(html.unescape(fixed))

    looking(of(empty_store, redis_server), look)


def test_list_chart_facets_and_sql_agree_once_late_events_are_counted_and_the_page_says_up_to_when(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    hours = [NOW_MS - 3_600_000 * number - 120_000 for number in range(6)]
    fill(empty_store, candidates=[at(ms - place, candidate(), service="early") for ms in hours for place in range(20)])

    async def look(pages: Pages) -> None:
        pages._client.headers["sec-fetch-site"] = "same-origin"
        count = (
            "SELECT count() FROM candidates WHERE event_time >= fromUnixTimestamp64Milli({low:Int64})"
            " AND event_time < fromUnixTimestamp64Milli({upper:Int64})"
        )
        low, upper = NOW_MS - 9 * 3_600_000, NOW_MS
        hour = {"from": from_unix_ms(low).isoformat(), "to": from_unix_ms(upper).isoformat()}

        async def numbers(turn: int) -> dict[str, int]:
            """Return what each part says. `turn` makes each question a new one, whose answer is not kept."""
            rows, path = 0, f"/events?{urlencode({**hour, 'latency>': f'0.00{turn}'})}"
            while path:
                listed = (await pages.json(path))["listed"]["value"]
                rows += len(listed["rows"])
                following = {**hour, "latency>": f"0.00{turn}", "after": listed["next"]}
                path = f"/events?{urlencode(following)}" if listed["next"] else ""
            document = await pages.json(f"/events?{urlencode({**hour, 'service': 'early,late,' + str(turn)})}")
            (services,) = (each for each in document["facets"]["value"] if each["name"] == "service")
            asked = {"q": count, "param_low": str(low), "param_upper": str(upper)}
            answer = (await pages.json(f"/sql?{urlencode(asked)}"))["answer"]["rows"]
            histogram = document["histogram"]["value"]["buckets"]
            return {
                "list": rows,
                "chart": sum(sum(each["events"].values()) for each in histogram),
                "facet": sum(each["events"] for each in services["values"]),
                "sql": int(answer[0][0]),
            }

        assert await numbers(1) == dict.fromkeys(("list", "chart", "facet", "sql"), 120)
        late = [at(ms - 50 - place, candidate(), service="late") for ms in hours[2:5] for place in range(10)]
        with connect(empty_store.settings().store) as owner:
            counted = owner.query("SELECT max(refreshed_at) FROM assay.rollup_minute").result_rows[0][0]
            owner.command("SYSTEM STOP VIEWS")
            insert_json_rows(owner, "assay_base.candidates", lines(late), len(late))
            assert await numbers(2) == {"list": 150, "chart": 120, "facet": 120, "sql": 150}
            page = await pages.html(f"/events?{urlencode(hour)}")
            [said] = re.findall(r"counts to <time[^>]*>([^<]*)</time>", page)
            # The console may have asked some seconds before: counts move once a minute.
            assert said[-5:] in {f"{moment:%H:%M}" for moment in (counted, counted - timedelta(minutes=1))}
            owner.command("SYSTEM START VIEWS")
            refresh_rollups(owner)
        assert await numbers(3) == dict.fromkeys(("list", "chart", "facet", "sql"), 150)

    looking(of(empty_store, redis_server), look)


def test_an_empty_list_says_how_many_events_each_condition_hides(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    old = [at(NOW_MS - 40 * 86_400_000, candidate(service="search"))]
    fill(empty_store, candidates=[candidate(number, service="search") for number in range(3)] + old)

    async def look(pages: Pages) -> None:
        document = await pages.json("/events?service=search&status=no_result")
        removed = {each["name"]: (each["events"], each["exact"]) for each in document["removed"]}
        assert removed == {"service": (0, True), "status": (3, True), "range": (0, True)}
        page = await pages.html("/events?service=search&status=no_result")
        assert "without status" in shown(page)
        nothing = await pages.html("/events?project=nobody")
        assert "No event is stored yet" in nothing or "No event in this range" in nothing

    looking(of(empty_store, redis_server), look)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"service": "search,it's"},
        {"status": "found"},
        {"kind": "retrieval", "service": "it's"},
        {"tool": "query", "latency>": "1"},
        {"q": "KEY"},
        {"session": "a\\b"},
        {"trace": "0" * 31 + "7"},
    ],
)
def test_the_sql_of_a_list_returns_its_events(
    empty_store: StoreServer, redis_server: RedisServer, chosen: dict[str, str]
) -> None:
    trace = {"traceparent": f"00-{7:032x}-{7:016x}-01"}
    rows = [
        candidate(1, query="a key"),
        candidate(2, service="it's", session_id="a\\b"),
        candidate(3, service="other", latency_ms=5, **trace),
    ]
    fill(empty_store, candidates=rows)

    async def look(pages: Pages) -> None:
        document = await pages.json("/events?" + urlencode(chosen))
        listed = {each["event_id"] for each in document["listed"]["value"]["rows"]}
        assert listed
        pages._client.headers["sec-fetch-site"] = "same-origin"
        values = {f"param_{name}": value for name, value in document["sql_parameters"].items()}
        answer = (await pages.json("/sql?" + urlencode({"q": document["sql"]} | values)))["answer"]
        assert {row[-1] for row in answer["rows"]} == listed

    looking(of(empty_store, redis_server), look)


def test_without_any_event_the_page_names_the_next_command(empty_store: StoreServer, redis_server: RedisServer) -> None:
    async def look(pages: Pages) -> None:
        assert "assay doctor" in await pages.html("/events")
        assert (await pages.json("/events"))["listed"]["value"]["rows"] == []

    looking(of(empty_store, redis_server), look)


@pytest.mark.parametrize(
    "path",
    [
        *("/events?kind=nothing", "/events?after=x", "/events?unknown=1", "/events?latency>=x", "/events?trace=1"),
        *("/e/x", "/events/differs?against=x"),
        *("/e/ffffffff-ffff-7fff-bfff-ffffffffffff", "/label?project=shop&item=e677d21f-dc00-7000-8000-000000000000"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(migrated: StoreServer, redis_server: RedisServer, path: str) -> None:
    async def look(pages: Pages) -> None:
        await pages.html(path, 422)

    looking(of(migrated, redis_server), look)


def test_a_store_that_is_away_leaves_the_last_rows_with_their_age(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store, candidates=[candidate(number) for number in range(3)])

    async def look(pages: Pages) -> None:
        before = await pages.json("/events")
        empty_store.kill()
        for _ in range(3):  # the range that ends now is another one in each
            later = await pages.json("/events?_=1")
            assert later["listed"]["value"] == before["listed"]["value"]
            assert later["listed"]["state"] in ("ready", "stale")
        never = await pages.json("/events?kind=answer")
        assert never["listed"]["state"] == "unavailable"
        page = shown(await pages.html("/events?kind=answer"))
        for part in never["listed"]["message"].split("; "):
            assert sentence(part) in page

    looking(of(empty_store, redis_server), look)


def test_what_differs_names_the_value_that_is_more_frequent(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    rows = [candidate(number, service="bad" if number < 60 else "good", retrieved_chunk_ids=[] if number < 60 else [1],
                      retrieved_slugs=[] if number < 60 else ["a"], retrieved_scores=[]) for number in range(120)]  # fmt: skip
    fill(empty_store, candidates=rows)

    async def look(pages: Pages) -> None:
        document = await pages.json("/events/differs?status=no_result")
        page = await pages.html("/events/differs?status=no_result")
        strongest = {
            (each["dimension"], each["value"])
            for each in document["found"]["value"]["differences"]
            if each["significant"]
        }
        assert ("service", "bad") in strongest
        assert (document["found"]["value"]["selected"], document["found"]["value"]["rest"]) == (60, 60)
        assert missing(document["found"]["value"], page, "difference", "low", "high") == []
        assert (await pages.json("/events/differs"))["selects"] is False

    looking(of(empty_store, redis_server), look)


def claim(verdict: str, start: int, end: int, passage: int = 0, quote: tuple[int, int] = (0, 0)) -> Json:
    return {
        "verdict": verdict, "demoted": False, "answer_from": start, "answer_to": end, "passage": passage,
        "quote_from": quote[0], "quote_to": quote[1],
    }  # fmt: skip


def test_one_answer_shows_its_whole_chain(empty_store: StoreServer, redis_server: RedisServer) -> None:
    retrieval = candidate(1, retrieved_chunk_ids=[7, 8], retrieved_slugs=["guide", "faq"], retrieved_scores=[4.0, 1.0])
    earlier = candidate(
        0,
        days_old=6,
        query="  How do I   ROTATE the signing key?",
        retrieved_slugs=["old"],
        retrieved_chunk_ids=[9],
        retrieved_scores=[1.0],
    )
    retrieval["query"] = "how do i rotate the signing key?"
    text = "Ünïcode first. It runs daily. Nobody knows."
    made = answer(
        2,
        retrieval_event_id=retrieval["event_id"],
        answer=text,
        citations=[{"context_id": "8", "claim": "daily"}, {"context_id": "99", "claim": None}],
        contexts=[
            {"id": "7", "source_id": None, "text": "The first 𝒳 passage.", "score": 4.0},
            {"id": "8", "source_id": "s", "text": "It runs daily at noon.", "score": 1.0},
        ],
    )
    verdicts = [
        claim("supported", 15, 29, 2, (0, 13)),
        claim("not_found", 30, 43),
        claim("contradicted", 20, 10_000, 9, (5, 2)),
    ]
    fill(
        empty_store,
        candidates=[earlier, retrieval],
        answers=[made],
        feedback=[feedback(3, target_event_id=made["event_id"], text="thanks")],
        scores=[score(event_id=made["event_id"], faithfulness=0.5, verdicts=verdicts, claims=3, contradicted=1)],
    )

    async def look(pages: Pages) -> None:
        path = f"/{made['event_id']}"
        document, page = await pages.json(f"/events{path}"), await pages.html(f"/e{path}")
        assert "".join(piece["text"] for piece in document["answer"]["pieces"]) == text
        assert [(each["verdict"], each["sentence"], each["quote"]) for each in document["claims"]] == [
            ("supported", "It runs daily.", "It runs daily"),
            ("not_found", "Nobody knows.", ""),
            ("contradicted", text[20:], ""),
        ]
        assert [(each["rank"], each["slug"], each["share"], each["cited"]) for each in document["hits"]] == [
            (1, "guide", 1.0, False),
            (2, "faq", 0.25, True),
        ]
        assert [each["passage"] for each in document["citations"]] == [2, None]
        assert [each["cited_by"] for each in document["passages"]] == [[], [1]]
        assert [(each["gone"], each["new"]) for each in document["earlier"]["value"]] == [(["old"], ["guide", "faq"])]
        assert document["scores"][0]["why"] in page
        assert "thanks" in texts_of(page)
        for target in ("claim-1", "claim-3", "passage-2", "citation-1", "quote-1", "in-2"):
            assert f'id="{target}"' in page, target
        assert missing(document, page, "share", "shown", "characters", "claims", "begins", "facts") == []

    looking(of(empty_store, redis_server), look)


@pytest.mark.parametrize("kind", ["candidates", "feedback", "tool_calls", "server_events"])
def test_every_kind_of_event_has_a_page(empty_store: StoreServer, redis_server: RedisServer, kind: str) -> None:
    make = {"candidates": candidate, "feedback": feedback, "tool_calls": tool_call, "server_events": server_event}
    row = make[kind](1)
    fill(empty_store, **{kind: [row]})

    async def look(pages: Pages) -> None:
        document = await pages.json(f"/events/{row['event_id']}")
        assert document["missing"] is None
        assert row["event_id"] in await pages.html(f"/e/{row['event_id']}")

    looking(of(empty_store, redis_server), look)


def test_an_event_that_is_not_there_says_which_reason(migrated: StoreServer, redis_server: RedisServer) -> None:
    async def look(pages: Pages) -> None:
        new, old = event_id_at(NOW_MS), event_id_at(NOW_MS - 900 * 86_400_000)
        document = await pages.json(f"/events/{new}", 404)
        assert document["missing"]["reason"] == "not_stored_yet"
        assert 'data-reason="not_stored_yet"' in await pages.html(f"/e/{new}", 404)
        assert (await pages.json(f"/events/{old}", 404))["missing"]["reason"] == "expired"

    looking(of(migrated, redis_server), look)


def test_a_part_of_a_session_leads_to_it_whatever_its_id_is(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    part = session_part(session_id="a/b?c#d%25 e")
    fill(empty_store, session_parts=[part])

    async def look(pages: Pages) -> None:
        document = await pages.json(f"/events/{part['event_id']}", 404)
        session = await pages.json(document["missing"]["session"].replace("/s/", "/sessions/", 1))
        assert session["session_id"] == part["session_id"]

    looking(of(empty_store, redis_server), look)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_shown_as_text_and_copied_unchanged(
    empty_store: StoreServer, redis_server: RedisServer, name: str
) -> None:
    text = HOSTILE[name]
    made = answer(1, query=text, answer=text, contexts=[{"id": text[:50], "source_id": text[:50], "text": text, "score": None}],
                  citations=[{"context_id": text[:50], "claim": text}])  # fmt: skip
    cut = [claim("supported", number, number + 3, 1, (number, number + 3)) for number in range(0, len(text), 2)]
    fill(
        empty_store,
        answers=[made],
        feedback=[feedback(2, target_event_id=made["event_id"], text=text)],
        scores=[score(event_id=made["event_id"], verdicts=cut)],
    )

    async def look(pages: Pages) -> None:
        page = await pages.html(f"/e/{made['event_id']}")
        rows = await pages.html("/events?" + urlencode({"q": text[:20]}))
        assert text in texts_of(rows)
        assert text in texts_of(page), "the question"
        document = await pages.json(f"/events/{made['event_id']}")
        assert "".join(piece["text"] for piece in document["answer"]["pieces"]) == text
        for each in (page, rows):
            assert "<script>document" not in each
            assert "<img" not in each
            tags = re.sub(r'"[^"]*"', '""', each)  # what is quoted is the value of an attribute
            assert not re.search(r"<[a-z]+[^>]* on\w+=", tags)
            assert ("7*7" in text) <= ("7*7" in each), "nothing computes a text"

    looking(of(empty_store, redis_server), look)


def test_a_text_of_256_kib_is_shown_in_part_and_on_demand_in_full(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    text = "".join(f"{number:07} " for number in range(32_768))
    made = answer(1, answer=text)
    fill(empty_store, answers=[made])

    async def look(pages: Pages) -> None:
        page = await pages.html(f"/e/{made['event_id']}")
        assert "20,000 of 262,144 characters" in shown(page)
        assert text[:20_000] in texts_of(page)
        assert text not in page
        full = re.search(r'href="([^"]+)">Show all 262,144 characters', page)
        assert full
        assert text in texts_of(await pages.html(html.unescape(full[1])))
        assert len((await pages.html("/events")).encode()) < 200_000

    looking(of(empty_store, redis_server), look)
