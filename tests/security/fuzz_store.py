"""Fuzz the embedded store's HTTP endpoint beside a writer: `python -m tests.security.fuzz_store --seconds 600`.

Attackers of the reading roles and without a password send hostile requests (`attack`), while a writer stores 5,000 rows a second and
`/ping` is asked fifty times a second. A server that does nothing is asked beside it: what the machine itself delays shows there.
Exit code 1: the store died or restarted, a right too many, an internal error, a row lost, or a stall beyond the machine's own.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import http.server
import itertools
import json
import multiprocessing
import secrets
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.security.attack import Attacker, Found, Target
from tests.support.ports import free_port
from tests.support.store import PASSWORD, StoreServer

ROWS_A_SECOND = 5000
BATCH = 1000
ALLOWED_STALL_SECONDS = 0.1


@dataclass
class Report:
    """What a run found."""

    requests: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    rows_sent: int = 0
    rows_stored: int = 0
    longest_ping: float = 0.0
    longest_idle: float = 0.0
    longest_insert: float = 0.0
    inserts: list[float] = field(default_factory=list)

    @property
    def stall(self) -> float:
        """The longest `/ping`, without what the machine delayed a server that does nothing, in seconds."""
        return max(0.0, self.longest_ping - self.longest_idle)

    def lines(self) -> str:
        """For people."""
        inserts = sorted(self.inserts) or [0.0]
        middle, late = inserts[len(inserts) // 2], inserts[len(inserts) * 99 // 100]
        answers = ", ".join(
            f"{count} x {what}" for what, count in sorted(self.answers.items(), key=lambda item: -item[1])[:12]
        )
        return "\n".join(
            (
                f"{self.requests} hostile requests: {answers}",
                (
                    f"longest /ping {self.longest_ping * 1000:.0f} ms; of an idle server beside it "
                    f"{self.longest_idle * 1000:.0f} ms"
                ),
                (
                    f"writer: {self.rows_stored} of {self.rows_sent} rows stored; "
                    f"insert p50 {middle * 1000:.0f} ms, p99 {late * 1000:.0f} ms, "
                    f"longest {self.longest_insert * 1000:.0f} ms"
                ),
                f"faults: {len(self.faults)}",
                *self.faults[:20],
            )
        )


def run(
    directory: Path, *, seconds: float, seed: int, attackers: int, attacks: int = sys.maxsize, longest: int = 0
) -> Report:
    """Fuzz a store in a directory of its own, for so long or with so many attacks of each attacker.

    `longest` has them send nothing but the statements of so many bytes that are worst to judge.
    """
    file, planted = directory / "outside.txt", directory / "planted"
    canaries = tuple(f"canary-{secrets.token_hex(8)}" for _ in range(2))
    file.write_text(canaries[0])
    report = Report()
    with StoreServer(directory / "store") as server:
        _prepare(server, canaries[1])
        before, pid = _state(server), server.pid
        target = Target(server.port, str(file), str(planted), tuple(canary.encode() for canary in canaries))
        idle = _Idle()
        stop = threading.Event()
        threads = [
            threading.Thread(target=work, args=(stop, report, *arguments))
            for work, arguments in (
                (_ping, (server.port, "longest_ping")),
                (_ping, (idle.port, "longest_idle")),
                (_write, (server.port,)),
            )
        ]
        for thread in threads:
            thread.start()
        try:
            # In a process of their own: what they compute would delay those who measure here.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found = pool.apply(_attack, (target, seconds, seed, attackers, attacks, longest))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            idle.close()
        report.answers, report.faults = found.answers, report.faults + found.faults
        report.requests = sum(found.answers.values())
        _examine(report, server, pid, before, planted)
    log = (directory / "store" / "store.log").read_text(errors="replace")
    report.faults += [
        f"the store's log: {line[:300]}" for line in log.splitlines() if " ERROR " in line or "Traceback" in line
    ]
    if any(canary in log for canary in canaries):
        report.faults.append("the store's log quotes what it should not")
    return report


def _prepare(server: StoreServer, canary: str) -> None:
    for sql in (
        "CREATE DATABASE assay_base",
        "CREATE DATABASE assay",
        "CREATE TABLE assay_base.t (id UInt64, text String) ENGINE = MergeTree ORDER BY id",
        "CREATE TABLE assay_base.secret (a String) ENGINE = MergeTree ORDER BY a",
        "CREATE VIEW assay.t DEFINER = CURRENT_USER SQL SECURITY DEFINER AS SELECT id, text FROM assay_base.t",
        f"INSERT INTO assay_base.secret VALUES ('{canary}')",
    ):
        ask(server.port, sql)


def _state(server: StoreServer) -> str:
    tables = (
        "SELECT database, name, engine FROM system.tables "
        "WHERE database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema') ORDER BY ALL"
    )
    return ask(server.port, tables) + ask(server.port, "SELECT * FROM assay_base.secret")


def _examine(report: Report, server: StoreServer, pid: int, before: str, planted: Path) -> None:
    try:
        alive = server.pid == pid and ask(server.port, "SELECT 1") == "1\n"
    except OSError:
        alive = False
    if not alive:
        report.faults.append("the store died")
        return
    if _state(server) != before:
        report.faults.append("a reader changed tables or rows")
    if planted.exists():
        report.faults.append("a reader wrote a file")
    report.rows_stored = int(ask(server.port, "SELECT uniqExact(id) FROM assay_base.t"))
    if report.rows_stored < report.rows_sent:
        report.faults.append("acknowledged rows are missing")


def ask(
    port: int, sql: str, role: str = "owner", body: bytes = b"", connection: http.client.HTTPConnection | None = None
) -> str:
    """The answer to an honest statement."""
    with closing(connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as used:
        return _asked(used, sql, role, body)


def _asked(connection: http.client.HTTPConnection, sql: str, role: str, body: bytes) -> str:
    headers = {"Authorization": "Basic " + base64.b64encode(f"{role}:{PASSWORD}".encode()).decode()}
    connection.request("POST", "/", sql.encode() + (b"\n" if body else b"") + body, headers)
    answer = connection.getresponse()
    said = answer.read().decode()
    if answer.status != 200:
        raise OSError(f"{answer.status}: {said[:300]}")
    return said


def _write(stop: threading.Event, report: Report, port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    begun, sent = time.monotonic(), 0
    text = "x" * 200
    while not stop.is_set():
        rows = b"".join(b'{"id": %d, "text": "%s"}\n' % (number, text.encode()) for number in range(sent, sent + BATCH))
        time.sleep(max(0.0, begun + sent / ROWS_A_SECOND - time.monotonic()))
        started = time.monotonic()
        try:
            _asked(connection, "INSERT INTO assay_base.t FORMAT JSONEachRow", "writer", rows)
        except (OSError, http.client.HTTPException) as failure:
            report.faults.append(f"an insert of the writer failed: {failure}")
            connection.close()
            time.sleep(1)
            continue
        taken = time.monotonic() - started
        report.inserts.append(taken)
        report.longest_insert = max(report.longest_insert, taken)
        sent += BATCH
        report.rows_sent = sent
    connection.close()


def _ping(stop: threading.Event, report: Report, port: int, name: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not stop.is_set():
        time.sleep(0.02)
        started = time.monotonic()
        try:
            connection.request("GET", "/ping")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException) as failure:
            report.faults.append(f"{name}: {type(failure).__name__}")
            connection.close()
        setattr(report, name, max(getattr(report, name), time.monotonic() - started))
    connection.close()


def _attack(target: Target, seconds: float, seed: int, attackers: int, attacks: int, longest: int) -> Found:
    until = time.monotonic() + seconds

    def one(number: int) -> Found:
        attacker = Attacker(target, seed * 1000 + number, longest)
        for _ in itertools.takewhile(lambda _: time.monotonic() < until, range(attacks)):
            attacker.attack()
        return attacker.found

    total = Found()
    if not attackers:
        time.sleep(seconds)
        return total
    with ThreadPoolExecutor(attackers) as threads:
        for found in threads.map(one, range(attackers)):
            total.faults += found.faults
            for what, count in found.answers.items():
                total.answers[what] = total.answers.get(what, 0) + count
    return total


class _Idle:
    """An HTTP server in a process of its own that does nothing but answer."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve_nothing, args=(self.port,), daemon=True
        )
        self._process.start()
        deadline = time.monotonic() + 60
        while not _answers(self.port):
            if time.monotonic() > deadline:
                raise TimeoutError("the idle server does not answer")
            time.sleep(0.05)

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


