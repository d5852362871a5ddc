"""Attack a gateway with hostile requests while an honest client sends events: `make fuzz SUITE=gateway`.

`gateway_requests` makes the requests and knows the right answers. Exit code 1: a wrong answer, an event stored that was not
accepted, the honest client refused, memory over its bound, or a turn of the event loop over 100 ms of CPU time.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import multiprocessing
import secrets
import selectors
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assay_access.api_keys import KeyKind
from assay_schema.streams import CAPTURE
from tests.security.gateway_requests import CLOSED, Attack, attack
from tests.security.openapi_client import DocumentedClient, operations
from tests.support.gateway import Gateway, event, redis_with_identities
from tests.support.wait import until

ROOT = Path(__file__).parents[2]
#: Longest turn of the event loop, in seconds of CPU time.
TURN_S = 0.1
#: Status of a connection on which nothing happens.
NOTHING = -1
#: Answers after which a client sends the same request again, and how often: this process was too slow, or the bodies in
#: flight had no room for another.
AGAIN, TRIES = (408, 503), 10
#: Seconds that an attacker waits for an answer.
PATIENCE_S = 60.0
#: Seconds between two requests of the honest client.
HONEST_EVERY_S = 0.05


@dataclass
class Report:
    """What a run found."""

    answers: collections.Counter[str] = field(default_factory=collections.Counter)
    documented: collections.Counter[str] = field(default_factory=collections.Counter)
    faults: list[str] = field(default_factory=list)
    honest: list[float] = field(default_factory=list)
    peak_bytes: float = 0.0
    bound_bytes: float = 0.0
    turn_wall_s: float = 0.0
    turn_cpu_s: float = 0.0

    def lines(self) -> str:
        """For people."""
        taken = [1000 * seconds for seconds in sorted(self.honest)] or [0.0]
        middle, late = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
        answers = ", ".join(f"{count} x {status}" for status, count in sorted(self.answers.items()))
        turn = f"{self.turn_cpu_s * 1000:.0f} ms of CPU time, {self.turn_wall_s * 1000:.0f} ms by the clock"
        return "\n".join(
            (
                f"{self.answers.total()} hostile requests: {answers}",
                f"{self.documented.total()} examples of the OpenAPI document: {', '.join(sorted(self.documented)) or 'none'}",
                f"longest turn of the event loop: {turn}",
                f"honest client: {len(taken)} answers, p50 {middle:.0f} ms, p99 {late:.0f} ms, longest {taken[-1]:.0f} ms",
                f"memory: {self.peak_bytes / 2**20:.0f} of {self.bound_bytes / 2**20:.0f} MiB",
                f"faults: {len(self.faults)}",
                *self.faults[:20],
            )
        )


def run(
    directory: Path, *, seed: int, attacks: int, attackers: int = 8, idle: int = 0, first: int = 0, examples: int = 0
) -> Report:
    """Send so many attacks, and then so many examples of each operation of the OpenAPI document, right and wrong ones.

    `idle` connections send half a request line and then nothing.
    """
    report = Report()
    redis = redis_with_identities(directory)
    gateway = Gateway(
        directory,
        redis,
        "tests.support.watched_gateway",
        PYTHONPATH=str(ROOT),
        ASSAY_GATEWAY_BODY_TIMEOUT_S="5" if idle else "1",
        ASSAY_GATEWAY_FEEDBACK_PER_MINUTE="0",
        ASSAY_TELEMETRY_LOG_LEVEL="WARNING",
    )
    try:
        gateway.start()
        past = datetime.now(UTC) - timedelta(seconds=1)
        keys = {kind.value: gateway.key(kind) for kind in KeyKind} | {"expired": gateway.key(expires_at=past)}
        until(lambda: gateway.post([], keys["ingest"]).status == 200, "the keys are not known")
        with (
            _honest_client(gateway, report) as stored,
            _idle_clients(gateway.port, idle),
            multiprocessing.get_context("spawn").Pool(1) as pool,  # what it computes would delay the honest client here
        ):
            answers, accepted, faults = pool.apply(_attack, (gateway.port, seed, first, attacks, attackers, keys))
            if examples:
                report.documented, stored_too, more = pool.apply(_document, (gateway.port, seed, examples, keys))
                accepted, faults = accepted + stored_too, faults + more
        report.answers, report.faults = answers, report.faults + faults
        _examine(report, gateway, accepted + len(stored))
    finally:
        gateway.kill()
        redis.stop()
    return report


@contextlib.contextmanager
def _honest_client(gateway: Gateway, report: Report) -> collections.abc.Iterator[list[None]]:
    """Send valid events all the time. Yields a list with an item for each stored one."""
    over, stored, key = threading.Event(), list[None](), gateway.key(project="honest")

    def work() -> None:
        while not over.wait(HONEST_EVERY_S):
            began = time.monotonic()
            status = gateway.post([event()], key).status
            report.honest.append(time.monotonic() - began)
            if status == 200:
                stored.append(None)
            else:
                report.faults.append(f"the honest client was answered {status}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield stored
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def _idle_clients(port: int, count: int) -> collections.abc.Iterator[None]:
    """Hold connections that have sent half a request line. Those that the gateway closes are opened again."""
    over, watched = threading.Event(), selectors.DefaultSelector()

    def hold() -> None:
        connection = _connect(port)
        connection.sendall(b"POST /v1/ev")
        watched.register(connection, selectors.EVENT_READ)

    def work() -> None:
        while not over.is_set():
            for key, _ in watched.select(0.1):
                watched.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
                hold()

    for _ in range(count):
        hold()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for each in list(watched.get_map().values()):
            each.fileobj.close()  # type: ignore[union-attr]
        watched.close()


def _examine(report: Report, gateway: Gateway, expected: int) -> None:
    until(lambda: gateway.metric("assay_gateway_in_flight_bytes") == 0, "bodies are still counted")
    with gateway.redis.client() as client:
        stored = client.xlen(CAPTURE.key())
    if stored != expected:
        report.faults.append(f"{stored} events are stored, {expected} were accepted")
    report.peak_bytes = gateway.metric("assay_memory_peak_bytes")
    report.bound_bytes = gateway.metric("assay_memory_bound_bytes")
    if not report.peak_bytes < report.bound_bytes:
        report.faults.append("memory is over its bound")
    report.turn_cpu_s = gateway.metric('watched_longest_turn_seconds{clock="cpu"}')
    report.turn_wall_s = gateway.metric('watched_longest_turn_seconds{clock="wall"}')
    if "Traceback" in gateway.log():
        report.faults.append("a traceback is in the log")


def _attack(
    port: int, seed: int, first: int, attacks: int, attackers: int, keys: dict[str, str]
) -> tuple[collections.Counter[str], int, list[str]]:
    """Return the number of answers by status, the number of accepted events, and the faults."""
    answers: collections.Counter[str] = collections.Counter()
    faults: list[str] = []
    accepted = 0

    def one(number: int) -> tuple[int, Attack, int, bytes]:
        made = attack(seed, number, keys)
        for _ in range(TRIES):
            status, content = _send(port, made)
            if status in made.right or status not in AGAIN:
                break
            time.sleep(1)
        return number, made, status, content

    with ThreadPoolExecutor(attackers) as threads:
        for number, made, status, content in threads.map(one, range(first, first + attacks)):
            answers[str(status or "closed")] += 1
            if status not in made.right:
                faults.append(
                    f"{number} {made.name}: {status or 'closed'}, not {sorted(made.right)}: {content[:200]!r}"
                )
            with contextlib.suppress(ValueError):
                document = json.loads(content)
                accepted += document.get("accepted", 0) if isinstance(document, dict) else 0
    return answers, accepted, faults


def _document(
    port: int, seed: int, examples: int, keys: dict[str, str]
) -> tuple[collections.Counter[str], int, list[str]]:
    """Return the number of answers by operation and status, the number of accepted events, and the faults."""

    def headers(operation: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {keys['feedback' if operation.path == '/v1/feedback' else 'ingest']}"}

    client = DocumentedClient(f"http://127.0.0.1:{port}", headers)
    faults = client.send_all(operations("gateway"), examples=examples, seed=seed)
    return client.answers, client.accepted, faults


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def _send(port: int, made: Attack) -> tuple[int, bytes]:
    """Return status and content of the answer."""
    found = b""
    with _connect(port) as connection:
        with contextlib.suppress(OSError):  # the gateway may answer, and close, before it has read it all
            for number, part in enumerate(made.parts):
                if number and made.pause_s:
                    time.sleep(made.pause_s)
                connection.sendall(part)
            if made.ends:
                connection.shutdown(socket.SHUT_WR)
        try:
            while data := connection.recv(1 << 16):
                found += data
        except TimeoutError:
            return NOTHING, found
        except OSError:
            pass
    head, _, content = found.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, content = content.partition(b"\r\n\r\n")
    return (int(head.split(b" ", 2)[1]) if head else CLOSED), content


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="make fuzz SUITE=gateway", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--attacks", type=int, default=10_000, help="how many requests (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one, to repeat it (%(default)s)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="repeats a run (random)")
    parser.add_argument("--attackers", type=int, default=8, help="requests at a time (%(default)s)")
    parser.add_argument("--examples", type=int, default=100, help="examples of each documented operation (%(default)s)")
    parser.add_argument("--idle", type=int, default=1_000, help="connections that send nothing (%(default)s)")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="assay-fuzz-") as directory:
        report = run(
            Path(directory),
            seed=wanted.seed,
            attacks=wanted.attacks,
            attackers=wanted.attackers,
            idle=wanted.idle,
            first=wanted.first,
            examples=wanted.examples,
        )
    sys.stdout.write(f"seed {wanted.seed}\n{report.lines()}\n")
    slow = report.turn_cpu_s > TURN_S
    if slow:
        sys.stdout.write(f"a turn of the event loop took over {TURN_S * 1000:.0f} ms\n")
    return 1 if report.faults or slow else 0


if __name__ == "__main__":
    sys.exit(main())
