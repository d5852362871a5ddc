"""Health checks of `assay doctor`. Pure: measurements in, findings out.

`fail`: events are lost or stopped. `warn`: they will be, or an operator should know.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from assay_schema.settings import DeliverySettings, Settings
from assay_schema.streams import DEAD
from assay_ui.formats import counted

if TYPE_CHECKING:
    from assay_sessions.readers import Problem


class Status(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. `hint` is the command or setting that fixes it; empty if healthy."""

    check: str
    status: Status
    summary: str
    hint: str = ""


def worst(*statuses: Status) -> Status:
    """Return the worst of several statuses."""
    return max(statuses, key=list(Status).index, default=Status.OK)


#: Why a store without Landlock has no separate account, by the reasons in its metrics.
_ACCOUNT_KEPT = {
    "not_root": "no separate uid: it was not started as root",
    "path": "no separate uid: a directory on the path to its data is closed to other accounts",
    "python": "no separate uid: Python or its packages are in a directory that is closed to other accounts",
    "foreign": "no separate uid: its data directory contains files of another account or program",
    "links": "no separate uid: files of its data have hard links elsewhere",
    "refused": "no separate uid: the kernel refused it",
}


def wall(keeps_from: Mapping[str, bool], account_kept: str = "") -> Finding:
    """Check how the kernel confines the embedded store, from the store's metrics (empty for ClickHouse).

    `account_kept` is the reason why the store has no separate account, if there is no Landlock.
    """
    name = "store's process"
    if not keeps_from:
        return Finding(name, Status.OK, "not the embedded store, or one of an older version")
    hint = "see docs/security.md"
    if not keeps_from.get("files") and keeps_from.get("closed_files"):
        summary = (
            "has a separate uid; only the check of statements keeps readers from world-readable files, programs and connections "
            "(no Landlock)"
        )
        return Finding(name, Status.WARN, summary, f"use Linux 5.19 or later with Landlock; {hint}")
    if not keeps_from.get("files"):
        reason = "; ".join(["no Landlock", *filter(None, [_ACCOUNT_KEPT.get(account_kept, "")])])
        summary = f"can open every file of its account; only the check of statements keeps readers from them ({reason})"
        fix = "use Linux 5.19 or later with Landlock"
        if account_kept and account_kept != "not_root":
            fix += ", or follow the store's warning in its log"
        return Finding(name, Status.WARN, summary, f"{fix}; {hint}")
    if not keeps_from.get("network"):
        summary = (
            "can open connections; only the check of statements keeps readers from that (Landlock before Linux 6.7)"
        )
        return Finding(name, Status.WARN, summary, f"use Linux 6.7 or later; {hint}")
    return Finding(name, Status.OK, "can open only its own files, and no connections (Landlock)")


def broken_parts(tables: Mapping[str, int]) -> Finding:
    """Check for table parts that the store could not read when it started."""
    name = "store's parts"
    if not tables:
        return Finding(name, Status.OK, "all are readable")
    words = ", ".join(f"{count} of {table}" for table, count in sorted(tables.items()))
    return Finding(
        name,
        Status.WARN,
        f"unreadable when the store started, and detached: {words}",
        "a write to its disk failed: check the disk; then see docs/store.md, Failed writes",
    )


#: Hours without a result after which a nightly evaluation counts as missed.
NIGHT_MISSED_H = 49


def nightly_evaluation(configured: bool, outcomes: Sequence[tuple[str, float, str]]) -> Finding:
    """Check the nightly evaluations of a week, the latest last.

    Each is its outcome, hours ago, and its name with the detail.
    """
    name = "nightly evaluation"
    ended = [night for night in outcomes if night[0] != "rate_limited"]
    if not ended:
        summary = "configured, has not run yet" if configured else "not configured"
        return Finding(
            name,
            Status.OK,
            summary,
            ""
            if configured
            else "to enable it: set evals.dataset and evals.target (or see docs/gates.md), then run assay eval nightly",
        )
    counts = {
        outcome: sum(night[0] == outcome for night in ended) for outcome in dict.fromkeys(night[0] for night in ended)
    }
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    outcome, hours, detail = ended[-1]
    summary = f"{words} in a week; the latest {hours:.0f} h ago: {outcome}{': ' + detail if detail else ''}"
    if configured and min(night[1] for night in ended) > NIGHT_MISSED_H:
        return Finding(name, Status.WARN, summary, "none since: is `assay eval nightly` running?")
    # With few cases a pass is rare; without a significant regression nothing is wrong.
    if counts.keys() <= {"pass", "inconclusive"}:
        return Finding(name, Status.OK, summary)
    return Finding(
        name, Status.WARN, summary, "see: assay query 'SELECT * FROM eval_outcomes ORDER BY started_at DESC'"
    )


