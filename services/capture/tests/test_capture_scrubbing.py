"""`capture.scrub = "producer"`: raw text leaves the process in no way, and nobody waits for the scrubbing."""

import logging
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_capture import Capture, SettingsError, scrubbing
from assay_schema.scrubbing import Passed
from assay_schema.settings import Settings
from tests.support.ports import free_port
from tests.support.redis import RedisServer

WHO = "ada.planted@example.com"
KEY = "AKIA" + "QYLPMN5HFIQR7XYA"
GONE = "[REDACTED]"


class Stand:
    """A scrubber that does as it is told."""

    def __init__(self, scrub: Callable[[bytes], Passed]) -> None:
        self.scrub = scrub

    def credential_in(self, _: str) -> str:
        return ""


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[bytes], Passed]], None]:
    def use(scrub: Callable[[bytes], Passed]) -> None:
        monkeypatch.setattr("assay_capture.capture.load_scrubber", lambda _: Stand(scrub))

    return use


def on_disk(directory: Path, text: str) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def settings(**sections: Any) -> Settings:
    capture = {"scrub": "producer"} | sections.pop("capture", {})
    return Settings.model_validate({"capture": capture} | sections)


@pytest.fixture
def plain_server(tmp_path: Path) -> Iterator[RedisServer]:
    """Uncompressed, so that what is in a file can be found there."""
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis", "--rdbcompression", "no").start()
    yield server
    server.stop()


@pytest.mark.parametrize(("scrub", "raw"), [("producer", False), ("service", True)])
def test_raw_text_is_in_no_key_of_redis_nor_in_its_append_only_file(
    scrub: str, raw: bool, make_capture: Any, plain_server: RedisServer, retrieve: Any, tmp_path: Path
) -> None:
    """With `service`, as it is by default, the same look finds it: that is the proof that the look sees."""
    capture: Capture = make_capture(plain_server.url, scrub=scrub)
    retrieve(capture, f"mail {WHO}", params={"to": [WHO]})
    contexts = [{"id": "1", "text": WHO, "unknown": WHO}]
    capture.answer(
        query=WHO, answer=WHO, model="m", latency_ms=1, contexts=contexts, citations=[{"context_id": "1", "claim": WHO}]
    )
    retrieve(capture, WHO, latency_ms=WHO, occurred_at=WHO)  # breaks the contract in two fields
    assert capture.flush(60)
    with plain_server.client() as client:
        dumped = b"".join(client.dump(key) or b"" for key in client.scan_iter())
        client.save()
    assert list((tmp_path / "redis").rglob("*.aof")), "there is an append-only file to look at"
    files = {path.suffix for path in on_disk(tmp_path / "redis", WHO)}
    assert (WHO.encode() in dumped, files) == (raw, {".aof", ".rdb"} if raw else set())
    assert (f"mail {GONE}".encode() in dumped) is not raw
    assert {".aof", ".rdb"} <= {path.suffix for path in on_disk(tmp_path / "redis", GONE if not raw else WHO)}


@pytest.mark.parametrize(("scrub", "raw"), [("producer", False), ("service", True)])
def test_raw_text_is_in_no_file_of_the_spool(
    scrub: str, raw: bool, make_capture: Any, retrieve: Any, spool_dir: Path
) -> None:
    capture: Capture = make_capture(f"redis://127.0.0.1:{free_port()}/0", scrub=scrub)
    for number in range(50):
        retrieve(capture, f"{number} {WHO}")
    assert capture.flush(60)
    assert capture.stats().spooled == 50
    assert bool(on_disk(spool_dir, WHO)) is raw
    assert bool(on_disk(spool_dir, GONE)) is not raw
    assert capture.stats().scrubbed == ({} if raw else {"email": 50})


def test_what_a_raw_spool_still_holds_is_scrubbed_before_it_is_sent(
    make_capture: Any, retrieve: Any, spool_dir: Path, redis_server: RedisServer, arrived: Any, eventually: Any
) -> None:
    redis_server.kill()
    raw: Capture = make_capture(redis_server.url)
    for number in range(20):
        retrieve(raw, f"{number} {WHO}", retrieved_slugs=[KEY] if number == 7 else ["a"])
    raw.close(0)
    assert on_disk(spool_dir, WHO)
    redis_server.start()
    capture: Capture = make_capture(redis_server.url, scrub="producer")
    retrieve(capture, "last")
    eventually(lambda: len(arrived(redis_server)) == 20, lambda: len(arrived(redis_server)))
    queries = [event["payload"]["query"] for event in arrived(redis_server)]
    assert sorted(queries) == sorted([f"{number} {GONE}" for number in range(20) if number != 7] + ["last"])
    eventually(lambda: not on_disk(spool_dir, WHO), lambda: on_disk(spool_dir, WHO))
    stats = capture.stats()
    assert stats.dropped == {"credential_in_name": 1}
    assert stats.captured == stats.published + stats.spooled + sum(stats.dropped.values()) + stats.queue_entries


