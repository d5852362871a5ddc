"""Events to the gateway over HTTP: what becomes of them for each answer, with real sockets."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_capture import Capture, SettingsError
from assay_capture.http_transport import RETRY_AFTER_MAX_S
from assay_schema.settings import Settings, settings_from
from tests.support.ports import free_port
from tests.support.scripted_gateway import Reply, Request, ScriptedServer, verdict

SECRET = "s3cr3t" * 6
KEY = f"assay_ingest_AbCdEfGhIj_{SECRET}"
Script = Callable[[Request, int], Reply]
Serve = Callable[..., ScriptedServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that answers as the script says; accepts everything by default."""
    running: list[ScriptedServer] = []

    def start(script: Script = lambda _request, _number: Reply(), port: int = 0) -> ScriptedServer:
        running.append(ScriptedServer(script, port).start())
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def make(spool_dir: Path) -> Iterator[Callable[..., Capture]]:
    """A capture that sends to a port of loopback."""
    made: list[Capture] = []

    def make_one(port: int, **settings: Any) -> Capture:
        section = {"url": f"http://127.0.0.1:{port}", "key": KEY, "timeout_s": 60.0, "spool_dir": spool_dir}
        section |= {"flush_interval_ms": 5, **settings}
        made.append(Capture(Settings.model_validate({"capture": section}), service="tests", enabled=True))
        return made[-1]

    yield make_one
    for capture in made:
        capture.close(0)


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["event_id"] for event in events]


def assert_each_is_counted_once(capture: Capture) -> None:
    stats = capture.stats()
    lost = sum(stats.dropped.values())
    assert stats.captured == stats.published + stats.spooled + lost + stats.queue_entries, stats


def test_events_arrive_in_order_over_one_connection_with_the_key_and_without_a_project(
    make: Any, serve: Serve, retrieve: Any
) -> None:
    server = serve()
    capture = make(server.port)
    sent = []
    for _ in range(5):
        sent += [retrieve(capture) for _ in range(20)]
        assert capture.flush(60)
    assert ids(server.accepted) == sent
    assert {request.path for request in server.requests} == {"/v1/events"}
    assert len({request.client for request in server.requests}) == 1
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert (headers["content-type"], headers["content-encoding"]) == ("application/x-ndjson", "gzip")
    assert all("project" not in event and event["origin"] == "sdk" for event in server.accepted)
    stats = capture.stats()
    assert (stats.transport, stats.gateway, stats.redis, stats.published) == ("http", "up", "idle", 100)


def test_a_project_that_is_set_is_sent(make: Any, serve: Serve, retrieve: Any) -> None:
    server = serve()
    capture = make(server.port, project="shop")
    retrieve(capture)
    retrieve(capture, project="docs")
    assert capture.flush(60)
    assert [event["project"] for event in server.accepted] == ["shop", "docs"]


@pytest.mark.parametrize("durability", ["memory", "spool", "fsync"])
@pytest.mark.parametrize("status", [429, 503, 500, 502, 408, 401, 403, 404, 405, 301, 307, 418])
def test_events_that_are_not_taken_wait_and_arrive_once_in_order(
    status: int, durability: str, make: Any, serve: Serve, retrieve: Any, eventually: Any
) -> None:
    refusing = [True]
    server = serve(lambda _request, _number: Reply(status, b"x", {"Location": "/other"}) if refusing[0] else Reply())
    capture = make(server.port, durability=durability)
    sent = [retrieve(capture) for _ in range(50)]
    state = {429: "busy", 503: "busy", 401: "refused", 403: "refused"}.get(status, "down")
    eventually(lambda: capture.stats().gateway == state, capture.stats)
    sent += [retrieve(capture) for _ in range(50)]
    assert {request.path for request in server.requests} == {"/v1/events"}, "a redirect is not followed"
    refusing[0] = False
    eventually(lambda: len(server.accepted) >= 100, capture.stats)
    assert capture.flush(60)
    assert ids(server.accepted) == sent
    assert (capture.stats().dropped, capture.stats().rejected) == ({}, {})
    assert_each_is_counted_once(capture)