@dataclass(frozen=True)
class ContradictionsFacts:
    """The newest run of contradictions in a project; rates are None if it judged nothing."""

    project: str
    failed: bool
    rate: float | None
    low: float | None
    high: float | None
    hours_ago: float
    #: Open findings of high severity that no person refuted, of all runs.
    high_findings: int


def contradictions(runs: Sequence[ContradictionsFacts]) -> Finding:
    """Check the newest run of each project."""
    name = "contradictions"
    if not runs:
        return Finding(
            name, Status.OK, "none measured", "to measure them: assay eval contradictions run --from-capture"
        )
    words = []
    for each in runs:
        found = "the judge failed, so there is no rate"
        if each.rate is not None:
            found = f"{each.rate:.1%} of pairs ({each.low or 0:.1%} to {each.high or 0:.1%}), {each.high_findings} open high finding(s)"
        words.append(f"{each.project}: {found}, {each.hours_ago:.0f} h ago")
    summary = "; ".join(words)
    if bad := [each for each in runs if each.high_findings]:
        return Finding(name, Status.WARN, summary, f"see: assay eval contradictions review --project {bad[0].project}")
    if any(each.failed for each in runs):
        return Finding(name, Status.WARN, summary, "see judge.model and judge.api_key, and run it again")
    return Finding(name, Status.OK, summary)


#: Seconds after which a session whose parts have not all arrived is a warning: parts of one import follow within seconds.
INCOMPLETE_S = 300.0


#: Problems of an agent's last import that are named; the rest is counted.
_PROBLEMS_NAMED = 3


def sessions(
    in_a_week: int, incomplete: int, imported_s_ago: float | None, not_read: Mapping[str, Sequence["Problem"]]
) -> Finding:
    """Check the stored sessions: those imported in a week, and the incomplete ones of any age.

    `imported_s_ago` is None without any session. `not_read` has what the last import of each agent did not read.
    """
    from assay_sessions.readers.explained import fixes, in_words

    latest = "" if imported_s_ago is None else f", the latest {age(imported_s_ago)} ago"
    said = [f"{counted(in_a_week, 'session') if in_a_week else 'none'} imported in a week{latest}"]
    hints: list[str] = []
    if incomplete:
        said.append(f"{incomplete:,} not complete: parts are missing")
        hints.append("import them again (assay sessions import); if that changes nothing, see assay query failures")
    for agent, problems in not_read.items():
        named = [in_words(problem) for problem in problems[:_PROBLEMS_NAMED]]
        named += [f"and {len(problems) - len(named):,} more"] if len(problems) > len(named) else []
        said.append(f"the last import from {agent} did not read: {', '.join(named)}")
    hints += fixes(problem.kind for problems in not_read.values() for problem in problems[:_PROBLEMS_NAMED])
    return Finding("sessions", Status.WARN if hints else Status.OK, "; ".join(said), "; ".join(hints))


#: Seconds after which an operation without an end counts as killed; a long deletion takes minutes.
OPERATION_S = 3_600.0


def operations(unended: Sequence[tuple[str, str, float]] | None, waiting: int, folder: Path) -> Finding:
    """Check the audit records of a week for operations without an end.

    `unended` has operation, actor and seconds since the start; None if the store does not tell. `waiting`: records that the store has not
    taken, which are in files of `folder`.
    """
    name = "operations"
    killed = [each for each in unended or () if each[2] >= OPERATION_S]
    problems, hints = [], []
    if killed:
        operation, actor, ago = killed[-1]
        problems.append(f"{len(killed)} started and never ended, the latest: {operation} by {actor}, {age(ago)} ago")
        hints.append("if it was killed, run it again; see: assay operations list")
    if waiting:
        problems.append(f"{counted(waiting, 'audit record is', 'audit records are')} not in the store, but in {folder}")
        hints.append("to send those that wait: assay operations list; see docs/operations.md")
    if problems:
        return Finding(name, Status.WARN, "; ".join(problems), "; ".join(hints))
    if unended is None:
        return Finding(name, Status.OK, f"no audit record waits in {folder}")
    running = f", {len(unended)} running" if unended else ""
    return Finding(name, Status.OK, f"all that started in a week have ended{running}")


