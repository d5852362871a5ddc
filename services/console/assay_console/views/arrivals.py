"""Arrivals: do my events arrive? For producers: waits for the first event and times each step."""

import asyncio
import ipaddress
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.views.overview import settings_to_paste
from assay_operations.arrivals import SINCE_MAX_MS, Arrival, Producer, clock_note, logged, producers, stored, together
from assay_operations.failures import Failures, failures
from assay_operations.overview.flow import RISE_S, Hop, hops
from assay_operations.turned_away import GatewayRefusals, Refusal, gateway_refusals, refused_logins
from assay_ui.formats import counted, duration

#: Seconds without an event after which events no longer count as arriving.
QUIET_S = 300
#: Seconds without an event after which a service counts as switched off.
GONE_S = 86_400
#: Seconds that the gateway has to answer, and services that a sentence names.
_GATEWAY_S, _NAMES = 1.0, 3
_METRICS = "assay_gateway_rejected_events_total and assay_gateway_requests_total"


class Timed(Document):
    """An event with the milliseconds of each step."""

    arrival: Arrival
    to_log_ms: float
    to_store_ms: float | None


class Refused(Document):
    """A reason for refusals, and the seconds since this console saw its count rise; None if it did not."""

    of: Refusal
    rose_s: float | None


class Outside(Document):
    """Refusals of the gateway and of Redis since they started, of all producers: none reached the log."""

    found: list[Refused]
    #: Since when the gateway counts, or why it is not known what it refused.
    gateway_since: datetime | None
    gateway_note: str
    #: Why it is not known which logins Redis refused; empty if it is.
    logins_note: str


class Arrivals(Document):
    """The newest events of a producer, refusals of a day, and what to check if nothing arrives."""

    service: str
    state: str
    sentence: str
    #: True if events came before, and none for `QUIET_S` seconds.
    quiet: bool
    clock: str
    #: Why the log could not be read; empty if it was.
    log_away: str
    events: Panel[list[Timed]]
    refused: Panel[Failures]
    outside: Outside
    #: True if events came and nothing is known to be refused: only then is an empty list good news.
    calm: bool
    producers: Panel[tuple[Producer, ...]]
    settings_to_paste: str
    doctor: str


async def read(ask: Ask) -> Arrivals:
    """Read the store, the log and the refusals at the same time."""
    project, service = ask.scope.project, ask.text("service")
    since = max(ask.scope.from_ms, ask.scope.to_ms - SINCE_MAX_MS)
    shards = ask.settings.redis.shards
    in_store, in_log, steps, refused, seen, outside = await asyncio.gather(
        ask.panel(stored, since, project, service),
        ask.redis_panel(logged, shards, since, project, service),
        ask.redis_panel(hops, shards, ask.settings.delivery),
        ask.panel(failures, hours=24, project=project, service=service),
        ask.panel(producers, project),
        refused_outside(ask),
    )
    found = together(in_store.value or (), in_log.value or ())
    events = [
        Timed(
            arrival=each,
            to_log_ms=round(each.to_log_ms, 1),
            to_store_ms=None if each.to_store_ms is None else round(each.to_store_ms, 1),
        )
        for each in found
    ]
    now = datetime.fromtimestamp(time.time(), UTC)
    away = in_store if in_store.state != "ready" else in_log
    state, sentence = told(
        found,
        steps.value,
        refused.value,
        away.message if away.state != "ready" else "",
        now=now,
        others=() if service else seen.value or (),
        outside=told_outside(outside.found),
    )
    return Arrivals(
        service=service,
        state="warn" if state == "good" and _rises(outside.found) else state,
        sentence=sentence,
        quiet=quiet_s(found, now) > QUIET_S,
        clock=clock_note(found),
        log_away=in_log.message,
        events=in_store.holding(events if in_store.value is not None or events else None),
        refused=refused,
        outside=outside,
        calm=bool(found) and not outside.found and not outside.gateway_note and not outside.logins_note,
        producers=seen,
        settings_to_paste=settings_to_paste(ask),
        doctor="assay doctor",
    )  # fmt: skip


async def refused_outside(ask: Ask) -> Outside:
    """Ask the gateway and Redis what they refused, at the same time."""
    logins, (gateway, note) = await asyncio.gather(ask.redis_panel(refused_logins), _refused_by_gateway(ask))
    now_s = time.time()
    return Outside(
        found=[
            Refused(of=each, rose_s=ask.flow.since_rise_s(f"{each.what} {each.path} {each.reason}", now_s, each.count))
            for each in (*(gateway.found if gateway else ()), *(logins.value or ()))
        ],
        gateway_since=gateway.since if gateway else None,
        gateway_note=note,
        logins_note=logins.message,
    )


