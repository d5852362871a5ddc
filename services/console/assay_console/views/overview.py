"""Overview: is it still working? One sentence, the way of an event, and the projects, worst first."""

import asyncio
import contextlib
import ipaddress
import time
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from assay_console.page import Ask, Document, Page, Panel
from assay_operations.doctor.probes import state_of
from assay_operations.events.bounds import counted_to
from assay_operations.overview.flow import FlowHistory, Hop, hops
from assay_operations.overview.frame import UNREADABLE_PROJECT
from assay_operations.overview.stored import (
    Open,
    Quality,
    Stored,
    Traffic,
    lost_by_project,
    open_by_project,
    quality,
    traffic,
)
from assay_operations.overview.verdict import Facts, Verdict, verdict
from assay_ui.formats import counted

#: Services with a page of health, in the order of the data.
_SERVICES = ("gateway", "assembler", "scrubber", "writer", "judge", "drift", "notifier", "otlp_exporter")
#: Seconds that a service on this host has to answer.
_READY_S = 1.0


class FlowStep(Document):
    """A step on the way of an event: entries that wait for it, rate a second, age of the newest."""

    name: str
    service: str
    waiting: int | None
    oldest_s: float | None
    rate: float | None
    newest_age_s: float | None
    state: str
    note: str


class Service(Document):
    """The state of a service on this host, from its `/readyz`."""

    name: str
    state: str
    problems: list[str]


class Project(Document):
    """A project: 24 hours and the usual ones, latency, shares, losses, quality, open episodes.

    Not `readable`: the row has losses of events whose project could not be read; they are stored under this name.
    """

    name: str
    readable: bool = True
    state: str
    why: str
    hours: list[int]
    usual: list[float]
    events: int
    #: True if more events were counted by minute than by hour: the hours of the row are counted later.
    counting: bool
    newest_at: datetime | None
    p95_retrieval_ms: float | None
    p95_answer_ms: float | None
    without_result: float | None
    lost: int | None
    pii: float | None
    quality: Quality | None
    critical: int
    warnings: int


class Overview(Document):
    """The verdict on the system, the way of an event, services of this host, projects."""

    verdict: Verdict
    empty: bool
    settings_to_paste: str
    steps: Panel[list[FlowStep]]
    services: list[Service]
    projects: Panel[list[Project]]
    counted_to: datetime | None
    watermark_at: datetime | None


async def read(ask: Ask) -> Overview:
    """Read the store, Redis and the services at the same time."""
    stored, judged, opened, lost, (steps, counted), services = await asyncio.gather(
        ask.panel(traffic),
        ask.panel(quality),
        ask.panel(open_by_project),
        ask.panel(lost_by_project),
        asyncio.gather(ask.redis_panel(hops, ask.settings.redis.shards, ask.settings.delivery), ask.panel(counted_to)),
        services_of(ask),
    )
    now_s = time.time()
    if steps.state == "ready":
        ask.flow.answered(now_s)
    wanted = ask.scope.project
    found = [each for each in (stored.value.projects if stored.value else ()) if wanted in ("", each.project)]
    only_lost = sorted({name for name, n in (lost.value or {}).items() if n} - {each.project for each in found})
    of = {each.project: each for each in opened.value or ()}
    rows = sorted(
        (
            row(each, {q.project: q for q in judged.value or ()}.get(each.project), of.get(each.project), lost.value)
            for each in (*found, *(Traffic(name) for name in only_lost if wanted in ("", name)))
        ),
        key=badness,
    )
    places = [step(hop, now_s, ask.flow) for hop in steps.value or ()]
    ever = None if stored.value is None else bool(rows) or any(place.newest_age_s for place in places)
    nobody = wanted if wanted and stored.state == lost.state == "ready" and not rows else ""
    return Overview(
        verdict=verdict(
            replace(
                facts(stored, found, judged, opened, lost, steps, now_s, ask.flow, ever, wanted), unknown_project=nobody
            )
        ),
        empty=ever is False and not nobody,
        settings_to_paste=settings_to_paste(ask),
        steps=steps.holding(places if steps.value is not None else None),
        services=services,
        projects=stored.holding(rows if stored.value else None),
        counted_to=counted.value,
        watermark_at=stored.value.watermark_at if stored.value else None,
    )  # fmt: skip


def badness(project: Project) -> tuple[int | str, ...]:
    """Return the order of rows: a critical alert before losses, many before few. Pure."""
    state = ("bad", "warn", "good", "off").index(project.state)
    return state, -project.critical, -(project.lost or 0), -project.warnings, -project.events, project.name


def row(each: Traffic, judged: Quality | None, opened: Open | None, lost: dict[str, int] | None) -> Project:
    """Make the row of a project, with its state and why. Pure."""
    gone = None if lost is None else lost.get(each.project, 0)
    never = each.newest_at is None and not each.recent
    critical, warnings = (opened.critical, opened.warnings) if opened else (0, 0)
    # The first hour of the row is whole; the last is still running.
    silent = bool(each.usual) and each.hours[-2] + each.hours[-1] == 0 and each.usual[-2] >= 10
    seen = max(each.events, each.recent)
    why = [
        *([f"{critical} critical"] if critical else []),
        *([f"{gone:,} lost"] if gone else []),
        *([counted(warnings, "warning")] if warnings else []),
        *(["silent for an hour"] if silent else []),
    ]
    state = "bad" if critical or gone else "warn" if warnings or silent else "good" if seen else "off"
    return Project(
        name=each.project,
        readable=each.project != UNREADABLE_PROJECT or not never,
        state=state,
        why=", ".join(why) or ("fine" if seen else "no event in 24 h"),
        hours=list(each.hours),
        usual=list(each.usual),
        events=each.events,
        counting=each.recent > each.events,
        newest_at=each.newest_at,
        p95_retrieval_ms=each.p95_retrieval_ms,
        p95_answer_ms=each.p95_answer_ms,
        without_result=each.without_result / each.retrievals if each.retrievals else None,
        lost=gone,
        pii=each.pii_events / each.events if each.events else None,
        quality=judged,
        critical=critical,
        warnings=warnings,
    )


