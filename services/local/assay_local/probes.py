"""Probes of a running system: SQL queries, lag in Redis, memory of the processes.

Read-only, with the matching identities.
"""

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil
from redis.asyncio import Redis
from redis.exceptions import BusyLoadingError, RedisError

from assay_operations.errors import OperationError
from assay_runtime.lag import group_of
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, scrubbed_low_watermark_key, watermark_key

#: Tables of captured events, by kind.
TABLES = {
    "retrieval": "candidates", "answer": "answers", "feedback": "feedback", "tool_call": "tool_calls",
    "server_event": "server_events", "session": "session_parts",
}  # fmt: skip

#: State of Redis while it reads its append-only file.
LOADING = "loading its data"
#: Loopback is reached directly, regardless of `http_proxy`.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class StoreUnavailableError(OperationError):
    """The store did not answer a query.

    The message is that of the store; for these fixed queries it contains no captured text.
    """

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


class StoreQueries:
    """SQL over HTTP as one identity.

    Uses no client library, since the memory of the supervisor counts as that of the system.
    """

    def __init__(self, port: int, user: str, password: str) -> None:
        self._url = f"http://127.0.0.1:{port}/"
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}"}

    async def rows(self, sql: str, timeout_s: float = 20.0) -> list[dict[str, Any]]:
        """Return the rows of a query. Raises `StoreUnavailableError`."""
        return await asyncio.to_thread(self._rows, sql, timeout_s)

    def _rows(self, sql: str, timeout_s: float) -> list[dict[str, Any]]:
        body = f"{sql} FORMAT JSONEachRow".encode()
        request = urllib.request.Request(self._url, data=body, headers=self._headers)  # noqa: S310  # always http, on loopback
        try:
            with _DIRECT.open(request, timeout=timeout_s) as answer:
                return [json.loads(line) for line in answer.read().splitlines()]
        except urllib.error.HTTPError as error:
            lines = error.read(500).decode(errors="replace").strip().splitlines()
            raise StoreUnavailableError(f"store: {lines[0] if lines else error.code}") from None
        except (OSError, ValueError) as error:
            raise StoreUnavailableError(f"store: {getattr(error, 'reason', error)}") from None


@dataclass(frozen=True)
class Run:
    """Events of one run of a producer, as the store has them."""

    stored: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    families: Mapping[str, int] = field(default_factory=dict)
    #: From `occurred_at` (producer's clock) to `stored_at` (store's clock), in milliseconds; None without rows.
    p50_ms: float | None = None
    p99_ms: float | None = None

    @property
    def accounted(self) -> int:
        """Number of events that are stored or recorded as failed."""
        return sum(self.stored.values()) + sum(self.failed.values())


async def run_counts(store: StoreQueries, service: str, since_ms: int) -> tuple[dict[str, int], dict[str, int]]:
    """Count the stored events of a producer by kind, and its failed ones by reason.

    `since_ms` is its start by its own clock, in Unix milliseconds.
    """
    kinds = " UNION ALL ".join(
        f"SELECT '{kind}' AS name, count() AS n FROM assay.{table} WHERE {_ours(service, since_ms)}"  # noqa: S608  # constants and our own integers
        for kind, table in TABLES.items()
    )
    stored = await store.rows(f"SELECT name, n FROM ({kinds}) WHERE n > 0 ORDER BY name")  # noqa: S608
    failed = await store.rows(
        "SELECT reason AS name, count() AS n FROM assay.capture_failures "  # noqa: S608
        f"WHERE service = {_quoted(service)} AND entry_id IS NOT NULL AND event_id IS NOT NULL AND stage != 'otlp_exporter' "
        f"AND UUIDv7ToDateTime(assumeNotNull(event_id), 'UTC') >= {_moment(since_ms)} GROUP BY reason ORDER BY reason"
    )
    return _counts(stored), _counts(failed)


