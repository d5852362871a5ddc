"""Checks of `assay doctor` that need only the rights of a reader, with open clients."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from assay_operations.doctor import checks, probes
from assay_operations.doctor.checks import Finding, Status, StreamFacts
from assay_operations.doctor.examine import Examination
from assay_schema.settings import Settings
from assay_schema.streams import DEAD

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store


async def redis_findings(client: "Redis", settings: Settings) -> list[Finding]:
    """Check Redis and its streams. Raises `RedisError` if Redis does not answer at all."""
    from assay_runtime.connection import servers

    await client.ping()
    patient = Examination()
    patient.add(Finding("redis", Status.OK, "answers"))
    shards = settings.redis.shards

    async def server() -> list[Finding]:
        found: list[Finding] = []
        for one in servers(client):
            facts = await probes.redis_facts(one)
            found += [checks.redis_version(facts), checks.redis_persistence(facts), checks.redis_memory(facts)]
            if settings.redis.mode != "standalone":
                found.append(checks.redis_replicas(facts, settings.redis.replicas))
        return found

    async def flow() -> list[Finding]:
        return [checks.stream(each, settings.delivery) for each in await probes.stream_facts(client, shards)]

    async def clock() -> list[Finding]:
        return [checks.clock("redis", await probes.redis_ahead_s(client))]

    async def ids() -> list[Finding]:
        return [checks.stream_ids(await probes.ids_ahead_s(client, shards))]

    for name, probe in (("redis server", server), ("clock of redis", clock), ("streams", flow), ("stream ids", ids)):
        await patient.check_async(name, probe, "run: assay doctor")
    return patient.findings


async def waiting_of(client: "Redis", settings: Settings) -> int:
    """Return how many entries wait for services that must run."""
    facts: list[StreamFacts] = await probes.stream_facts(client, settings.redis.shards)
    return sum(
        group.waiting
        for each in facts
        if each.name != DEAD.name
        for group in each.groups
        if group.name not in each.optional
    )


def store_findings(client: "Store", *, database: str, nightly: bool, waiting: int | None) -> list[Finding]:
    """Check the store.

    `database`: that of the views; `waiting`: entries that wait to be stored, None if unknown.
    """
    from assay_runtime.migrate import migrations

    patient = Examination()
    patient.add(Finding("store", Status.OK, f"ClickHouse {client.server_version}"))
    probed: dict[str, Callable[[], Finding]] = {
        "schema": lambda: checks.schema(probes.schema_of_views(client), migrations()[-1].version),
        "watermark": lambda: checks.watermark(*probes.watermark_place(client, database), waiting),
        "views": lambda: checks.final_reads(*probes.final_settings(client)),
        "failures in 24 h": lambda: checks.failures(probes.failures_by_reason(client)),
        "judging": lambda: checks.judging(*probes.judged_lately(client)),
        "sessions": lambda: checks.sessions(*probes.imported_sessions(client, checks.INCOMPLETE_S), {}),
        "alerts": lambda: checks.open_alerts(probes.open_alerts(client)),
        "nightly evaluation": lambda: checks.nightly_evaluation(nightly, probes.nightly_outcomes(client, database)),
        "operations": lambda: checks.unended(probes.unended_operations(client, database)),
        "clock of the store": lambda: checks.clock("the store", probes.store_ahead_s(client)),
    }
    for name, probe in probed.items():
        patient.check(name, probe, "run: assay doctor")
    return patient.findings
