"""Events that could not be stored: by reason, producer and rule; and how full the dead letters are."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from assay_operations.time_bounds import utc
from assay_schema.failures import GIVEN_UP
from assay_schema.streams import DEAD

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client

#: Most groups of a list.
GROUPS_MAX = 300


@dataclass(frozen=True)
class Group:
    """Failures that are alike. `rule` is the field and what it breaks; `dead`: kept as dead letters."""

    reason: str
    stage: str
    error_class: str
    rule: str
    project: str
    service: str
    lost: int
    recovered: int
    incidents: int
    latest: datetime
    dead: bool


@dataclass(frozen=True)
class Failures:
    """Groups, most lost first, and the totals of all. `checked_at`: when the store was asked."""

    groups: tuple[Group, ...]
    more: bool
    lost: int
    recovered: int
    incidents: int
    checked_at: datetime


@dataclass(frozen=True)
class Dead:
    """Dead letters of one shard."""

    shard: int
    letters: int


def failures(
    client: "Client", *, hours: int, project: str = "", reason: str = "", stage: str = "", service: str = ""
) -> Failures:
    """Group the failures of the last hours, as `assay query failures` does."""
    from assay_runtime.queries import named_queries

    named = {"hours": hours, "project": project}
    rows = client.query(named_queries()["failures"].sql, parameters=named).named_results()
    groups = [
        Group(
            str(row["reason"]), row["stage"], row["error_class"], row["rule"], row["project"], row["service"], int(row["lost"]),
            int(row["recovered"]), int(row["incidents"]), utc(row["latest"]), row["error_class"] == GIVEN_UP,
        )
        for row in rows
        if reason in ("", str(row["reason"])) and stage in ("", row["stage"]) and service in ("", row["service"])
    ]  # fmt: skip
    return Failures(
        tuple(groups[:GROUPS_MAX]),
        len(groups) > GROUPS_MAX,
        sum(each.lost for each in groups),
        sum(each.recovered for each in groups),
        sum(each.incidents for each in groups),
        datetime.now(UTC),
    )


async def dead_letters(client: "Redis", shards: int) -> list[Dead]:
    """Count the dead letters of every shard. Reads none of them."""
    return [Dead(shard, int(await client.xlen(DEAD.key(shard)))) for shard in range(shards)]