@pytest.mark.parametrize("end", ["close", "half", "silent"])
def test_after_a_lost_answer_the_same_events_are_sent_again(
    end: str, make: Any, serve: Serve, retrieve: Any, eventually: Any
) -> None:
    server = serve(lambda _request, number: Reply(end=end) if number == 0 else Reply())
    capture = make(server.port, timeout_s=1.0)
    sent = [retrieve(capture) for _ in range(50)]
    eventually(lambda: len(server.accepted) >= 50, capture.stats)
    assert capture.flush(60)
    assert ids(server.requests[0].events) == ids(server.requests[1].events)
    assert ids(server.accepted) == sent
    assert_each_is_counted_once(capture)


@pytest.mark.parametrize("body", [b"", b"<html>log in</html>", b"[]", b"{}", verdict(3), b'{"accepted":"50"}', b"\xff"])
def test_a_200_that_is_not_about_the_events_sent_is_not_taken_for_one(
    body: bytes, make: Any, serve: Serve, retrieve: Any, eventually: Any
) -> None:
    server = serve(lambda _request, number: Reply(body=body) if number == 0 else Reply())
    capture = make(server.port, batch_entries=50, flush_interval_ms=60_000)
    sent = [retrieve(capture) for _ in range(50)]
    eventually(lambda: len(server.accepted) >= 50, capture.stats)
    assert ids(server.accepted) == sent


def test_rejected_events_are_counted_by_rule_and_never_sent_again(
    make: Any, serve: Serve, retrieve: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="assay_capture")
    rules = ("string_too_long", "literal_error", "literal_error", "Not A Rule: secret")

    def script(request: Request, number: int) -> Reply:
        count = len(request.events)
        return Reply(200 if number else 400, verdict(count - len(rules) - 2, rules, 2))

    server = serve(script)
    capture = make(server.port, batch_entries=10, flush_interval_ms=60_000)
    for _ in range(2):
        for _ in range(10):
            retrieve(capture)
        assert capture.flush(60)
    stats = capture.stats()
    assert stats.rejected == {"string_too_long": 2, "literal_error": 4, "unnamed": 2, "not_listed": 4}
    assert (stats.published, stats.dropped, len(server.requests)) == (8, {"rejected": 12}, 2)
    assert_each_is_counted_once(capture)
    assert "literal_error" in caplog.text
    assert "secret" not in caplog.text


def test_the_log_names_the_field_of_a_rejected_event(
    make: Any, serve: Serve, retrieve: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="assay_capture")
    detail = "payload.tool_name: literal_error, expected 'query' or 'search'"
    server = serve(lambda _request, _number: Reply(400, verdict(0, ("literal_error",), detail=detail)))
    capture = make(server.port)
    retrieve(capture)
    assert capture.flush(60)
    assert f"the gateway rejects events ({detail}): " in caplog.text


def test_events_from_the_spool_that_are_rejected_count_as_spooled_and_leave_it(
    make: Any, serve: Serve, retrieve: Any, eventually: Any
) -> None:
    port = free_port()
    capture = make(port)
    for _ in range(10):
        retrieve(capture)
    eventually(lambda: capture.stats().spooled == 10, capture.stats)
    serve(lambda request, _number: Reply(body=verdict(len(request.events) - 1, ("literal_error",))), port)
    eventually(lambda: capture.stats().gateway == "up" and capture.stats().spool_bytes == 0, capture.stats)
    stats = capture.stats()
    assert stats.replayed + sum(stats.rejected.values()) == 10
    assert stats.dropped == {}
    assert_each_is_counted_once(capture)


def test_a_body_that_is_too_large_is_halved_and_one_event_that_is_too_large_is_dropped_and_counted(
    make: Any, serve: Serve, retrieve: Any
) -> None:
    server = serve(lambda request, _number: Reply(413, b"{}") if len(request.events) > 7 or huge(request) else Reply())
    capture = make(server.port, batch_entries=101, flush_interval_ms=60_000)
    sent = [retrieve(capture, "x" * 90_000 if number == 50 else "why") for number in range(101)]
    assert capture.flush(60)
    assert ids(server.accepted) == sent[:50] + sent[51:]
    assert capture.stats().dropped == {"too_large": 1}
    assert capture.stats().rejected == {"too_large": 1}
    assert_each_is_counted_once(capture)
    before = len(server.requests)
    retrieve(capture)
    assert capture.flush(60)
    assert len(server.requests) == before + 1, "the smaller size is remembered"


