"""Rollups by day: they are there after the migration that adds them, and the query that reads them counts each call once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_runtime import migrate as runner
from assay_runtime import retention
from assay_runtime.migrate import migrate, migrations
from assay_runtime.queries import named_queries
from assay_runtime.store import Client, connect, insert_json_rows
from tests.support.sample_rows import lines, tool_call
from tests.support.store import StoreServer, refresh_rollups

HOURS = 60


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreServer]:
    """A store of the version before, with a call in each of the last hours, counted by minute and hour."""
    server = StoreServer(tmp_path).start()
    with monkeypatch.context() as before:
        before.setattr(runner, "migrations", lambda: migrations()[:18])
        migrate(server.settings())
    with connect(server.settings().store) as owner:
        calls = [tool_call(hour, days_old=hour / 24, duration_ms=float(hour + 1)) for hour in range(HOURS)]
        columns = {
            name for (name,) in owner.query("SELECT name FROM system.columns WHERE table = 'tool_calls'").result_rows
        }
        earlier_rows = [{name: value for name, value in call.items() if name in columns} for call in calls]
        insert_json_rows(owner, "assay_base.tool_calls", lines(earlier_rows), len(calls))
        refresh_rollups(owner, ("rollup_minute_refresh", "rollup_hour_refresh"))
    yield server
    server.stop()


def counted(client: Client, bucket: str) -> tuple[int, int, int]:
    """The calls in a rollup, its histograms and its rows."""
    [(calls, latencies, rows)] = client.query(
        f"SELECT sum(events), sum(arraySum(mapValues(latency_us))), count() FROM assay.rollup_{bucket}"
    ).result_rows
    return calls, latencies, rows


def test_stored_calls_are_counted_by_hour_and_day_after_the_migration(earlier: StoreServer) -> None:
    with connect(earlier.settings().store) as owner:
        for _ in range(2):  # again, as after a run that was interrupted: every statement is repeated
            migrate(earlier.settings())
            owner.command("SYSTEM WAIT VIEW assay_base.rollup_hour_refresh")
            assert counted(owner, "hour") == (HOURS, HOURS, HOURS), "the first refresh begins by itself"
            refresh_rollups(owner, ("rollup_day_refresh",))
            calls, latencies, days = counted(owner, "day")
            assert (calls, latencies) == (HOURS, HOURS)
            assert days in (3, 4)
            for statement in migrations()[18].statements("assay_base", "assay"):
                owner.command(statement)
        migrate(earlier.settings())
        engines = owner.query(
            "SELECT engine_full FROM system.tables WHERE database = 'assay_base' AND name IN ('rollup_hour', 'rollup_day')"
        ).result_rows
        assert [("TTL" in engine, "index_granularity = 256" in engine) for (engine,) in engines] == [(True, True)] * 2
        assert retention.statements(owner, "assay_base", earlier.settings().retention) == []


def test_tools_counts_each_call_of_its_hours_once(earlier: StoreServer) -> None:
    migrate(earlier.settings())
    query = named_queries()["tools"]
    with connect(earlier.settings().store) as owner:
        refresh_rollups(owner, ("rollup_hour_refresh", "rollup_day_refresh"))

        def stored(hours: int) -> int:
            since = f"toStartOfHour(now('UTC')) - INTERVAL {hours} HOUR"
            [(calls,)] = owner.query(f"SELECT count() FROM tool_calls WHERE event_time >= {since}").result_rows
            return int(calls)

        for hours in (0, 1, 5, 11, 23, 24, 25, 36, 47, 48, 100):
            before = stored(hours)
            [row] = owner.query(query.sql, parameters={**query.defaults, "hours": hours}).named_results()
            assert before >= row["calls"] >= stored(hours), f"{hours} hours"
            assert row["calls"] >= min(HOURS, hours)
