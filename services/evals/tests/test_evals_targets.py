"""Targets over a real socket, a real process and real calls: what is sent, what is read, and what an error says."""

import asyncio
import contextlib
import importlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from assay_evals.errors import TargetError, TargetUsageError
from assay_evals.target.redaction import fingerprint_target, matches_fingerprint, redact_target
from assay_evals.target.response import TargetResponse
from assay_evals.target.response_parsing import parse_response
from assay_evals.target.runner import QueryResult, RunnerOptions, stream_queries
from assay_evals.target.targets import CallableTarget, CommandTarget, HttpTarget, Question, Target, open_target

SECRET = "where does alice live"


@contextlib.asynccontextmanager
async def server(answer: Callable[[web.Request], Any]) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.StreamResponse:
        found = answer(request)
        return await found if asyncio.iscoroutine(found) else found  # type: ignore[no-any-return]

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask_http(url: str, **options: Any) -> TargetResponse:
    target = HttpTarget(url, **options)
    try:
        return await target.ask(Question(SECRET, limit=3, detail="low"))
    finally:
        await target.close()


async def test_a_service_is_asked_by_post_with_token_and_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TARGET_TOKEN", "t0ken")
    seen: dict[str, Any] = {}

    async def answer(request: web.Request) -> web.Response:
        seen.update(path=request.path, headers=request.headers, body=await request.json())
        return web.json_response({"results": [{"slug": "a", "source_id": "wiki", "score": 2.0}, {"id": "b"}]})

    async with server(answer) as url:
        found = await ask_http(f"{url}/v1/search", workspace="w1")
    assert (found.slugs, list(found.sources)) == (["a", "b"], ["wiki", None])
    assert found.latency_ms > 0
    assert seen["path"] == "/v1/search"
    assert (seen["headers"]["Authorization"], seen["headers"]["X-Workspace-ID"]) == ("Bearer t0ken", "w1")
    assert seen["body"] == {"query": SECRET, "limit": 3, "tool_name": "query", "detail": "low"}


async def test_an_address_with_places_is_asked_by_get() -> None:
    seen: list[str] = []

    def answer(request: web.Request) -> web.Response:
        seen.append(request.method + " " + request.path_qs)
        return web.json_response(["a"])

    async with server(answer) as url:
        await ask_http(url + "/find?q={query}&n={limit}")
    assert seen == ["GET /find?q=where%20does%20alice%20live&n=3"]


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (404, False), (408, True), (429, True), (500, True), (503, True)],
)
async def test_an_error_says_its_status_and_nothing_else(status: int, retryable: bool) -> None:
    async with server(lambda _: web.Response(status=status, text=SECRET)) as url:
        with pytest.raises(TargetError) as caught:
            await ask_http(url)
    assert (str(caught.value), caught.value.retryable) == (f"HTTP {status}", retryable)


async def test_a_service_that_is_away_may_be_tried_again() -> None:
    with pytest.raises(TargetError) as caught:
        await ask_http("http://127.0.0.1:9")
    assert caught.value.retryable


async def test_a_body_that_is_not_json_is_an_error() -> None:
    async with server(lambda _: web.Response(text="<html>")) as url:
        with pytest.raises(TargetError, match="not JSON"):
            await ask_http(url)


def plain(query: str) -> list[str]:
    return [query, "b"]


async def detailed(query: str, limit: int, detail: str | None) -> dict[str, Any]:
    return {
        "results": [f"{query}-{limit}-{detail}"],
        "answer": "yes",
        "citations": ["a", {"context_id": "b", "claim": "c"}],
        "latency_ms": 7,
    }


async def test_a_function_gets_the_fields_that_it_names() -> None:
    assert (await CallableTarget(plain).ask(Question("a"))).slugs == ["a", "b"]
    found = await CallableTarget(detailed).ask(Question("a", limit=4, detail="low"))
    assert (found.slugs, found.answer, found.citations, found.latency_ms) == (
        ["a-4-low"],
        "yes",
        [("a", None), ("b", "c")],
        7.0,
    )