def test_what_arrives_is_what_was_captured_but_for_the_findings(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    plain: Capture = make_capture(redis_server.url, redis={"shards": 1})
    scrubbed: Capture = make_capture(redis_server.url, scrub="producer")
    fields = {
        "source_ids": ["s"], "detail": "low", "retrieved_scores": [0.5], "embedding_model": "e", "params": {"a": [1, None, {"b": True}]},
        "occurred_at": "2026-01-02T03:04:05.678901Z", "job_id": 7, "expand_enabled": True,
    }  # fmt: skip
    for capture in (plain, scrubbed):
        retrieve(capture, "boots", **fields)
        assert capture.flush(60)
    first, second = arrived(redis_server)
    assert first.pop("event_id") != second.pop("event_id")
    assert first == second


def test_events_arrive_in_order_and_none_twice_from_many_threads(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url, scrub="producer", batch_entries=7)

    def work(name: str) -> None:
        for number in range(300):
            retrieve(capture, f"{name}-{number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capture.flush(60)
    queries = [event["payload"]["query"] for event in arrived(redis_server)]
    for name in "abcd":
        assert [query for query in queries if query.startswith(name)] == [f"{name}-{number}" for number in range(300)]
    assert len(queries) == 1200
    stats = capture.stats()
    assert (stats.captured, stats.published + stats.spooled, stats.queue_entries, stats.queue_bytes) == (
        1200,
        1200,
        0,
        0,
    )


def test_an_event_that_breaks_the_contract_is_sent_scrubbed_for_its_failure_row(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url, scrub="producer")
    event_id = retrieve(capture, "q", retrieved_slugs=WHO, params=[WHO])
    assert capture.flush(60)
    [event] = arrived(redis_server)
    assert (event["event_id"], event["payload"]["retrieved_slugs"], event["payload"]["params"]) == (
        event_id,
        GONE,
        [GONE],
    )


def test_an_event_that_cannot_be_scrubbed_is_dropped_and_counted_and_the_next_is_sent(
    make_capture: Any,
    redis_server: RedisServer,
    retrieve: Any,
    arrived: Any,
    stand: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def scrub(entry: bytes) -> Passed:
        if WHO.encode() in entry:
            raise ValueError(f"cannot read {entry!r}")
        return Passed(entry, "", {})

    stand(scrub)
    capture: Capture = make_capture(redis_server.url, scrub="producer")
    with caplog.at_level(logging.DEBUG):
        for query in ("a", WHO, "b", WHO):
            retrieve(capture, query)
        assert capture.flush(60)
        capture.close()
    assert [event["payload"]["query"] for event in arrived(redis_server)] == ["a", "b"]
    assert capture.stats().dropped == {"scrub_failed": 2}
    assert "could not be scrubbed (ValueError)" in caplog.text
    assert WHO not in caplog.text


def test_a_credential_in_a_name_and_what_the_policy_refuses_do_not_leave_the_process(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any, tmp_path: Path, spool_dir: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("scrub_keys = ['customer']\n[families]\nphone = 'refuse'\nemail = 'label'\n")
    capture = Capture(
        settings(
            redis={"url": redis_server.url},
            capture={"spool_dir": spool_dir, "flush_interval_ms": 5},
            scrubber={"policy_file": policy},
        ),
        service="tests",
        enabled=True,
    )
    retrieve(capture, f"to {WHO}", params={"Customer": {"id": 1}})
    retrieve(capture, "555-123-4567")
    retrieve(capture, "q", embedding_model=KEY)
    assert capture.flush(60)
    [event] = arrived(redis_server)
    assert (event["payload"]["query"], event["payload"]["params"]) == ("to [EMAIL]", {"Customer": GONE})
    stats = capture.stats()
    assert (stats.dropped, stats.scrubbed) == (
        {"pii_refused": 1, "credential_in_name": 1},
        {"email": 1, "scrub_key": 1},
    )
    capture.close()


@pytest.mark.parametrize("name", ["service", "project"])
def test_a_credential_for_a_name_is_refused_at_construction_without_repeating_it(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"capture.{name} .*contains a credential \(api_key\)") as error:
        Capture(settings(capture={name: KEY}), enabled=True)
    assert KEY not in str(error.value)
    assert Capture(settings(capture={name: KEY, "scrub": "service"}), enabled=False)


def test_without_the_extra_the_start_is_refused_and_the_extra_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    on = {"ASSAY_CAPTURE": "1", "ASSAY_CAPTURE_SCRUB": "producer"}
    with pytest.raises(SettingsError, match=r"pip install \./shared/schema .* '\./services/capture\[scrub\]'"):
        Capture.from_env(service="s", environment=on)
    assert Capture.from_env(service="s", environment=on | {"ASSAY_CAPTURE": "0"}).enabled is False
    with pytest.raises(SettingsError, match=r"capture\.scrub"):
        Capture.from_env(service="s", environment=on | {"ASSAY_CAPTURE_SCRUB": "elsewhere"})


def test_a_scrubber_whose_libraries_are_missing_names_the_extra_and_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        name = "x"

        def load(self) -> None:
            raise ModuleNotFoundError("No module named 're2'", name="re2")

    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Broken()])
    with pytest.raises(SettingsError, match=r"re2 is missing.*pip install .*\./services/capture\[scrub\]"):
        scrubbing.load_scrubber(settings())


def test_a_policy_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    with pytest.raises(SettingsError, match=r"scrubber.policy_file .*policy.toml: No such file"):
        Capture(settings(scrubber={"policy_file": policy}), enabled=True)
    policy.write_text("scrub_keys = 1")
    with pytest.raises(SettingsError, match="scrub_keys must be a list"):
        Capture(settings(scrubber={"policy_file": policy}), enabled=True)


def test_a_caller_does_not_wait_for_the_scrubbing_and_the_end_drops_what_was_not_scrubbed(
    make_capture: Any,
    redis_server: RedisServer,
    retrieve: Any,
    arrived: Any,
    stand: Any,
    eventually: Any,
    spool_dir: Path,
) -> None:
    entered, go = threading.Event(), threading.Event()

    def scrub(entry: bytes) -> Passed:
        entered.set()
        go.wait(120)
        return Passed(entry, "", {})

    stand(scrub)
    capture: Capture = make_capture(redis_server.url, scrub="producer")
    for number in range(5):
        retrieve(capture, f"{number} {WHO}")  # returns although the scrubber stands still
    assert entered.wait(60)
    assert capture.flush(0) is False
    capture.close(0)
    assert capture.stats().dropped == {"exit_deadline": 4}
    go.set()
    eventually(lambda: capture.stats().dropped == {"exit_deadline": 5}, capture.stats)
    assert arrived(redis_server) == []
    assert on_disk(spool_dir, WHO) == []
    assert (capture.stats().queue_entries, capture.stats().queue_bytes) == (0, 0)


def test_without_threads_the_rest_is_scrubbed_at_the_end(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, spool_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("assay_capture.scrubbing.start_thread", none_left)
    capture: Capture = make_capture(redis_server.url, scrub="producer")
    retrieve(capture, WHO)
    capture.close(60)
    assert (capture.stats().spooled, on_disk(spool_dir, WHO)) == (1, [])
    assert on_disk(spool_dir, GONE)


def _capture_in_child(capture: Capture, retrieve: Callable[..., str], number: int) -> None:
    retrieve(capture, f"child {number} {WHO}")
    os._exit(0 if capture.flush(120) else 3)


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_children_forked_while_an_event_is_scrubbed_scrub_their_own(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url, scrub="producer", queue_entries=100_000)
    context = multiprocessing.get_context("fork")
    text = "a long text of plain words without any finding in it, read again and again " * 200
    children = []
    for number in range(8):
        for _ in range(20):
            retrieve(capture, text)
        child = context.Process(target=_capture_in_child, args=(capture, retrieve, number))
        child.start()
        children.append(child)
    for child in children:
        child.join(180)
    assert [child.exitcode for child in children] == [0] * 8
    assert capture.flush(120)
    queries = [event["payload"]["query"] for event in arrived(redis_server)]
    assert sorted(query for query in queries if query != text) == [f"child {number} {GONE}" for number in range(8)]
    assert queries.count(text) == 160


def test_nobody_loads_the_scrubber_who_does_not_ask_for_it() -> None:
    code = (
        "import sys; from assay_capture import Capture; from assay_schema.settings import Settings; "
        "Capture(Settings(), service='s', enabled=True); "
        "print([m for m in ('re2', 'assay_scrubber') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_scrubbing_in_the_producer_loads_nothing_of_a_service() -> None:
    code = (
        "import sys; import assay_scrubber.producer; "
        "print([m for m in ('assay_runtime', 'faststream', 'prometheus_client', 'redis', 'starlette') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_an_entry_is_changed_in_no_way_by_a_second_pass() -> None:
    scrubber = scrubbing.load_scrubber(settings())
    event = {
        "schema_version": 1, "event_id": "01a20000-0000-7000-8000-000000000000", "kind": "feedback", "project": "p", "service": "s",
        "occurred_at": "2026-11-21T00:00:00Z", "traceparent": None,
        "payload": {"target_event_id": "01a20000-0000-7000-8000-000000000000", "verdict": "positive", "text": WHO, "user_hash": None},
    }  # fmt: skip
    once = scrubber.scrub(orjson.dumps(event))
    assert once.entry is not None
    assert scrubber.scrub(once.entry) == Passed(once.entry, "", {})
