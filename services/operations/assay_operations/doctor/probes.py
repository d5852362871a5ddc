"""Probes of `assay doctor`. Each probe may raise; `Examination` turns the error into a finding."""

import json
import os
import re
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_auditor.last_verification import last_verification
from assay_auditor.rows import PRESENT_SQL
from assay_operations.audit_anchors import newest_sizes
from assay_operations.audit_log import AuditLog
from assay_operations.doctor.host_checks import MemoryFacts, SpoolFacts
from assay_operations.doctor.quality_checks import JUDGED_LATELY, ContradictionsFacts
from assay_operations.doctor.redis_checks import GroupFacts, RedisFacts, StreamFacts
from assay_operations.doctor.store_checks import FailureFacts
from assay_schema.failures import GIVEN_UP
from assay_schema.settings import FILE_VARIABLE, CaptureSettings
from assay_schema.streams import DEAD, STREAMS, Stream

if TYPE_CHECKING:
    from assay_auditor.anchors.anchor import Anchor
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store

#: Version of Redis since which a read without entries counts as a sign of life; Valkey reports a later one.
HEARS_ASKERS = (7, 2)
#: Timeout of a service's metrics in seconds.
_METRICS_TIMEOUT_S = 3
#: Services on this host are reached directly, without `http_proxy`.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


async def redis_facts(client: "Redis") -> RedisFacts:
    """Read the version, persistence, memory and replicas of Redis."""
    sections = ("server", "persistence", "memory", "replication", "stats")
    server, persistence, memory, replication, stats = [await client.info(section) for section in sections]
    return RedisFacts(
        version=str(server["redis_version"]),
        valkey=str(server.get("valkey_version", "")),
        append_only=bool(persistence["aof_enabled"]),
        last_write_ok=persistence.get("aof_last_write_status", "ok") == "ok",
        memory=int(memory["used_memory"]),
        memory_limit=int(memory["maxmemory"]),
        eviction=str(memory["maxmemory_policy"]),
        evicted=int(stats["evicted_keys"]),
        replicas=int(replication["connected_slaves"]),
    )


async def redis_ahead_s(client: "Redis") -> float:
    """Return the seconds that Redis's clock is ahead of this host's."""
    before = time.time()
    seconds, microseconds = await client.time()
    return float(seconds + microseconds / 1e6 - (before + time.time()) / 2)


async def ids_ahead_s(client: "Redis", shards: int) -> float:
    """Return the seconds that the newest delivered entry is ahead of Redis's clock; negative if behind.

    Only readers of a stream may read its newest id, so an entry that was not delivered yet does not count.
    """
    newest_ms = 0
    for key in (stream.key(shard) for shard in range(shards) for stream in STREAMS if stream.groups):
        delivered = [state["last-delivered-id"] for state in await _groups(client, key)]
        newest_ms = max([newest_ms, *(int(entry.partition(b"-")[0]) for entry in delivered)])
    seconds, microseconds = await client.time()
    return float(newest_ms / 1_000 - seconds - microseconds / 1e6)


async def _groups(client: "Redis", key: str) -> list[dict[str, Any]]:
    """Return the groups of a stream; empty before the stream exists."""
    from redis.exceptions import ResponseError

    try:
        return list(await client.xinfo_groups(key))
    except ResponseError as error:
        if "no such key" not in str(error).lower():
            raise
        return []


async def stream_facts(client: "Redis", shards: int) -> list[StreamFacts]:
    """Read the facts of every shard of every stream. Needs no right to read entries."""
    now_ms = int((await client.time())[0]) * 1_000
    return [await _stream(client, stream, shard, now_ms) for shard in range(shards) for stream in STREAMS]


