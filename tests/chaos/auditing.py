"""Two auditors of one audit log that die at any moment: what they leave is one log, without a gap or a fork."""

import contextlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from clickhouse_connect.driver.exceptions import ClickHouseError

from assay_operations.audit_log import AuditLog
from assay_operations.audit_verification import Result, verify
from assay_runtime.store import Client
from assay_schema.settings import AuditorSettings
from tests.chaos.clocks import DAY_S, ClocksRig, missing
from tests.chaos.rig import Rig, answers
from tests.chaos.scenario import Load, Scenario, Stage
from tests.support.ports import free_port

NAMES = ("auditor-1", "auditor-2")
#: How often auditors are killed, and how long the store is away once in between, in seconds.
KILLS, AWAY_S = 10, 2.5
#: Before how many of these the log has to have grown at least, and how long each waits for that, in seconds.
GROWN, GROWN_S = 3, 12
#: How long the log may take to have everything, in seconds: after a problem an auditor pauses.
CAUGHT_UP_S = 90
#: Leaves of events and of losses, and what each is a leaf of: up to a place, and all.
_EVENT_LEAVES = "assay.audit_leaves WHERE kind IN ('tool_call', 'server_event')"
_EVENTS = (
    "SELECT toString(event_id) FROM assay.tool_calls WHERE id <= {upto:UInt64} "
    "UNION ALL SELECT toString(event_id) FROM assay.server_events WHERE id <= {upto:UInt64}"
)
_NEWEST = (
    "SELECT max(newest) FROM (SELECT max(id) AS newest FROM assay.tool_calls WHERE id <= {upto:UInt64} "
    "UNION ALL SELECT max(id) FROM assay.server_events WHERE id <= {upto:UInt64})"
)
_LOST = (
    "SELECT toString(failure_id) FROM assay.capture_failures "
    "WHERE isNotNull(entry_id) AND stage IN ('gateway', 'assembler', 'scrubber', 'writer')"
)


class AuditedRig(ClocksRig):
    """Two auditors that share the directory of a log, each with a clock of its own."""

    @property
    def log(self) -> AuditorSettings:
        """The log, in small batches: many steps to be killed between."""
        values = {"origin": "chaos/audit", "directory": self.directory / "audit-log", "batch_rows": 10}
        return AuditorSettings.model_validate(values | {"checkpoint_leaves": 10, "checkpoint_s": 1})

    def start_auditors(self) -> None:
        """Start both."""
        for name in NAMES:
            self.health.setdefault(name, free_port())
            environment = {
                "ASSAY_CONFIG": str(self._auditor_settings()),
                "ASSAY_AUDITOR_PORT": str(self.health[name]),
            }
            self._managed(name, self.program("assay_auditor"), environment)
        self.until(lambda: all(answers(self.health[name], "/healthz") for name in NAMES), "both auditors have started")

    def _auditor_settings(self) -> Path:
        own = self.log
        lines = (
            f'origin = "{own.origin}"',
            f'directory = "{own.directory}"',
            f"batch_rows = {own.batch_rows}",
            f"checkpoint_leaves = {own.checkpoint_leaves}",
            f"checkpoint_s = {own.checkpoint_s}",
        )
        return self.settings_file("auditor", extra="\n[auditor]\n" + "\n".join(lines) + "\n")


def auditors_killed(stage: Stage) -> None:
    """Two auditors of one log are killed (`kill -9`) again and again; the store goes away once, and clocks step a day back and forth."""
    rig = stage.rig
    assert isinstance(rig, AuditedRig)
    rig.start_auditors()
    grown = 0
    for number in range(KILLS):
        size = _size(rig)
        with contextlib.suppress(TimeoutError):  # it has everything that there is
            rig.until(lambda size=size: _size(rig) > size, "the log has grown", GROWN_S)
        stage.pause(0, 0.3)
        grown += _size(rig) > size
        stage.kill(*stage.rng.choice(((NAMES[0],), (NAMES[1],), NAMES)))
        rig.clocks[stage.rng.choice(NAMES)].step(stage.rng.choice((-DAY_S, 0, DAY_S)))
        if number == KILLS // 2:
            rig.processes["store"].hold()
            stage.pause(AWAY_S, 2 * AWAY_S)
            rig.processes["store"].start()
            rig.until_store_ready()
    try:
        rig.until(lambda: _caught_up(rig), "", CAUGHT_UP_S)
    except TimeoutError:
        stage.wrong.append(f"the audit log did not have everything within {CAUGHT_UP_S} s")
    for name in NAMES:
        rig.processes[name].hold()  # whatever is unsigned then stays so: the log is to be whole at any time
    if grown < GROWN:
        stage.wrong.append(f"the fault did not bite: the log had grown before {grown} of {KILLS} kills")
    stage.wrong += _faults(rig)


def _size(rig: AuditedRig) -> int:
    with contextlib.closing(rig.store()) as store:
        return AuditLog(store, rig.log).size()


def _caught_up(rig: AuditedRig) -> bool:
    """True if the log has every event up to the watermark, and every loss."""
    upto = rig.watermark()
    if upto < 0:
        return False
    try:
        with contextlib.closing(rig.store()) as store:
            newest = _numbers(store, _NEWEST, {"upto": upto})
            reached = _numbers(store, f"SELECT max(place) FROM {_EVENT_LEAVES}", {})
            return newest == reached and not _unlike(store, _LOST, "kind = 'lost'", {})
    except ClickHouseError:
        return False


def _faults(rig: AuditedRig) -> list[str]:
    """What is wrong with the log: what a verification finds, events that are not in it, and events that are in it twice."""
    with contextlib.closing(rig.store()) as store:
        result = Result()
        log = AuditLog(store, rig.log)
        wrong = [f"audit log: {each.kind} at {each.leaf_index}: {each.what}" for each in verify(log, result)]
        if not result.anchored:
            wrong.append("audit log: no checkpoint confirms it")
        [reached] = _numbers(store, f"SELECT max(place) FROM {_EVENT_LEAVES}", {})
        wrong += _unlike(store, _EVENTS, "kind IN ('tool_call', 'server_event')", {"upto": reached})
        return wrong + _unlike(store, _LOST, "kind = 'lost'", {})


def _unlike(store: Client, sources: str, leaves: str, wanted: Mapping[str, int]) -> list[str]:
    """Compare what is stored with the leaves of one kind."""
    logged = (
        f"SELECT id FROM (SELECT DISTINCT leaf_index, toString(source_id) AS id FROM assay.audit_leaves WHERE {leaves})"
    )
    stored, found = (
        Counter(str(each) for (each,) in store.query(sql, dict(wanted)).result_rows) for sql in (sources, logged)
    )
    differences = {"missing in": stored - found, "too many in": found - stored}
    return [f"audit log: {sum(ids.values())} sources {what} it" for what, ids in differences.items() if ids]


def _numbers(store: Client, sql: str, wanted: Mapping[str, int]) -> list[int]:
    return [int(each) for (each,) in store.query(sql, dict(wanted)).result_rows]


SCENARIOS: dict[type[Rig], tuple[Scenario, ...]] = {
    AuditedRig: (Scenario("auditors killed", auditors_killed, Load(seconds=14), missing=missing),)
}
