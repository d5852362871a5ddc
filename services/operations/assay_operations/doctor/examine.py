"""All health checks of a system, with a fix for each problem."""

import asyncio
import contextlib
import dataclasses
import shutil
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from assay_auditor.anchors.configured import anchors_of
from assay_operations.audit import Trail
from assay_operations.audit_log import AuditLog
from assay_operations.channels import check_channels, own_settings, unused_channels
from assay_operations.clients import open_store, settings_and_source
from assay_operations.doctor import (
    audit_checks,
    clock_checks,
    host_checks,
    policy,
    probes,
    quality_checks,
    redis_checks,
    spans,
    store_checks,
)
from assay_operations.doctor.finding import Finding, Status, worst
from assay_operations.doctor.redis_checks import StreamFacts
from assay_operations.errors import OperationError, explain, hangs
from assay_operations.sessions.last_import import not_read
from assay_schema.settings import AuditorSettings, Settings, SettingsError, StoreSettings
from assay_schema.streams import DEAD
from assay_schema.topology import destination

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store


def examine(data: Path) -> list[Finding]:
    """Make every check that is possible, and return the findings."""
    try:
        settings, source = settings_and_source("owner", data)
    except SettingsError as error:
        return [Finding("configuration", Status.FAIL, str(error), "correct the setting it names")]
    except OperationError as error:
        if error.kind != "refused":
            raise
        return [Finding("secrets", Status.FAIL, error.message, "until then no other check can be made")]
    patient = Examination()
    patient.add(Finding("configuration", Status.OK, f"valid, from {source}"))
    patient.add(*host_checks.transport(settings))
    streams = asyncio.run(_redis(settings, patient))
    _store(settings, data, patient, streams)
    if not any(finding.check == "operations" for finding in patient.findings):  # records wait while the store is away
        patient.check("operations", lambda: _operations(settings, data, None), "make the file readable")
    _memory(settings, patient, streams or [])
    _channels(settings, data, patient)
    _optional(settings, patient)
    patient.add(*policy.examine(settings, data))
    _host(settings, data, patient)
    return patient.findings


