"""From the call to Redis: everything once and in order, whatever Redis does in between."""

import logging
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from assay_capture import Capture
from assay_capture.redis_transport import RedisTransport
from assay_schema.settings import RedisSettings
from assay_schema.streams import CAPTURE, shard_of
from tests.support.redis import RedisServer

#: All that the producers' user of Redis may do.
PRODUCER = (
    "reset",
    "on",
    ">secret",
    "resetkeys",
    "%W~assay:*:capture",
    "%R~assay:*:capture",
    "-@all",
    "+xadd",
    "+xlen",
    "+memory|usage",
)


def test_entries_whose_master_dies_before_a_replica_has_them_are_not_taken_for_sent(redis_server: RedisServer) -> None:
    settings = {"url": redis_server.url, "replicas": 1, "command_timeout_s": 60}
    link, entries = RedisTransport(RedisSettings.model_validate(settings)), [(0, b"1"), (0, b"2")]
    with ThreadPoolExecutor(1) as thread, redis_server.client() as client:
        sending = thread.submit(link.send, entries)
        deadline = time.monotonic() + 60
        while client.info("clients")["blocked_clients"] == 0:  # all is answered but `WAIT`
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert client.xlen(CAPTURE.key()) == 2
        redis_server.kill()
        assert sending.result(60).failed == entries
    link.close()
    redis_server.start()