async def test_an_error_of_a_function_says_its_class() -> None:
    def broken(query: str) -> None:
        raise LookupError(query)

    line = broken.__code__.co_firstlineno + 1
    with pytest.raises(TargetError) as caught:
        await CallableTarget(broken).ask(Question(SECRET))
    assert str(caught.value).startswith("LookupError (at ")
    assert str(caught.value).endswith(f"{Path(__file__).name}:{line})")


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_a_function_that_ends_the_process_is_an_error_of_its_question(error: BaseException) -> None:
    def plain(query: str) -> None:
        raise error

    async def coroutine(query: str) -> None:
        raise error

    for function in (plain, coroutine):
        asked = [each async for each in stream_queries(CallableTarget(function), ["q"], Question, RunnerOptions())]
        assert [str(each.error).partition(" (at ")[0] for each in asked] == [type(error).__name__]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys\nsys.exit(0)\n", r"cannot import my_broken_target: SystemExit \(at my_broken_target\.py:2\)$"),
        (
            "\nraise ValueError('secret')\n",
            r"cannot import my_broken_target: ValueError \(at my_broken_target\.py:2\)$",
        ),
        ("def f(query):\n  return [\n", r"cannot import my_broken_target: SyntaxError \(at my_broken_target\.py:2\)$"),
        ("import json\njson.loads('{')\n", r"JSONDecodeError \(at my_broken_target\.py:2\)$"),
        ("import no_such_module\n", r"No module named 'no_such_module' \(at my_broken_target\.py:1\)$"),
    ],
)
def test_a_module_that_cannot_be_loaded_says_where(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_broken_target.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    with pytest.raises(TargetUsageError, match=words):
        open_target("my_broken_target:f")


async def test_a_function_is_found_beside_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_search_under_test.py").write_text("def find(query):\n    return [query.upper()]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert (await open_target("my_search_under_test:find").ask(Question("a"))).slugs == ["A"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonsense", "is not a target"),
        ("ftp://x", "is not a target"),
        ("no_such_module_here:f", "cannot import no_such_module_here: No module named 'no_such_module_here'$"),
        ("json:nothing", "no function nothing"),
        ("command:", "empty"),
        ("command: /no/such/program --key s3cret", "program /no/such/program was not found or is not executable$"),
        ("command: 's3cret key' x", "program … was not found or is not executable$"),
        ("command: ask 'it", "a quote that is not closed"),
        ("ftp://me:secret@x", "'ftp://x' is not a target"),
        ("http:///v1", "is not a valid address"),
        ("http://[x", "is not a valid address"),
    ],
)
def test_a_target_that_cannot_be_says_how_to_name_one(name: str, words: str) -> None:
    with pytest.raises(TargetUsageError, match=words):
        open_target(name)


async def test_a_command_reads_the_question_and_writes_the_answer() -> None:
    program = "import json, sys; q = json.load(sys.stdin); print(json.dumps([q['query'], str(q['limit'])]))"
    found = await CommandTarget(f'{sys.executable} -c "{program}"').ask(Question("a", limit=2))
    assert found.slugs == ["a", "2"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{sys.executable} -c 'import sys; sys.exit(3)'", "ended with 3"),
        (f"{sys.executable} -c 'print(1, 2)'", "not JSON"),
    ],
)
async def test_a_command_that_fails_is_an_error(command: str, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        await CommandTarget(command).ask(Question("a"))


@pytest.mark.parametrize(
    "value", [3, {"rows": []}, [3.5], [True], [{"score": 1}], {"results": [None]}, ["\ud800"], None]
)
def test_an_answer_of_an_unknown_form_is_an_error(value: Any) -> None:
    with pytest.raises(TargetError):
        parse_response(value, 1.0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (42, "the target returned int: return a list of results, or an object with them under `results`"),
        (None, "the target returned None: return a list"),
        ({"Results": ["a"]}, r"without text under `answer` \(did you mean results\?\)"),
        ({"answer": {"text": SECRET}}, "without a list under `results` and without text under `answer`$"),
        ({"results": [], "citations": [{"claim": SECRET}]}, "a citation has no slug or id"),
        ({"results": [], "contexts": [{"text": SECRET}]}, "a context has no slug or id"),
    ],
)
def test_an_unusable_response_is_described_by_its_type_and_shown_on_request_only(value: Any, words: str) -> None:
    with pytest.raises(TargetError, match=words) as error:
        parse_response(value, 1.0)
    assert SECRET not in str(error.value)
    assert error.value.target_message


@pytest.mark.parametrize(
    ("more", "unparsed"),
    [
        ({"answer": {"text": "x"}}, ["answer"]),
        ({"answer": 5}, ["answer"]),
        ({"answer": ["x"]}, ["answer"]),
        ({"citations": "setup"}, ["citations"]),
        ({"contexts": "text"}, ["contexts"]),
        ({"contexts": ["text"]}, ["contexts"]),
        ({"latency_ms": "12"}, ["latency_ms"]),
        ({"answer": None, "citations": [], "contexts": [], "latency_ms": 0}, []),
        ({"answer": "", "citations": ["a"], "contexts": [{"id": "a", "text": "t"}]}, []),
    ],
)
def test_a_field_of_the_wrong_type_is_missing_and_counted(more: dict[str, Any], unparsed: list[str]) -> None:
    found = parse_response({"results": ["a"], **more}, 5.0)
    assert list(found.unparsed_fields) == unparsed
    if unparsed:
        assert (found.answer, found.citations, found.contexts, found.latency_ms) == (None, [], [], 5.0)


