"""Pages of sessions and of SQL with a real store."""

import asyncio
import html
import json
import random
import re
import time
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from assay_console.people import Role
from assay_console.views.sessions import EVENTS, STEPS
from assay_runtime.store import connect, insert_json_rows
from assay_schema.settings import Settings
from tests.integration.test_console_events import HOSTILE, fill, looking, of, texts_of
from tests.support.audit_attacks import A_RECORD
from tests.support.console_pages import Pages, console, missing, shown
from tests.support.redis import RedisServer
from tests.support.sample_rows import candidate, dataset_case, imported_call, iso, label, lines, session_part, tool_call
from tests.support.store import StoreServer

SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


def test_sessions_are_listed_with_what_they_cost_and_lead_to_their_transcript(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store, session_parts=[session_part(number) for number in range(3)])

    async def look(pages: Pages) -> None:
        document, page = await pages.json("/sessions"), await pages.html("/sessions")
        assert {each["session_id"] for each in document["sessions"]["value"]} == {"ses_0", "ses_1", "ses_2"}
        assert missing(document, page) == []
        link = re.search(r'href="(/s/ses_2[^"]*)"', page)
        assert link
        one = await pages.html(html.unescape(link[1]))
        assert "Which test is flaky?" in texts_of(one)
        assert "The third." in texts_of(one)
        document = await pages.json("/sessions/ses_2")
        assert [(each["who"], each["tool"], each["turn"]) for each in document["steps"]] == [
            ("tool", "bash", 1),
            ("user", "", 1),
            ("model", "", 2),
        ]
        assert {each["name"] for each in document["checks"]} >= {"answered", "no_loops"}
        await pages.html("/s/nothing", 404)

    looking(of(empty_store, redis_server), look)