def unended(found: Sequence[tuple[str, str, float]]) -> Finding:
    """Check the operations of a week without an end: operation, actor, seconds since the start."""
    return operations(found, 0, Path())


def transport(settings: Settings) -> list[Finding]:
    """Check for passwords that are sent in clear text."""
    from assay_runtime.transport import passwords_in_clear

    problems = [problem.partition("; ") for problem in passwords_in_clear(settings)]
    return [Finding("transport", Status.WARN, summary, hint) for summary, _, hint in problems]


@dataclass(frozen=True)
class RedisFacts:
    """Facts from Redis's `INFO`. Memory in bytes; a `memory_limit` of 0 is none."""

    version: str
    append_only: bool
    last_write_ok: bool
    memory: int
    memory_limit: int
    eviction: str
    evicted: int
    replicas: int = 0
    #: Valkey's own version; its `version` is that of the Redis it is compatible with.
    valkey: str = ""


MEMORY_WARN, MEMORY_FAIL = 0.75, 0.95


def redis_version(facts: RedisFacts) -> Finding:
    """Check the server's version: services do not start with one without selectors and group lags."""
    from assay_runtime.connection import OLDEST_REDIS  # slow to import, for commands that do not use Redis

    shown = f"Valkey {facts.valkey}" if facts.valkey else facts.version
    if _version(facts.version) < OLDEST_REDIS:
        oldest = ".".join(map(str, OLDEST_REDIS))
        return Finding("redis version", Status.FAIL, shown, f"upgrade the server to Redis {oldest} or newer, or Valkey")
    return Finding("redis version", Status.OK, shown)


def redis_persistence(facts: RedisFacts) -> Finding:
    """Check the append-only file: without it a crash of Redis loses events that are not stored yet."""
    check = "redis persistence"
    if not facts.append_only:
        return Finding(
            check,
            Status.FAIL,
            "append-only file off: a crash of Redis loses events",
            "set appendonly yes in redis.conf",
        )
    if not facts.last_write_ok:
        return Finding(
            check, Status.FAIL, "the last write of the append-only file failed", "free space on Redis's disk"
        )
    return Finding(check, Status.OK, "append-only file on")


def redis_memory(facts: RedisFacts) -> Finding:
    """Check memory: streams must neither be evicted nor grow until Redis refuses writes."""
    check, used = "redis memory", size(facts.memory)
    if facts.eviction != "noeviction":
        return Finding(
            check,
            Status.FAIL,
            f"{used}; {facts.eviction} can evict streams, so services do not start",
            "set maxmemory-policy noeviction in redis.conf, or in the settings of your provider",
        )
    if facts.evicted:
        return Finding(
            check,
            Status.FAIL,
            f"{used}; {facts.evicted} keys were evicted, with the events in them",
            "see which events are missing, then CONFIG RESETSTAT",
        )
    if not facts.memory_limit:
        return Finding(check, Status.OK, f"{used}, no limit")
    share = facts.memory / facts.memory_limit
    summary = f"{used} of {size(facts.memory_limit)} ({share:.0%})"
    status = Status.FAIL if share >= MEMORY_FAIL else Status.WARN if share >= MEMORY_WARN else Status.OK
    hint = "" if status is Status.OK else "raise maxmemory in redis.conf, or see why entries wait (streams below)"
    return Finding(check, status, summary, hint)


def redis_replicas(facts: RedisFacts, awaited: int) -> Finding:
    """Check the replicas of a master. `awaited` is `redis.replicas`: with fewer, producers spool."""
    check, summary = "redis replicas", f"{facts.replicas} connected"
    if facts.replicas < awaited:
        return Finding(
            check, Status.FAIL, f"{summary}, redis.replicas is {awaited}: producers spool", "restart the replicas"
        )
    if not facts.replicas:
        return Finding(
            check, Status.WARN, "none: nothing takes over if this master fails", "add a replica, or wait for it"
        )
    return Finding(check, Status.OK, summary)