def facts(
    stored: Panel[Stored], found: list[Traffic], judged: Panel[tuple[Quality, ...]], opened: Panel[tuple[Open, ...]],
    lost: Panel[dict[str, int]], steps: Panel[list[Hop]], now_s: float, flow: FlowHistory, ever: bool | None, project: str,
) -> Facts:  # fmt: skip
    """Collect the facts of the sentence: of one project and the whole system, or of all. Pure.

    An answer that is not current is no fact: the sentence names what is not known.
    """
    episodes = opened.value if opened.state == "ready" else None
    about = [each for each in episodes or () if project in ("", each.project) or each.project == "all"]
    known = episodes is not None
    gone = lost.value if lost.state == "ready" else None
    scores = judged.value if judged.state == "ready" else None
    places = steps.value or []
    newest = max((each.newest_at for each in found if each.newest_at), default=None)
    current = stored.state == "ready"
    return Facts(
        store_away_s=None if current else stored.age_s or 0.0,
        redis_away_s=None if steps.state == "ready" else flow.silent_s(now_s),
        ever=ever,
        events=sum(each.recent for each in found) if current else None,
        usual=sum(each.usual[-1] for each in found if each.usual) / 6 if current else None,
        newest_age_s=max(0.0, now_s - newest.timestamp()) if newest and current else None,
        lost=None if gone is None or not current
        else sum(count for name, count in gone.items() if project in ("", name)),
        critical=sum(each.critical for each in about) if known else None,
        worst=_worst(about),
        warnings=sum(each.warnings for each in about) if known else None,
        quality_alerts=sum(each.drift for each in about) if known else None,
        accepted=sum(each.accepted for each in about),
        judged=None if scores is None else any(project in ("", each.project) for each in scores),
        stopped=tuple(_in_words(hop) for hop in places if hop.state == "bad"),
        slow=tuple(_in_words(hop) for hop in places if hop.state == "warn" and hop.waiting),
        unknown=tuple(
            name
            for name, value in (("open alerts", episodes), ("losses", gone), ("quality", scores))
            if value is None and current
        ),
    )  # fmt: skip


def _worst(about: list[Open]) -> str:
    """Return the critical alert that changed most, and since when, in words; empty without one."""
    critical = [each for each in about if each.critical and each.worst_since]
    if not critical:
        return ""
    worst = max(critical, key=lambda each: each.worst_effect)
    return f"{worst.worst.replace('_', ' ')} of {worst.project} since {worst.worst_since:%Y-%m-%d %H:%M} UTC"


def _in_words(hop: Hop) -> str:
    return f"{hop.waiting or 0:,} entries wait for the {hop.service} ({hop.note})"


def step(hop: Hop, now_s: float, flow: FlowHistory) -> FlowStep:
    """Make a step with its rate and the age of the newest entry."""
    return FlowStep(
        name=hop.name,
        service=hop.service,
        waiting=hop.waiting,
        oldest_s=None if hop.oldest_ms is None else hop.oldest_ms / 1000,
        rate=flow.rate(hop.name, now_s, hop.done),
        newest_age_s=None if hop.newest_ms is None else round(max(0.0, now_s - hop.newest_ms / 1000), 1),
        state=hop.state,
        note=hop.note,
    )


def settings_to_paste(ask: Ask) -> str:
    """Return the environment variables with which a producer sends to this system; never a password."""
    address = urlsplit(ask.settings.redis.url.get_secret_value())
    where = f"{address.scheme}://producer:PASSWORD@{address.hostname}:{address.port or 6379}/0"
    return f"export ASSAY_CAPTURE=1\nexport ASSAY_REDIS_URL={where}\nexport OTEL_SERVICE_NAME=my-service"


async def services_of(ask: Ask) -> list[Service]:
    """Ask the services of this host. Elsewhere their addresses are unknown; their lag shows their state."""
    host = ask.settings.telemetry.host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            found = await asyncio.gather(*(_ready(name, host, getattr(ask.settings, name).port) for name in _SERVICES))
            return list(found)
    return []


async def _ready(name: str, host: str, port: int) -> Service:
    try:
        async with asyncio.timeout(_READY_S):
            state = await asyncio.to_thread(state_of, host, port)
    except TimeoutError:
        return Service(name=name, state="bad", problems=["accepts connections but does not answer"])
    except OSError:
        return Service(name=name, state="off", problems=["does not run on this host"])
    if state is None:
        return Service(name=name, state="warn", problems=["another program answers at its port"])
    return Service(name=name, state="bad" if state[0] else "good", problems=[*state[0], *state[1]])


PAGE = Page(
    "overview",
    "/",
    "Overview",
    "Is it still working?",
    read,
    Overview,
    span="",
    key="o",
    command="assay doctor",
)
