"""Runs scenarios one after another on one rig, and keeps the books."""

import contextlib
import random
import signal
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clickhouse_connect.driver.exceptions import ClickHouseError
from redis.exceptions import RedisError

from assay_runtime.store import Client, describe
from tests.chaos import faults
from tests.chaos.catalogue import DEATHS, SCENARIOS
from tests.chaos.ledger import Books, Ledger, chain_faults, reconcile
from tests.chaos.load import event_ms_of
from tests.chaos.producers import PATIENCE_S, Producers
from tests.chaos.rig import BATCH_ROWS, HISTORY_ENTRIES, VIEWS, Rig, running
from tests.chaos.scenario import Scenario, Stage
from tests.chaos.sessions import Watch, unlike, whole
from tests.chaos.windows import Exporter
from tests.support.store import MINUTELY_REFRESHES, refresh_rollups

#: What each may hold in memory whatever happens, in bytes of resident memory. In Redis an outage of the store waits.
RSS_LIMITS = {
    "redis": 1 << 30,
    "scrubber": 150 << 20,
    "writer": 150 << 20,
    "gateway": 150 << 20,
    "assembler": 200 << 20,
    "auditor": 150 << 20,
    "store": 3 << 30,
}
#: Entries of a drained events stream: the history for live tail, and some batches, since it is trimmed in steps.
EVENTS_LEFT = HISTORY_ENTRIES + 10 * BATCH_ROWS
ROLLUPS = ("rollup_minute", "rollup_hour", "rollup_day")
#: What keeps them from minute to minute. The hourly comparison would hide what these miss.
#: How long an event may be on its way to Redis, in seconds: until Redis is back, and a time-out of the producer that had asked before.
ON_ITS_WAY_S = 6.0