async def run_details(store: StoreQueries, service: str, since_ms: int) -> Run:
    """Count the events of a producer as `run_counts` does, with scrubbed findings and latencies."""
    stored, failed = await run_counts(store, service, since_ms)
    rows = " UNION ALL ".join(
        f"SELECT pii_families, occurred_at, stored_at FROM assay.{table} WHERE {_ours(service, since_ms)}"  # noqa: S608
        for table in TABLES.values()
    )
    families = await store.rows(
        "SELECT family AS name, sum(number) AS n FROM "  # noqa: S608
        f"(SELECT arrayJoin(pii_families) AS finding, finding.1 AS family, finding.2 AS number FROM ({rows})) GROUP BY name ORDER BY name"
    )
    ((latency),) = await store.rows(
        "SELECT count() AS n, quantiles(0.5, 0.99)(toUnixTimestamp64Micro(toDateTime64(stored_at, 6, 'UTC')) / 1000"  # noqa: S608
        f" - toUnixTimestamp64Micro(occurred_at) / 1000) AS q FROM ({rows})"
    )
    p50, p99 = latency["q"] if int(latency["n"]) else (None, None)
    return Run(stored, failed, _counts(families), p50, p99)


@dataclass(frozen=True)
class Quality:
    """Scores of the answers of one run."""

    #: Answers by status of the judging.
    statuses: Mapping[str, int] = field(default_factory=dict)
    mean_faithfulness: float | None = None
    #: Backend of the judge.
    backend: str = ""

    @property
    def seen(self) -> int:
        """Number of answers with a status."""
        return sum(self.statuses.values())


async def quality(store: StoreQueries, service: str, since_ms: int) -> Quality:
    """Return the scores of a producer's answers since it started."""
    rows = await store.rows(
        "SELECT status, count() AS n, sum(metrics['faithfulness']) AS total, countIf(mapContains(metrics, 'faithfulness')) AS scored, "  # noqa: S608
        f"any(backend) AS who FROM assay.scores WHERE {_ours(service, since_ms)} GROUP BY status ORDER BY status"
    )
    scored = sum(int(row["scored"]) for row in rows)
    return Quality(
        {row["status"]: int(row["n"]) for row in rows},
        sum(float(row["total"]) for row in rows) / scored if scored else None,
        next((row["who"] for row in rows), ""),
    )


@dataclass(frozen=True)
class Sessions:
    """Sessions in the store."""

    statuses: Mapping[str, int] = field(default_factory=dict)
    #: Number of sessions with parts that are not stored.
    incomplete: int = 0


async def sessions(store: StoreQueries, prefix: str = "", timeout_s: float = 20.0) -> Sessions:
    """Count sessions by status, imported or only captured, whose id begins with `prefix`."""
    rows = await store.rows(
        "SELECT status AS name, count() AS n, countIf(NOT complete) AS incomplete FROM assay.sessions "  # noqa: S608
        f"WHERE startsWith(session_id, {_quoted(prefix)}) GROUP BY name ORDER BY n DESC, name",
        timeout_s,
    )
    return Sessions(_counts(rows), sum(int(row["incomplete"]) for row in rows))


async def tool_calls(
    store: StoreQueries, service: str | None = None, since_ms: int = 0, timeout_s: float = 20.0
) -> dict[str, int]:
    """Count tool calls by status: those of a producer since it started, or all."""
    where = f"WHERE {_ours(service, since_ms)} " if service else ""
    sql = f"SELECT status AS name, count() AS n FROM assay.tool_calls {where}GROUP BY name ORDER BY n DESC, name"  # noqa: S608
    return _counts(await store.rows(sql, timeout_s))


async def answers_with_contexts(store: StoreQueries, service: str, since_ms: int) -> int:
    """Count a producer's answers that have contexts."""
    sql = f"SELECT count() AS n FROM assay.answers WHERE {_ours(service, since_ms)} AND notEmpty(contexts)"  # noqa: S608
    return int((await store.rows(sql))[0]["n"])


async def otlp_counts(store: StoreQueries, timeout_s: float = 20.0) -> dict[str, int]:
    """Count the stored events that came over OTLP, by kind."""
    kinds = " UNION ALL ".join(
        f"SELECT '{kind}' AS name, count() AS n FROM assay.{table} WHERE origin = 'otlp'"  # noqa: S608
        for kind, table in TABLES.items()
        if kind in ("retrieval", "answer", "feedback", "tool_call")
    )
    return _counts(await store.rows(f"SELECT name, n FROM ({kinds}) WHERE n > 0 ORDER BY name", timeout_s))  # noqa: S608