def _answers(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", "/ping")
            return connection.getresponse().status == 200
    except OSError:
        return False


class _Nothing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one packet an answer: two would wait for each other

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"Ok.")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _serve_nothing(port: int) -> None:
    http.server.ThreadingHTTPServer(("127.0.0.1", port), _Nothing).serve_forever()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long (%(default)s)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="repeats a run (random)")
    parser.add_argument(
        "--attackers", type=int, default=8, help="requests at a time; 0 shows what the writer does alone (%(default)s)"
    )
    parser.add_argument(
        "--longest", type=int, default=0, help="send only the worst statements of so many bytes (all kinds of requests)"
    )
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="assay-fuzz-") as directory:
        report = run(
            Path(directory),
            seconds=wanted.seconds,
            seed=wanted.seed,
            attackers=wanted.attackers,
            longest=wanted.longest,
        )
    sys.stdout.write(f"seed {wanted.seed}\n{report.lines()}\n")
    if report.stall > ALLOWED_STALL_SECONDS:
        sys.stdout.write(f"a stall of {report.stall * 1000:.0f} ms beyond the machine's own\n")
    Path("build").mkdir(exist_ok=True)
    (Path("build") / "fuzz.json").write_text(
        json.dumps({"seed": wanted.seed, **report.__dict__, "inserts": len(report.inserts)}, indent=1)
    )
    return 1 if report.faults or report.stall > ALLOWED_STALL_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