#: A consumer is silent after half a visibility timeout without a sign of life, but not sooner than this, in seconds.
SILENT_S = 3.0


@dataclass(frozen=True)
class GroupFacts:
    """One consumer group. `lag` counts entries not yet delivered."""

    name: str
    consumers: int
    pending: int
    lag: int
    oldest_pending_ms: int | None = None
    #: The names of its consumers, and the time since the last sign of life of any of them; None if unknown.
    members: tuple[str, ...] = ()
    silent_ms: int | None = None
    #: True if a read without entries counts as a sign of life. Redis before 7.2 notices only reads that return entries.
    hears_askers: bool = True

    @property
    def waiting(self) -> int:
        """Number of entries that the group has not acknowledged."""
        return self.pending + self.lag

    def silent(self, visibility_timeout_s: float) -> bool:
        """Return True if its consumers are dead or hang.

        A live one reads every second, and renews its claim on entries four times per visibility timeout, even under backpressure.
        """
        if self.silent_ms is None:
            return False
        patience_ms = max(visibility_timeout_s / 2, SILENT_S) * 1_000
        if not self.hears_askers and not self.lag:
            # No new entries, so no sign of life is due; entries that another left pending are taken over after the timeout.
            patience_ms = patience_ms * 3 if self.pending else float("inf")
        return self.silent_ms > patience_ms


@dataclass(frozen=True)
class StreamFacts:
    """One shard of one stream: the groups that must read it, and those that do."""

    name: str
    shard: int
    length: int
    expected: tuple[str, ...]
    groups: tuple[GroupFacts, ...]
    #: Groups of services that need not run.
    optional: tuple[str, ...] = ()
    #: Bytes of Redis's memory; only for dead letters.
    memory: int = 0


def stream(facts: StreamFacts, settings: DeliverySettings) -> Finding:
    """Check that the entries of a stream are read, and soon enough."""
    check = f"stream {facts.name}" + (f" (shard {facts.shard})" if facts.shard else "")
    if facts.name == DEAD.name:
        if facts.length:
            full = facts.memory >= settings.dead_bytes
            room = f", {size(facts.memory)} of {size(settings.dead_bytes)}" if facts.memory else ""
            return Finding(
                check,
                Status.FAIL if full else Status.WARN,
                f"{counted(facts.length, 'dead letter')}{room}"
                + ("; no room for more (delivery.dead_bytes)" if full else ""),
                "list them: assay dead list; fix the cause, then: assay dead requeue --all",
            )
        return Finding(check, Status.OK, "empty")
    parts, statuses, hints = [counted(facts.length, "entry", "entries")], [Status.OK], []
    for name in facts.expected:
        group = next((group for group in facts.groups if group.name == name), None)
        if group is None and name in facts.optional:
            continue  # its service was never started here
        if group is None:
            parts.append(f"group {name} missing")
            if facts.length:
                statuses.append(Status.WARN)
                hints.append(f"start the {name}; it creates its group")
            continue
        parts.append(f"{name}: lag {group.lag:,}, {group.pending:,} pending" + _oldest(group))
        if why := unread(group, settings.visibility_timeout_s):
            if group.waiting or name not in facts.optional:
                parts.append(why)
                statuses.append(Status.FAIL if group.waiting and name not in facts.optional else Status.WARN)
                hints.append(f"start the {name}; if it runs, it hangs or cannot reach Redis: see its log")
        elif group.lag > settings.lag_limit_entries:
            statuses.append(Status.WARN)
            hints.append(f"lag is above delivery.lag_limit_entries; start more instances of the {name}, or see its log")
        if group.pending and (group.oldest_pending_ms or 0) > 3_000 * settings.visibility_timeout_s:
            statuses.append(Status.WARN)
            hints.append(f"entries are stuck; see the {name}'s log and the failures below")
    return Finding(check, worst(*statuses), ", ".join(parts), "; ".join(hints))


