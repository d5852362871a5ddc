"""A service's process: how it starts, waits, refuses and stops."""

import contextlib
import os
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from assay_operations.doctor.probes import memory_of
from assay_runtime.memory import BOUND_BYTES
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, FIELD, scrubbed_low_watermark_key
from tests.support.health import said
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.replicated_redis import until


@contextlib.contextmanager
def started(**settings: str) -> Iterator["subprocess.Popen[str]"]:
    """A scrubber's process, gone afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")} | settings
    command = [sys.executable, "-m", "assay_scrubber"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def stopped(process: "subprocess.Popen[str]") -> str:
    """What it said by its clean end after SIGTERM."""
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    return said


def refusal(**settings: str) -> str:
    """What a process that must not start says."""
    with started(**settings) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert "Traceback" not in said
    return said


def until_status(port: int, path: str, wanted: int) -> None:
    until(lambda: said(port, path)[0] == wanted, f"{path} answers {wanted}")


class OldRedis(socketserver.StreamRequestHandler):
    """Answers like a Redis of version 6.2, over a real socket."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                self.rfile.readline()
                words.append(self.rfile.readline().strip().upper())
            text = b"redis_version:6.2.21\r\n"
            self.wfile.write(b"$%d\r\n%s\r\n" % (len(text), text) if words[0] == b"INFO" else b"+OK\r\n")


@pytest.fixture
def old_redis() -> Iterator[str]:
    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), OldRedis) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        server.shutdown()


def test_it_waits_for_redis_says_so_and_becomes_ready_when_redis_comes(redis_server: RedisServer) -> None:
    redis_server.kill()
    port = free_port()
    with started(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(port)) as process:
        until_status(port, "/healthz", 200)
        assert said(port, "/readyz")[0] == 503
        redis_server.start()
        until_status(port, "/readyz", 200)
        assert said(port, "/metrics")[0] == 200
        stopped(process)


def test_it_says_how_much_memory_it_has_and_may_have(redis_server: RedisServer) -> None:
    port = free_port()
    with started(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(port)):
        until_status(port, "/readyz", 200)
        found = memory_of("127.0.0.1", port)
        assert found is not None
        assert 20 << 20 < found.held <= found.peak < found.bound == BOUND_BYTES
    with pytest.raises(OSError, match="refused"):
        memory_of("127.0.0.1", free_port())


def test_counts_that_redis_does_not_confirm_are_not_shown(redis_server: RedisServer) -> None:
    port = free_port()
    shown = ("lag_entries", "pending_entries", "backlog_bytes", "dead_letters", "dead_bytes")

    def counts() -> list[str]:
        lines = said(port, "/metrics")[1].splitlines()
        return [line.rpartition(" ")[2] for name in shown for line in lines if line.startswith(f"assay_{name}{{")]

    with started(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(port)):
        until(lambda: len(counts()) > len(shown) and set(counts()) == {"0.0"}, "it counts")
        there = len(counts())
        redis_server.kill(signal.SIGSTOP)
        until(lambda: counts() == ["NaN"] * there, "it does not know")
        redis_server.kill(signal.SIGCONT)
        until(lambda: counts()[:2] == ["0.0", "0.0"], "it counts again")


def test_it_stops_cleanly_while_it_still_waits_for_redis() -> None:
    port = free_port()
    with started(ASSAY_REDIS_URL=f"redis://127.0.0.1:{free_port()}/0", ASSAY_SCRUBBER_PORT=str(port)) as process:
        until_status(port, "/healthz", 200)
        stopped(process)


