"""Count what the gateway and Redis refused before Assay could store it; no text that was sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis

#: Labels of a counter, as pairs in the order in which the service prints them, and its value.
Counts = Mapping[tuple[tuple[str, str], ...], float]

_EVENTS, _REQUESTS = "assay_gateway_rejected_events_total", "assay_gateway_requests_total"
_STARTED = "process_start_time_seconds"
#: Statuses that are no refusal: the client closed the connection.
_GONE = 499
#: Requests to a path that the gateway does not have: not of a producer that it knows.
_NO_ROUTE = "other"
_MEANINGS = {
    400: "the body cannot be read, or every event in it broke a rule",
    401: "no key, or a key that is wrong, expired or revoked",
    403: "the key is of another kind, or for another origin",
    404: "the verdict is about an event that is not known",
    405: "the method is not POST",
    408: "the body came too slowly",
    413: "the body is too large",
    415: "the type or the encoding of the body is not supported",
    429: "too many requests or events for this key; clients send them again later",
    503: "busy or stopping; clients send them again",
}
#: Errors of Redis that refuse a login, and their reason.
_LOGINS = {"WRONGPASS": "wrong user name or password; clients try several times", "NOAUTH": "command without a login"}


@dataclass(frozen=True)
class Refusal:
    """Events, requests or logins refused for one reason: a rule, a status or an error."""

    what: Literal["event", "request", "login"]
    #: Path of the gateway; empty for an event and a login.
    path: str
    reason: str
    meaning: str
    count: int


@dataclass(frozen=True)
class GatewayRefusals:
    """Refusals of the gateway since it started, most first: events by rule, then requests by status."""

    since: datetime | None
    found: tuple[Refusal, ...]


def gateway_refusals(host: str, port: int) -> GatewayRefusals | None:
    """Read what the gateway of this host counts; None if something else answers.

    Raises `OSError` if nothing answers.
    """
    from assay_operations.doctor.probes import counts_of

    found = counts_of(host, port, (_EVENTS, _REQUESTS, _STARTED))
    return None if found is None or not found[_STARTED] else refusals_of(found)


def refusals_of(counts: Mapping[str, Counts]) -> GatewayRefusals:
    """Make the list of refusals from the gateway's counters. Pure."""
    started = sum(counts.get(_STARTED, {}).values())
    events = [
        Refusal(
            "event",
            "",
            dict(labels).get("rule", ""),
            "a field of the event, its kind or its project breaks this rule",
            int(value),
        )
        for labels, value in counts.get(_EVENTS, {}).items()
    ]
    requests = []
    for labels, value in counts.get(_REQUESTS, {}).items():
        named = dict(labels)
        status, route = int(named.get("status", "0")), named.get("route", _NO_ROUTE)
        if status >= 400 and status != _GONE and route != _NO_ROUTE:
            requests.append(
                Refusal(
                    "request", f"/v1/{route}", str(status), _MEANINGS.get(status, "see the gateway's log"), int(value)
                )
            )

    def most_first(each: Refusal) -> tuple[int, str, str]:
        return -each.count, each.path, each.reason

    found = (*sorted(events, key=most_first), *sorted(requests, key=most_first))
    return GatewayRefusals(
        datetime.fromtimestamp(started, UTC) if started else None, tuple(each for each in found if each.count)
    )


async def refused_logins(client: "Redis") -> list[Refusal]:
    """Count the logins that Redis refused since it started. Needs the right to `INFO`."""
    from assay_runtime.connection import servers

    counts = dict.fromkeys(_LOGINS, 0)
    for one in servers(client):
        errors = await one.info("errorstats")
        for name in counts:
            counts[name] += int(errors.get(f"errorstat_{name}", {}).get("count", 0))
    return [Refusal("login", "", name, _LOGINS[name], count) for name, count in counts.items() if count]
