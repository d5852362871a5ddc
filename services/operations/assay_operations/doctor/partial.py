"""Checks of `assay doctor` that need only the rights of a reader, with open clients."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from typing import TYPE_CHECKING

from assay_operations.doctor import audit_checks, clock_checks, probes, quality_checks, redis_checks, store_checks
from assay_operations.doctor.examine import Examination
from assay_operations.doctor.finding import Finding, Status
from assay_operations.doctor.redis_checks import StreamFacts
from assay_operations.events.queries import Queries
from assay_schema.settings import Settings
from assay_schema.streams import DEAD

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store


#: Seconds that all checks together may take; they run at the same time.
CHECKS_S = 5.0
_HINT = "run: assay doctor"


def _unended(check: str, seconds: float) -> Finding:
    return Finding(check, Status.FAIL, f"not known: the check did not end within {seconds:g} s", _HINT)


async def redis_findings(client: "Redis", settings: Settings, seconds: float = CHECKS_S) -> list[Finding]:
    """Check Redis and its streams at the same time. A check that does not end within `seconds` fails.

    Raises `RedisError` or `TimeoutError` if Redis does not answer at all.
    """
    from assay_runtime.connection import servers

    async with asyncio.timeout(seconds):
        await client.ping()
    shards = settings.redis.shards

    async def server() -> list[Finding]:
        found: list[Finding] = []
        for one in servers(client):
            found += redis_checks.server(await probes.redis_facts(one), settings.redis)
        return found

    async def flow() -> list[Finding]:
        return [redis_checks.stream(each, settings.delivery) for each in await probes.stream_facts(client, shards)]

    async def clock() -> list[Finding]:
        return [clock_checks.clock("redis", await probes.redis_ahead_s(client))]

    async def ids() -> list[Finding]:
        return [clock_checks.stream_ids(await probes.ids_ahead_s(client, shards))]

    async def made(name: str, probe: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
        patient = Examination()
        try:
            async with asyncio.timeout(seconds):
                await patient.check_async(name, probe, _HINT)
        except TimeoutError:
            return [_unended(name, seconds)]
        return patient.findings

    probes_ = {"redis server": server, "clock of redis": clock, "streams": flow, "stream ids": ids}
    found = await asyncio.gather(*(made(name, probe) for name, probe in probes_.items()))
    return [Finding("redis", Status.OK, "answers"), *(finding for each in found for finding in each)]


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


def store_findings(
    client: "Store", *, database: str, nightly: bool, waiting: int | None, seconds: float = CHECKS_S
) -> list[Finding]:
    """Check the store with queries at the same time. A check that does not end within `seconds` fails.

    `database`: that of the views; `waiting`: entries that wait to be stored, None if unknown. Raises if the store does not answer at all.
    """
    from assay_runtime.migrate import migrations

    client.query("SELECT 1")
    probed: dict[str, Callable[[], Finding]] = {
        "schema": lambda: store_checks.schema(probes.schema_of_views(client), migrations()[-1].version),
        "watermark": lambda: store_checks.watermark(*probes.watermark_place(client, database), waiting),
        "views": lambda: store_checks.final_reads(*probes.final_settings(client)),
        "failures in 24 h": lambda: store_checks.failures(probes.failures_by_reason(client)),
        "judging": lambda: quality_checks.judging(*probes.judged_lately(client)),
        "sessions": lambda: store_checks.sessions(*probes.imported_sessions(client, store_checks.INCOMPLETE_S), {}),
        "alerts": lambda: quality_checks.open_alerts(probes.open_alerts(client)),
        "nightly evaluation": lambda: quality_checks.nightly_evaluation(
            nightly, probes.nightly_outcomes(client, database)
        ),
        "operations": lambda: audit_checks.unended(probes.unended_operations(client, database)),
        "clock of the store": lambda: clock_checks.clock("the store", probes.store_ahead_s(client)),
    }

    def made(name: str, probe: Callable[[], Finding]) -> Finding:
        patient = Examination()
        patient.check(name, probe, _HINT)
        return patient.findings[0]

    threads = Queries(client).threads()
    try:
        begun = {name: threads.submit(made, name, probe) for name, probe in probed.items()}
        ended = wait(begun.values(), seconds).done
        found = [check.result() if check in ended else _unended(name, seconds) for name, check in begun.items()]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)  # a request that has begun ends by the client's time limit
    return [Finding("store", Status.OK, f"ClickHouse {client.server_version}"), *found]