async def _stream(client: "Redis", stream: Stream, shard: int, now_ms: int) -> StreamFacts:
    from assay_runtime.connection import server_of
    from assay_runtime.dead_letters import dead_bytes
    from assay_runtime.lag import groups

    key = stream.key(shard)
    version = (await server_of(client, shard).info("server"))["redis_version"]
    hears_askers = tuple(int(part) for part in version.split(".")[:2]) >= HEARS_ASKERS
    found = []
    for name, group in (await groups(client, stream, shard) if stream.groups else {}).items():
        consumers = await client.xinfo_consumers(key, name)
        # If an older server has lost count of the unread entries, there may be none, and so no sign of life to expect.
        telling = consumers and (hears_askers or group.counted or group.pending)
        found.append(
            GroupFacts(
                name,
                group.consumers,
                group.pending,
                group.unread,
                await _oldest_ms(client, key, name, group.pending, now_ms),
                tuple(each["name"].decode(errors="replace") for each in consumers),
                min(int(each["idle"]) for each in consumers) if telling else None,
                hears_askers,
            )
        )
    memory = (await dead_bytes(client, shard) or 0) if stream is DEAD else 0
    length = int(await client.xlen(key))
    return StreamFacts(stream.name, shard, length, stream.groups, tuple(found), stream.optional, memory)


async def _oldest_ms(client: "Redis", key: str, group: str, pending: int, now_ms: int) -> int | None:
    first = (await client.xpending(key, group))["min"] if pending else None
    return max(0, now_ms - int(first.partition(b"-")[0])) if first else None


def store_ahead_s(client: "Store") -> float:
    """Return the seconds that the store's clock is ahead of this host's."""
    before = time.time()
    now_ms = client.query("SELECT toUnixTimestamp64Milli(now64(3))").result_rows[0][0]
    return float(now_ms / 1_000 - (before + time.time()) / 2)


def final_settings(client: "Store") -> tuple[bool, bool]:
    """Return whether FINAL uses skip indexes, and whether in exact mode.

    Defaults without the settings: False, True.
    """
    rows = client.query(
        "SELECT name, value FROM system.settings "
        "WHERE name IN ('use_skip_indexes_if_final', 'use_skip_indexes_if_final_exact_mode')"
    ).result_rows
    values = {str(name): value == "1" for name, value in rows}
    return values.get("use_skip_indexes_if_final", False), values.get("use_skip_indexes_if_final_exact_mode", True)


def memory_of(host: str, port: int) -> MemoryFacts | None:
    """Read the memory of a service on this host; None if something else answers.

    Raises `OSError` if nothing answers.
    """
    if (text := _page(host, port, "/metrics")) is None:
        return None
    found = {
        name: re.search(rf"^{name} (\d\S*)$", text, re.MULTILINE)
        for name in ("process_resident_memory_bytes", "assay_memory_bound_bytes", "assay_memory_peak_bytes")
    }
    held, bound, peak = (int(float(each[1])) if each else 0 for each in found.values())
    return MemoryFacts(held, bound, peak) if held and bound else None


def channels_of(host: str, port: int) -> tuple[dict[str, bool], list[str]] | None:
    """Read the state of the notifier's channels, and its notes; None if something else answers.

    Raises `OSError` if nothing answers.
    """
    return _labelled(host, port, "assay_notice_channel_up", "channel")


def policy_of(host: str, port: int) -> tuple[dict[str, bool], list[str]] | None:
    """Read if the scrubber uses its policy, by `file` or `default`, and its notes.

    None if something else answers.
    Raises `OSError` if nothing answers.
    """
    return _labelled(host, port, "assay_policy_current", "source")


def _labelled(host: str, port: int, metric: str, label: str) -> tuple[dict[str, bool], list[str]] | None:
    """Read a service's metric of 0 or 1, by a label, and the service's notes."""
    if (text := _page(host, port, "/metrics")) is None:
        return None
    _, notes = state_of(host, port) or ([], [])
    found = re.findall(rf'^{metric}{{{label}="([^"]*)"}} (\S+)$', text, re.MULTILINE)
    return ({name: float(value) == 1 for name, value in found}, notes) if found else None


