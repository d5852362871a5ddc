"""Programs that gevent has patched, early or late: events arrive, and nothing hangs."""

import os
import signal
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port
from tests.support.redis import RedisServer

pytest.importorskip("gevent")
pytest.importorskip("gunicorn")

APPLICATION = """
from assay_capture import Capture

capture = Capture.from_env(service="web")

def application(environ, start_response):
    event_id = capture.retrieval(
        tool_name="query", query=environ["PATH_INFO"], retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1
    )
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [event_id.encode()]
"""

PATCH = "from gevent import monkey; monkey.patch_all()"
PREAMBLE = """
import sys, time
{first}
from assay_capture import Capture

capture = Capture.from_env(service="program")

def one(query):
    return capture.retrieval(tool_name="query", query=query, retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1)

{then}
import gevent
"""
#: What comes before the import of the SDK, and what comes after it.
ORDERS = {
    "patched first": (PATCH, ""),
    "patched after the import": ("", PATCH),
    "patched after the first event": ("", f"one('before'); assert capture.flush(60)\n{PATCH}"),
}


@pytest.fixture
def environment(redis_server: RedisServer, spool_dir: Path) -> dict[str, str]:
    return {
        **os.environ,
        "ASSAY_CAPTURE": "1",
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_CAPTURE_SPOOL_DIR": str(spool_dir),
        "ASSAY_CAPTURE_EXIT_DEADLINE_S": "60",
    }


@pytest.fixture
def run(environment: dict[str, str]) -> Callable[..., str]:
    """Run a program that is patched in a given order, and return what it printed."""

    def once(order: str, body: str, **variables: str) -> str:
        first, then = ORDERS[order]
        program = PREAMBLE.format(first=first, then=then) + textwrap.dedent(body)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env=environment | {f"ASSAY_{name}": value for name, value in variables.items()},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return once


def queries(events: list[dict[str, Any]]) -> list[str]:
    return [event["payload"]["query"] for event in events if event["payload"]["query"] != "before"]


@pytest.mark.parametrize("preload", [True, False], ids=["preload", "no preload"])
def test_gunicorns_gevent_workers_answer_and_their_events_arrive(
    preload: bool,
    environment: dict[str, str],
    redis_server: RedisServer,
    arrived: Any,
    eventually: Any,
    tmp_path: Path,
) -> None:
    (tmp_path / "web.py").write_text(APPLICATION)
    port = free_port()
    options = ["-k", "gevent", "-w", "2", "-b", f"127.0.0.1:{port}", "--no-control-socket", *(["--preload"] * preload)]
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *options, "web:application"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )

    def get(path: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return bool(answer.status == 200)
        except ConnectionError:
            return False
        except OSError as error:
            return not isinstance(error.reason, ConnectionError) if hasattr(error, "reason") else False

    try:
        eventually(lambda: get("/up"), process.poll)
        assert all(get(f"/{number}") for number in range(20))
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert "TIMEOUT" not in errors, errors
    found = queries(arrived(redis_server))
    assert sorted(set(found) - {"/up"}) == sorted(f"/{number}" for number in range(20)), errors


@pytest.mark.parametrize("order", ORDERS)
def test_events_of_many_greenlets_arrive_and_waiting_for_them_lets_others_run(
    order: str, run: Callable[..., str], redis_server: RedisServer, arrived: Any
) -> None:
    run(
        order,
        """
        gevent.joinall([gevent.spawn(one, str(number)) for number in range(50)])
        turns = []
        other = gevent.spawn(lambda: [(turns.append(None), gevent.sleep(0)) for _ in range(3)])
        assert capture.flush(60)
        other.join()
        capture.close()
        assert not capture.stats().dropped
        """,
    )
    assert sorted(queries(arrived(redis_server)), key=int) == [str(number) for number in range(50)]


@pytest.mark.parametrize("order", ORDERS)
def test_events_leave_while_no_greenlet_yields(order: str, run: Callable[..., str]) -> None:
    run(
        order,
        """
        for number in range(5_000):
            one(str(number))
        deadline = time.monotonic() + 60
        while capture.stats().queue_entries and time.monotonic() < deadline:
            pass
        assert not capture.stats().queue_entries and not capture.stats().dropped, capture.stats()
        """,
        CAPTURE_QUEUE_ENTRIES="2000",
    )


@pytest.mark.parametrize("order", ORDERS)
def test_a_signal_handler_of_a_patched_program_can_close_it(
    order: str, run: Callable[..., str], redis_server: RedisServer, arrived: Any
) -> None:
    said = run(
        order,
        """
        import os, signal
        def leave(number, frame):
            capture.close()
            print(sum(capture.stats().dropped.values()), flush=True)
            os._exit(0)
        signal.signal(signal.SIGTERM, leave)
        one("0")
        gevent.spawn_later(0.2, os.kill, os.getpid(), signal.SIGTERM)  # it arrives while gevent's loop is idle
        gevent.sleep(60)
        """,
        CAPTURE_FLUSH_INTERVAL_MS="60000",
    )
    assert said == "0\n"
    assert queries(arrived(redis_server)) == ["0"]


def test_forks_of_a_patched_program_send_their_own_events(
    run: Callable[..., str], redis_server: RedisServer, arrived: Any
) -> None:
    run(
        "patched first",
        """
        import os
        one("parent")
        assert capture.flush(60)
        children = []
        for number in range(5):
            child = os.fork()
            if child == 0:
                one(f"child {number}")
                sys.exit(0)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 5
        """,
    )
    assert sorted(queries(arrived(redis_server))) == [*(f"child {number}" for number in range(5)), "parent"]