def huge(request: Request) -> bool:
    return any(len(event["payload"]["query"]) > 50_000 for event in request.events)


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_that_the_gateway_asks_for_is_kept_and_new_events_go_to_the_spool(
    status: int, make: Any, serve: Serve, retrieve: Any, eventually: Any
) -> None:
    times: list[float] = []

    def script(_request: Request, number: int) -> Reply:
        times.append(time.monotonic())
        return Reply() if number else Reply(status, b"{}", {"Retry-After": "2"})

    server = serve(script)
    capture = make(server.port)
    sent = [retrieve(capture)]
    eventually(lambda: capture.stats().gateway == "busy", capture.stats)
    sent.append(retrieve(capture))
    eventually(lambda: capture.stats().spooled == 2, capture.stats)
    eventually(lambda: len(server.accepted) == 2, capture.stats)
    assert times[1] - times[0] >= 2
    assert ids(server.accepted) == sent


@pytest.mark.parametrize(
    ("text", "most"), [("86400", RETRY_AFTER_MAX_S), ("Fri, 31 Dec 2100 23:59:59 GMT", RETRY_AFTER_MAX_S), ("soon", None), ("-3", None)]
)  # fmt: skip
def test_a_retry_after_of_a_day_or_without_sense_does_not_hold_events_back_for_ever(
    text: str, most: float | None, serve: Serve
) -> None:
    from assay_capture.http_transport import HttpTransport

    server = serve(lambda _request, _number: Reply(503, b"{}", {"Retry-After": text}))
    section = {"url": f"http://127.0.0.1:{server.port}", "key": KEY}
    link = HttpTransport(Settings.model_validate({"capture": section}).capture)
    outcome = link.send([(0, b"{}")])
    link.close()
    assert (outcome.problem, outcome.retry_after_s) == ("busy", most)


def test_a_refused_key_is_logged_once_by_its_id_and_its_spool_is_kept(
    make: Any, serve: Serve, retrieve: Any, eventually: Any, caplog: pytest.LogCaptureFixture, spool_dir: Path
) -> None:
    caplog.set_level(logging.DEBUG, logger="assay_capture")
    server = serve(lambda _request, _number: Reply(401, b"{}"))
    capture = make(server.port)
    sent = [retrieve(capture) for _ in range(5)]
    eventually(lambda: len(server.requests) >= 4 and capture.stats().spooled == 5, capture.stats)
    capture.close(0)
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "AbCdEfGhIj" in caplog.text
    assert SECRET not in caplog.text
    assert SECRET not in str([path.read_bytes() for path in spool_dir.rglob("*.jsonl")])
    server.stop()
    later = serve(port=server.port)
    sent.append(retrieve(make(later.port)))
    eventually(lambda: len(later.accepted) == 6, lambda: later.accepted)
    assert sorted(ids(later.accepted)) == sorted(sent)


def test_a_key_file_is_read_at_each_request(
    make: Any, serve: Serve, retrieve: Any, eventually: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve()
    capture = make(server.port, key="", key_file=tmp_path / "key")
    sent = [retrieve(capture)]
    eventually(lambda: capture.stats().gateway == "refused", capture.stats)
    assert f"capture.key_file names {tmp_path / 'key'}: No such file or directory" in caplog.text
    (tmp_path / "key").write_text(f"{KEY}\n")
    eventually(lambda: len(server.accepted) == 1, capture.stats)
    (tmp_path / "key").write_text("assay_ingest_another_key")
    sent.append(retrieve(capture))
    eventually(lambda: len(server.accepted) == 2, capture.stats)
    assert ids(server.accepted) == sent
    assert [request.headers["authorization"] for request in server.requests[-2:]] == [
        f"Bearer {KEY}", "Bearer assay_ingest_another_key",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"url": "assay.example.com", "key": "k"}, "capture.url (or ASSAY_CAPTURE_URL): must look like"),
        ({"url": "ftp://assay.example.com", "key": "k"}, "must look like https://"),
        ({"url": "https://", "key": "k"}, "must look like https://"),
        ({"url": "https://a:99999", "key": "k"}, "must look like https://"),
        ({"url": "https://a/?key=hunter2", "key": "k"}, "must look like https://"),
        ({"url": "https://a\r\nX: y", "key": "k"}, "must look like https://"),
        ({"url": "https://u:hunter2@a", "key": "k"}, "must have no user"),
        ({"url": "https://a"}, "capture.url needs a key"),
    ],
)
def test_an_unusable_address_or_no_key_stops_the_program_at_its_start(section: Any, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Capture(Settings.model_validate({"capture": section}), enabled=True)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "path"),
    [("", "/v1/events"), ("/", "/v1/events"), ("/assay/", "/assay/v1/events"), ("/v1/events", "/v1/events")],
)
def test_the_address_may_have_a_path(url: str, path: str, make: Any, serve: Serve, retrieve: Any) -> None:
    server = serve()
    retrieve(capture := make(server.port, url=f"http://127.0.0.1:{server.port}{url}"))
    assert capture.flush(60)
    assert server.requests[0].path == path


