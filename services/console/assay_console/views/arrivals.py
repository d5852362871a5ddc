"""Arrivals: do my events arrive? For producers: waits for the first event and times each step."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from assay_console.page import Ask, Document, Page, Panel, Parameter, redis_panel
from assay_console.views.overview import settings_to_paste
from assay_operations.arrivals import SINCE_MAX_MS, Arrival, Producer, clock_note, logged, producers, stored, together
from assay_operations.failures import Failures, failures
from assay_operations.overview.flow import Hop, hops
from assay_ui.formats import duration

#: Seconds without an event after which events no longer count as arriving.
QUIET_S = 300
#: Seconds without an event after which a service counts as switched off.
GONE_S = 86_400


class Timed(Document):
    """An event with the milliseconds of each step."""

    arrival: Arrival
    to_log_ms: float
    to_store_ms: float | None


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
    producers: Panel[tuple[Producer, ...]]
    settings_to_paste: str
    doctor: str


async def read(ask: Ask) -> Arrivals:
    """Read the store, the log and the refusals at the same time."""
    project, service = ask.scope.project, ask.text("service")
    since = max(ask.scope.from_ms, ask.scope.to_ms - SINCE_MAX_MS)
    shards = ask.settings.redis.shards
    in_store, in_log, steps, refused, seen = await asyncio.gather(
        ask.panel(stored, since, project, service),
        redis_panel(logged(ask.redis, shards, since, project, service)),
        redis_panel(hops(ask.redis, shards, ask.settings.delivery)),
        ask.panel(failures, hours=24, project=project, service=service),
        ask.panel(producers, project),
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
    )
    return Arrivals(
        service=service,
        state=state,
        sentence=sentence,
        quiet=quiet_s(found, now) > QUIET_S,
        clock=clock_note(found),
        log_away=in_log.message,
        events=in_store.holding(events if in_store.value is not None or events else None),
        refused=refused,
        producers=seen,
        settings_to_paste=settings_to_paste(ask),
        doctor="assay doctor",
    )  # fmt: skip


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
) -> tuple[str, str]:
    """Say in a sentence whether events arrive. `others`: the services to watch if none is chosen. Pure."""
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
        words = f"Events arrive: {at}, and was stored {_ms(newest.to_store_ms)} later."
        if not silent:
            return "good", words
        names = ", ".join(silent[:3]) + (f" and {len(silent) - 3} more" if len(silent) > 3 else "")
        return "warn", f"{words} Nothing came for more than {duration(QUIET_S)} from {names}."
    if away:
        known = f" The newest one that is known came at {found[0].logged_at:%H:%M:%S} UTC." if found else ""
        what = away.partition("; ")[0].removeprefix("store: ")  # what helps is below
        return "bad", f"It is not known whether events arrive: {what}.{known}"
    raw = next((hop for hop in steps or () if hop.name == "scrubbed"), None)
    if raw and raw.waiting:
        return "warn", f"Nothing is through yet: {raw.waiting:,} raw entries of all producers wait for the scrubber."
    if refused and refused.lost:
        return "bad", f"Events arrive and are refused: {refused.lost:,} in 24 h, see below which field and rule."
    return "warn", "Waiting for the first event."


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