@dataclass
class Report:
    """What a scenario came to."""

    scenario: str
    ledger: Ledger
    seconds: float
    #: From the end of the fault, or from the last death where that is the fault, until all that was sent before the fault's end was visible
    #: and exportable, in seconds.
    recovery: float
    rows_written: int = 0
    #: Sessions sent whole in their newest revision, and how often sessions were looked at and one was still incomplete.
    sessions: int = 0
    looks: int = 0
    incomplete: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether the promise was kept."""
        return not self.faults


class Run:
    """One rig, one seed, many scenarios; the export's windows chain across all of them."""

    def __init__(self, rig: Rig, seed: int, events: int, patience_s: float = PATIENCE_S) -> None:
        self.rig, self.seed, self.events, self.patience_s = rig, seed, events, patience_s
        self.reports: list[Report] = []
        self.poison: set[str] = set()
        self.failures_before: set[tuple[str, str]] = set()
        self.incidents_before: set[str] = set()
        self.exporter = Exporter(
            rig.directory / "export",
            rig.settings_file("exporter", direct=True),
            often=rig.sabotage == "eager-watermark",
        ).start()

    def play(self, scenario: Scenario) -> Report:
        """Load, fault, recovery, and the ledger."""
        rig, seed = self.rig, self.seed + zlib.crc32(scenario.name.encode())
        started = time.monotonic()
        rig.scale(scenario.scrubbers, scenario.writers)
        if scenario.load.over_http:
            rig.start_gateway()
        if scenario.load.over_otlp:
            rig.start_assembler()
        service = scenario.name.replace(" ", "-").replace("'", "").replace(",", "")
        events = round(self.events * scenario.load.weight)
        producers = Producers(rig, service, scenario.load, events, seed)
        stage = Stage(rig, random.Random(seed), producers, events)
        wrong: list[str] = []
        with Watch(rig.store, service) as watch:
            try:
                rig.until(lambda: rig.captured_up_to() and producers.flowing, "the load has begun", 90)
                scenario.fault(stage)
                felt_since = min(stage.died, time.monotonic()) if scenario.name in DEATHS else time.monotonic()
                self._recovered(wrong)
                recovery = time.monotonic() - felt_since
                wrong += producers.emptied()
            finally:
                producers.stop()
            wrong += self._drained()
        try:
            report = self._reconcile(scenario, producers, stage, watch, wrong + stage.wrong)
        except ClickHouseError as error:  # tables that cannot be read are as bad as rows that are gone
            sent, attempted, _ = producers.books()
            wrong.append(f"the store cannot be read: {describe(error)[0]}")
            report = Report(scenario.name, reconcile(Books(sent, attempted, ())), 0.0, 0.0, faults=wrong)
        report.seconds, report.recovery = time.monotonic() - started, recovery
        self.reports.append(report)
        return report

    def broken_off(self, scenario: Scenario, why: str) -> Report:
        """The report of a scenario that did not come to its end; what it broke is mended for the next."""
        for network in self.rig.networks:
            network.heal()
        for name, process in self.rig.processes.items():
            if name in ("redis", "store"):
                process.send(signal.SIGCONT)
                process.start()
        self.reports.append(
            Report(scenario.name, reconcile(Books(frozenset(), frozenset(), ())), 0.0, 0.0, faults=[why])
        )
        return self.reports[-1]

    def _recovered(self, wrong: list[str]) -> None:
        target = _patiently(self.rig.captured_up_to)
        try:
            self.rig.until(lambda: self.rig.watermark() >= target, "", self.patience_s)
        except TimeoutError:
            wrong.append(f"the watermark did not pass the end of the fault within {self.patience_s:.0f} s")

    def _drained(self) -> list[str]:
        left: dict[str, int] = {}

        def drained() -> bool:
            nonlocal left
            try:
                left = self.rig.unfinished()
            except RedisError:
                return False
            return not left

        try:
            self.rig.until(drained, "", self.patience_s)
        except TimeoutError:
            return [f"{count} entries are left in {stream}" for stream, count in left.items()]
        return []

    def _reconcile(
        self, scenario: Scenario, producers: Producers, stage: Stage, watch: Watch, wrong: list[str]
    ) -> Report:
        sent, attempted, dropped = producers.books()
        self.poison |= stage.poison
        with contextlib.closing(_patiently(self.rig.store)) as store:
            visible = [event for view in VIEWS for event in column(store, _events_of(view, producers.service))]
            written = sum(int(column(store, _copies_of(view, producers.service))[0]) for view in VIEWS)
            rows = column(store, "SELECT concat(ifNull(toString(event_id), ''), '|', entry_id) FROM assay.capture_failures "
                                  "WHERE entry_id IS NOT NULL")  # fmt: skip
            incidents = set(column(store, "SELECT concat(reason, ' ', toString(failure_id)) FROM assay.capture_failures "
                                          "WHERE entry_id IS NULL"))  # fmt: skip
        sent -= {event for event in sent - set(visible) if _forgotten(event, stage)}
        failures = [(event, entry) for event, _, entry in (row.partition("|") for row in rows)]
        fresh = [failure for failure in failures if failure not in self.failures_before]
        self.failures_before.update(failures)
        books = Books(sent, attempted, visible, frozenset(stage.poison), fresh, dropped)
        ledger = reconcile(books)
        reasons = {incident.split()[0] for incident in incidents - self.incidents_before}
        self.incidents_before = incidents
        if scenario.incident and scenario.incident not in reasons:
            wrong.append(f"the fault did not bite: no incident with reason {scenario.incident}")
        expected = whole(producers.parts(), sent)
        wrong += ledger.faults + unlike(expected, watch.look()) + watch.faults + self._bounds()
        return Report(scenario.name, ledger, 0.0, 0.0, written, len(expected), watch.looks, watch.incomplete, wrong)

    def _bounds(self) -> list[str]:
        """Memory, streams, dead letters."""
        wrong = [
            f"{name} held {process.peak_rss >> 20} MiB, more than {limit >> 20}"
            for name, process in self.rig.processes.items()
            for service, limit in RSS_LIMITS.items()
            if name.startswith(service) and process.peak_rss > limit
        ]
        if dead := self.rig.dead_letters():
            wrong.append(f"{dead} entries were given up")
        for shard in self.rig.shards:
            with self.rig.redis(shard) as client:
                if (left := int(client.xlen(faults.EVENTS.key(shard)))) > EVENTS_LEFT:
                    wrong.append(f"{left} stored entries are left in {faults.EVENTS.key(shard)}")
        return wrong

    def finish(self) -> list[str]:
        """After the last scenario: the export's windows, the rollups, and the tables once everything is merged."""
        self.exporter.stop()
        # The watermark is the least of all shards', and waits for a clock that was set back.
        newest = self.rig.captured_up_to() if len(self.rig.shards) > 1 else 0
        with contextlib.suppress(TimeoutError, ClickHouseError):
            with contextlib.closing(self.rig.store()) as store:
                newest = max(newest, *(int(column(store, f"SELECT max(id) FROM assay.{view}")[0]) for view in VIEWS))
            self.rig.until(lambda: self.rig.watermark() >= newest, "the watermark is there", self.patience_s)
        self.exporter.finish(self.rig.watermark())
        wrong: list[str] = []
        try:
            self._compare_whole(wrong)
        except ClickHouseError as error:
            wrong.append(f"the store cannot be read: {describe(error)[0]}")
        return wrong

    def _compare_whole(self, wrong: list[str]) -> None:
        with contextlib.closing(self.rig.store()) as store:
            refresh_rollups(store, MINUTELY_REFRESHES)
            for view, (kind, windows) in zip(VIEWS, self.exporter.windows.items(), strict=True):
                rows = column(store, f"SELECT concat(toString(id), '|', toString(event_id)) FROM assay.{view}")
                stored = [(int(number), event) for number, _, event in (row.partition("|") for row in rows)]
                wrong += [f"export of {kind}: {fault}" for fault in chain_faults(windows, stored)]
                if again := len(stored) - len({number for number, _ in stored}):
                    wrong.append(f"{again} ids of kind {kind} used twice")
                if stored and max(stored)[0] > windows[-1].upto:
                    wrong.append(f"export of {kind}: rows above the last window")
                for rollup in ROLLUPS if kind != "session" else ():  # sessions have their own view
                    counted = column(store, f"SELECT sum(events) FROM assay.{rollup} WHERE kind = '{kind}'")[0]
                    if int(counted) != len(stored):
                        wrong.append(f"{rollup} counts {counted} of kind {kind}, there are {len(stored)}")
                store.command(f"OPTIMIZE TABLE assay_base.{view} FINAL")
                for table in (f"assay.{view}", f"assay_base.{view}"):
                    twice = column(store, f"SELECT count() - uniqExact(event_id) FROM {table}")[0]
                    if twice != "0":
                        wrong.append(f"{twice} rows too many in {table}")
            failed = column(store, "SELECT count() FROM assay.capture_failures WHERE entry_id IS NOT NULL")[0]
            for rollup in ROLLUPS:
                if (counted := column(store, f"SELECT sum(failures) FROM assay.{rollup}")[0]) != failed:
                    wrong.append(f"{rollup} counts {counted} failures, there are {failed}")


