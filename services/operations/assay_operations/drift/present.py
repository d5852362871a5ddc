"""The present state of episodes, as the drift service has it, newer than what is stored."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


@dataclass(frozen=True)
class Present:
    """An episode now.

    `value`: the present level, of `n` samples; None if it has no samples. `accepted`: the baseline that acknowledging would store now,
    from the days after the change; None if the service would learn it from later samples.
    """

    open: bool
    value: float | None = None
    n: int | None = None
    accepted: float | None = None


async def present(client: "Client", settings: Settings, alert_ids: Collection[str]) -> dict[str, Present]:
    """Return episodes by id. Those that the service does not have, or cannot acknowledge, are missing."""
    from assay_operations.drift.monitor import monitor_of

    found: dict[str, Present] = {}
    for shard in range(settings.redis.shards) if alert_ids else ():
        try:
            monitor = await monitor_of(client, settings, shard)
        except (ValueError, KeyError, TypeError):  # stored by another version
            continue
        for identity, (episode, measured) in monitor.present(alert_ids).items():
            level = measured if episode.open else None
            own = (level.value, level.n, level.accepted) if level else ()
            found[identity] = Present(episode.open, *own)
    return found
