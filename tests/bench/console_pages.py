"""Ask a running console for each of its pages, and measure what they cost it and the store."""

import gzip
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode

import psutil

from assay_console.pages import PAGES
from assay_operations.events.filters import EventFilter, Range
from assay_operations.events.listing import list_events
from assay_operations.events.rows import conditions, parameters, select_newest, within
from assay_runtime.store import Client
from assay_schema.fields import Kind
from tests.support.console import Console
from tests.support.console_rows import Filled
from tests.support.store import StoreServer

DAY_MS = 86_400_000


@dataclass
class Cost:
    """What requests for one page took: milliseconds, rows read by the store, kilobytes of HTML (gzip), and CPU milliseconds."""

    server_ms: list[float] = field(default_factory=list)
    rows_read: list[int] = field(default_factory=list)
    html_kb: list[float] = field(default_factory=list)
    console_cpu_ms: float = 0.0
    store_cpu_ms: float = 0.0

    @property
    def p50(self) -> float:
        return statistics.median(self.server_ms)

    @property
    def p95(self) -> float:
        return p95(self.server_ms)

    @property
    def cpu_ms(self) -> float:
        return self.console_cpu_ms + self.store_cpu_ms


class Cpu:
    """CPU time of a process and its children."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._at = 0.0

    def start(self) -> None:
        self._at = self._now()

    def ms_since(self) -> float:
        return (self._now() - self._at) * 1000

    def _now(self) -> float:
        every = [self._process, *self._process.children(recursive=True)]
        return sum(times.user + times.system for times in (each.cpu_times() for each in every))


@dataclass(frozen=True)
class Site:
    """A console on a filled store. `owner` reads the same without limits."""

    console: Console
    store: StoreServer
    owner: Client
    filled: Filled
    rows: int


def requests_of(site: Site, count: int) -> dict[str, Callable[[int], str]]:
    """Return for each page the address of its request with a number.

    Each request has a range or event that was not asked for before, so that no earlier answer is used again; answers for the frame and for
    pages without either are, for 15 s, as they are in use.
    """
    now_ms = int(time.time() * 1000)
    span = Range(now_ms - 2 * DAY_MS, now_ms)
    ids = {
        kind: [row.event_id for row in list_events(site.owner, EventFilter((kind,), "p1"), span, limit=count).rows]
        for kind in (Kind.RETRIEVAL, Kind.ANSWER)
    }
    [[leaves]] = site.owner.query("SELECT count() FROM assay.audit_leaves").result_rows
    filled = site.filled
    base, change = filled.runs

    def ranged(path: str, days: int) -> Callable[[int], str]:
        def address(number: int) -> str:
            to_ms = now_ms - number * 60_000
            join = "&" if "?" in path else "?"
            return f"{path}{join}from={iso(to_ms - days * DAY_MS)}&to={iso(to_ms)}"

        return address

    def event(number: int) -> str:
        of_kind = ids[(Kind.ANSWER, Kind.RETRIEVAL)[number % 2]]
        return f"/e/{of_kind[number // 2 % len(of_kind)]}"

    def fixed(path: str) -> Callable[[int], str]:
        return lambda _: path

    of_pages = {
        "overview": [fixed("/")],
        "live": [fixed("/live")],
        "events": [ranged("/events", 1), ranged("/events?project=p1&kind=answer", 1), ranged("/events", 30)],
        "differs": [ranged("/events/differs?tool=search", 1)],
        "event": [event],
        "sessions": [ranged("/sessions", 7)],
        "session": [lambda number: f"/s/ses_{1 + number % 900}"],
        "alerts": [ranged("/alerts", 7)],
        "alert": [fixed(f"/alerts/{filled.alert}")],
        "together": [fixed(f"/alerts/{filled.alert}/together")],
        "acknowledge": [fixed(f"/alerts/{filled.alert}/acknowledge")],
        "quality": [ranged("/quality?project=p1", 30)],
        "runs": [ranged("/evals", 30)],
        "run": [fixed(f"/evals/runs/{base}")],
        "compare": [fixed(f"/evals/compare?base={base}&change={change}")],
        "case": [fixed(f"/evals/case/{filled.case}?base={base}&change={change}")],
        "contradictions": [ranged("/contradictions?project=p1", 30)],
        "label": [ranged("/label?project=p1", 30)],
        "review": [ranged("/review?project=p1", 30)],
        "datasets": [fixed("/datasets")],
        "dataset": [fixed(f"/datasets/{filled.dataset}?project={filled.project}")],
        "failures": [ranged("/failures", 1)],
        "requeue": [fixed("/failures/requeue")],
        "drop": [fixed("/failures/drop")],
        "patterns": [fixed("/patterns")],
        "arrivals": [fixed("/arrivals?project=p1")],
        "audit": [ranged("/audit", 7)],
        "audit_row": [lambda number: f"/audit/{number * 7919 % leaves}"],
        "sql": [lambda number: f"/sql?q=SELECT+count()+FROM+rollup_day+WHERE+events+%3E+{number}"],
        "health": [fixed("/health")],
    }
    if unmeasured := {page.name for page in PAGES} ^ of_pages.keys():
        raise AssertionError(f"pages without a request here, or requests without a page: {unmeasured}")
    return {
        page.path if len(addresses) == 1 else _shape(address(0)): address
        for page in PAGES
        for addresses in [of_pages[page.name]]
        for address in addresses
    }


def _shape(address: str) -> str:
    """Return the name of one of several requests for a page."""
    path, _, query = address.partition("?")
    values = dict(parse_qsl(query))
    days = (datetime.fromisoformat(values.pop("to")) - datetime.fromisoformat(values.pop("from"))).days
    return f"{path}?{urlencode(values | {'t': f'{days}d'})}"


def ask(site: Site, address: Callable[[int], str], count: int) -> Cost:
    """Ask for a page `count` times, one after the other."""
    assert site.console.process
    cpu = {"console": Cpu(site.console.process.pid), "store": Cpu(site.store.pid)}
    cost = Cost()
    # What is imported and planned once is not measured.
    _one(site, address(count), Cost())
    time.sleep(0.3)
    for each in cpu.values():
        each.start()
    for number in range(count):
        _one(site, address(number), cost)
    time.sleep(0.1)  # the store makes its next handles after an answer
    cost.console_cpu_ms, cost.store_cpu_ms = (each.ms_since() / count for each in cpu.values())
    return cost


def _one(site: Site, path: str, cost: Cost) -> None:
    page = site.console.get(path, "OPERATOR", Sec_Fetch_Site="same-origin")
    if page.status != 200:
        raise AssertionError(f"{path}: status {page.status}")
    cost.server_ms.append(float(page.headers["server-timing"].partition("page;dur=")[2].partition(",")[0]))
    cost.rows_read.append(int(page.headers["x-rows-read"]))
    cost.html_kb.append(gzipped(page.body))


def unbounded(site: Site, count: int) -> Cost:
    """Ask for the 50 newest events in one query without a lower bound: what a page would do without the rollups."""
    cpu, cost = Cpu(site.store.pid), Cost()
    span = Range(0, int(time.time() * 1000))
    where = {kind: [*within(), *conditions(EventFilter(), kind)] for kind in EventFilter().possible_kinds}
    values = parameters(EventFilter()) | {"low_ms": span.from_ms, "upper_ms": span.to_ms, "limit": 50}
    cpu.start()
    for _ in range(count):
        started = time.perf_counter()
        answer = site.owner.query(select_newest(where), values)
        cost.server_ms.append((time.perf_counter() - started) * 1000)
        cost.rows_read.append(int(answer.summary["read_rows"]))
    cost.store_cpu_ms = cpu.ms_since() / count
    return cost


def depths(site: Site, pages: int) -> Iterator[int]:
    """Yield the rows that the store read for pages of `/events` of 30 days: the first ones, one after another, and deep ones."""
    now_ms = int(time.time() * 1000)
    for project in ("", "p1"):
        base = f"/api/v1/events?from={iso(now_ms - 30 * DAY_MS)}&to={iso(now_ms)}&project={project}"
        after = ""
        for _ in range(pages):
            page = site.console.get(f"{base}&after={after}")
            yield int(page.headers["x-rows-read"])
            after = page.json["listed"]["value"]["next"]
        for days in (3, 10, 20, 29):
            to = iso(now_ms - days * DAY_MS)
            page = site.console.get(f"/api/v1/events?from={iso(now_ms - 30 * DAY_MS)}&to={to}&project={project}")
            yield int(page.headers["x-rows-read"])


def gzipped(data: bytes) -> float:
    """Return the kilobytes of data when it is compressed."""
    return len(gzip.compress(data)) / 1000


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).isoformat().replace("+00:00", "Z")
