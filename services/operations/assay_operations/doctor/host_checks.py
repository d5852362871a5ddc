"""Health checks of this host and of the services on it. Pure: measurements in, findings out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay_operations.doctor.finding import Finding, Status, age, size
from assay_schema.settings import Settings


def transport(settings: Settings) -> list[Finding]:
    """Check for passwords that are sent in clear text."""
    from assay_runtime.transport import passwords_in_clear

    problems = [problem.partition("; ") for problem in passwords_in_clear(settings)]
    return [Finding("transport", Status.WARN, summary, hint) for summary, _, hint in problems]


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


def secrets(modes: Iterable[tuple[str, int]]) -> Finding:
    """Check files with passwords, by name and permission bits: only their owner may have any."""
    modes = list(modes)
    open_ones = [name for name, mode in modes if mode & 0o077]
    if open_ones:
        return Finding(
            "secrets", Status.FAIL, f"other users can read {', '.join(open_ones)}", f"chmod go= {' '.join(open_ones)}"
        )
    return Finding("secrets", Status.OK, f"{len(modes)} private" if modes else "none on this host")