def test_eight_threads_of_ten_thousand_events_arrive_once_and_each_thread_in_order(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url, queue_entries=80_000)
    sent: list[list[str]] = [[] for _ in range(8)]

    def work(ids: list[str], number: int) -> None:
        ids += [retrieve(capture, str(number)) for _ in range(10_000)]

    threads = [threading.Thread(target=work, args=(ids, number)) for number, ids in enumerate(sent)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    capture.close(60)
    events = arrived(redis_server)
    for number, ids in enumerate(sent):
        assert [event["event_id"] for event in events if event["payload"]["query"] == str(number)] == ids
    assert len(events) == len({event["event_id"] for event in events}) == 80_000
    assert capture.stats().dropped == {}


def test_a_full_queue_drops_the_newest_counts_them_and_costs_the_caller_nothing_else(
    make_capture: Any, retrieve: Any
) -> None:
    capture: Capture = make_capture("redis://127.0.0.1:1/0", durability="memory", queue_entries=10)
    for _ in range(25):
        retrieve(capture)
    assert (capture.stats().queue_entries, capture.stats().dropped) == (10, {"queue_full": 15})
    small: Capture = make_capture("redis://127.0.0.1:1/0", durability="memory", queue_bytes=4000)
    for _ in range(5):
        retrieve(small, "x" * 1000)
    assert (small.stats().queue_entries, small.stats().dropped) == (2, {"queue_full": 3})
    assert small.stats().queue_bytes <= 4000


@pytest.mark.parametrize("durability", ["memory", "spool", "fsync"])
def test_events_captured_before_redis_is_up_arrive_in_order_when_it_is(
    durability: str, make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any, eventually: Any
) -> None:
    redis_server.kill()
    capture: Capture = make_capture(redis_server.url, durability=durability)
    ids = [retrieve(capture) for _ in range(1500)]
    eventually(lambda: capture.stats().redis == "down")
    redis_server.start()
    ids += [retrieve(capture) for _ in range(10)]
    eventually(lambda: len(arrived(redis_server)) >= len(ids), capture.stats)
    assert [event["event_id"] for event in arrived(redis_server)] == ids
    assert capture.flush(60)
    stats = capture.stats()
    assert stats.published + stats.replayed == len(ids)
    assert (stats.spooled > 0) is (durability != "memory")
    assert (stats.dropped, stats.queue_entries, stats.spool_bytes, stats.redis) == ({}, 0, 0, "up")


def test_a_redis_that_is_still_loading_is_sent_no_events_and_gets_each_once_in_order_when_it_has_loaded(
    make_capture: Any, tmp_path: Path, retrieve: Any, arrived: Any, eventually: Any
) -> None:
    directory = tmp_path / "slow"
    directory.mkdir()
    server = RedisServer(
        directory, "--key-load-delay", "200"
    ).start()  # microseconds, so it takes long enough to be asked meanwhile
    try:
        with server.client() as client, client.pipeline(transaction=False) as writing:
            for number in range(50_000):
                writing.set(f"key {number}", "value")
            writing.execute()
        server.kill()
        starting = threading.Thread(target=server.start)
        starting.start()
        with server.client() as client:
            eventually(lambda: _loading(client))
            capture: Capture = make_capture(server.url)
            ids = [retrieve(capture) for _ in range(1500)]
            eventually(lambda: _rejected(client, "xlen") >= 1)  # it was asked while it was loading
            client.config_set("key-load-delay", 0)
            starting.join()
            eventually(lambda: len(arrived(server)) >= len(ids), capture.stats)
            assert [event["event_id"] for event in arrived(server)] == ids
            assert _rejected(client, "xadd") == 0
    finally:
        server.stop()


def _rejected(client: "redis.Redis", command: str) -> int:
    return int(client.info("commandstats").get(f"cmdstat_{command}", {}).get("rejected_calls", 0))


def _loading(client: "redis.Redis") -> bool:
    try:
        return bool(client.info("persistence")["loading"])
    except redis.ConnectionError:
        return False


def test_when_redis_is_killed_and_comes_back_nothing_is_lost_and_order_holds(
    make_capture: Any, tmp_path: Path, retrieve: Any, arrived: Any, eventually: Any
) -> None:
    directory = tmp_path / "always"
    directory.mkdir()
    server = RedisServer(directory, "--appendfsync", "always").start()
    try:
        capture: Capture = make_capture(server.url, batch_entries=20)
        ids: list[str] = []
        stop = threading.Event()

        def produce() -> None:
            while not stop.wait(0.001):
                ids.extend(retrieve(capture) for _ in range(5))

        producer = threading.Thread(target=produce)
        producer.start()
        for _ in range(3):
            published = capture.stats().published
            eventually(lambda before=published: capture.stats().published > before + 100, capture.stats)
            server.kill()
            spooled = capture.stats().spooled
            eventually(lambda before=spooled: capture.stats().spooled > before + 100, capture.stats)
            server.start()
        stop.set()
        producer.join()
        eventually(lambda: capture.flush(60) and capture.stats().spool_bytes == 0, capture.stats)
        found = [event["event_id"] for event in arrived(server)]
        once = list(dict.fromkeys(found))  # an entry whose answer was lost is sent again, with the same event_id
        assert once == ids
        assert capture.stats().dropped == {}
    finally:
        server.stop()


@pytest.mark.parametrize("end", ["goes on", "dies"])
def test_a_hung_redis_does_not_hold_up_the_spool_and_loses_nothing_however_it_ends(
    end: str, make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any, eventually: Any
) -> None:
    capture: Capture = make_capture(redis_server.url)
    first = retrieve(capture)
    assert capture.flush(60)
    redis_server.kill(signal.SIGSTOP)
    hung = retrieve(capture)
    eventually(lambda: capture._queue.entries == 1 and len(capture._queue) == 0)
    ids = [retrieve(capture) for _ in range(100)]
    eventually(lambda: capture.stats().spooled == 100, capture.stats)
    assert capture.stats().redis == "up"
    if end == "goes on":
        redis_server.kill(signal.SIGCONT)
    else:
        redis_server.kill(signal.SIGKILL)  # the batch in flight comes back, and goes before those spooled since
        redis_server.start()
    eventually(lambda: len(arrived(redis_server)) == 102, capture.stats)
    assert [event["event_id"] for event in arrived(redis_server)] == [first, hung, *ids]


def test_above_the_high_water_mark_events_wait_in_the_spool_until_redis_has_room(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any, eventually: Any
) -> None:
    with redis_server.client() as client:
        for _ in range(20):
            client.xadd(CAPTURE.key(0), {"data": b"{}"})
        capture: Capture = make_capture(redis_server.url, high_water_entries=10)
        retrieve(capture)
        eventually(lambda: capture.stats().redis == "high_water", capture.stats)
        waiting = [retrieve(capture) for _ in range(5)]
        eventually(lambda: capture.stats().spooled == 5, capture.stats)
        assert client.xlen(CAPTURE.key(0)) == 21
        client.xtrim(CAPTURE.key(0), maxlen=0)
        eventually(lambda: capture.stats().replayed == 5, capture.stats)
    assert [event["event_id"] for event in arrived(redis_server)] == waiting
    assert capture.stats().redis == "up"


def test_the_high_water_mark_counts_memory_too(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, eventually: Any
) -> None:
    with redis_server.client() as client:
        for _ in range(3):
            client.xadd(CAPTURE.key(0), {"data": b"x" * 1_000_000})
        capture: Capture = make_capture(redis_server.url, high_water_bytes=2_000_000)
        retrieve(capture)
        eventually(lambda: capture.stats().redis == "high_water", capture.stats)
        retrieve(capture)
        eventually(lambda: capture.stats().spooled == 1, capture.stats)
        client.xtrim(CAPTURE.key(0), maxlen=0)
        eventually(lambda: capture.stats().replayed == 1, capture.stats)


@pytest.mark.parametrize("reason", ["spool_full", "spool_error"])
def test_when_spool_and_queue_are_full_the_newest_are_dropped_and_all_others_arrive_in_order(
    reason: str,
    make_capture: Any,
    redis_server: RedisServer,
    spool_dir: Path,
    retrieve: Any,
    arrived: Any,
    eventually: Any,
) -> None:
    redis_server.kill()
    if reason == "spool_error":
        spool_dir.write_text("a file is in the way")
    capture: Capture = make_capture(redis_server.url, queue_entries=20, batch_entries=5, spool_bytes=4096)
    ids = []
    for _ in range(10):
        ids += [retrieve(capture) for _ in range(5)]
        eventually(lambda: capture.stats().queue_entries == 0 or capture._queue.full_reason == reason, capture.stats)
    stats = capture.stats()
    assert set(stats.dropped) == {reason}
    assert stats.queue_entries == 20
    assert stats.spool_bytes <= 4096
    assert (stats.spooled > 0) is (reason == "spool_full")
    kept = stats.spooled + stats.queue_entries
    assert kept + stats.dropped[reason] == stats.captured == 50
    redis_server.start()
    eventually(lambda: len(arrived(redis_server)) == kept, capture.stats)
    assert [event["event_id"] for event in arrived(redis_server)] == ids[:kept]


def test_only_the_entries_that_redis_refused_are_sent_again(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any, eventually: Any
) -> None:
    names = ["default", *(f"p{n}" for n in range(20))]
    blocked = shard_of("p1", 2)
    with redis_server.client() as client:
        client.set(CAPTURE.key(blocked), "not a stream")
        capture: Capture = make_capture(redis_server.url, redis={"shards": 2}, flush_interval_ms=200)
        ids = {name: retrieve(capture, project=name) for name in names}
        eventually(lambda: capture.stats().spooled > 0, capture.stats)
        client.delete(CAPTURE.key(blocked))
    eventually(lambda: capture.stats().published + capture.stats().replayed == len(ids), capture.stats)
    for shard in (0, 1):
        expected = [ids[name] for name in names if shard_of(name, 2) == shard]
        assert expected
        assert [event["event_id"] for event in arrived(redis_server, shard)] == expected


def test_a_user_that_may_only_add_and_measure_is_enough_and_cannot_read(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "producer", *PRODUCER)
        capture: Capture = make_capture(redis_server.url.replace("//", "//producer:secret@"))
        ids = [retrieve(capture) for _ in range(3)]
        assert capture.flush(60)
        assert [event["event_id"] for event in arrived(redis_server)] == ids
        assert capture.stats().redis == "up"
        denied = [entry["reason"] for entry in client.acl_log() if b"setinfo" not in str(entry).encode()]
        assert denied == []
        answer = client.execute_command("ACL", "DRYRUN", "producer", "XRANGE", CAPTURE.key(0), "-", "+")
        assert b"no permissions" in answer


@pytest.mark.parametrize("credentials", ["producer:wrong@", "nobody@", "reader:secret@", ""])
def test_wrong_credentials_are_logged_once_with_the_setting_and_events_wait_until_they_are_right(
    credentials: str,
    make_capture: Any,
    redis_server: RedisServer,
    retrieve: Any,
    arrived: Any,
    eventually: Any,
    caplog: pytest.LogCaptureFixture,
    spool_dir: Path,
) -> None:
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "producer", *PRODUCER)
        client.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+xrange")
        client.execute_command("ACL", "SETUSER", "admin", "on", ">secret", "~*", "+@all")
        client.execute_command("ACL", "SETUSER", "default", "off")
        capture: Capture = make_capture(redis_server.url.replace("//", "//" + credentials))
        ids = [retrieve(capture) for _ in range(3)]
        eventually(lambda: capture.stats().spooled == 3, capture.stats)
        assert capture.stats().redis == "refused"
        eventually(lambda: capture._publisher is not None and capture._publisher._attempts > 2)
        errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert len(errors) == 1
        assert "ASSAY_REDIS_URL" in errors[0]
        assert f"events go to the spool in {spool_dir};" in errors[0]
        text = caplog.text.replace(str(spool_dir), "")
        assert "secret" not in text
        assert "wrong" not in text
    capture.close(1)
    right: Capture = make_capture(redis_server.url.replace("//", "//admin:secret@"))
    ids.append(retrieve(right))
    eventually(lambda: right.stats().replayed + right.stats().published == 4, right.stats)
    assert right.stats().replayed >= 3
    with redis.Redis(port=redis_server.port, username="admin", password="secret") as client:
        assert client.xlen(CAPTURE.key(0)) == len(ids)