def counts_of(host: str, port: int, names: Sequence[str]) -> dict[str, dict[tuple[tuple[str, str], ...], float]] | None:
    """Read metrics of a service on this host, by name and labels; None if something else answers.

    Raises `OSError` if nothing answers.
    """
    if (text := _page(host, port, "/metrics")) is None:
        return None
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {name: {} for name in names}
    for name, labels, value in re.findall(r"^(\w+)(?:\{([^}\n]*)\})? (\S+)$", text, re.MULTILINE):
        if name in found:
            found[name][tuple(re.findall(r'(\w+)="([^"]*)"', labels))] = float(value)
    return found


def state_of(host: str, port: int) -> tuple[list[str], list[str]] | None:
    """Return the reasons why a service is not ready, and its notes; None if something else answers.

    Raises `OSError` if nothing answers.
    """
    try:
        state = json.loads(_page(host, port, "/readyz") or "")
        problems, notes = state["problems"], state.get("notes", [])
        return [str(problem) for problem in problems], [str(note) for note in notes]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _page(host: str, port: int, path: str) -> str | None:
    """Return a page of a service, also with an error status; None if something else answers.

    Raises `OSError` if nothing answers.
    """
    try:
        with _DIRECT.open(f"http://{host}:{port}{path}", timeout=_METRICS_TIMEOUT_S) as answer:  # a host of ours
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:  # not ready
        return error.read().decode(errors="replace")
    except (HTTPException, UnicodeDecodeError):
        return None