@pytest.mark.parametrize(
    ("reply", "misspelt"),
    [
        ({"results": [], "Answer": "x"}, {"Answer": "answer"}),
        ({"hits": [], "answers": "x", "Citations": []}, {"answers": "answer", "Citations": "citations"}),
        ({"results": [], "answer": "x", "answers": ["x"]}, {}),
        ({"results": [], "total": 3, "took": 1, "context_id": "c", "took_ms": 5}, {}),
    ],
)
def test_a_key_that_resembles_a_missing_field_is_named(reply: dict[str, Any], misspelt: dict[str, str]) -> None:
    assert parse_response(reply, 1.0).misspelt_keys == misspelt


def test_a_function_that_cannot_take_a_query_is_refused_before_the_run() -> None:
    def two(query: str, tenant: str) -> list[str]:
        return [query, tenant]

    def no_query() -> list[str]:
        return []

    with pytest.raises(TargetUsageError, match=r"missing a required argument: 'tenant'.*first parameter is the query"):
        CallableTarget(two)
    with pytest.raises(TargetUsageError, match="too many positional arguments"):
        CallableTarget(no_query)


def test_a_function_is_timed_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_in, timed_in = [], []

    def target(query: str) -> list[str]:
        asked_in.append(threading.get_ident())
        return [query]

    clock = time.perf_counter

    def counter() -> float:
        timed_in.append(threading.get_ident())
        return clock()

    monkeypatch.setattr("assay_evals.target.targets.time.perf_counter", counter)
    asyncio.run(CallableTarget(target).ask(Question("q")))
    assert timed_in == asked_in * 2, "neither the wait for a thread nor for the loop counts"
    assert asked_in != [threading.get_ident()]


@pytest.mark.parametrize("latency", [-1, True, "1", float("inf")])
def test_a_latency_that_is_no_number_is_measured_instead(latency: Any) -> None:
    assert parse_response({"results": [], "latency_ms": latency}, 5.0).latency_ms == 5.0


class Script:
    """A target that does what it is told for each question, and counts."""

    def __init__(self, act: Callable[[str], Any]) -> None:
        self.act, self.asked, self.most, self.now = act, 0, 0, 0

    async def ask(self, question: Question) -> TargetResponse:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            found = self.act(question.query)
            return await found if asyncio.iscoroutine(found) else found  # type: ignore[no-any-return]
        finally:
            self.now -= 1

    async def close(self) -> None:
        return


async def everything(target: Target, items: Any, options: RunnerOptions) -> list[QueryResult[str]]:
    return [asked async for asked in stream_queries(target, items, Question, options)]


async def test_every_item_comes_back_once_and_no_more_than_allowed_are_asked_at_a_time() -> None:
    target = Script(lambda query: TargetResponse([query], 1.0))
    done = await everything(target, (str(number) for number in range(100)), RunnerOptions(concurrency=3))
    assert [int(asked.item) for asked in done] == list(range(100)), "in the order of the items"
    assert target.most == 3


async def test_items_are_taken_only_as_places_become_free() -> None:
    taken = []

    def endless() -> Any:
        for number in range(10**9):
            taken.append(number)
            yield str(number)

    asking = stream_queries(
        Script(lambda query: TargetResponse([query], 1.0)), endless(), Question, RunnerOptions(concurrency=4)
    )
    async for _ in asking:
        if len(taken) > 50:
            break
    await asking.aclose()
    assert len(taken) < 80


async def test_what_may_fare_better_is_tried_again_and_counted() -> None:
    tries: dict[str, int] = {}

    def act(query: str) -> TargetResponse:
        tries[query] = tries.get(query, 0) + 1
        if tries[query] < 3:
            raise TargetError("HTTP 503", retryable=True)
        return TargetResponse([query], 1.0)

    (asked,) = await everything(Script(act), ["a"], RunnerOptions(retries=2))
    assert (asked.tries, asked.error) == (3, None)