def test_a_wrong_password_is_refused_at_once_and_never_shown(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.acl_setuser("scrubber", enabled=True, passwords=["+right"], categories=["+@all"], keys=["*"])
    url = redis_server.url.replace("redis://", "redis://scrubber:letmein@")
    said = refusal(ASSAY_REDIS_URL=url, ASSAY_SCRUBBER_PORT=str(free_port()))
    assert "WRONGPASS" in said or "invalid username-password" in said
    assert "redis.password_file" in said, "it names what to mend"
    assert "letmein" not in said


def test_an_old_redis_is_refused_with_what_is_needed(old_redis: str) -> None:
    said = refusal(ASSAY_REDIS_URL=old_redis, ASSAY_SCRUBBER_PORT=str(free_port()))
    assert "6.2.21" in said
    assert "7.0 or newer" in said
    assert "ASSAY_REDIS_URL" in said


def test_a_redis_that_evicts_is_refused_and_the_setting_named(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    said = refusal(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(free_port()))
    assert "maxmemory-policy is allkeys-lru; set maxmemory-policy noeviction" in said


def test_a_redis_that_begins_to_evict_makes_a_running_service_not_ready(redis_server: RedisServer) -> None:
    port = free_port()
    with (
        redis_server.client() as client,
        started(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(port)) as process,
    ):
        until_status(port, "/readyz", 200)
        client.config_set("maxmemory-policy", "allkeys-lru")
        until_status(port, "/readyz", 503)
        assert "maxmemory-policy is allkeys-lru" in said(port, "/readyz")[1]
        for n in range(10):
            client.set(f"ballast-{n}", b"x" * 100_000)
        client.config_set("maxmemory", client.info("memory")["used_memory"] - 500_000)
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 0)
        until_status(port, "/readyz", 200)
        until(lambda: "evicted_keys" in said(port, "/readyz")[1], "lost keys are named")
        stopped(process)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_a_scrubber_that_restarts_above_the_mark_passes_nothing_on(
    redis_server: RedisServer, how: signal.Signals
) -> None:
    with redis_server.client() as client:
        client.xgroup_create(EVENTS.key(), "writer", id="0", mkstream=True)
        for _ in range(60):
            client.xadd(EVENTS.key(), {FIELD: b"{}"})
        client.set(scrubbed_low_watermark_key(), 1)  # the scrubber has passed on what no writer has stored
        for _ in range(2_000):
            client.xadd(CAPTURE.key(), {FIELD: b"no event"})
        for _ in range(3):
            port = free_port()
            settings = {
                "ASSAY_REDIS_URL": redis_server.url,
                "ASSAY_SCRUBBER_PORT": str(port),
                "ASSAY_DELIVERY_CONSUMER": "one",
                "ASSAY_DELIVERY_HIGH_WATER_ENTRIES": "50",
            }
            with started(**settings) as process:
                until(lambda port=port: "high_water_entries" in said(port, "/readyz")[1], "it is held back")
                process.send_signal(how)
                process.wait(60)
        assert (client.xlen(CAPTURE.key()), client.xlen(FAILURES.key())) == (2_000, 0)


def test_a_process_that_stops_leaves_its_group(redis_server: RedisServer) -> None:
    port = free_port()
    with (
        redis_server.client() as client,
        started(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(port)) as process,
    ):
        client.set(scrubbed_low_watermark_key(), 1)
        client.xadd(CAPTURE.key(), {FIELD: b"no event"})
        until(lambda: client.xlen(FAILURES.key()), "it reads")
        assert len(client.xinfo_consumers(CAPTURE.key(), "scrubber")) == 1
        stopped(process)
        assert client.xinfo_consumers(CAPTURE.key(), "scrubber") == []


def test_an_occupied_port_is_refused_naming_the_setting(redis_server: RedisServer) -> None:
    said = refusal(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(redis_server.port))
    assert "ASSAY_SCRUBBER_PORT" in said


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"ASSAY_REDIS_URL": "redis://:port"}, "ASSAY_REDIS_URL"),
        ({"ASSAY_REDIS_URL": "http://127.0.0.1"}, "ASSAY_REDIS_URL"),
        ({"ASSAY_SCRUBER_PORT": "1"}, "did you mean ASSAY_SCRUBBER_PORT"),
        ({"ASSAY_CAPTURE_SCRUB_PII": "flase"}, "must be exactly true or false"),
        ({"ASSAY_CONFIG": "/nowhere/assay.toml"}, "ASSAY_CONFIG"),
    ],
)
def test_a_bad_setting_is_refused_by_name(settings: dict[str, str], wanted: str) -> None:
    assert wanted in refusal(**settings)
