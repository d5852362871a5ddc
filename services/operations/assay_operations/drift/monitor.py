"""State of the drift service in Redis."""

from typing import TYPE_CHECKING, Any

from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_drift.monitor import Monitor
    from assay_runtime.connection import Client
    from assay_runtime.store import Client as Store


async def monitor_of(client: "Client", settings: Settings, shard: int) -> "Monitor":
    from assay_drift.monitor import Monitor
    from assay_schema.streams import drift_key

    fields = await client.hgetall(drift_key(shard))
    fields.pop(b"version", None)
    return Monitor(
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
