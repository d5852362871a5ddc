"""List stored alerts, and test the notification channels."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.clients import open_store, settings_for
from assay_schema.settings import NotifierSettings

if TYPE_CHECKING:
    from assay_notifier.channel import Channel
    from assay_notifier.notice import Notice
    from assay_runtime.store import Client as Store


def alerts_listed(data: Path, *, everything: bool, project: str = "") -> list[dict[str, Any]]:
    """List open episodes, most severe first, or every transition; optionally of one project."""
    with open_store(settings_for("sre", data).store) as client:
        return alerts_in(client, everything=everything, project=project)


def alerts_in(client: "Store", *, everything: bool, project: str = "") -> list[dict[str, Any]]:
    """List open episodes or every transition, as `alerts_listed` does, with an open client."""
    from assay_runtime.queries import named_queries

    named = named_queries()["alerts" if everything else "open-alerts"]
    answer = client.query(named.sql, parameters=named.defaults | {"project": project})
    return [shown_row(dict(zip(answer.column_names, row, strict=True))) for row in answer.result_rows]


def shown_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with commands made here: a published command only shows that there is one.

    An episode that is over has no command that acknowledges it.
    """
    from assay_schema.alert_actions import acknowledge_command, explain_command

    identity, kind = row["alert_id"], row["kind"]
    made = {"explain": explain_command(identity, kind, row.get("metric"))}
    if row.get("acknowledge"):
        over = row.get("state") in ("resolved", "ok")
        made["acknowledge"] = "" if over else acknowledge_command(identity, kind)
    return row | made


async def send_to_all(channels: "list[Channel]", notices: "list[Notice]") -> dict[str, str]:
    """Send notices to every channel, and return the error of each that failed."""
    from assay_notifier.channel import NotDeliveredError

    async def one(channel: "Channel") -> str | None:
        try:
            for notice in notices:
                await channel.send([notice])
        except NotDeliveredError as error:
            return error.why
        return None

    answers = await asyncio.gather(*map(one, channels))
    return {channel.name: why for channel, why in zip(channels, answers, strict=True) if why is not None}


def send_test_notice(settings: NotifierSettings) -> dict[str, str | None]:
    """Send a test notice and its resolution to every channel.

    Return the error by channel, None on success.
    """
    from assay_notifier.channel_factory import channels
    from assay_notifier.sample_alert import sample_notices

    configured = channels(settings)
    failed = asyncio.run(send_to_all(configured, sample_notices()))
    return {channel.name: failed.get(channel.name) for channel in configured}