def test_a_file_that_was_only_found_may_not_send_the_key_of_the_environment_elsewhere() -> None:
    environment = {"ASSAY_CAPTURE_KEY": KEY}
    with pytest.raises(SettingsError, match="ASSAY_CAPTURE_KEY is set in the environment"):
        settings_from(environment, '[capture]\nurl = "https://evil.example.com"', implicit=True)


def test_a_proxy_of_the_environment_is_used_but_not_for_loopback(
    make: Any, serve: Serve, retrieve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, direct = serve(), serve()
    monkeypatch.setenv("http_proxy", f"http://user:p%40ss@127.0.0.1:{proxy.port}")
    retrieve(capture := make(direct.port))
    assert capture.flush(60)
    assert (len(direct.requests), len(proxy.requests)) == (1, 0)
    retrieve(capture := make(1, url="http://assay.invalid:8080/in"))
    assert capture.flush(60)
    (request,) = proxy.requests
    assert request.path == "http://assay.invalid:8080/in/v1/events"
    assert request.headers["host"] == "assay.invalid:8080"
    assert request.headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("no_proxy", "assay.invalid")
    retrieve(capture := make(1, url="http://assay.invalid:8080"))
    assert capture.flush(60)
    assert len(proxy.requests) == 1, "an address that the proxy is not for"


def test_a_program_that_ends_sends_what_it_has_and_its_forked_workers_send_theirs(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    program = (
        "import os\n"
        "from assay_capture import Capture\n"
        "capture = Capture.from_env(service='workers')\n"
        "def one(query):\n"
        "    capture.retrieval(tool_name='query', query=query, retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1)\n"
        "one('parent')\n"
        "assert capture.flush(60)\n"
        "for number in range(3):\n"
        "    if os.fork() == 0:\n"
        "        one(f'child {number}')\n"
        "        raise SystemExit\n"
        "for _ in range(3):\n"
        "    assert os.wait()[1] == 0\n"
        "one('parent again')\n"
    )
    environment = {**os.environ, "ASSAY_CAPTURE": "1", "ASSAY_CAPTURE_URL": f"http://127.0.0.1:{server.port}",
                   "ASSAY_CAPTURE_KEY": KEY, "ASSAY_CAPTURE_SPOOL_DIR": str(tmp_path / "spool")}  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, cwd=tmp_path, timeout=120
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert sorted(event["payload"]["query"] for event in server.accepted) == [
        "child 0", "child 1", "child 2", "parent", "parent again",
    ]  # fmt: skip
    assert {event["service"] for event in server.accepted} == {"workers"}


def test_the_sdk_loads_no_http_client_and_no_redis_until_it_needs_one(tmp_path: Path) -> None:
    program = (
        "import sys, assay_capture\n"
        "print([name for name in ('http.client', 'urllib.request', 'ssl', 'redis', 'httpx') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=tmp_path, timeout=120, check=True)
    assert run.stdout.strip() == b"[]"


async def test_a_coroutine_captures_and_flushes(make: Any, serve: Serve, retrieve: Any) -> None:
    server = serve()
    capture = make(server.port)
    async with capture.retrieving(tool_name="query", query="why") as retrieval:
        retrieval.result(slugs=[], chunk_ids=[], retrieved_ids=["kb#1"])
    assert await capture.aflush(60)
    assert [event["payload"]["retrieved_ids"] for event in server.accepted] == [["kb#1"]]