def unread(group: GroupFacts, visibility_timeout_s: float) -> str:
    """Return the reason why a group is not read; empty if it is read. Pure."""
    if not group.consumers and (group.waiting or group.hears_askers):
        return f"unread stream: no {group.name} is running"
    if group.silent(visibility_timeout_s):
        return f"unread stream: no sign of life of the {group.name} for {age((group.silent_ms or 0) / 1_000)}"
    return ""


def _oldest(group: GroupFacts) -> str:
    return "" if group.oldest_pending_ms is None else f" (oldest {age(group.oldest_pending_ms / 1_000)})"


def schema(applied: int, known: int) -> Finding:
    """Check that the store's tables are those of this version."""
    summary = f"version {applied}"
    if applied < known:
        return Finding("schema", Status.FAIL, f"{summary}, this version needs {known}", "run: assay migrate")
    if applied > known:
        return Finding("schema", Status.FAIL, f"{summary}, this version needs {known}", "upgrade Assay on this host")
    return Finding("schema", Status.OK, summary)


#: Seconds that the watermark can stand still while entries wait, before it is a warning.
WATERMARK_STALE_S = 60.0


def final_reads(skip_indexes: bool, exact: bool) -> Finding:
    """Check that views show each event once.

    With skip indexes and without exact mode, a window can show a later copy of an event.
    """
    if skip_indexes and not exact:
        return Finding(
            "views",
            Status.FAIL,
            "can show an event twice",
            "set use_skip_indexes_if_final_exact_mode = 1 in the profiles of the store's users",
        )
    return Finding("views", Status.OK, "show each event once")


def watermark(place: int, moved_s_ago: float, waiting: int | None) -> Finding:
    """Check that the watermark advances, since exports end at it. `waiting` is None if it is unknown."""
    moved = f"{place}, moved {age(moved_s_ago)} ago"
    if waiting is None:
        return Finding(
            "watermark",
            Status.WARN,
            f"{moved}; unknown whether entries wait",
            "see the failed checks of Redis and the streams above",
        )
    if waiting and moved_s_ago > WATERMARK_STALE_S:
        return Finding(
            "watermark",
            Status.WARN,
            f"{moved}, while {counted(waiting, 'entry waits', 'entries wait')}",
            "see the logs and /readyz of the scrubber and the writer; exports wait for them",
        )
    return Finding("watermark", Status.OK, moved if waiting else f"{moved}; nothing waits")


@dataclass(frozen=True)
class FailureFacts:
    """Failures of one reason: the total, dead letters, events visible by now, and outages of a sink.

    Dead letters failed too many deliveries. An outage is not the failure of an event: events wait meanwhile.
    """

    reason: str
    count: int
    given_up: int = 0
    recovered: int = 0
    outages: int = 0


def failures(by_reason: Sequence[FailureFacts]) -> Finding:
    """Check the failures of the last 24 hours by reason. Events stored since do not count as a warning."""
    if not by_reason:
        return Finding("failures in 24 h", Status.OK, "none")
    listed = ", ".join(map(_reason, sorted(by_reason, key=lambda facts: -facts.count)))
    if all(facts.recovered == facts.count for facts in by_reason):
        return Finding("failures in 24 h", Status.OK, listed)
    return Finding("failures in 24 h", Status.WARN, listed, "assay query failures")


def open_alerts(by_state: Mapping[str, int]) -> Finding:
    """Check for open alert episodes on the quality of answers, by state."""
    if not by_state:
        return Finding("alerts", Status.OK, "none open")
    listed = ", ".join(f"{count:,} {state}" for state, count in sorted(by_state.items()))
    return Finding("alerts", Status.WARN, f"{listed} open", "assay alerts list")


#: Number of the latest judged answers that are checked, and the minimum number of errors for a warning.
JUDGED_LATELY, JUDGE_ERRORS_LEAST = 100, 3
#: Maximum share of errors, as for `assay judge status`.
JUDGE_ERRORS_MOST = 0.05


