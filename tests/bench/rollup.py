"""Questions of SREs: answered from the rollups, beside the same questions asked of the events, in turns in one run, as an SRE."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect
from tests.bench.result import result
from tests.support.store import ROLLUP_REFRESHES, StoreServer, refresh_rollups

ROWS, QUICK_ROWS = 10_000_000, 1_000_000
#: Rows of one INSERT: more would only need more memory.
ROWS_AT_ONCE = 1_000_000
DAYS = 7
#: Of questions about days. Those about a few hours are quick either way.
TARGET = "<= 0.1"
#: What is asked, of the rollup and of the events; the first column of each is a number that both must agree on.
QUESTIONS = {
    "events by hour, project, service and tool, 7 days": (
        "SELECT sum(events), hour, project, service, tool FROM rollup_hour WHERE kind = 'retrieval' GROUP BY ALL",
        "SELECT count(), toStartOfHour(event_time) AS hour, project, service, tool_name FROM candidates GROUP BY ALL",
    ),
    "p95 latency by project and service, 7 days": (
        (
            "SELECT sum(events), project, service, "
            "quantileExactWeightedArray(0.95)(mapKeys(latency_us), mapValues(latency_us)) / 1000 "
            "FROM rollup_hour WHERE kind = 'retrieval' GROUP BY project, service"
        ),
        "SELECT count(), project, service, quantile(0.95)(latency_ms) FROM candidates GROUP BY project, service",
    ),
    "personal data by family and day, 7 days": (
        (
            "SELECT sum(n), toDate(hour) AS day, family FROM rollup_hour "
            "ARRAY JOIN mapKeys(pii_families) AS family, mapValues(pii_families) AS n GROUP BY ALL"
        ),
        (
            "SELECT sum(n), toDate(event_time) AS day, family FROM candidates "
            "ARRAY JOIN mapKeys(pii_families) AS family, mapValues(pii_families) AS n GROUP BY ALL"
        ),
    ),
    "top scores by project, 7 days": (
        "SELECT sum(scored), project, sum(top_score_sum), min(top_score_min) FROM rollup_hour GROUP BY project",
        (
            "SELECT countIf(notEmpty(retrieved_scores)), project, sum(retrieved_scores[1]), min(retrieved_scores[1]) "
            "FROM candidates GROUP BY project"
        ),
    ),
    "p95 latency by minute, project, service and tool, 24 hours": (
        (
            "SELECT events, minute, project, service, tool, p95_ms FROM rollup_minute "
            "WHERE kind = 'retrieval' AND minute >= toStartOfHour(now()) - INTERVAL 24 HOUR"
        ),
        (
            "SELECT count(), toStartOfMinute(event_time) AS minute, project, service, tool_name, quantile(0.95)(latency_ms) "
            "FROM candidates WHERE event_time >= toStartOfHour(now()) - INTERVAL 24 HOUR GROUP BY ALL"
        ),
    ),
}
_COLUMNS = (
    "schema_version, id, tool_name, query, retrieved_chunk_ids, vector_enabled, expansion_applied, latency_ms, remote, created_at, "
    "event_id, project, service, occurred_at, retrieved_scores, pii_families, policy, stored_at"
)


def fill(owner: Client, rows: int) -> None:
    """Retrievals of five projects and four services, evenly spread over the last `DAYS` days. Stored an hour ago."""
    span_ms = DAYS * 86_400_000
    first_ms = int(time.time() * 1000) - span_ms
    for start in range(0, rows, ROWS_AT_ONCE):
        owner.command(
            f"INSERT INTO assay_base.candidates ({_COLUMNS}) WITH {first_ms} + intDiv(number * {span_ms}, {rows}) AS ms, "
            # A UUIDv7 from its two halves: milliseconds, version and variant, and the number in place of random bits.
            "bitOr(bitShiftLeft(toUInt64(ms), 16), 28672) AS high, bitOr(bitShiftLeft(toUInt64(2), 62), number) AS low "
            "SELECT 1, number + 1, if(rand(1) % 2 = 0, 'query', 'search'), '', [1], true, false, exp(3 + randNormal(0, 1.2)), true, "
            "fromUnixTimestamp64Milli(ms + 5), reinterpretAsUUID(bitOr(bitShiftLeft(toUInt128(low), 64), toUInt128(high))), "
            "'p' || toString(rand(2) % 5), 's' || toString(rand(3) % 4), fromUnixTimestamp64Micro(ms * 1000), [rand(4) / 4294967296], "
            "if(rand(5) % 4 = 0, map('email', toUInt64(1)), map()), 'p1', now64(3) - INTERVAL 1 HOUR "
            f"FROM numbers({start}, {min(ROWS_AT_ONCE, rows - start)})",
            settings={"max_partitions_per_insert_block": 0, "max_insert_threads": 2},
        )


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Milliseconds, medians of interleaved rounds; then what a refresh costs, beside one count of the same events."""
    rows, rounds = (QUICK_ROWS, 3) if quick else (ROWS, 7)
    with tempfile.TemporaryDirectory() as name, StoreServer(Path(name)) as store:
        settings = store.settings(timeout_s=600)
        migrate(settings)
        with connect(settings.store) as owner, connect(store.settings("sre").store) as sre:
            for view in ROLLUP_REFRESHES:
                owner.command(f"SYSTEM STOP VIEW assay_base.{view}")
            fill(owner, rows)
            for view in ROLLUP_REFRESHES:
                owner.command(f"SYSTEM START VIEW assay_base.{view}")
            refresh_rollups(owner)
            found = [_question(sre, what, rounds, rows) for what in QUESTIONS]
            return [*found, *_refreshes(owner, sre, rows)]


def _question(sre: Client, what: str, rounds: int, rows: int) -> dict[str, Any]:
    rollup, events = QUESTIONS[what]
    counts = {sum(row[0] for row in sre.query(sql).result_rows) for sql in (rollup, events)}
    if len(counts) != 1:
        raise AssertionError(f"{what}: the rollup and the events disagree: {counts}")
    times = [(_milliseconds(sre, rollup), _milliseconds(sre, events)) for _ in range(rounds)]
    ours, anchor = (statistics.median(column) for column in zip(*times, strict=True))
    return result(f"{what}, {rows:,} events", ours, anchor, "ms", TARGET if "7 days" in what else None, rounds)


def _refreshes(owner: Client, sre: Client, rows: int) -> list[dict[str, Any]]:
    """What the engine does each minute when nothing was stored lately, and each hour when nothing differs."""
    count = statistics.median(
        _milliseconds(sre, QUESTIONS["events by hour, project, service and tool, 7 days"][1]) for _ in range(3)
    )
    found = []
    for view, when in (("rollup_minute_refresh", "idle refresh"), ("rollup_minute_repair", "hourly comparison")):
        [[statement]] = owner.query(f"SELECT as_select FROM system.tables WHERE name = '{view}'").result_rows
        times = [_milliseconds(owner, statement) for _ in range(3)]
        found.append(result(f"{when}, {rows:,} events", statistics.median(times), count, "ms", None, 3))
    return found


def _milliseconds(client: Client, sql: str) -> float:
    started = time.perf_counter()
    client.raw_query(sql, fmt="Null")
    return (time.perf_counter() - started) * 1000