def wall_of(url: str) -> tuple[dict[str, bool], str]:
    """Read how the kernel confines the store ({} if unknown), and why it has no separate account."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/metrics", timeout=5) as answer:  # noqa: S310  # a host of ours
            text = answer.read().decode()
    except OSError:
        return {}, ""
    found = re.findall(r'(?m)^assay_store_wall{keeps_from="(\w+)"} (\S+)$', text)
    kept = re.findall(r'(?m)^assay_store_account_kept{reason="(\w+)"} 1.0$', text)
    return {what: value == "1.0" for what, value in found}, kept[0] if kept else ""


def broken_parts(client: "Store") -> dict[str, int]:
    """Count by table the parts that were unreadable when the store started and are not dropped yet."""
    rows = client.query(
        "SELECT database || '.' || table, count() FROM system.detached_parts WHERE startsWith(reason, 'broken') GROUP BY ALL"
    ).result_rows
    return {str(table): int(count) for table, count in rows}


def failures_by_reason(client: "Store") -> list[FailureFacts]:
    """Count the failures of the last 24 hours as `assay query failures` does.

    `client` must use the views' database.
    """
    from assay_runtime.queries import named_queries

    question, found = named_queries()["failures"], dict[str, FailureFacts]()
    for row in client.query(question.sql, parameters=question.defaults).named_results():
        so_far = found.get(row["reason"], FailureFacts(row["reason"], 0))
        lost = row["lost"] + row["recovered"]
        found[row["reason"]] = FailureFacts(
            so_far.reason,
            so_far.count + lost + row["incidents"],
            so_far.given_up + (lost if row["error_class"] == GIVEN_UP else 0),
            so_far.recovered + row["recovered"],
            so_far.outages + row["incidents"],
        )
    return list(found.values())


def imported_sessions(client: "Store", late_s: float) -> tuple[int, int, float | None]:
    """Count the sessions of the last 7 days, and those of any age that are incomplete for `late_s` s.

    Also return the seconds since the latest part; None without one. `client` must use the views' database.
    """
    [(stored, in_a_week, incomplete, waited_s)] = client.query(
        "SELECT count(), countIf(waited_s <= 7 * 86400), countIf(NOT complete AND waited_s > {late_s:Float64}), min(waited_s) FROM ("
        " SELECT project, session_id, uniqExact(part) = max(parts) AS complete,"
        " dateDiff('second', max(created_at), now64(3)) AS waited_s"
        " FROM session_parts"
        " GROUP BY project, session_id, revision, digest ORDER BY revision DESC, max(id) DESC LIMIT 1 BY project, session_id)",
        parameters={"late_s": late_s},
    ).result_rows
    return int(in_a_week), int(incomplete), float(waited_s) if stored else None


def nightly_outcomes(client: "Store", database: str) -> list[tuple[str, float, str]]:
    """Read the nightly evaluations of a week: outcome, hours ago, name with detail; the latest last."""
    query = (
        "SELECT toString(outcome), dateDiff('second', started_at, now64(3)) / 3600, concat(evaluation, ', ', detail)"  # noqa: S608 - a checked setting
        f" FROM {database}.eval_outcomes WHERE started_at BETWEEN now() - toIntervalDay(7) AND now() ORDER BY started_at"
    )
    return [(str(outcome), float(hours), str(detail)) for outcome, hours, detail in client.query(query).result_rows]


def contradictions(client: "Store", database: str) -> list[ContradictionsFacts]:
    """Read the newest run of contradictions of each project, and its open findings of high severity.

    Both are of the last 90 days.
    """
    query = f"""
        WITH newest AS
        (
            SELECT project, status, rate, rate_low, rate_high, started_at FROM {database}.contradiction_runs
            WHERE started_at > now() - toIntervalDay(90) ORDER BY started_at DESC LIMIT 1 BY project
        ),
        pairs AS
        (
            SELECT project, pair_key, finding_id, severity, verdict, started_at FROM {database}.contradiction_pairs
            WHERE run_id GLOBAL IN (SELECT run_id FROM {database}.contradiction_runs WHERE started_at > now() - toIntervalDay(90))
        )
        SELECT newest.project, status = 'judge_failed', rate, rate_low, rate_high, dateDiff('second', started_at, now64(3)) / 3600,
            high.found
        FROM newest GLOBAL LEFT JOIN
        (
            SELECT seen.project AS project, uniqExact(seen.finding_id) AS found
            FROM
            (
                SELECT project, finding_id, pair_key, max(started_at) AS at, argMax(severity, started_at) AS severity FROM pairs
                WHERE finding_id != '' GROUP BY project, finding_id, pair_key
            ) AS seen
            GLOBAL INNER JOIN
            (
                SELECT project, pair_key, max(started_at) AS at FROM pairs WHERE verdict != 'uncertain' GROUP BY project, pair_key
            ) AS judged ON judged.project = seen.project AND judged.pair_key = seen.pair_key
            GLOBAL LEFT JOIN
            (
                SELECT project, pair_key, max(started_at) AS at
                FROM (SELECT project, arrayJoin(pairs_gone) AS pair_key, started_at FROM {database}.contradiction_runs)
                GROUP BY project, pair_key
            ) AS missed ON missed.project = seen.project AND missed.pair_key = seen.pair_key
            WHERE seen.severity = 'high' AND judged.at <= seen.at AND missed.at <= seen.at
                AND (seen.project, seen.finding_id, seen.pair_key) GLOBAL NOT IN
            (
                SELECT of.project, of.finding_id, of.pair_key FROM {database}.contradiction_labels AS l
                GLOBAL INNER JOIN {database}.contradiction_pairs AS of ON of.result_id = l.result_id
                WHERE of.finding_id != '' AND l.label != 'skip'
                GROUP BY of.project, of.finding_id, of.pair_key HAVING argMax(l.label, l.labelled_at) = 'refute'
            )
            GROUP BY seen.project
        ) AS high ON high.project = newest.project
        ORDER BY newest.project
    """  # noqa: S608 - a checked setting
    return [
        ContradictionsFacts(str(project), bool(failed), rate, low, high, float(hours), int(found))
        for project, failed, rate, low, high, hours, found in client.query(query).result_rows
    ]


def unended_operations(client: "Store", database: str) -> list[tuple[str, str, float]]:
    """Read the operations of a week that have no end, the latest last: operation, actor, seconds ago."""
    query = (
        "SELECT operation, actor, dateDiff('second', started_at, now64(3))"  # noqa: S608 - a checked setting
        f" FROM {database}.operations WHERE outcome = 'started' AND started_at > now() - toIntervalDay(7) ORDER BY started_at"
    )
    return [(str(operation), str(actor), float(ago)) for operation, actor, ago in client.query(query).result_rows]


def schema_of_views(client: "Store") -> int:
    """Return the number of the store's last migration, 0 for none. `client` must use the views' database."""
    return int(client.query("SELECT max(version) FROM schema_migrations").result_rows[0][0])


def watermark_place(client: "Store", database: str) -> tuple[int, float]:
    """Read the watermark, and the seconds since it moved."""
    query = (
        "SELECT watermark, toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(updated_at)"  # noqa: S608 - a checked setting
        f" FROM {database}.watermark"
    )
    place, moved_ms = client.query(query).result_rows[0]
    return int(place), moved_ms / 1_000


def spool_facts(*directories: Path) -> list[SpoolFacts]:
    """Measure the spooled events by directory and destination.

    Each user's events are in a separate directory; those that this user cannot read are not counted.
    """
    return [facts for directory in dict.fromkeys(directories) for facts in _spool_facts(directory)]


def _spool_facts(directory: Path) -> list[SpoolFacts]:
    sizes, oldest = Counter[str](), dict[str, float]()
    for path in directory.glob("assay-spool-*/**/*.jsonl"):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue  # sent meanwhile
        if state.st_size:
            within = path.relative_to(directory).parts
            name = within[1] if len(within) == 4 else "unnamed"
            sizes[name] += state.st_size
            oldest[name] = min(state.st_mtime, oldest.get(name, state.st_mtime))
    now = time.time()
    return [SpoolFacts(name, sizes[name], max(0.0, now - oldest[name]), str(directory)) for name in sorted(sizes)]


def spool_directories(settings: CaptureSettings) -> tuple[Path, ...]:
    """Return where producers on this host spool: the directory of these settings, and the SDK's default.

    A producer that sets only the address of Redis uses the default.
    """
    return (*([settings.spool_dir] if settings.spool_dir else []), _default_spool_directory())


def _default_spool_directory() -> Path:
    if (state := os.environ.get("XDG_STATE_HOME")) and Path(state).is_absolute():
        return Path(state) / "assay-spool"
    try:
        return Path.home() / ".local" / "state" / "assay-spool"
    except RuntimeError:
        return Path(tempfile.gettempdir())


def secret_modes(data: Path) -> list[tuple[str, int]]:
    """Read the permission bits of files with passwords on this host."""
    directory = data / "secrets"
    paths = [directory, *sorted(directory.iterdir())] if directory.is_dir() else []
    if named := os.environ.get(FILE_VARIABLE):
        paths.append(Path(named))
    return [(str(path), path.stat().st_mode & 0o777) for path in dict.fromkeys(paths)]


def open_alerts(client: "Store") -> dict[str, int]:
    """Count open alert episodes by state. `client` must use the views' database."""
    answer = client.query("SELECT state, count() AS n FROM open_episodes GROUP BY state")
    return {str(state): int(count) for state, count in answer.result_rows}


