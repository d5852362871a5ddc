"""Tool calls and sessions: capturing a call, importing logs, checking sessions, and questions about ten million tool calls.

The anchors: `retrieval()` for capturing, a plain read of the same rows by `sqlite3` and `json` for importing and checking (CPU time, which
the machine's other work hardly changes), the same question asked of the events for the rollup.
"""

import contextlib
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from assay_capture import Capture
from assay_operations.sessions.events import revision, session_events
from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect
from assay_schema.settings import Settings
from assay_sessions.checks.checker import Checker
from assay_sessions.checks.rules_file import parse_rules
from assay_sessions.checks.tally import Tally
from assay_sessions.document import document
from assay_sessions.readers import READERS
from assay_sessions.record import Transcript
from assay_sessions.text_cut import natural_cut
from tests.bench.capture import CHUNKS, QUERY, SLUGS
from tests.bench.result import result
from tests.bench.rollup import DAYS, ROWS_AT_ONCE
from tests.support.opencode_logs import Session, assistant, database, tool, user
from tests.support.redis import RedisServer
from tests.support.store import MINUTELY_REFRESHES, ROLLUP_REFRESHES, StoreServer, refresh_rollups

SESSIONS, CALLS = 1_000, 20
ROWS, QUICK_ROWS = 10_000_000, 1_000_000
SPAN_MS = DAYS * 86_400_000
#: Calls that are stored last, in parts of their own, and the time they are spread over.
RECENT, RECENT_PARTS, RECENT_MS = 1_000, 3, 900_000
#: Longer than the hourly refresh looks back at what was counted by the minute, in seconds.
RECOUNT_S = 130
OUTPUT = "def handler(event):\n    return {'status': 200, 'body': render(event['path'])}\n" * 25


def by_tool(hours: int) -> tuple[str, str]:
    """Return a question about tools, of the rollups as the query `tools` asks it, and of the events."""
    since = f"toStartOfHour(now('UTC')) - INTERVAL {hours} HOUR"
    columns = "project, tool, events, statuses, latency_us"
    rollups = (
        f"WITH {since} AS since, toStartOfDay(since + INTERVAL 86399 SECOND) AS first_day "
        "SELECT sum(events), project, tool, sumMap(statuses), "
        "quantileExactWeightedArray(0.95)(mapKeys(latency_us), mapValues(latency_us)) / 1000 FROM "
        f"(SELECT {columns} FROM rollup_day WHERE kind = 'tool_call' AND day >= toDate(first_day) UNION ALL "
        f"SELECT {columns} FROM rollup_hour WHERE kind = 'tool_call' AND hour >= since AND hour < first_day) GROUP BY project, tool"
    )
    events = (
        "SELECT count(), project, tool_name, countIf(status = 'error'), quantile(0.95)(duration_ms) FROM tool_calls "
        f"WHERE event_time >= {since} GROUP BY project, tool_name"
    )
    return rollups, events


QUESTIONS = {
    "calls, errors and p95 by tool, 7 days": by_tool(24 * DAYS),
    "calls, errors and p95 by tool, 24 hours": by_tool(24),
    "error rate by hour, 7 days": (
        "SELECT sum(events), hour, sumMap(statuses)['error'] FROM rollup_hour WHERE kind = 'tool_call' GROUP BY hour",
        "SELECT count(), toStartOfHour(event_time) AS hour, countIf(status = 'error') FROM tool_calls GROUP BY hour",
    ),
}


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Rows in microseconds, CPU seconds and milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            *_capture(folder, 20 if quick else 200),
            *_import(folder, 100 if quick else SESSIONS),
            *_rollup(folder, quick),
        ]


