"""Processes: exits, forks, prefork servers, multiprocessing, kill -9, and several producers with one spool."""

import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from assay_capture import Capture
from tests.support.redis import RedisServer

PREAMBLE = """
import os, signal, sys, multiprocessing, threading, time
from assay_capture import Capture

def one(query):
    return capture.retrieval(tool_name="query", query=query, retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1)

def until_signalled():
    # CPython takes note of a signal that comes just before an endless wait only when the wait ends, so this one does.
    while True:
        threading.Event().wait(0.1)

def wake(workers):
    # Workers of a pool wait without an end for the next task. A signal that nobody minds ends the wait.
    while True:
        time.sleep(0.1)
        for worker in workers:
            try:
                os.kill(worker, signal.SIGURG)
            except ProcessLookupError:
                pass

signal.signal(signal.SIGURG, lambda *_: None)
if __name__ in ("__main__", "__mp_main__"):
    capture = Capture.from_env(service="program")
"""
Program = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def program(redis_server: RedisServer, spool_dir: Path, tmp_path: Path) -> Iterator[Program]:
    """Start a Python program that has a `capture` and `one(query)`, with settings over plain ones."""
    started: list[subprocess.Popen[str]] = []

    def start(body: str, **settings: Any) -> "subprocess.Popen[str]":
        file = tmp_path / f"program{len(started)}.py"
        file.write_text(PREAMBLE + textwrap.dedent(body))
        named = {
            "REDIS_URL": redis_server.url,
            "CAPTURE_SPOOL_DIR": str(spool_dir),
            "CAPTURE_FLUSH_INTERVAL_MS": "60000",
            "CAPTURE_EXIT_DEADLINE_S": "60",  # the machine may be busy
            "REDIS_CONNECT_TIMEOUT_S": "60",
            "REDIS_COMMAND_TIMEOUT_S": "60",
        }
        environment = {f"ASSAY_{name}": str(value) for name, value in {**named, **settings}.items()}
        process = subprocess.Popen(
            [sys.executable, str(file)],
            env={**os.environ, **environment, "ASSAY_CAPTURE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers hold the pipes too
        process.communicate()


def _queries(events: list[dict[str, Any]]) -> list[str]:
    return [event["payload"]["query"] for event in events]


#: The end of a program and its exit code. The flush interval is a minute, so only an exit's own flush can be seen.
ENDINGS = {
    "runs to its end": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "sys.exit in a function, with a thread running": (
        "threading.Thread(target=lambda: one('thread')).start(); sys.exit(0)",
        0,
    ),
    "an unhandled exception": ("raise RuntimeError", 1),
    "close by hand": ("capture.close()", 0),
    "an interrupt": ("import signal; os.kill(os.getpid(), signal.SIGINT); threading.Event().wait()", -signal.SIGINT),
}


def test_what_is_in_memory_is_sent_however_the_program_ends(
    program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    processes = {
        ending: program(f"for number in range(5): one(f'{ending}: {{number}}')\n{code}\n")
        for ending, (code, _) in ENDINGS.items()
    }
    for ending, process in processes.items():
        _, errors = process.communicate(timeout=60)
        assert (ending, process.returncode) == (ending, ENDINGS[ending][1]), errors
    found = _queries(arrived(redis_server))
    for ending in ENDINGS:
        assert [query for query in found if query.startswith(f"{ending}: ")] == [f"{ending}: {n}" for n in range(5)]


def test_a_program_that_ends_while_redis_is_away_leaves_its_events_to_the_next(
    program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    redis_server.kill()
    first = program("one('first'); one('second')")
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 0, errors
    redis_server.start()
    second = program("one('third')")
    second.communicate(timeout=60)
    assert _queries(arrived(redis_server)) == ["first", "second", "third"]


def test_memory_that_cannot_be_sent_by_the_deadline_is_counted_and_said(
    program: Program, redis_server: RedisServer
) -> None:
    redis_server.kill()
    process = program("one('lost')", CAPTURE_DURABILITY="memory", CAPTURE_EXIT_DEADLINE_S="0.2")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "dropping events (exit_deadline)" in errors


def test_a_forked_child_sends_its_own_events_and_none_of_its_parents(
    program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    process = program("""
        one("parent before")
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                one(f"child {number}")
                sys.exit(0)
            children.append(child)
        one("parent after")
        for child in children:
            os.waitpid(child, 0)
    """)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found = _queries(arrived(redis_server))
    assert Counter(found) == Counter(["parent before", "parent after", "child 0", "child 1", "child 2"])
    assert found.index("parent before") < found.index("parent after")


def test_a_fork_in_the_midst_of_sending_and_spooling_loses_and_doubles_nothing(
    program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    redis_server.kill()
    process = program(
        """
        for number in range(200):
            one(f"parent {number}")
            if number % 50 == 25:
                capture.flush(60)
                if os.fork() == 0:
                    for again in range(50):
                        one(f"child {number} {again}")
                    sys.exit(0)
        assert capture.flush(60)
        print("spooled", flush=True)
        sys.stdin.readline()
        for _ in range(4):
            os.wait()
        """,
        CAPTURE_FLUSH_INTERVAL_MS="1",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "spooled\n"
    redis_server.start()
    _, errors = process.communicate("go\n", timeout=60)
    assert process.returncode == 0, errors
    # A child that found Redis away left its spool to whoever comes next.
    last = program("one('last')")
    last.communicate(timeout=60)
    parent = [f"parent {number}" for number in range(200)]
    children = [f"child {number} {again}" for number in (25, 75, 125, 175) for again in range(50)]
    events = arrived(redis_server)
    assert Counter(_queries(events)) == Counter([*parent, *children, "last"])
    assert [query for query in _queries(events) if query.startswith("parent")] == parent


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_send_their_events_before_they_end(
    method: str, program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    process = program(f"""
        if __name__ == "__main__":
            one("parent")
            context = multiprocessing.get_context("{method}")
            children = [context.Process(target=one, args=(f"child {{n}}",)) for n in range(3)]
            for child in children:
                child.start()
            for child in children:
                child.join()
                assert child.exitcode == 0
    """)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert sorted(_queries(arrived(redis_server))) == ["child 0", "child 1", "child 2", "parent"]


def test_sigterm_sends_what_is_in_memory_where_the_setting_asks_for_it(
    program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    body = """
        for number in range(50):
            one(str(number))
        print("captured", flush=True)
        until_signalled()
    """
    for asked, sent in (("false", []), ("true", [str(number) for number in range(50)])):
        process = program(body, CAPTURE_CLOSE_ON_SIGTERM=asked)
        assert process.stdout is not None
        assert process.stdout.readline() == "captured\n"
        process.terminate()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGTERM, errors
        assert _queries(arrived(redis_server)) == sent


def test_sigterm_is_left_to_a_program_that_handles_it(
    program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    process = program(
        """
        import signal
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        Capture.from_env(service="another")
        one("a")
        print("captured", flush=True)
        until_signalled()
        """,
        CAPTURE_CLOSE_ON_SIGTERM="true",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "captured\n"
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 7
    assert _queries(arrived(redis_server)) == ["a"]


def test_a_second_sigterm_ends_a_process_that_waits_for_a_redis_that_hangs(
    program: Program, redis_server: RedisServer
) -> None:
    process = program(
        """
        one("a")
        assert capture.flush(60)
        print("captured", flush=True)
        sys.stdin.readline()
        one("b")
        print("again", flush=True)
        until_signalled()
        """,
        CAPTURE_CLOSE_ON_SIGTERM="true",
        CAPTURE_DURABILITY="memory",
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "captured\n"
    redis_server.kill(signal.SIGSTOP)
    try:
        print("go", file=process.stdin, flush=True)
        assert process.stdout.readline() == "again\n"
        process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.terminate()
        process.communicate(timeout=30)  # the exit's own deadline is a minute
        assert process.returncode == -signal.SIGTERM
    finally:
        redis_server.kill(signal.SIGCONT)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("end", ["close", "terminate"])
def test_workers_of_a_pool_send_what_they_captured(
    method: str, end: str, program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    process = program(
        f"""
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                pool.map(one, [str(number) for number in range(200)])
                if "{end}" == "close":
                    pool.close()
                    pool.join()
                else:
                    workers = [each.pid for each in pool._pool]
                    threading.Thread(target=wake, args=(workers,), daemon=True).start()
        """,
        # `with` ends by terminate(), which is SIGTERM; after close() and join() the workers have ended by themselves.
        CAPTURE_CLOSE_ON_SIGTERM="true" if end == "terminate" else "false",
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert sorted(_queries(arrived(redis_server)), key=int) == [str(number) for number in range(200)]


def test_what_a_killed_producer_had_spooled_is_sent_by_the_next(
    program: Program, redis_server: RedisServer, make_capture: Any, retrieve: Any, arrived: Any, eventually: Any
) -> None:
    redis_server.kill()
    process = program(
        """
        sent = 0
        while True:
            for _ in range(20):
                one(str(sent))
                sent += 1
            if capture.flush(60):
                print(sent, flush=True)
        """,
        CAPTURE_FLUSH_INTERVAL_MS="1",
    )
    assert process.stdout is not None
    promised = 0
    for _ in range(10):
        promised = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    redis_server.start()
    heir: Capture = make_capture(redis_server.url)
    retrieve(heir, "heir")
    eventually(lambda: heir.flush(60) and heir.stats().spool_bytes == 0, heir.stats)
    *found, last = _queries(arrived(redis_server))
    assert last == "heir"
    assert found == [str(number) for number in range(len(found))]
    assert len(found) >= promised > 0
    assert heir.stats().adopted_segments > 0


def test_two_producers_share_a_spool_and_each_sends_its_own_in_order(
    program: Program, redis_server: RedisServer, arrived: Any
) -> None:
    redis_server.kill()
    body = """
        for number in range(300):
            one(f"{sys.argv[0][-4]} {number}")
        assert capture.flush(60)
        print("spooled", flush=True)
        sys.stdin.readline()
        """
    both = [program(body, CAPTURE_FLUSH_INTERVAL_MS="1") for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "spooled\n"
    redis_server.start()
    for process in both:
        _, errors = process.communicate("go\n", timeout=60)
        assert process.returncode == 0, errors
    found = _queries(arrived(redis_server))
    for name in "01":
        assert [query for query in found if query.startswith(name)] == [f"{name} {number}" for number in range(300)]
    assert len(found) == 600