def judging(scored: int, errors: Mapping[str, int], stopped: str) -> Finding:
    """Check the latest answers that were judged, with the causes of errors, and why judging stopped."""
    from assay_judge.reasons import reasons

    if stopped:
        return Finding("judging", Status.WARN, stopped, "fix it; the answers that wait in Redis are judged then")
    failed = sum(errors.values())
    asked = scored + failed
    if not asked:
        return Finding("judging", Status.OK, "no answer was judged in 24 hours")
    if failed < JUDGE_ERRORS_LEAST or failed <= JUDGE_ERRORS_MOST * asked:
        return Finding("judging", Status.OK, f"{scored:,} of the last {asked:,} answers that needed a verdict have one")
    listed = ", ".join(f"{why}: {count:,}" for count, why in reasons(errors))
    summary = f"{failed:,} of the last {asked:,} answers that needed a verdict have none: {listed}"
    return Finding("judging", Status.WARN, summary, "see assay judge status; correct the settings in brackets")


def _reason(facts: FailureFacts) -> str:
    outages = "outage" if facts.outages == 1 else "outages"
    parts = {
        "dead letters": facts.given_up,
        "stored since": facts.recovered,
        f"{outages} without loss": facts.outages,
    }
    notes = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    return f"{facts.reason} {facts.count:,}" + (f" ({notes})" if notes else "")


#: Seconds after which events in a spool count as stuck.
SPOOL_OLD_S = 60.0


@dataclass(frozen=True)
class SpoolFacts:
    """Spooled events on this host for one Redis, by the name of its destination.

    The name is `unnamed` for the spool of an old version.
    """

    destination: str
    size_bytes: int
    oldest_s: float
    #: Directory of the spool, as `capture.spool_dir` names it.
    directory: str = ""


def spool(found: Sequence[SpoolFacts], destination: str, limit_bytes: int) -> Finding:
    """Check the producers' spools on this host. `destination` names the Redis of these settings."""
    if not found:
        return Finding("spool", Status.OK, "empty")
    fullest = max(found, key=lambda facts: facts.size_bytes)
    oldest_s = max(facts.oldest_s for facts in found)
    summary = f"{size(fullest.size_bytes)} of {size(limit_bytes)}, oldest {age(oldest_s)}"
    if places := ", ".join(dict.fromkeys(facts.directory for facts in found if facts.directory)):
        summary += f", in {places}"
    old = [facts for facts in found if facts.oldest_s > SPOOL_OLD_S]
    others = [
        f"{facts.destination} ({size(facts.size_bytes)}, {age(facts.oldest_s)})"
        for facts in old
        if facts.destination != destination
    ]
    if others:
        summary += f"; for a Redis other than {destination}: {', '.join(others)}"
    if fullest.size_bytes > 0.9 * limit_bytes:
        return Finding(
            "spool",
            Status.FAIL,
            f"{summary}: events are dropped when it is full",
            "restore Redis, or raise capture.spool_bytes",
        )
    if others:
        hint = "a producer with that address sends it; if this Redis replaced that one, name it in capture.spool_adopt"
        return Finding("spool", Status.WARN, summary, hint)
    if old:
        hint = "a producer with this spool sends it as soon as it runs and reaches Redis"
        return Finding("spool", Status.WARN, summary, hint)
    return Finding("spool", Status.OK, summary)


#: The second is the space that the store keeps free: it refuses inserts below it.
DISK_WARN_BYTES, DISK_FAIL_BYTES = 2 * 1024**3, 512 * 1024**2


#: Share of its bound from which the memory of a service is a warning.
SERVICE_MEMORY_WARN = 0.9


@dataclass(frozen=True)
class MemoryFacts:
    """Resident memory of a service in bytes: current, bound, and peak since its start (0 if unknown)."""

    held: int
    bound: int
    peak: int = 0


def memory(service: str, facts: MemoryFacts) -> Finding:
    """Check a service's resident memory against its bound."""
    summary = f"{size(facts.held)} of {size(facts.bound)}" + (f", peak {size(facts.peak)}" if facts.peak else "")
    if facts.held > facts.bound * SERVICE_MEMORY_WARN or facts.peak > facts.bound:
        status = Status.FAIL if facts.held > facts.bound else Status.WARN
        return Finding(
            f"memory of the {service}",
            status,
            summary,
            "lower writer.batch_rows and batch_bytes" if service == "writer" else "see its log",
        )
    return Finding(f"memory of the {service}", Status.OK, summary)