def _capture(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """One call beside one retrieval, in turns."""
    with contextlib.ExitStack() as stack:
        (folder / "redis").mkdir()
        server = RedisServer(folder / "redis").start()
        stack.callback(server.stop)
        settings = Settings.model_validate(
            {"redis": {"url": server.url}, "capture": {"enabled": True, "spool_dir": folder / "spool"}}
        )
        capture = Capture(settings, service="bench")
        stack.callback(capture.close)
        arguments, found = {"path": "src/handlers/orders.py", "limit": 200}, {"matches": 3}

        def call() -> None:
            capture.tool_call(
                tool_name="read", duration_ms=4.2, args_summary=arguments, result_summary=found, call_id="call-7"
            )

        def retrieve() -> None:
            capture.retrieval(
                tool_name="query", query=QUERY, retrieved_slugs=SLUGS, retrieved_chunk_ids=CHUNKS, latency_ms=12.5
            )

        times: dict[Callable[[], None], list[float]] = {call: [], retrieve: []}
        for _ in range(rounds):
            for side, measured in times.items():
                for _ in range(100):
                    start = time.perf_counter_ns()
                    side()
                    measured.append((time.perf_counter_ns() - start) / 1000)
                capture.flush(10)
        ours, anchor = statistics.median(times[call]), statistics.median(times[retrieve])
        return [result("tool_call() p50 / retrieval()", ours, anchor, "us", "<= 1.3", rounds * 100)]


def _import(folder: Path, sessions: int) -> list[dict[str, Any]]:
    """Read, turn into events, and check; beside reading every row of the same database."""
    log = folder / "opencode.db"
    database(log, "1.18", (_session(number) for number in range(sessions)))
    size = log.stat().st_size / 1024 / 1024
    plain = statistics.median(_cpu(lambda: _plain_read(log)) for _ in range(3))

    def imported() -> None:
        for found in READERS["opencode"].read(log, None):
            assert isinstance(found, Transcript)
            for _ in session_events(revision(found), "bench", None, 1_790_000_000_000, natural_cut):
                pass

    ours = statistics.median(_cpu(imported) for _ in range(3))
    documents = [document(found) for found in READERS["opencode"].read(log, None) if isinstance(found, Transcript)]
    assert len(documents) == sessions

    def checked() -> None:
        rules = parse_rules("[rules.answered]\nrequired = true\n")
        checker, tally = Checker(rules), Tally(rules)
        for each in documents:
            tally.add(checker.check(each))
        assert tally.report().sessions == sessions

    checks = statistics.median(_cpu(checked) for _ in range(3))
    lines = [orjson.dumps(each) for each in documents]
    parsed = statistics.median(_cpu(lambda: [orjson.loads(line) for line in lines]) for _ in range(3))
    return [
        result(f"import, CPU / plain read of {sessions:,} sessions, {size:.0f} MiB", ours, plain, "s", "<= 4", 3),
        result("import, sessions / plain read", sessions / ours, sessions / plain, "sessions/s", None, 3),
        result("import, MiB / plain read", size / ours, size / plain, "MiB/s", None, 3),
        result(
            "checks without a model / parsing the same JSON",
            sessions / checks,
            sessions / parsed,
            "sessions/s",
            None,
            3,
        ),
    ]


def _session(number: int) -> Session:
    calls = [
        assistant(tool("read", input={"filePath": f"src/file{each}.py"}, output=f"{number} {each}\n{OUTPUT}"))
        for each in range(CALLS)
    ]
    return Session(f"{number:06}", [user("Find the bug in the handlers."), *calls, assistant("It is in render.")])


def _plain_read(log: Path) -> None:
    with contextlib.closing(sqlite3.connect(f"file:{log}?mode=ro", uri=True)) as connection:
        for table in ("session", "message", "part"):
            for row in connection.execute(f"SELECT * FROM {table}"):
                if table != "session":
                    json.loads(row[-1])


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _rollup(folder: Path, quick: bool) -> list[dict[str, Any]]:
    rows, rounds = (QUICK_ROWS, 3) if quick else (ROWS, 7)
    (folder / "store").mkdir()
    with StoreServer(folder / "store") as store:
        migrate(store.settings(timeout_s=600))
        with connect(store.settings(timeout_s=600).store) as owner, connect(store.settings("sre").store) as sre:
            for view in ROLLUP_REFRESHES:
                owner.command(f"SYSTEM STOP VIEW assay_base.{view}")
            _fill(owner, rows)
            for view in ROLLUP_REFRESHES:
                owner.command(f"SYSTEM START VIEW assay_base.{view}")
            refresh_rollups(owner)
            rows += _as_in_use(owner, rows)
            return [row for what in QUESTIONS for row in _question(sre, what, rounds, rows)]


def _as_in_use(owner: Client, rows: int) -> int:
    """Bring the rollups to the state of a store in use: old parts are merged, refreshes added the last hours. Returns the calls added.

    The first refreshes counted the whole span at once, and each of the next two minutes counts all of it again.
    """
    time.sleep(RECOUNT_S)
    for table in ("rollup_minute", "rollup_hour", "rollup_day"):
        owner.command(f"OPTIMIZE TABLE assay_base.{table} FINAL")
    for number in range(RECENT_PARTS):
        _fill(owner, RECENT, first=rows + number * RECENT, span_ms=RECENT_MS, stored_at="now64(3)")
        refresh_rollups(owner, MINUTELY_REFRESHES)
    return RECENT_PARTS * RECENT


def _fill(
    owner: Client, rows: int, *, first: int = 0, span_ms: int = SPAN_MS, stored_at: str = "now64(3) - INTERVAL 1 HOUR"
) -> None:
    """Store tool calls of five projects and twelve tools, evenly spread over the time up to now, numbered from `first`."""
    first_ms = int(time.time() * 1000) - span_ms
    columns = (
        "schema_version, id, timestamp, server_session_id, tool_name, args_summary, status, duration_ms, created_at, event_id, project, "
        "service, occurred_at, policy, stored_at"
    )
    for start in range(0, rows, ROWS_AT_ONCE):
        owner.command(
            f"INSERT INTO assay_base.tool_calls ({columns}) WITH {first_ms} + intDiv(number * {span_ms}, {rows}) AS ms, "
            f"bitOr(bitShiftLeft(toUInt64(ms), 16), 28672) AS high, bitOr(bitShiftLeft(toUInt64(2), 62), {first} + number) AS low "
            f"SELECT 1, {first} + number + 1, fromUnixTimestamp64Micro(ms * 1000), 'run', 'tool' || toString(rand(1) % 12), '{{}}', "
            "if(rand(2) % 20 = 0, 'error', 'success'), exp(3 + randNormal(0, 1.2)), fromUnixTimestamp64Milli(ms + 5), "
            "reinterpretAsUUID(bitOr(bitShiftLeft(toUInt128(low), 64), toUInt128(high))), 'p' || toString(rand(3) % 5), "
            f"'s' || toString(rand(4) % 4), fromUnixTimestamp64Micro(ms * 1000), 'p1', {stored_at} "
            f"FROM numbers({start}, {min(ROWS_AT_ONCE, rows - start)})",
            settings={"max_partitions_per_insert_block": 0, "max_insert_threads": 2},
        )


def _question(sre: Client, what: str, rounds: int, rows: int) -> list[dict[str, Any]]:
    rollup, events = QUESTIONS[what]
    counts = {sum(row[0] for row in sre.query(sql).result_rows) for sql in (rollup, events)}
    if len(counts) != 1:
        raise AssertionError(f"{what}: the rollup and the events disagree: {counts}")
    times = [(_milliseconds(sre, rollup), _milliseconds(sre, events)) for _ in range(rounds)]
    ours, anchor = (statistics.median(column) for column in zip(*times, strict=True))
    return [
        result(f"{what}, {rows:,} tool calls", ours, anchor, "ms", None, rounds),
        result(f"{what} / 100 ms", ours, 100, "ms", "<= 1", rounds),
    ]


def _milliseconds(client: Client, sql: str) -> float:
    started = time.perf_counter()
    client.raw_query(sql, fmt="Null")
    return (time.perf_counter() - started) * 1000