def test_the_password_may_come_from_a_file_which_is_read_again_at_each_connection(
    make_capture: Any,
    redis_server: RedisServer,
    retrieve: Any,
    tmp_path: Path,
    eventually: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    password = tmp_path / "password"
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "producer", *PRODUCER)
        capture: Capture = make_capture(
            redis_server.url.replace("//", "//producer@"), redis={"password_file": password}
        )
        retrieve(capture)
        eventually(lambda: capture.stats().redis == "refused", capture.stats)
        [missing] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert f"redis.password_file names {password}: No such file or directory" in missing
        assert "check user and password" not in missing
        password.write_text("wrong\n")
        eventually(lambda: "check user and password" in caplog.text, lambda: caplog.text)
        password.write_text("secret\n")
        eventually(lambda: capture.stats().replayed == 1, capture.stats)


def test_a_flush_of_memory_reports_that_it_could_not_and_ends_while_redis_is_still_away(
    make_capture: Any, retrieve: Any
) -> None:
    capture: Capture = make_capture("redis://127.0.0.1:1/0", durability="memory")
    retrieve(capture)
    flushed: list[bool] = []
    waiting = threading.Thread(target=lambda: flushed.append(capture.flush(0.05)), daemon=True)
    waiting.start()
    waiting.join(60)  # Redis never comes: a flush that waits for it would never end
    assert flushed == [False]
    assert capture.stats().queue_entries == 1, "the event is still there to be sent"
    capture.close(0)
    assert capture.stats().dropped == {"exit_deadline": 1}