_JUDGED_LATELY = """
SELECT error, failed, count() FROM (
    SELECT status = 'judge_error' AS error, if(error, detail, '') AS failed FROM scores
    WHERE status IN ('scored', 'abstained', 'judge_error') AND judged_at > now() - toIntervalDay(1)
    ORDER BY judged_at DESC LIMIT {most:UInt32}
) GROUP BY error, failed
"""


def judged_lately(client: "Store") -> tuple[int, dict[str, int], str]:
    """Count the latest answers with a verdict and by error, with the reason if judging stopped, else ''.

    `client` must use the views' database.
    """
    found = client.query(_JUDGED_LATELY, parameters={"most": JUDGED_LATELY}).result_rows
    stopped = client.query("SELECT summary FROM open_episodes WHERE kind = 'judge_stopped' LIMIT 1").result_rows
    errors = {str(failed): int(count) for error, failed, count in found if error}
    scored = sum(int(count) for error, _, count in found if not error)
    return scored, errors, str(stopped[0][0]) if stopped else ""


def audit_log(client: "Store", database: str, origin: str) -> tuple[int, int, float, float, bool]:
    """Return the leaves of the audit log, those that a checkpoint covers, and what is late or ahead.

    Two times in seconds: since the first leaf without a checkpoint was written, and since the first event without a leaf was received.
    A place is ahead if it is above the watermark and the present: no event can have it.
    """
    wanted = {"log": origin}
    leaves, place = client.query(
        f"SELECT if(count() = 0, 0, max(leaf_index) + 1), maxIf(place, kind IN ('tool_call', 'server_event')) FROM {database}.audit_leaves "  # noqa: S608
        "WHERE log = {log:String}",
        parameters=wanted,
    ).result_rows[0]
    covered = int(
        client.query(
            f"SELECT max(size) FROM {database}.audit_checkpoints WHERE log = {{log:String}} AND size <= {{leaves:UInt64}}",  # noqa: S608
            parameters={**wanted, "leaves": leaves},
        ).result_rows[0][0]
    )
    unanchored_s = 0.0
    if covered < leaves:
        rows = client.query(
            f"SELECT toFloat64(max(dateDiff('second', stored_at, now64(6, 'UTC')))) FROM {database}.audit_leaves "  # noqa: S608
            "WHERE log = {log:String} AND leaf_index = {place:UInt64}",
            parameters={"log": origin, "place": covered},
        ).result_rows
        unanchored_s = max(0.0, float(rows[0][0]))
    behind_s = max(
        float(
            client.query(
                f"SELECT toFloat64(if(count() = 0, 0, max(dateDiff('second', created_at, now64(3, 'UTC'))))) FROM {database}.{table} "  # noqa: S608
                f"WHERE id > {int(place)} AND id <= (SELECT watermark FROM {database}.watermark)"
            ).result_rows[0][0]
        )
        for table in ("tool_calls", "server_events")
    )
    latest = client.query(
        f"SELECT greatest(max(watermark), {PRESENT_SQL}) FROM {database}.watermark"  # noqa: S608
    ).result_rows[0][0]
    return int(leaves), covered, unanchored_s, behind_s, int(place) > int(latest)