@pytest.mark.parametrize(("retryable", "tries"), [(True, 2), (False, 1)])
async def test_an_error_that_stays_ends_in_the_result(retryable: bool, tries: int) -> None:
    def act(_: str) -> TargetResponse:
        raise TargetError("HTTP 500", retryable=retryable)

    (asked,) = await everything(Script(act), ["a"], RunnerOptions(retries=1))
    assert (asked.answer, asked.error, asked.tries) == (None, "HTTP 500", tries)


async def test_a_question_that_hangs_ends_at_its_deadline() -> None:
    def act(query: str) -> Any:
        return asyncio.Event().wait() if query == "hangs" else TargetResponse([query], 1.0)

    done = {
        asked.item: asked.error for asked in await everything(Script(act), ["hangs", "b"], RunnerOptions(deadline_s=3))
    }
    assert done == {"hangs": "no answer within 3 s", "b": None}


@pytest.mark.parametrize("bad", [{"concurrency": 0}, {"retries": -1}, {"deadline_s": float("nan")}, {"deadline_s": 0}])
def test_ways_of_asking_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad)).removesuffix("_s")):
        RunnerOptions(**bad)


async def test_an_answer_that_nobody_foresaw_is_one_error_without_its_text() -> None:
    def act(query: str) -> TargetResponse:
        if query == "1":
            raise UnicodeEncodeError("utf-8", "a secret \ud800", 9, 10, "surrogates not allowed")
        return TargetResponse([query], 1.0)

    done = await everything(Script(act), ["0", "1", "2"], RunnerOptions())
    assert [asked.error for asked in done] == [None, "UnicodeEncodeError", None]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "http://me:secret@host:8000/v1?key=secret&q={query}&n={limit}",
            "http://host:8000/v1?key=…&q={query}&n={limit}",
        ),
        ("https://host/v1?secret&key=&k={secret}#secret", "https://host/v1?…&key=&k=…"),
        ("http://host/v1/search", "http://host/v1/search"),
        ("http://[secret/", "http://…"),
        ("module:function", "module:function"),
        ("command: ask --json", "command: ask --json"),
        (
            "command:  bin/ask --token secret --key='se cret' -psecret -v -",
            "command: bin/ask --token … --key=… -p… -v -",
        ),
        (
            "command: env TOKEN=secret python -m my.tool tools/ask.py secret",
            "command: env … … -m my.tool tools/ask.py …",
        ),
        ("command: sh -c 'ask --token secret'", "command: sh -c …"),
        ("command: curl -u me:secret https://me:secret@host/?k=secret", "command: curl -u … …"),
        ("command: ask --secret$x", "command: ask --…"),
        ("command: TOKEN=secret ask", "command: … …"),
    ],
)
def test_a_target_is_written_down_without_what_may_be_secret(name: str, expected: str) -> None:
    assert redact_target(name) == expected


def test_a_seal_tells_targets_apart_that_are_written_down_alike() -> None:
    one, other = "command: ask --model a", "command: ask --model b"
    assert redact_target(one) == redact_target(other)
    sealed = fingerprint_target(one)
    assert sealed is not None
    assert matches_fingerprint(sealed, one)
    assert not matches_fingerprint(sealed, other)
    assert not matches_fingerprint("nonsense", one)
    assert fingerprint_target(one) != sealed, "what two runs hide cannot be told to be the same"
    assert fingerprint_target("module:function") is None, "there is nothing to hide"


async def test_as_many_plain_functions_run_at_a_time_as_are_asked_for() -> None:
    together = threading.Barrier(40)  # breaks unless forty wait at it at once

    def act(query: str) -> list[str]:
        together.wait(timeout=60)
        return [query]

    target = CallableTarget(act, threads=40)
    done = await everything(target, [str(number) for number in range(40)], RunnerOptions(concurrency=40, retries=0))
    await target.close()
    assert [asked.error for asked in done] == [None] * 40


def test_a_function_that_does_not_say_what_it_takes_is_refused() -> None:
    with pytest.raises(TargetUsageError, match="wrap it"):
        open_target("builtins:dict")


def test_a_number_names_a_document_too() -> None:
    assert parse_response([7, {"id": 8, "source_id": "db"}], 1.0).slugs == ["7", "8"]
    with pytest.raises(TargetError, match="no slug or id"):
        parse_response([True], 1.0)


def test_a_misspelt_placeholder_of_an_address_is_refused() -> None:
    with pytest.raises(TargetUsageError, match=r"\{qurey\} in the address is not .*did you mean query"):
        open_target("http://127.0.0.1/search?q={qurey}")


async def test_a_redirect_says_so() -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/other")

    async with server(elsewhere) as url:
        with pytest.raises(TargetError, match="HTTP 307: redirects are not followed"):
            await ask_http(url)