def _forgotten(event: str, stage: Stage) -> bool:
    """Whether Redis took an event in a time whose log it lost."""
    made = event_ms_of(event) / 1000
    return any(begun - ON_ITS_WAY_S <= made <= ended for begun, ended in stage.forgotten)


def _events_of(view: str, service: str) -> str:
    return f"SELECT toString(event_id) FROM assay.{view} WHERE service = '{service}'"


def _copies_of(view: str, service: str) -> str:
    return f"SELECT count() FROM assay_base.{view} WHERE service = '{service}'"


def column(store: Client, sql: str) -> list[str]:
    """The one column of a query, as text."""
    return store.raw_query(sql, fmt="TSVRaw").decode().split("\n")[:-1]


def _patiently(step: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return step()
        except Exception:  # Redis or the store is still coming back
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def chosen(names: Iterable[str]) -> list[Scenario]:
    """Scenarios of the usual rig by name, or all that can be played here. Raises `KeyError`."""
    known = {scenario.name: scenario for scenario in SCENARIOS[Rig]}
    return [known[name] for name in names] or [scenario for scenario in SCENARIOS[Rig] if not scenario.missing()]


def run(
    directory: Path,
    scenarios: Sequence[Scenario],
    *,
    seed: int,
    events: int,
    sabotage: str | None = None,
    patience_s: float = PATIENCE_S,
    told: Callable[[Report], None] = lambda _: None,
    kind: type[Rig] = Rig,
) -> tuple[Run, list[str]]:
    """Play scenarios; `events` is for each. Returns the run and what is wrong with its whole."""
    mounted = any(scenario.missing is faults.no_mounting for scenario in scenarios)
    if mounted:
        (directory / "store").mkdir()
        faults.mount(directory / "store")
    try:
        with running(directory, sabotage, kind) as rig:
            played = Run(rig, seed, events, patience_s)
            try:
                for scenario in scenarios:
                    try:
                        report = played.play(scenario)
                    except TimeoutError as late:
                        report = played.broken_off(scenario, str(late))
                    told(report)
            finally:
                played.exporter.stop()
            return played, played.finish()
    finally:
        if mounted:
            faults.unmount(directory / "store")