def late_anchors(log: AuditLog, configured: Sequence["Anchor"]) -> list[tuple[str, int, float]]:
    """Return each anchor, the leaves of its newest valid checkpoint, and the age of the next in s."""
    found = []
    for name, size in newest_sizes(log, configured).items():
        behind_s = log.query(
            "SELECT toFloat64(if(count() = 0, 0, max(dateDiff('second', stored_at, now64(6, 'UTC'))))) FROM audit_checkpoints "
            "WHERE log = {log:String} AND size > {size:UInt64}",
            size=size,
        )[0][0]
        found.append((name, size, max(0.0, float(behind_s))))
    return found


def audit_verification(
    client: "Store", database: str, origin: str
) -> tuple[float | None, tuple[str, int, float] | None]:
    """Return the age of the first leaf in s, and outcome, mismatches and age of the newest verification.

    A verification of some rows counts only if it found a mismatch: the mismatch that an earlier one found may be elsewhere.
    """
    found = last_verification(client, database, origin)
    age_s = None if found.began_s is None else max(0.0, found.now_s - found.began_s)
    if found.at_s is None:
        return age_s, None
    outcome = "failed" if found.found_mismatch else "done"
    return age_s, (outcome, found.mismatches, max(0.0, found.now_s - found.at_s))


#: Days that a row of the audit log may be late to expire: a timer may run once a week.
_LATE_DAYS = 7


def overdue_audit_rows(client: "Store", database: str, origin: str, days: int) -> int:
    """Return the rows of the audit log that should have expired a week ago.

    `days`: 0 keeps them indefinitely.
    """
    if not days:
        return 0
    young = f"least(created_at, stored_at) > now64(3, 'UTC') - toIntervalDay({days + _LATE_DAYS})"
    rows = f"{database}.audit_rows WHERE log = {{log:String}}"
    first_young = f"SELECT if(countIf({young}) = 0, max(leaf_index) + 1, minIf(leaf_index, {young})) FROM {rows}"  # noqa: S608
    query = f"SELECT uniq(leaf_index) FROM {rows} AND leaf_index < ({first_young})"  # noqa: S608
    return int(client.query(query, parameters={"log": origin}).result_rows[0][0])