def no_memory(service: str, address: str, why: str) -> Finding:
    """Report a service of this host that does not report its memory."""
    return Finding(
        f"memory of the {service}",
        Status.WARN,
        f"unknown: {address} {why}",
        f"see the log of the {service}: it hangs or died; if it listens elsewhere, set {service}.port to its port",
    )


def channels(is_up: Mapping[str, bool], notes: Sequence[str]) -> Finding:
    """Check the notifier's channels by name, with its own notes on them."""
    check, down = "channels", [name for name, up in is_up.items() if not up]
    if down:
        reasons = "; ".join(note for note in notes if note.startswith(tuple(down)))
        summary = reasons or f"{', '.join(down)} does not accept notices"
        return Finding(check, Status.FAIL, f"{summary}; they wait and are retried", "after the fix: assay alerts test")
    if not is_up.keys() - {"log"}:
        hint = "set alertmanager_urls, webhook_urls or apprise_urls under [notifier]; see docs/alerts.md"
        return Finding(check, Status.WARN, "none but the log: no alert reaches a person", hint)
    return Finding(check, Status.OK, f"{', '.join(sorted(is_up.keys() - {'log'}))}: no notice was refused")


def gateway(problems: Sequence[str]) -> Finding:
    """Check whether the gateway accepts events over HTTP."""
    if problems:
        hint = "see the log of the gateway; clients get 503 and try again"
        return Finding("gateway", Status.FAIL, "; ".join(problems), hint)
    return Finding("gateway", Status.OK, "accepts events over HTTP")


def otlp_exporter(problems: Sequence[str], notes: Sequence[str]) -> Finding:
    """Check whether the OpenTelemetry backend takes spans."""
    check, hint = "otlp exporter", "see docs/otel-export.md; nothing else waits for it"
    if notes or problems:
        return Finding(check, Status.WARN, "; ".join(notes or problems), hint)
    return Finding(check, Status.OK, "the backend takes spans")


#: Seconds without a checkpoint of new leaves after which the audit log is worth a warning.
UNANCHORED_S = 900.0


def audit_log(
    leaves: int, covered: int, unanchored_s: float, behind_s: float, is_ahead: bool, overdue: int = 0
) -> Finding:
    """Check the audit log: leaves, those that the newest checkpoint covers, and two ages in seconds.

    `unanchored_s`: since the first leaf without a checkpoint was written. `behind_s`: how long the newest event that the log lacks has
    been below the watermark; 0 if it lacks none. `is_ahead`: a leaf has a place that no event has reached yet, so it is forged.
    `overdue`: rows that retention should have deleted a week ago.
    """
    name, hint = "audit log", "is the auditor running? see its log, and docs/audit.md"
    if not leaves:
        status = Status.WARN if behind_s > UNANCHORED_S else Status.OK
        return Finding(name, status, "empty", hint if status is Status.WARN else "")
    summary = f"{leaves:,} leaves, {covered:,} covered by a signed checkpoint"
    problems = []
    if unanchored_s > UNANCHORED_S:
        problems.append(f"the others have none for {age(unanchored_s)}")
    if behind_s > UNANCHORED_S:
        problems.append(f"stored events of {age(behind_s)} ago are not in it")
    if is_ahead:
        what = f"{summary}; a leaf has a place that no event has reached yet, and later events might not be written"
        return Finding(name, Status.WARN, what, "run assay audit verify --full; see docs/audit.md")
    if problems:
        return Finding(name, Status.WARN, f"{summary}; {'; '.join(problems)}", hint)
    if overdue:
        what = f"{summary}; {counted(overdue, 'row is', 'rows are')} a week or more older than retention.audit_days"
        return Finding(name, Status.WARN, what, "run assay audit expire, and let a timer run it")
    return Finding(name, Status.OK, summary)


#: Seconds after which a verification of the whole log is due again.
UNVERIFIED_S = 7 * 86_400.0