@pytest.mark.parametrize(("durability", "spooled", "dropped"), [("spool", 3, {}), ("memory", 0, {"exit_deadline": 3})])
def test_without_a_single_thread_to_be_had_events_are_spooled_or_counted_at_the_end(
    durability: str,
    spooled: int,
    dropped: dict[str, int],
    make_capture: Any,
    retrieve: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)  # no system can be made to run out of threads here
    capture: Capture = make_capture("redis://127.0.0.1:1/0", durability=durability)
    for _ in range(3):
        retrieve(capture)
    assert capture.stats().queue_entries == 3
    capture.close()
    stats = capture.stats()
    assert (stats.captured, stats.spooled, stats.dropped, stats.queue_entries) == (3, spooled, dropped, 0)


def test_a_program_that_is_idle_is_left_alone(make_capture: Any, redis_server: RedisServer, retrieve: Any) -> None:
    capture: Capture = make_capture(redis_server.url, durability="memory")
    retrieve(capture)
    assert capture.flush(60)
    assert capture._publisher is not None
    assert capture._publisher._pause() is None


def test_a_burst_that_redis_cannot_follow_goes_to_the_spool_and_arrives_whole(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, eventually: Any
) -> None:
    capture: Capture = make_capture(redis_server.url, queue_entries=2_000)
    for number in range(40_000):
        retrieve(capture, str(number))
    assert capture.stats().dropped == {}
    eventually(lambda: capture.flush(60) and not capture.stats().spool_bytes, capture.stats)
    with redis_server.client() as client:
        assert client.xlen(CAPTURE.key(0)) == 40_000


def test_a_queue_that_nothing_drains_is_no_reason_to_give_way(
    make_capture: Any, retrieve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[None] = []
    monkeypatch.setattr("assay_capture.entry_queue.give_way", lambda: turns.append(None))
    in_memory: Capture = make_capture("redis://127.0.0.1:1/0", durability="memory", queue_entries=10)
    for _ in range(20):
        retrieve(in_memory)
    assert turns == []


def test_the_end_of_an_outage_is_logged_and_one_that_comes_and_goes_is_logged_once(
    make_capture: Any,
    redis_server: RedisServer,
    retrieve: Any,
    eventually: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay_capture.stats.OUTAGE_LOG_S", 3600.0)
    caplog.set_level(logging.INFO, logger="assay_capture")
    capture: Capture = make_capture(redis_server.url)

    def told() -> list[str]:
        return [record.getMessage()[:20] for record in caplog.records if record.getMessage().startswith("Redis ")]

    for _ in range(2):
        redis_server.kill()
        retrieve(capture)
        eventually(lambda: capture.stats().redis == "down", capture.stats)
        redis_server.start()
        eventually(lambda: capture.stats().redis == "up" and not capture.stats().spool_bytes, capture.stats)
    assert told() == ["Redis does not accep", "Redis accepts events"]
