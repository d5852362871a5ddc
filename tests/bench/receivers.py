"""Spans received over OTLP until they are events or rows, compared with Phoenix: a part of the suite `gateway`.

Both receive the same requests from one client, over HTTP: 25 traces of four spans each. Ours counts the CPU of gateway,
assembler and Redis until the last trace has closed. Phoenix's counts its process, with SQLite in it, until the last span
is a row. Phoenix keeps whole spans and Assay events: this compares the cost of receiving a service's spans.
"""

import contextlib
import http.client
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from assay_schema.streams import SPANS, open_traces_key
from tests.bench.result import result
from tests.support.assembler import AGENT, CHAT, RETRIEVAL, TOOL, Assembler
from tests.support.gateway import Gateway, redis_with_identities
from tests.support.ports import free_port
from tests.support.spans import request, span
from tests.support.wait import until

PHOENIX = Path(".venv-peers/bin/phoenix")
TRACES, SPANS_OF_TRACE = 25, 4


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Rows in spans per CPU second; none if Phoenix is not installed."""
    if not PHOENIX.exists():
        print("Phoenix is not measured: run `make peers`", file=sys.stderr)
        return []
    requests = 10 if quick else 100
    bodies = [_body(number) for number in range(requests + 1)]
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        fast, plain = _ours(Path(ours), bodies), _phoenix(Path(theirs), bodies)
    count = requests * TRACES * SPANS_OF_TRACE
    return [
        result("spans received, gateway to events / Phoenix", count / fast, count / plain, "spans/CPU-s", ">= 2", count)
    ]


def _body(number: int) -> bytes:
    spans = []
    for place in range(TRACES):
        trace = f"{number * TRACES + place + 1:032x}"
        for parent, attributes in enumerate((AGENT, RETRIEVAL, TOOL, CHAT)):
            # Span ids are unique over all traces, as in a real service; Phoenix keeps one of equal ones.
            first = (number * TRACES + place) * SPANS_OF_TRACE + 1
            spans.append(span(attributes, number=first + parent, parent=first if parent else 0, trace=trace))
    return request(*spans).SerializeToString()


def _ours(directory: Path, bodies: list[bytes]) -> float:
    with contextlib.ExitStack() as stack:
        server = redis_with_identities(directory)
        stack.callback(server.stop)
        gateway = Gateway(directory, server, ASSAY_TELEMETRY_LOG_LEVEL="INFO").start()
        stack.callback(gateway.kill)
        assembler = Assembler(directory, server).start()
        stack.callback(assembler.kill)
        client = stack.enter_context(contextlib.closing(server.client()))
        assert gateway.process
        assert assembler.process
        pids = [gateway.process.pid, assembler.process.pid, int(client.info("server")["process_id"])]

        def unfinished() -> int:
            return int(client.xlen(SPANS.key())) + int(client.zcard(open_traces_key()))

        headers = {"Authorization": f"Bearer {gateway.key()}"}
        return _cpu_of_all_but_the_first(bodies, gateway.port, headers, pids, lambda _: not unfinished())


def _phoenix(directory: Path, bodies: list[bytes]) -> float:
    port = free_port()
    environment = os.environ | {
        "PHOENIX_WORKING_DIR": str(directory),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((directory / "phoenix.log").open("wb"))
        process = subprocess.Popen([PHOENIX, "serve"], env=environment, stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.kill)
        until(lambda: _is_up(port), "phoenix does not start")

        def stored(requests: int) -> bool:
            with contextlib.closing(sqlite3.connect(directory / "phoenix.db", timeout=60)) as database:
                spans = int(database.execute("SELECT count(*) FROM spans").fetchone()[0])
            return spans == requests * TRACES * SPANS_OF_TRACE

        return _cpu_of_all_but_the_first(bodies, port, {}, [process.pid], stored)


def _cpu_of_all_but_the_first(
    bodies: list[bytes],
    port: int,
    headers: dict[str, str],
    pids: list[int],
    is_finished: Callable[[int], bool],
) -> float:
    """Send all bodies, and return the CPU seconds of the processes without start and first request."""
    processes = [psutil.Process(pid) for pid in pids]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    before = 0.0
    for number, body in enumerate(bodies):
        connection.request("POST", "/v1/traces", body, headers | {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        if number == 0:
            until(lambda: is_finished(1), "the first request is not finished", pause_s=0.2)
            before = _seconds(processes)
    until(lambda: is_finished(len(bodies)), "the spans are not finished", pause_s=0.2)
    connection.close()
    return _seconds(processes) - before


def _seconds(processes: list[psutil.Process]) -> float:
    return sum(times.user + times.system for times in (process.cpu_times() for process in processes))


def _is_up(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