async def alerts_since(store: StoreQueries, since_ms: int) -> list[dict[str, Any]]:
    """Return the transitions of alerts stored since a time, in order."""
    return await store.rows(
        "SELECT toString(alert_id) AS alert_id, kind, state, summary, toUnixTimestamp64Milli(stored_at) AS stored_ms "  # noqa: S608
        f"FROM assay.alerts WHERE stored_at >= {_moment(since_ms)} ORDER BY stored_at, sequence"
    )


async def alertmanager_has(port: int) -> set[str] | None:
    """Return the active episodes of an Alertmanager on loopback; None if it does not answer."""
    return await asyncio.to_thread(_alertmanager_has, f"http://127.0.0.1:{port}/api/v2/alerts?active=true")


def _alertmanager_has(url: str) -> set[str] | None:
    try:
        with _DIRECT.open(url, timeout=5) as answer:
            return {alert["labels"].get("alert_id", "") for alert in json.loads(answer.read())}
    except (OSError, ValueError):
        return None


async def total_stored(store: StoreQueries, timeout_s: float = 20.0) -> int:
    """Count the stored events of every kind."""
    counts = " UNION ALL ".join(f"SELECT count() AS n FROM assay.{table}" for table in TABLES.values())  # noqa: S608
    (row,) = await store.rows(f"SELECT sum(n) AS n FROM ({counts})", timeout_s)  # noqa: S608
    return int(row["n"])


async def stored_watermark(store: StoreQueries) -> int:
    """Return the watermark that exports use; 0 without one."""
    rows = await store.rows("SELECT watermark FROM assay.watermark")
    return int(rows[0]["watermark"]) if rows else 0


@dataclass(frozen=True)
class Lag:
    """Waiting entries of each step: unread, and read but unfinished."""

    capture: int
    events: int
    failures: int
    #: Everything captured up to this watermark is scrubbed.
    low: int
    #: Everything captured up to this watermark is stored or recorded as failed.
    watermark: int

    def __str__(self) -> str:
        streams = {"capture": self.capture, "events": self.events, "failures": self.failures}
        return ", ".join(f"{name} {lag:,}" for name, lag in streams.items())


async def lag(client: Redis, shards: int) -> Lag:
    """Return the lag of all shards and the lowest watermarks. Raises `RedisError`."""
    waiting = {CAPTURE: 0, EVENTS: 0, FAILURES: 0}
    lows, watermarks = [], []
    for shard in range(shards):
        for stream in waiting:
            group = await group_of(client, stream, shard, stream.groups[0])
            # Until its service has created the group, the whole stream waits.
            waiting[stream] += int(await client.xlen(stream.key(shard))) if group is None else group.unfinished
        lows.append(int(await client.get(scrubbed_low_watermark_key(shard)) or 0))
        watermarks.append(int(await client.get(watermark_key(shard)) or 0))
    return Lag(waiting[CAPTURE], waiting[EVENTS], waiting[FAILURES], min(lows), min(watermarks))


def memory(pids: Mapping[str, int], apart: int) -> dict[str, int]:
    """Return the resident bytes of each process and its children.

    The children of process `apart` are counted separately.
    """
    return {name: sum(map(_resident, _family(pid, alone=pid == apart))) for name, pid in pids.items()}


def _family(pid: int, *, alone: bool) -> Iterable[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process] if alone else [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


async def http_status(port: int, path: str) -> int | None:
    """Return the status of a GET on loopback; None without a response."""
    return await asyncio.to_thread(_http_status, f"http://127.0.0.1:{port}{path}")


def _http_status(url: str) -> int | None:
    try:
        with _DIRECT.open(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


async def redis_missing(client: Redis) -> str | None:
    """Return why Redis is not ready; None if it is."""
    try:
        await client.ping()
        persistence = await client.info("persistence")
    except BusyLoadingError:
        return LOADING
    except RedisError as error:
        return type(error).__name__
    return None if persistence["aof_enabled"] else "append-only files are off"


def _counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return {row["name"]: int(row["n"]) for row in rows}


def _ours(service: str, since_ms: int) -> str:
    return f"service = {_quoted(service)} AND event_time >= {_moment(since_ms)}"


def _moment(ms: int) -> str:
    return f"fromUnixTimestamp64Milli(toInt64({ms}), 'UTC')"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
