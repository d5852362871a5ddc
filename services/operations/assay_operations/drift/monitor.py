"""State of the drift service in Redis."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.clients import open_store, run_with_redis, settings_for
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_drift.monitor import Monitor
    from assay_runtime.connection import Client
    from assay_runtime.store import Client as Store


async def monitor_of(client: "Client", settings: Settings, shard: int) -> "Monitor":
    """Load the drift monitor of a shard from its stored state.

    A state of many series takes seconds of CPU to parse: that is done in a thread, so a console goes on answering.
    """
    from assay_drift.monitor import Monitor
    from assay_schema.streams import drift_key

    fields = await client.hgetall(drift_key(shard))
    fields.pop(b"version", None)
    return await asyncio.to_thread(
        Monitor,
        settings.drift,
        {name.decode(): value for name, value in fields.items()},
        shard=shard,
        shards=settings.redis.shards,
    )


async def watched(client: "Client", settings: Settings) -> list[dict[str, Any]]:
    """Return a row per monitored series, over all shards."""
    from assay_operations.drift.status import rows_of

    return [
        row
        for shard in range(settings.redis.shards)
        for row in rows_of(await monitor_of(client, settings, shard), settings.drift)
    ]


async def query_shifts(client: "Client", settings: Settings, project: str) -> list[tuple[str, Any]]:
    """Return the query series of a project with the shift of each; None before the first comparison."""
    monitors = [await monitor_of(client, settings, shard) for shard in range(settings.redis.shards)]
    return [
        (key, queries.shift)
        for monitor in monitors
        for key, queries in monitor.queries.items()
        if key.startswith(f"{project}/")
    ]


_EXAMPLES = """
SELECT toString(event_id), query FROM candidates WHERE event_id IN {ids:Array(UUID)}
UNION ALL
SELECT toString(event_id), query FROM answers WHERE event_id IN {ids:Array(UUID)}
"""


def examples(store: "Store", ids: list[Any]) -> dict[str, str]:
    """Read the scrubbed queries of events, by id."""
    rows = store.query(_EXAMPLES, parameters={"ids": ids}).result_rows if ids else []
    return {str(identity): str(text) for identity, text in rows}


@dataclass(frozen=True)
class Growth:
    """The last comparison of a query series.

    Its figures, and the clusters that grew, each with scrubbed example queries.
    """

    summary: str
    clusters: list[tuple[int, list[str]]]


def grown_queries(project: str, data: Path) -> list[Growth]:
    """Return the last comparison of each query series of a project, none before the first.

    Reads as `sre`.
    """
    series = run_with_redis("sre", data, lambda client, settings: query_shifts(client, settings, project))
    found = []
    for key, shift in series:
        if not shift:
            continue
        with open_store(settings_for("sre", data).store) as store:
            texts = examples(store, [identity for _, members in shift.grown for identity in members])
        found.append(
            Growth(
                f"{key}: last {shift.days} day(s), {shift.n} queries, {shift.deviations:.1f} deviations, distance {shift.distance:.3f}",
                [
                    (cluster, [texts.get(str(identity), "(no longer stored)") for identity in members])
                    for cluster, members in shift.grown
                ],
            )
        )
    return found
