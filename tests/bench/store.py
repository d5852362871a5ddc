"""The embedded store over HTTP beside its own engine without it: inserts of wide rows, the smallest query, memory."""

import base64
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lz4.frame
import psutil

from tests.bench.result import result
from tests.support.store import PASSWORD, StoreServer

ROWS = 10_000
TABLE = (
    "CREATE TABLE wide (id UInt64, ts DateTime64(3, 'UTC'), query String CODEC(ZSTD(3)), slugs Array(LowCardinality(String)), "
    "chunks Array(Int64) CODEC(T64, ZSTD(1)), scores Array(Float64), answer String CODEC(ZSTD(3))) "
    "ENGINE = ReplacingMergeTree PARTITION BY toYYYYMMDD(ts) ORDER BY (ts, id)"
)
HEADERS = {"Authorization": "Basic " + base64.b64encode(f"owner:{PASSWORD}".encode()).decode()}


def _rows(seed: int) -> bytes:
    """ROWS rows of about 1.3 KB of JSON, all of one day."""
    chance = random.Random(seed)
    words = [f"word{number:04d}" for number in range(2_000)]
    lines = [
        json.dumps(
            {
                "id": seed * ROWS + number,
                "ts": f"2026-01-02 03:04:{number % 60:02d}.{seed % 1000:03d}",
                "query": " ".join(chance.choices(words, k=8)),
                "slugs": [f"guides/{chance.choice(words[:300])}" for _ in range(10)],
                "chunks": [chance.randrange(1_000_000) for _ in range(10)],
                "scores": [chance.random() for _ in range(10)],
                "answer": " ".join(chance.choices(words, k=85)),
            }
        ).encode()
        for number in range(ROWS)
    ]
    return b"\n".join(lines) + b"\n"


def _post(connection: http.client.HTTPConnection, body: bytes, path: str = "/", **headers: str) -> tuple[str, bytes]:
    connection.request("POST", path, body, HEADERS | headers)
    answer = connection.getresponse()
    data = answer.read()
    if answer.status != 200:
        raise RuntimeError(data.decode())
    return answer.headers["X-ClickHouse-Summary"], data


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _engine_alone(directory: str) -> None:
    """In a process of its own: answer `load FILE`, `select` and `memory` on stdin with a number."""
    from chdb import _chdb

    connection = _chdb.connect(directory)
    connection.query("CREATE DATABASE bench")
    connection.query("USE bench")
    connection.query(TABLE)
    for line in sys.stdin:
        what, _, argument = line.strip().partition(" ")
        if what == "load":
            sql = f"INSERT INTO wide FROM INFILE '{argument}' FORMAT JSONEachRow"
            value = _seconds(lambda sql=sql: connection.query(sql))
        elif what == "select":
            value = _seconds(lambda: connection.query("SELECT 1", "TabSeparated").bytes())
        else:
            value = float(psutil.Process().memory_info().rss)
        sys.stdout.write(f"{value}\n")
        sys.stdout.flush()


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Medians of interleaved rounds in one run; the anchor of each is the engine in a process of its own, without HTTP."""
    rounds, selects = (5, 200) if quick else (15, 1000)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        store = StoreServer(directory / "served").start()
        command = [sys.executable, "-m", "tests.bench.store", str(directory / "engine")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as alone:
            assert alone.stdin
            assert alone.stdout
            stdin, stdout = alone.stdin, alone.stdout

            def engine(request: str) -> float:
                stdin.write(request + "\n")
                stdin.flush()
                return float(stdout.readline())

            try:
                return _measured(store, engine, directory / "rows.json", rounds, selects)
            finally:
                stdin.close()
                alone.wait(30)
                store.stop()


def _measured(
    store: StoreServer, engine: Callable[[str], float], file: Path, rounds: int, selects: int
) -> list[dict[str, Any]]:
    with closing(http.client.HTTPConnection("127.0.0.1", store.port, timeout=120)) as connection:
        fresh = (_resident(store.port), engine("memory"))
        _post(connection, TABLE.encode())
        times = [_insert(connection, engine, file, seed) for seed in range(rounds + 1)][1:]
        one = [(_seconds(lambda: _post(connection, b"SELECT 1")), engine("select")) for _ in range(selects)]
        loaded = (_resident(store.port), engine("memory"))
    http_rate, engine_rate = (ROWS / statistics.median(column) for column in zip(*times, strict=True))
    ours, anchor = (statistics.median(column) * 1e3 for column in zip(*one, strict=True))
    megabyte = 1 << 20
    return [
        result("insert 10,000 rows of 1.3 KB into the store, lz4", http_rate, engine_rate, "rows/s", ">= 0.5", rounds),
        result("SELECT 1 over HTTP, p50", ours, anchor, "ms", None, selects),
        result("store: RSS when ready", fresh[0] / megabyte, fresh[1] / megabyte, "MiB", "<= 1.5", 1),
        result("store: RSS after the inserts", loaded[0] / megabyte, loaded[1] / megabyte, "MiB", "<= 1.5", 1),
    ]


def _insert(
    connection: http.client.HTTPConnection, engine: Callable[[str], float], file: Path, seed: int
) -> tuple[float, float]:
    rows = _rows(seed)
    file.write_bytes(rows)
    body = lz4.frame.compress(rows)
    started = time.perf_counter()
    summary, _ = _post(connection, body, "/?query=INSERT+INTO+wide+FORMAT+JSONEachRow", **{"Content-Encoding": "lz4"})
    seconds = time.perf_counter() - started
    if json.loads(summary)["written_rows"] != str(ROWS):
        raise RuntimeError(f"written_rows differs: {summary}")
    return seconds, engine(f"load {file}")


def _resident(port: int) -> float:
    [holder] = [
        connection.pid
        for connection in psutil.net_connections("tcp4")
        if connection.status == "LISTEN" and getattr(connection.laddr, "port", 0) == port
    ]
    return float(psutil.Process(holder).memory_info().rss)


if __name__ == "__main__":
    _engine_alone(sys.argv[1])