async def _refused_by_gateway(ask: Ask) -> tuple[GatewayRefusals | None, str]:
    """Ask the gateway of this host what it refused. If it is not known, the text says why."""
    host, port = ask.settings.telemetry.host, ask.settings.gateway.port
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if not here:
        return None, f"The gateway runs elsewhere, so its refusals are not shown here: see {_METRICS} in Prometheus."
    try:
        async with asyncio.timeout(_GATEWAY_S):
            found = await asyncio.to_thread(gateway_refusals, host, port)
    except TimeoutError:
        return None, f"The gateway accepts connections but does not answer at port {port}: its refusals are not known."
    except OSError:
        return None, f"No gateway runs on this host (port {port}), so none of its refusals are known."
    if found is None:
        return None, f"Another program answers at the gateway's port {port}: its refusals are not known."
    return found, ""


def told_outside(found: Sequence[Refused]) -> str:
    """Say in a sentence what never reached the log; empty if nothing is known. Pure."""
    counts: dict[str, int] = {}
    for each in found:
        counts[each.of.what] = counts.get(each.of.what, 0) + each.of.count
    parts = [counted(count, what) for what, count in counts.items()]
    words = " and ".join(", ".join(parts).rsplit(", ", 1))
    more = "; more are being refused now" if _rises(found) else ""
    return (
        f" Since they started, the gateway and Redis refused {words} of all producers{more}: see below."
        if words
        else ""
    )


def _rises(found: Sequence[Refused]) -> bool:
    return any(each.rose_s is not None and each.rose_s <= RISE_S for each in found)


def quiet_s(found: Sequence[Arrival], now: datetime) -> float:
    """Return the seconds since the newest event came into the log; 0 without one. Pure."""
    return (now - found[0].logged_at).total_seconds() if found else 0.0


def told(
    found: list[Arrival],
    steps: list[Hop] | None,
    refused: Failures | None,
    away: str,
    *,
    now: datetime,
    others: Sequence[Producer] = (),
    outside: str = "",
) -> tuple[str, str]:
    """Say in a sentence whether events arrive. `others`: the services to watch if none is chosen. Pure.

    `outside`: a sentence on what never reached the log.
    """
    if found and not away:
        newest = found[0]
        at = f"the newest came into the log at {newest.logged_at:%H:%M:%S} UTC"
        if newest.stored_at is None:
            waiting = next((hop for hop in steps or () if hop.name == "stored"), None)
            return "warn", f"Events arrive: {at}, and is not stored yet" + (
                f": {waiting.waiting:,} entries wait for the writer." if waiting and waiting.waiting else "."
            )
        if (age := quiet_s(found, now)) > QUIET_S:
            return "warn", f"Nothing arrived for {duration(age)}: {at}."
        ages = ((each.service, (now - each.newest_at).total_seconds()) for each in others)
        silent = sorted({name for name, age in ages if QUIET_S < age < GONE_S})
        lost = refused.lost if refused else 0
        words = f"{at}, and was stored {_ms(newest.to_store_ms)} later."
        if lost and refused:
            by = _named([each.service for each in refused.groups if each.lost])
            words = f"Events arrive; {lost:,} were refused or lost in 24 h{by and f' ({by})'}: {words}"
        else:
            words = f"Events arrive: {words}"
        if silent:
            words = f"{words} Nothing came for more than {duration(QUIET_S)} from {_named(silent)}."
        return "warn" if silent or lost else "good", f"{words}{outside}"
    if away:
        known = f" The newest one that is known came at {found[0].logged_at:%H:%M:%S} UTC." if found else ""
        what = away.partition("; ")[0].removeprefix("store: ")  # what helps is below
        return "bad", f"It is not known whether events arrive: {what}.{known}"
    raw = next((hop for hop in steps or () if hop.name == "scrubbed"), None)
    if raw and raw.waiting:
        return "warn", f"Nothing is through yet: {raw.waiting:,} raw entries of all producers wait for the scrubber."
    if refused and refused.lost:
        return "bad", f"Events arrive and are refused: {refused.lost:,} in 24 h, see below which field and rule."
    return "warn", f"Waiting for the first event.{outside}"


def _named(services: Sequence[str]) -> str:
    """Name services, and how many more there are."""
    names = list(dict.fromkeys(services))
    return ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f} ms"


PAGE = Page(
    "arrivals",
    "/arrivals",
    "Arrivals",
    "Do my events arrive?",
    read,
    Arrivals,
    (Parameter("service", "Name of the producer's service; empty: all.", longest=128),),
    span="1h",
    key="w",
    by_project=False,
    command="assay tail{and_project}",
)