def test_pages_of_sessions_have_each_once_though_many_changed_at_the_same_time(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    """150 changed in the same microsecond, others in the same millisecond, and one id is in two projects."""
    rows = [session_part(number) for number in range(250)]
    at = rows[0]["updated"].partition(".")[0]
    for number, row in enumerate(rows):
        micros = 123_456 if number < 150 else 123_000 + number
        row |= {"updated": f"{at}.{micros}Z", "created": f"{at}.000001Z"}
    rows += [session_part(7, project="other", updated=rows[7]["updated"], created=rows[7]["created"])]
    fill(empty_store, session_parts=rows)

    async def look(pages: Pages) -> None:
        seen, path, listed = [], "/sessions", "/sessions"
        while path:
            page, document = await pages.html(path), await pages.json(listed)
            found = re.findall(r'<tr data-href="/s/(ses_\d+)\?project=(\w+)', page)
            assert found == [(each["session_id"], each["project"]) for each in document["sessions"]["value"]]
            seen += found
            following = re.search(r'rel="next" href="([^"]+)"', page)
            path = html.unescape(following[1]) if following else ""
            assert bool(path) == bool(document["next"])
            listed = f"/sessions?{urlencode({'after': document['next']})}"
        assert len(seen) == len(set(seen)) == 251
        for wrong in ("x", "1", "-1:shop:x", "1:shop", "99999999999999999999:shop:x", "1:shop:\0"):
            await pages.json(f"/sessions?{urlencode({'after': wrong})}", 422)

    looking(of(empty_store, redis_server), look)


def test_an_id_in_two_projects_lets_people_choose(empty_store: StoreServer, redis_server: RedisServer) -> None:
    fill(empty_store, session_parts=[session_part(1, project=each, title=f"of {each}") for each in ("blue", "green")])

    async def look(pages: Pages) -> None:
        page = await pages.html("/s/ses_1")
        assert "/s/ses_1?project=blue" in page
        assert "/s/ses_1?project=green" in page
        assert "of green" in await pages.html("/s/ses_1?project=green")

    looking(of(empty_store, redis_server), look)


def test_a_session_of_two_thousand_tool_calls_is_read_in_pages(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    calls = [
        imported_call("bash", {"command": f"echo {number}"}, status="error" if number % 100 == 0 else "success")
        for number in range(2_000)
    ]
    fill(empty_store, session_parts=[session_part(1, intermediate_events=json.dumps(calls), tools=2_000)])

    async def look(pages: Pages) -> None:
        seen, number = [], 1
        while number:
            document = await pages.json(f"/sessions/ses_1?page={number}")
            assert len(document["steps"]) <= STEPS
            seen += [each for each in document["steps"] if each["tool"]]
            number = number + 1 if number < document["pages"] else 0
        commands = ["".join(piece["text"] for piece in each["arguments"]["pieces"]) for each in seen]
        assert [json.loads(each)["command"] for each in commands] == [f"echo {number}" for number in range(2_000)]
        assert len((await pages.html("/s/ses_1")).encode()) < 400_000
        failed = await pages.json("/sessions/ses_1?only=failed")
        assert (len(failed["steps"]), failed["pages"]) == (20, 1)
        await pages.html("/s/ses_1?page=0", 422)
        await pages.html("/s/ses_1?page=99", 422)

    looking(of(empty_store, redis_server), look)


def test_a_captured_session_shows_its_events_and_why_it_has_no_transcript(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    fill(empty_store, tool_calls=[tool_call(number, session_id="run/1 ?#") for number in range(3)])

    async def look(pages: Pages) -> None:
        page = await pages.html("/sessions")
        link = re.search(r'href="(/s/[^"]*)"', page)
        assert link
        one = await pages.html(html.unescape(link[1]))
        assert "known from captured events alone" in shown(one)
        assert one.count("<tr data-href") == 3
        json_link = re.search(r'<a href="(/api/v1/sessions/[^"]*)">JSON', one)
        assert json_link
        document = await pages.json(html.unescape(json_link[1]).removeprefix("/api/v1"))
        assert (document["session_id"], len(document["events"])) == ("run/1 ?#", 3)

    looking(of(empty_store, redis_server), look)


def test_calls_of_one_burst_are_listed_as_they_happened_in_pages_that_say_how_many_there_are(
    empty_store: StoreServer, redis_server: RedisServer
) -> None:
    """A backfill: the ids are made in a few milliseconds, three days after the calls."""
    began_ms, total = int(time.time() * 1000) - 3 * 86_400_000, EVENTS + 50
    calls = [
        tool_call(
            number % 3, session_id="burst", seq=number, occurred_at=iso(began_ms + 1_000 * (number // 2)),
            args_summary=f"call {number}", status="error" if number % 100 == 0 else "success",
            error_kind="timeout" if number % 100 == 0 else None,
        )
        for number in range(total)
    ]  # fmt: skip
    random.Random(1).shuffle(calls)
    fill(empty_store, tool_calls=calls)

    async def look(pages: Pages) -> None:
        first, second = await pages.json("/sessions/burst"), await pages.json("/sessions/burst?events=2")
        texts = [each["text"] for each in (*first["events"], *second["events"])]
        assert texts == [f"call {number}" for number in range(total)]
        assert (first["all_events"], first["events_pages"], len(first["events"])) == (total, 2, EVENTS)
        assert datetime.fromisoformat(first["events"][2]["time"]).timestamp() * 1000 == began_ms + 1_000
        page = await pages.html("/s/burst")
        assert f"{EVENTS} of {total} events." in shown(page)
        assert "page 1 of 2" in shown(page)
        later = re.search(r'<a class="button" rel="next" href="([^"]*)"', page)
        assert later
        assert f"call {total - 1}" in await pages.html(html.unescape(later[1]).partition("#")[0])
        link = re.search(r'<a href="([^"]*)">3 failed</a>', page)
        assert link
        failed = await pages.html(html.unescape(link[1]))
        assert failed.count("<tr data-href") == 3
        assert [each["text"] for each in (await pages.json("/sessions/burst?only=failed"))["events"]] == [
            "call 0", "call 100", "call 200",
        ]  # fmt: skip
        await pages.html("/s/burst?events=3", 422)
        await pages.html("/s/burst?events=x", 422)

    looking(of(empty_store, redis_server), look)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_of_a_session_are_shown_as_text(
    empty_store: StoreServer, redis_server: RedisServer, name: str
) -> None:
    text = HOSTILE[name]
    contents = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    output = {"function_response": {"name": "bash", "response": {"output": text}}}
    row = session_part(
        1,
        title=text,
        request=json.dumps(contents),
        intermediate_events=json.dumps([imported_call("bash", {}) | output]),
    )
    fill(empty_store, session_parts=[row])

    async def look(pages: Pages) -> None:
        page = await pages.html("/s/ses_1")
        assert texts_of(page).count(text) >= 2, "title, turn and output"
        assert "<img" not in page
        assert "<script>document" not in page

    looking(of(empty_store, redis_server), look)


def test_calls_with_values_that_no_agent_writes_are_shown(empty_store: StoreServer, redis_server: RedisServer) -> None:
    calls = [
        imported_call("late", turn=10**12, duration_ms="abc", exit_code="x"),
        imported_call("first", turn=0, duration_ms=1e300, exit_code=1.5),
        imported_call("", turn=1, function_response={"name": "", "response": {"output": False}}),
    ]
    fill(empty_store, session_parts=[session_part(1, intermediate_events=json.dumps(calls), tools=3)])

    async def look(pages: Pages) -> None:
        document, page = await pages.json("/sessions/ses_1"), await pages.html("/s/ses_1")
        assert [(each["turn"], each["tool"]) for each in document["steps"]] == [
            (0, "first"),
            (1, "(no name)"),
            (1, ""),
            (2, ""),
            (10**12, "late"),
        ]
        assert [each["exit_code"] for each in document["steps"]] == [None] * 5
        assert "false" in shown(page)

    looking(of(empty_store, redis_server), look)


# --- SQL


def asking(settings: Settings, look: Callable[[Pages], Coroutine[Any, Any, None]]) -> None:
    """Look as a page of the console does, by a link of its own."""

    async def with_origin(pages: Pages) -> None:
        pages._client.headers.update(SAME_ORIGIN)
        await look(pages)

    looking(settings, with_origin)


def sql(text: str, **values: str) -> str:
    from urllib.parse import urlencode

    return "/sql?" + urlencode({"q": text} | {f"param_{name}": value for name, value in values.items()})


def test_sql_is_answered_with_its_columns_and_parameters(empty_store: StoreServer, redis_server: RedisServer) -> None:
    fill(empty_store, candidates=[candidate(number, query=HOSTILE["script"]) for number in range(3)])

    async def look(pages: Pages) -> None:
        asked = sql("SELECT query, NULL AS nothing, {n:UInt8} AS n FROM candidates", n="7")
        document, page = await pages.json(asked), await pages.html(asked)
        assert document["answer"]["rows"] == [[HOSTILE["script"], None, "7"]] * 3
        assert [name for name, _ in document["answer"]["columns"]] == ["query", "nothing", "n"]
        assert texts_of(page).count(HOSTILE["script"]) == 3
        assert "<script>document" not in page

    asking(of(empty_store, redis_server), look)


def test_results_are_downloaded_and_drawn(empty_store: StoreServer, redis_server: RedisServer) -> None:
    fill(empty_store, candidates=[candidate(number, query=f'=HYPERLINK("{number}")') for number in range(3)])

    async def look(pages: Pages) -> None:
        asked = sql("SELECT query, {n:UInt8} AS n FROM candidates ORDER BY query", n="7").replace(
            "/sql?", "/sql/export?"
        )
        table = await pages._client.get(asked)
        assert table.headers["content-disposition"] == 'attachment; filename="result.csv"'
        assert table.text.splitlines()[:2] == ["query,n", '"\'=HYPERLINK(""0"")",7']
        lines = await pages._client.get(f"{asked}&format=ndjson")
        assert lines.headers["content-type"] == "application/x-ndjson"
        assert json.loads(lines.text.splitlines()[2]) == {"query": '=HYPERLINK("2")', "n": 7}
        many = await pages._client.get(sql("SELECT number FROM numbers(60000)").replace("/sql?", "/sql/export?"))
        assert 'filename="result-first-50000.csv"' in many.headers["content-disposition"]
        assert len(many.text.splitlines()) == 50_001
        assert (await pages._client.get("/sql/export")).status_code == 422
        assert (await pages._client.get(sql("SELECT nothing").replace("/sql?", "/sql/export?"))).status_code == 422
        asked = sql("SELECT toDateTime(60 * number) AS at, number AS events FROM numbers(1, 3)")
        document, page = await pages.json(asked), await pages.html(asked)
        assert document["chart"]["values"] == [1.0, 2.0, 3.0]
        assert 'aria-label="events"' in page

    asking(of(empty_store, redis_server), look)

    async def from_elsewhere(pages: Pages) -> None:
        assert (await pages._client.get(sql("SELECT 1").replace("/sql?", "/sql/export?"))).status_code == 403

    looking(of(empty_store, redis_server), from_elsewhere)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT 1\nFROMM x y", 62),
        ("SELECT nothing FROM candidates", 47),
        ("DROP TABLE candidates", 497),
        ("INSERT INTO candidates SELECT * FROM candidates", 164),
        ("SELECT * FROM url('http://127.0.0.1/', 'CSV', 'a String')", 497),
        ("SELECT 1; SELECT 2", 62),
        ("SELECT {x:UInt8}", 456),
        ("SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1", 159),
    ],
)
def test_sql_that_the_engine_refuses_shows_its_code(
    migrated: StoreServer, redis_server: RedisServer, text: str, code: int
) -> None:
    async def look(pages: Pages) -> None:
        document, page = await pages.json(sql(text)), await pages.html(sql(text))
        assert document["answer"] is None
        assert document["error"]["code"] == code
        assert f"code {code}" in shown(page)
        if text.startswith("SELECT 1\n"):
            assert document["error"]["line"] == 2

    asking(of(migrated, redis_server), look)


@pytest.mark.parametrize("role", list(Role))
def test_sql_writes_nothing_as_any_role(empty_store: StoreServer, redis_server: RedisServer, role: Role) -> None:
    rows = {
        "labels": lines([label()]).decode(),
        "dataset_cases": lines([dataset_case()]).decode(),
        "operations_audit": A_RECORD.format("00000000-0000-7000-8000-000000000001"),
    }
    texts = []
    for table, row in rows.items():
        into = f"INSERT INTO assay_base.{table}"
        plain = row if row.startswith("INSERT") else f"{into} FORMAT JSONEachRow {row}"
        columns = sorted(json.loads(row)) if row.startswith("{") else ["schema_version"]
        named = f"assay_base.{table} ({', '.join(columns)})"
        select = f"SELECT {', '.join(columns)} FROM assay.{table}"
        texts += [
            plain,
            f"/* SELECT 1 */ -- SELECT\n{plain}",
            plain.lower() if row.startswith("INSERT") else plain.replace("INSERT INTO", "insert into"),
            f"({plain})",
            f"SELECT 1; {plain}",
            f"{plain}; SELECT 1",
            f"WITH 1 AS x INSERT INTO {named} {select}",
            f"INSERT INTO {named} WITH 1 AS x {select}",
            f"insert into {named} settings readonly = 0 {select.lower()}",
            f"EXPLAIN INSERT INTO {named} {select}",
            f"SELECT * FROM ({plain})",
        ]
    counts = "SELECT " + ", ".join(f"(SELECT count() FROM assay_base.{table})" for table in rows)
    with connect(empty_store.settings().store) as owner:
        for table in ("labels", "dataset_cases"):
            insert_json_rows(owner, f"assay_base.{table}", rows[table].encode(), 1)
        owner.command(A_RECORD.format("00000000-0000-7000-8000-000000000002"))
        before = owner.query(counts).result_rows

        async def look() -> None:
            async with console(of(empty_store, redis_server), role) as pages:
                pages._client.headers.update(SAME_ORIGIN)
                for text in texts:
                    await pages._client.get(sql(text))
                    answer = await pages._client.get(f"/api/v1{sql(text)}")
                    if answer.status_code != 422:  # it names a format
                        assert answer.json()["error"]["code"] in (62, 80, 164, 497), (text, answer.text)

        asyncio.run(look())
        assert owner.query(counts).result_rows == before


def test_parameters_are_sent_as_their_types_need(migrated: StoreServer, redis_server: RedisServer) -> None:
    texts = ["it's", "a\\b", "tab\tline\nend\r", "%s %(x)s", "{y:String}", "\0", ""]

    async def look(pages: Pages) -> None:
        for text in texts:
            document = await pages.json(sql("SELECT { x : String }", x=text))
            assert document["answer"]["rows"] == [[text]], text
        array = sql(
            "SELECT arrayJoin({x:Array(String)}), {y:Map(String, UInt8)}['b']", x="['it\\'s','a\\\\b']", y="{'b':3}"
        )
        assert (await pages.json(array))["answer"]["rows"] == [["it's", "3"], ["a\\b", "3"]]
        assert (await pages.json(sql("SELECT {x:Array(String)}", x="['a")))["error"] is not None

    asking(of(migrated, redis_server), look)


def test_parameters_that_the_sql_does_not_name_are_left_out(migrated: StoreServer, redis_server: RedisServer) -> None:
    async def look(pages: Pages) -> None:
        for text in ("SELECT 'ax' LIKE '%x'", "SELECT 'ax' LIKE '%x' AND {y:UInt8} = 1"):
            document = await pages.json(sql(text, x="1", y="1"))
            assert document["answer"]["rows"] == [["1"]], document

    asking(of(migrated, redis_server), look)


def test_only_the_first_thousand_rows_are_shown_and_said(migrated: StoreServer, redis_server: RedisServer) -> None:
    async def look(pages: Pages) -> None:
        for many, more in ((1_000, False), (1_001, True), (900_000, True)):
            document = await pages.json(sql(f"SELECT number FROM numbers({many})"))
            assert [row[0] for row in document["answer"]["rows"]] == [str(number) for number in range(1_000)]
            assert document["answer"]["more"] is more
        wide = await pages.json(sql("SELECT repeat('x', 100000) FROM numbers(500) SETTINGS max_block_size = 10"))
        assert wide["error"] is None
        assert 0 < len(wide["answer"]["rows"]) < 500
        assert wide["answer"]["more"] is True

    asking(of(migrated, redis_server), look)


def test_sql_from_elsewhere_waits_for_a_person(migrated: StoreServer, redis_server: RedisServer) -> None:
    async def look(pages: Pages) -> None:
        for site in ("cross-site", "same-site", "none", ""):
            pages._client.headers["sec-fetch-site"] = site
            document = await pages.json(sql("SELECT 1"))
            assert (document["waits"], document["answer"]) == (True, None), site
            page = await pages.html(sql("SELECT 1"))
            assert "then press Run" in page
            assert ">SELECT 1</textarea>" in page

    looking(of(migrated, redis_server), look)


def test_sql_of_an_own_page_runs_without_fetch_metadata_and_that_of_another_site_does_not(
    migrated: StoreServer, redis_server: RedisServer
) -> None:
    async def look(pages: Pages) -> None:
        for name, address, runs in (
            ("referer", "http://localhost/sql?q=SELECT+2", True),
            ("origin", "http://localhost", True),
            ("referer", "http://localhost.evil.example/sql", False),
            ("referer", "http://evil.example/http://localhost/", False),
            ("origin", "null", False),
        ):
            answer = await pages._client.get(f"/api/v1{sql('SELECT 1')}", headers={name: address})
            assert (answer.json()["answer"] is not None, answer.json()["waits"]) == (runs, not runs), address
        forged = {"host": "evil.example", "referer": "http://evil.example/sql"}
        assert (await pages._client.get(f"/api/v1{sql('SELECT 1')}", headers=forged)).status_code == 403

    looking(of(migrated, redis_server), look)


def test_every_named_query_runs_with_its_form(migrated: StoreServer, redis_server: RedisServer) -> None:
    async def look(pages: Pages) -> None:
        document = await pages.json("/sql")
        assert len(document["named"]) > 20
        for each in document["named"]:
            found = await pages.json(f"/sql?name={each['name']}")
            assert found["error"] is None, (each["name"], found["error"])
        comments = {view["name"]: view["columns"] for view in document["views"]["value"]}
        assert any("scrubbed" in comment for _, _, comment in comments["candidates"])
        await pages.html("/sql?name=nothing", 422)
        await pages.html("/sql?name=tools&param_nothing=1", 422)

    asking(of(migrated, redis_server), look)


def test_a_store_that_is_away_is_said(empty_store: StoreServer, redis_server: RedisServer) -> None:
    empty_store.kill()

    async def look(pages: Pages) -> None:
        assert (await pages.json("/sql"))["views"]["state"] == "unavailable"
        page = await pages.html(sql("SELECT 41 + 1"))
        assert ">SELECT 41 + 1</textarea>" in page
        assert "▲ Store: no answer at" in page.partition("</textarea>")[2]
        assert (await pages.json("/sessions"))["sessions"]["state"] == "unavailable"
        for path in ("/s/ses_1", f"/e/{uuid4()}", f"/alerts/{uuid4()}"):
            page = await pages.html(path, 503)
            assert '<nav id="menu"' in page
            assert "▲ the store does not answer" in page.partition("<main")[0]
            assert "Store: no answer at" in page.partition("<main")[2], path

    asking(of(empty_store, redis_server), look)


def test_slow_sql_does_not_keep_pages_waiting(empty_store: StoreServer, redis_server: RedisServer) -> None:
    fill(empty_store, candidates=[candidate(1)])

    async def look(pages: Pages) -> None:
        slow = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = {salt:UInt64} SETTINGS max_threads = 1"
        running = [asyncio.create_task(pages.json(sql(slow, salt=str(salt)))) for salt in range(4)]
        while not any(each.done() for each in running):  # a page is answered while each of them waits or runs
            assert (await pages.json("/events"))["listed"]["state"] == "ready"
        for each in running:
            assert (await each)["error"]["code"] == 159

    asking(of(empty_store, redis_server), look)