def audit_verification(first_s: float | None, last: tuple[str, int, float] | None) -> Finding:
    """Check the recorded verifications of the audit log.

    `first_s`: seconds since the first leaf was written; None without one. `last`: outcome, mismatches and age in seconds of the newest
    one that read every row or found a mismatch; None without one.
    """
    name, hint = "audit verification", "run assay audit verify, and let a timer run it; see docs/audit.md"
    if last is None:
        if first_s is None or first_s <= UNVERIFIED_S:
            return Finding(name, Status.OK, "none yet")
        return Finding(
            name, Status.WARN, f"the log is {age(first_s)} old, and no verification of all its rows is recorded", hint
        )
    outcome, mismatches, ago_s = last
    if outcome != "done":
        found = counted(mismatches, "mismatch", "mismatches") if mismatches else "a mismatch"
        what = f"the last one found {found} {age(ago_s)} ago: the log was changed, or a part of it was lost"
        return Finding(name, Status.FAIL, what, "run assay audit verify --full; see docs/audit.md")
    if ago_s > UNVERIFIED_S:
        return Finding(name, Status.WARN, f"the last one of all rows was {age(ago_s)} ago", hint)
    return Finding(name, Status.OK, f"intact {age(ago_s)} ago")


def audit_anchors(found: Sequence[tuple[str, int, float]], patience_s: float) -> Finding:
    """Check the anchors of the audit log.

    Of each: its name, the leaves of its newest checkpoint, the seconds for which there has been a newer one.
    `patience_s`: after which it is worth a warning.
    """
    late = [
        f"{name} has {size:,} leaves, and a newer checkpoint was signed {age(s)} ago"
        for name, size, s in found
        if s > patience_s
    ]
    if late:
        hint = "run assay audit checkpoint --submit: it prints what each answers; see docs/audit.md"
        return Finding("audit anchors", Status.WARN, "; ".join(late), hint)
    return Finding("audit anchors", Status.OK, "; ".join(f"{name} has {size:,} leaves" for name, size, _ in found))


def disk(free: int, total: int, where: str) -> Finding:
    """Check the free space for the store, Redis's append-only file and the spool."""
    summary = f"{size(free)} free of {size(total)} at {where}"
    status = Status.FAIL if free < DISK_FAIL_BYTES else Status.WARN if free < DISK_WARN_BYTES else Status.OK
    return Finding(
        "disk",
        status,
        summary,
        "" if status is Status.OK else "free space, or delete old rows: assay prune --older-than 30d",
    )


CLOCK_WARN_S, CLOCK_FAIL_S = 1.0, 60.0


def clock(name: str, ahead_s: float) -> Finding:
    """Check a clock against this host's. Redis's clock dates every row (`created_at`)."""
    off = abs(ahead_s)
    status = Status.FAIL if off >= CLOCK_FAIL_S else Status.WARN if off >= CLOCK_WARN_S else Status.OK
    summary = f"{age(off)} {'ahead of' if ahead_s > 0 else 'behind'} this host"
    return Finding(
        f"clock of {name}",
        status,
        summary,
        "" if status is Status.OK else f"synchronise the clocks of this host and of {name} (NTP)",
    )


def stream_ids(ahead_s: float) -> Finding:
    """Check the newest delivered entry against Redis's own clock.

    A producer can choose an id, and every later entry gets a higher one; the ids of rows and `created_at` follow it.
    """
    check = "stream ids"
    if ahead_s < CLOCK_WARN_S:
        return Finding(check, Status.OK, "not ahead of Redis's clock")
    return Finding(
        check,
        Status.FAIL if ahead_s >= CLOCK_FAIL_S else Status.WARN,
        f"{age(ahead_s)} ahead of Redis's clock",
        "its clock was set back, or a producer chose its own id; see Ids ahead of the clock in deploy/redis/README.md",
    )


def secrets(modes: Iterable[tuple[str, int]]) -> Finding:
    """Check files with passwords, by name and permission bits: only their owner may have any."""
    modes = list(modes)
    open_ones = [name for name, mode in modes if mode & 0o077]
    if open_ones:
        return Finding(
            "secrets", Status.FAIL, f"other users can read {', '.join(open_ones)}", f"chmod go= {' '.join(open_ones)}"
        )
    return Finding("secrets", Status.OK, f"{len(modes)} private" if modes else "none on this host")


def size(count: float) -> str:
    """Format a number of bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def age(seconds: float) -> str:
    """Format a number of seconds for people."""
    if seconds < 1:
        return f"{max(0.0, seconds) * 1_000:.0f} ms"
    for limit, unit, length in ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600)):
        if seconds < limit:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
