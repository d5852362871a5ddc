"""Health checks of Redis and of its streams. Pure: measurements in, findings out."""

from dataclasses import dataclass

from assay_operations.doctor.finding import Finding, Status, age, size, worst
from assay_schema.settings import DeliverySettings, RedisSettings
from assay_schema.streams import DEAD
from assay_ui.formats import counted


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


def server(facts: RedisFacts, settings: RedisSettings) -> list[Finding]:
    """Make all checks of one server."""
    found = [redis_version(facts), redis_persistence(facts), redis_memory(facts)]
    return found if settings.mode == "standalone" else [*found, redis_replicas(facts, settings.replicas)]


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


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