class Examination:
    """Collects findings; a probe that raises becomes a finding too."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def add(self, *findings: Finding) -> None:
        """Add findings."""
        self.findings += findings

    def check(self, name: str, probe: Callable[[], Finding], hint: str) -> bool:
        """Make one check. Return True if the probe worked."""
        try:
            self.add(probe())
        except Exception as error:  # noqa: BLE001 - any error of a probe is itself the finding
            self.add(Finding(name, Status.FAIL, _brief(error), _hint(error) or hint))
            return False
        return True

    async def check_async(self, name: str, probe: Callable[[], Awaitable[list[Finding]]], hint: str) -> bool:
        """Make one check with an asynchronous probe. Return True if it worked."""
        try:
            self.add(*await probe())
        except Exception as error:  # noqa: BLE001 - any error of a probe is itself the finding
            self.add(Finding(name, Status.FAIL, _brief(error), _hint(error) or hint))
            return False
        return True


def _hint(error: BaseException) -> str:
    """Return the fix of an error that has its own, regardless of the check; '' for others."""
    return _HANGS_HINT if hangs(error) else _BUSY_HINT if str(error).startswith("BUSY ") else ""


def _brief(error: BaseException) -> str:
    text = (explain(error) or f"{type(error).__name__}: {error}").partition(" (is it running?")[0]
    return text if len(text) <= 300 else text[:300] + " …"


#: Seconds after which streams that look unread are checked again.
_SECOND_LOOK_S = 1.0
#: Timeouts in seconds: for the first answer of Redis and the store, and for later answers of the store.
_FIRST_ANSWER_S, _ANSWER_S = 5.0, 20.0
_HANGS_HINT = (
    "it accepts connections but does not answer: see its log and the load of its host; if it hangs, restart it"
)
_BUSY_HINT = (
    "a script does not end: as admin, run SCRIPT KILL, or restart Redis if it refuses that; see docs/security.md"
)
_REDIS_HINT = "start Redis (assay up starts an embedded one), or correct redis.url (ASSAY_REDIS_URL)"
_RIGHTS_HINT = "doctor needs the credentials of `owner`; see redis.url (ASSAY_REDIS_URL)"
_STORE_HINT = "start the store (assay up starts an embedded one), or correct store.url (ASSAY_STORE_URL) and its user"


async def _redis(settings: Settings, patient: Examination) -> list[StreamFacts] | None:
    """Check Redis. Return the facts of the streams; None if they are not available."""
    from assay_runtime.connection import connect, servers

    streams: list[StreamFacts] = []

    async def reach() -> list[Finding]:
        await client.ping()
        return [Finding("redis", Status.OK, "answers")]

    async def server() -> list[Finding]:
        findings = []
        for shard, one in enumerate(masters := servers(client)):
            of_one = redis_checks.server(await probes.redis_facts(one), settings.redis)
            of = f" of shard {shard}" if len(masters) > 1 else ""
            findings += [dataclasses.replace(finding, check=f"{finding.check}{of}") for finding in of_one]
        return findings

    async def clock() -> list[Finding]:
        return [clock_checks.clock("redis", await probes.redis_ahead_s(client))]

    async def flow() -> list[Finding]:
        facts = await probes.stream_facts(client, settings.redis.shards)
        findings = [redis_checks.stream(shard, settings.delivery) for shard in facts]
        if worst(*(finding.status for finding in findings)) is Status.FAIL:  # entries may have arrived this moment
            await asyncio.sleep(_SECOND_LOOK_S)
            facts = await probes.stream_facts(client, settings.redis.shards)
            findings = [redis_checks.stream(shard, settings.delivery) for shard in facts]
        streams.extend(facts)
        return findings

    async def unassembled() -> list[Finding]:
        found = await spans.counts(client, settings.redis.shards)
        return [spans.finding(found, streams, settings.delivery.visibility_timeout_s)]

    async def ids() -> list[Finding]:
        return [clock_checks.stream_ids(await probes.ids_ahead_s(client, settings.redis.shards))]

    hurry = min(settings.redis.command_timeout_s, _FIRST_ANSWER_S)
    client: Redis = connect(settings.redis.model_copy(update={"command_timeout_s": hurry}), attempts=0)
    try:
        if await patient.check_async("redis", reach, _REDIS_HINT):
            await patient.check_async("redis server", server, _RIGHTS_HINT)
            await patient.check_async("clock of redis", clock, _RIGHTS_HINT)
            await patient.check_async("streams", flow, _RIGHTS_HINT)
            await patient.check_async("spans", unassembled, _RIGHTS_HINT)
            await patient.check_async("stream ids", ids, _RIGHTS_HINT)
    finally:
        await client.aclose()
    return streams or None


def _store(settings: Settings, data: Path, patient: Examination, streams: list[StreamFacts] | None) -> None:
    found = contextlib.ExitStack()
    names, first = (
        settings.store.model_copy(update={"timeout_s": min(settings.store.timeout_s, patience)})
        for patience in (_ANSWER_S, _FIRST_ANSWER_S)
    )

    def reach() -> Finding:
        with open_store(first, database="default"):
            pass
        client = found.enter_context(open_store(names, database="default"))
        clients.append(client)
        return Finding("store", Status.OK, f"ClickHouse {client.server_version}")

    clients: list[Store] = []
    with found:
        if not patient.check("store", reach, _STORE_HINT):
            return
        (client,) = clients
        patient.check("store's process", lambda: store_checks.wall(*probes.wall_of(names.url)), "")
        patient.check(
            "store's parts",
            lambda: store_checks.broken_parts(probes.broken_parts(client)),
            "doctor needs the credentials of `owner`",
        )
        if not patient.check("schema", lambda: _schema(client, names.base_database), "run: assay migrate"):
            return
        if patient.findings[-1].status is not Status.OK:
            return
        waiting = (
            None
            if streams is None
            else sum(
                group.waiting
                for facts in streams
                if facts.name != DEAD.name
                for group in facts.groups
                if group.name not in facts.optional  # the watermark does not wait for these
            )
        )
        hint = "run: assay migrate; doctor needs the credentials of `owner`"
        patient.check(
            "watermark", lambda: store_checks.watermark(*probes.watermark_place(client, names.database), waiting), hint
        )
        patient.check("views", lambda: store_checks.final_reads(*probes.final_settings(client)), hint)
        patient.check("failures in 24 h", lambda: _failures(names), hint)
        patient.check("judging", lambda: _judging(names), hint)
        patient.check("sessions", lambda: _sessions(names, data), hint)
        patient.check("alerts", lambda: _alerts(names), hint)
        patient.check(
            "nightly evaluation",
            lambda: quality_checks.nightly_evaluation(
                settings.has_nightly_evaluation, probes.nightly_outcomes(client, names.database)
            ),
            hint,
        )
        patient.check(
            "contradictions", lambda: quality_checks.contradictions(probes.contradictions(client, names.database)), hint
        )
        patient.check(
            "operations",
            lambda: _operations(settings, data, probes.unended_operations(client, names.database)),
            hint,
        )
        patient.check(
            "audit log",
            lambda: audit_checks.audit_log(
                *probes.audit_log(client, names.database, settings.auditor.origin),
                overdue=probes.overdue_audit_rows(
                    client, names.database, settings.auditor.origin, settings.retention.audit_days
                ),
            ),
            hint,
        )
        patient.check(
            "audit verification",
            lambda: audit_checks.audit_verification(
                *probes.audit_verification(client, names.database, settings.auditor.origin)
            ),
            hint,
        )
        own = settings.auditor
        if own.witnesses.strip() or own.timestamp_url or own.anchor_directory:
            patient.check("audit anchors", lambda: _anchors(client, own), hint)
        patient.check("clock of the store", lambda: clock_checks.clock("the store", probes.store_ahead_s(client)), hint)


def _operations(settings: Settings, data: Path, unended: list[tuple[str, str, float]] | None) -> Finding:
    trail = Trail(data, settings.store)
    return audit_checks.operations(unended, trail.waiting(), trail.file.parent)


def _anchors(client: "Store", own: AuditorSettings) -> Finding:
    try:
        configured = anchors_of(own)
    except SettingsError as error:
        return Finding("audit anchors", Status.FAIL, str(error), "correct the settings in [auditor]; see docs/audit.md")
    late = probes.late_anchors(AuditLog(client, own), configured)
    return audit_checks.audit_anchors(
        late, audit_checks.UNANCHORED_S + max((each.every_s for each in configured), default=0)
    )


def _schema(client: "Store", database: str) -> Finding:
    from assay_runtime.migrate import migrations, schema_version

    return store_checks.schema(schema_version(client, database), migrations()[-1].version)


def _judging(settings: StoreSettings) -> Finding:
    with open_store(settings) as client:
        return quality_checks.judging(*probes.judged_lately(client))


def _sessions(settings: StoreSettings, data: Path) -> Finding:
    with open_store(settings) as client:
        return store_checks.sessions(*probes.imported_sessions(client, store_checks.INCOMPLETE_S), not_read(data))


def _alerts(settings: StoreSettings) -> Finding:
    with open_store(settings) as client:
        return quality_checks.open_alerts(probes.open_alerts(client))


def _failures(settings: StoreSettings) -> Finding:
    with open_store(settings) as client:
        return store_checks.failures(probes.failures_by_reason(client))


def _host(settings: Settings, data: Path, patient: Examination) -> None:
    def spool() -> Finding:
        found = probes.spool_facts(*probes.spool_directories(settings.capture))
        return host_checks.spool(found, destination(settings.redis), settings.capture.spool_bytes)

    def disk() -> Finding:
        where = data if data.is_dir() else Path.cwd()
        usage = shutil.disk_usage(where)
        return host_checks.disk(usage.free, usage.total, str(where))

    patient.check("spool", spool, "give this user the right to read capture.spool_dir (ASSAY_CAPTURE_SPOOL_DIR)")
    patient.check("disk", disk, "name the data directory with --data")
    patient.check(
        "secrets", lambda: host_checks.secrets(probes.secret_modes(data)), "run this as the user who ran `assay up`"
    )


def _memory(settings: Settings, patient: Examination, streams: list[StreamFacts]) -> None:
    host = settings.telemetry.host

    def ask(service: str) -> Finding | None:
        port = getattr(settings, service).port
        try:
            found = probes.memory_of(host, port)
        except OSError as error:
            if isinstance(getattr(error, "reason", error), TimeoutError):
                return host_checks.no_memory(service, f"{host}:{port}", "accepts connections but does not answer")
            if _runs_here(service, streams):
                return host_checks.no_memory(service, f"{host}:{port}", "does not answer")
            return None  # it may run elsewhere
        return None if found is None else host_checks.memory(service, found)

    with ThreadPoolExecutor() as threads:
        patient.add(
            *filter(
                None,
                threads.map(
                    ask,
                    ("scrubber", "writer", "judge", "drift", "notifier", "gateway", "assembler", "otlp_exporter"),
                ),
            )
        )


def _channels(settings: Settings, data: Path, patient: Examination) -> None:
    """Check the section [notifier], and the channels of a notifier that answers on this host."""
    hint = "correct the setting it names; until then the notifier does not start, nor does `assay up`"

    def valid() -> Finding | None:
        wanted = own_settings()
        named = [getattr(wanted, name) for name in type(wanted).model_fields if name.endswith("_file")]
        if any(file is not None and not file.exists() for file in named):
            return None  # the secrets of another container
        check_channels(wanted)
        if not unused_channels(data):
            return None
        summary = "assay.toml names other channels than the running notifier has"
        return Finding("channels", Status.WARN, summary, "restart `assay up`")

    try:
        if changed := valid():
            patient.add(changed)
            return
    except (SettingsError, OperationError) as error:
        patient.add(Finding("channels", Status.FAIL, str(error), hint))
        return
    with contextlib.suppress(OSError):  # it may run elsewhere; the memory check names one that should answer here
        if found := probes.channels_of(settings.telemetry.host, settings.notifier.port):
            patient.add(host_checks.channels(*found))


def _optional(settings: Settings, patient: Examination) -> None:
    """Check a gateway and an OTLP exporter that answer on this host; both are optional, and may run elsewhere."""
    host = settings.telemetry.host
    with contextlib.suppress(OSError):
        if (state := probes.state_of(host, settings.gateway.port)) is not None:
            patient.add(host_checks.gateway(state[0]))
    with contextlib.suppress(OSError):
        if (state := probes.state_of(host, settings.otlp_exporter.port)) is not None:
            patient.add(host_checks.otlp_exporter(*state))


def _runs_here(service: str, streams: list[StreamFacts]) -> bool:
    """Return True if a consumer of this service, by its name, was started on this host and did not leave."""
    from assay_access.settings_files import CONSUMER

    members = (name for facts in streams for group in facts.groups if group.name == service for name in group.members)
    return any(name == CONSUMER or name.startswith(f"{socket.gethostname()}-") for name in members)
