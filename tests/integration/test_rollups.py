"""The rollups against the real engine: what they say equals a recount of the events, whatever was delivered how often and when."""

import math
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import event_ms
from tests.support.sample_rows import Json, answer, candidate, failure, feedback, lines, server_event, tool_call
from tests.support.store import MINUTELY_REFRESHES, ROLLUP_REFRESHES, StoreServer, refresh_rollups
from tests.support.wait import until

REPAIRS = ("rollup_minute_repair", "rollup_hour_repair", "rollup_day_repair")
BUCKETS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
TABLES = {
    "candidates": "retrieval",
    "answers": "answer",
    "feedback": "feedback",
    "tool_calls": "tool_call",
    "server_events": "server_event",
    "capture_failures": "failure",
}
Key = tuple[str, str, str, str, datetime]


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        empty(client)
        refresh_rollups(client)  # ends refreshes that began before, which store rows of the test before this one
        empty(client)
        yield client


def empty(client: Client) -> None:
    for table in (*TABLES, *(f"rollup_{bucket}" for bucket in BUCKETS)):
        client.command(f"TRUNCATE TABLE assay_base.{table}")


def store(client: Client, table: str, rows: list[Json]) -> None:
    insert_json_rows(client, f"assay_base.{table}", lines(rows), len(rows))


def minute_of(ms: int, size_ms: int) -> datetime:
    return datetime.fromtimestamp(ms // size_ms * size_ms / 1000, UTC).replace(tzinfo=None)


def row_ms(row: Json) -> int:
    """The time of an event, or of a failure, in Unix milliseconds."""
    if "failure_id" in row:
        return round(datetime.fromisoformat(row["created_at"]).timestamp() * 1000)
    return event_ms(UUID(row["event_id"]))


def recount(rows: dict[str, list[Json]], size_ms: int = BUCKETS["minute"]) -> dict[Key, int]:
    """Events and failures by what a rollup's row stands for, counted here from rows that are all distinct."""
    counts: Counter[Key] = Counter()
    for table, kind in TABLES.items():
        for row in rows.get(table, []):
            bucket = minute_of(row_ms(row), size_ms)
            counts[kind, row["project"], row["service"], row.get("tool_name", ""), bucket] += 1
    return dict(counts)


def rolled_up(client: Client, bucket: str = "minute") -> dict[Key, int]:
    found = client.query(
        f"SELECT kind, project, service, tool, toDateTime({bucket}, 'UTC'), events + failures + incidents FROM assay.rollup_{bucket}"
    ).result_rows
    assert len({row[:5] for row in found}) == len(found), "one row for each minute, kind, project, service and tool"
    return {(row[0], row[1], row[2], row[3], row[4]): row[5] for row in found}


def assert_rollups_hold(client: Client, rows: dict[str, list[Json]]) -> None:
    for bucket, size_ms in BUCKETS.items():
        assert rolled_up(client, bucket) == recount(rows, size_ms)


def sample(seed: int, count: int = 300) -> dict[str, list[Json]]:
    """Distinct rows of every kind, within the last four hours."""
    chance = random.Random(seed)

    def fields() -> Json:
        return {
            "number": chance.randrange(1_000_000_000),
            "days_old": chance.random() / 6,
            "project": chance.choice(("p1", "p2")),
            "service": chance.choice(("s1", "s2")),
        }

    return {
        "candidates": [
            candidate(**fields() | {"number": number}, tool_name=chance.choice(("query", "search")))
            for number in range(count)
        ],
        "answers": [answer(**fields() | {"number": number}) for number in range(count)],
        "feedback": [feedback(**fields() | {"number": number}) for number in range(count)],
        "tool_calls": [
            tool_call(
                **fields() | {"number": number},
                tool_name=chance.choice(("read", "bash")),
                status=chance.choice(("success", "empty", "error")),
            )
            for number in range(count)
        ],
        "server_events": [server_event(**fields() | {"number": number}) for number in range(count)],
        "capture_failures": [failure(**fields() | {"number": number}) for number in range(count)],
    }


def test_tool_calls_are_counted_by_tool_and_status_with_their_latencies(owner: Client) -> None:
    calls = [
        tool_call(number, tool_name=tool, status=status, duration_ms=ms)
        for number, (tool, status, ms) in enumerate(
            [("read", "success", 10.0), ("read", "error", 30.0), ("read", "empty", 20.0), ("bash", "refused", 5.0)]
        )
    ]
    store(owner, "tool_calls", calls)
    refresh_rollups(owner)
    for bucket in BUCKETS:
        rows = owner.query(
            "SELECT tool, sum(events), sumMap(statuses), sum(without_result), max(latency_ms_max), max(p99_ms) "
            f"FROM assay.rollup_{bucket} WHERE kind = 'tool_call' GROUP BY tool ORDER BY tool"
        ).result_rows
        assert [row[:5] for row in rows] == [
            ("bash", 1, {"refused": 1}, 0, 5.0),
            ("read", 3, {"success": 1, "error": 1, "empty": 1}, 1, 30.0),
        ]
        assert 29 <= rows[1][5] <= 31


def test_percentiles_over_hours_and_days_differ_by_at_most_one_percent_from_those_of_the_calls(owner: Client) -> None:
    chance = random.Random(15)
    durations = {
        "read": lambda: chance.lognormvariate(3.0, 1.2),
        "bash": lambda: chance.lognormvariate(7.0, 2.0),
        "cached": lambda: chance.lognormvariate(-2.0, 0.3),
        "steady": lambda: 250.0,
        "either": lambda: chance.choice((0.5, 60_000.0)),
    }
    calls = [
        tool_call(number, days_old=chance.uniform(0.1, 3), tool_name=tool, duration_ms=took())
        for tool, took in durations.items()
        for number in range(500)
    ]
    calls += [
        tool_call(
            number, days_old=chance.uniform(0.1, 3), tool_name=f"seldom{count}", duration_ms=chance.uniform(1, 1e6)
        )
        for count in (1, 2, 3)
        for number in range(count)
    ]
    store(owner, "tool_calls", calls)
    refresh_rollups(owner)
    levels = (0.5, 0.95, 0.99)
    tools = {row["tool_name"] for row in calls}
    for bucket in ("hour", "day"):
        merged = owner.query(
            f"SELECT tool, quantilesExactWeightedArray{levels}(mapKeys(latency_us), mapValues(latency_us)) "
            f"FROM assay.rollup_{bucket} WHERE kind = 'tool_call' GROUP BY tool"
        )
        found = {tool: [us / 1000 for us in percentiles] for tool, percentiles in merged.result_rows}
        assert set(found) == tools
        for tool in tools:
            took = sorted(row["duration_ms"] for row in calls if row["tool_name"] == tool)
            exact = [took[math.ceil(level * len(took)) - 1] for level in levels]
            assert found[tool] == pytest.approx(exact, rel=0.01)


def test_redelivered_and_recut_batches_count_once(owner: Client) -> None:
    rows, chance = sample(1), random.Random(2)
    owner.command("ALTER TABLE assay_base.candidates MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1")
    for _ in range(3):
        for table, stored in rows.items():
            mixed, size = chance.sample(stored, len(stored)), chance.randrange(20, 120)
            for start in range(0, len(mixed), size):
                store(owner, table, mixed[start : start + size])
        refresh_rollups(owner)
        assert_rollups_hold(owner, rows)
    copies = owner.query("SELECT count() FROM assay_base.candidates").result_rows[0][0]
    assert copies == 900, "the copies are really there, as the engine may not merge them"


def test_a_spool_replayed_days_later_is_counted_in_its_own_minutes(owner: Client) -> None:
    rows = sample(3)
    for table, stored in rows.items():
        store(owner, table, stored)
    refresh_rollups(owner)
    late = [candidate(number, days_old=20, project="p1", service="s1") for number in range(50)]
    store(owner, "candidates", late)
    refresh_rollups(owner, MINUTELY_REFRESHES)  # without the hourly comparison
    assert_rollups_hold(owner, rows | {"candidates": rows["candidates"] + late})


def test_an_earlier_copy_that_arrives_later_moves_its_event_to_its_own_service(owner: Client) -> None:
    later = candidate(service="s1", latency_ms=20.0)
    store(owner, "candidates", [later])
    refresh_rollups(owner)
    assert [key[2] for key in rolled_up(owner)] == ["s1"]
    earlier = {**later, "id": later["id"] - 2, "service": "s2"}
    store(owner, "candidates", [earlier])
    refresh_rollups(owner, MINUTELY_REFRESHES)
    assert_rollups_hold(owner, {"candidates": [earlier]})


def test_a_failure_whose_earlier_copy_arrives_later_leaves_the_minute_it_was_in(owner: Client) -> None:
    later = failure(days_old=0.5)
    store(owner, "capture_failures", [later])
    refresh_rollups(owner)
    earlier = {**failure(days_old=0.6), "failure_id": later["failure_id"]}
    store(owner, "capture_failures", [earlier])
    refresh_rollups(owner)
    assert_rollups_hold(owner, {"capture_failures": [earlier]})


def test_what_is_deleted_is_gone_from_the_rollups_after_the_hourly_comparison(owner: Client) -> None:
    rows = sample(4)
    for table, stored in rows.items():
        store(owner, table, stored)
    refresh_rollups(owner)
    for table in rows:
        owner.command(f"ALTER TABLE assay_base.{table} DELETE WHERE project = 'p1'", settings={"mutations_sync": 1})
    refresh_rollups(owner, REPAIRS)
    assert_rollups_hold(
        owner, {table: [row for row in stored if row["project"] != "p1"] for table, stored in rows.items()}
    )


def test_a_refresh_that_wrote_only_a_part_is_completed_by_the_hourly_comparison(owner: Client) -> None:
    rows = sample(5)
    for table, stored in rows.items():
        store(owner, table, stored)
    refresh_rollups(owner)
    for bucket in BUCKETS:
        owner.command(
            f"ALTER TABLE assay_base.rollup_{bucket} DELETE WHERE project = 'p1' AND service = 's1'",
            settings={"mutations_sync": 1},
        )
    assert rolled_up(owner) != recount(rows)
    refresh_rollups(owner, REPAIRS)
    assert_rollups_hold(owner, rows)


def test_a_repair_counts_the_newest_hours_first_with_a_bounded_number_of_events(owner: Client) -> None:
    at = "toDateTime64(toStartOfHour(now('UTC')) - toIntervalHour(2 + intDiv(number, 300000)), 3, 'UTC')"
    event_id = (
        "reinterpretAsUUID(bitOr(bitShiftLeft(toUInt128(bitOr(bitShiftLeft(toUInt64(2), 62), number)), 64),"
        " toUInt128(bitOr(bitShiftLeft(toUInt64(toUnixTimestamp64Milli(at)), 16), 28672))))"
    )
    owner.command(
        "INSERT INTO assay_base.server_events (schema_version, id, created_at, event_id, project, service, occurred_at,"
        f" timestamp, event_subtype, stored_at) SELECT 1, number + 1, {at} AS at, {event_id}, 'p', 's', at, at, 'server_start', at"
        " FROM numbers(900000)"
    )
    differing = "SELECT count() FROM assay_base.rollup_minute_differing"
    counted = "SELECT sum(events) FROM rollup_minute"
    [[hours]] = owner.query(differing).result_rows
    assert hours == 2, "the hour that begins below half a million events is the last one"
    refresh_rollups(owner, ("rollup_minute_repair",))
    assert owner.query(counted).result_rows == [(600_000,)]
    refresh_rollups(owner, ("rollup_minute_repair",))
    assert owner.query(counted).result_rows == [(900_000,)]
    assert owner.query(differing).result_rows == [(0,)]


def test_a_store_killed_in_the_middle_of_a_refresh_catches_up_on_its_own_clock(tables: Path, tmp_path: Path) -> None:
    rows, chance = sample(6), random.Random(7)
    server = StoreServer(tmp_path, tables=tables).start()
    try:
        for _ in range(2):
            with connect(server.settings().store) as owner:
                for table, stored in rows.items():
                    store(owner, table, chance.sample(stored, len(stored)))
                owner.command("SYSTEM REFRESH VIEW assay_base.rollup_minute_refresh")
            server.kill()
            server.start()
        with connect(server.settings().store) as owner:
            scheduled = owner.query(
                "SELECT view FROM system.view_refreshes WHERE next_refresh_time IS NOT NULL"
            ).result_rows
            assert sorted(row[0] for row in scheduled) == sorted(ROLLUP_REFRESHES)
            refresh_rollups(owner)
            assert_rollups_hold(owner, rows)
    finally:
        server.stop()


def test_a_row_says_latency_scores_findings_and_verdicts_of_its_minute(owner: Client) -> None:
    at: Json = {"days_old": 0.1}
    hundred = [candidate(0, **at, latency_ms=float(n), retrieved_scores=[n / 100, 0.5]) for n in range(1, 101)]
    same_minute = [
        {**row, "event_id": hundred[0]["event_id"][:-4] + f"{n:04x}", "id": row["id"] + 2 * n}
        for n, row in enumerate(hundred)
    ]
    nothing = {**same_minute[0], "event_id": hundred[0]["event_id"][:-4] + "ffff", "id": hundred[0]["id"] + 500}
    nothing |= {"latency_ms": 1e12, "retrieved_scores": [], "retrieved_chunk_ids": [], "pii_families": {}}
    hit = {"retrieved_chunk_ids": [], "retrieved_ids": ["kb#1"], "latency_ms": 1.0, "retrieved_scores": [0.01]}
    text = {**hit, "retrieved_ids": [], "passages": [{"id": "a", "source_id": None, "text": "t", "score": None}]}
    same_minute[0] |= hit
    same_minute[1] |= {**text, "latency_ms": 2.0, "retrieved_scores": [0.02]}
    store(owner, "candidates", [*same_minute, nothing])
    store(owner, "feedback", [feedback(**at), feedback(**at, verdict="negative")])
    store(owner, "capture_failures", [failure(**at), failure(**at, reason="db_down", entry_id=None)])
    refresh_rollups(owner)
    for bucket in BUCKETS:
        result = owner.query(f"SELECT * FROM assay.rollup_{bucket}")
        found: list[Json] = [dict(zip(result.column_names, row, strict=True)) for row in result.result_rows]
        by_kind: dict[str, Any] = {kind: [row for row in found if row["kind"] == kind] for kind in TABLES.values()}
        [retrieval] = by_kind["retrieval"]
        assert (retrieval["events"], retrieval["without_result"], retrieval["scored"]) == (101, 1, 100)
        assert (retrieval["p50_ms"], retrieval["p95_ms"]) == (pytest.approx(51, rel=0.01), pytest.approx(96, rel=0.01))
        assert sum(retrieval["latency_us"].values()) == 101
        assert max(retrieval["latency_us"]) == pytest.approx(3_600_000_000, rel=0.01), "an hour and more as an hour"
        assert retrieval["latency_ms_max"] == 1e12
        assert retrieval["top_score_sum"] == pytest.approx(50.5)
        assert retrieval["top_score_min"] == 0.01
        assert (retrieval["pii_events"], retrieval["pii_families"]) == (100, {"email": 200})
        assert sum(row["positive"] for row in by_kind["feedback"]) == 1
        assert sum(row["negative"] for row in by_kind["feedback"]) == 1
        assert {row["p95_ms"] for row in by_kind["feedback"]} == {None}
        failures = by_kind["failure"]
        assert (sum(row["failures"] for row in failures), sum(row["incidents"] for row in failures)) == (1, 1)
        assert sum((Counter(row["failure_reasons"]) for row in failures), Counter()) == {
            "check_violation": 1,
            "db_down": 1,
        }


def test_readers_and_writers_can_neither_refresh_nor_stop_the_rollups(migrated: StoreServer, owner: Client) -> None:
    for role in ("writer", "sre", "exporter"):
        with connect(migrated.settings(role).store) as client:
            assert client.query("SELECT count() FROM rollup_hour").result_rows
            for statement in (
                "SYSTEM REFRESH VIEW assay_base.rollup_minute_refresh",
                "SYSTEM STOP VIEW assay_base.rollup_minute_refresh",
                "ALTER TABLE assay_base.rollup_minute_refresh MODIFY REFRESH EVERY 1 YEAR",
                "DROP VIEW assay_base.rollup_minute_refresh",
            ):
                with pytest.raises(DatabaseError, match="privileges"):
                    client.command(statement)
    with connect(migrated.settings("sre").store) as sre, pytest.raises(DatabaseError, match="ACCESS_DENIED"):
        sre.query("SELECT count() FROM assay_base.rollup_minute")


def test_rollups_expire_with_the_events_they_count(migrated: StoreServer, owner: Client) -> None:
    engines = owner.query(
        "SELECT engine_full FROM system.tables WHERE database = 'assay_base' AND name IN ('rollup_minute', 'rollup_hour', 'rollup_day')"
    ).result_rows
    assert len(engines) == 3
    assert all("TTL" in row[0] and "created_at" in row[0] for row in engines)


def test_what_is_stored_after_the_clock_of_the_store_was_set_back_is_counted(owner: Client) -> None:
    before = [candidate(number) for number in range(5)]
    store(owner, "candidates", before)
    refresh_rollups(owner)
    for bucket in BUCKETS:  # as after refreshes by a clock that was two days ahead
        owner.command(
            f"INSERT INTO assay_base.rollup_{bucket} SELECT * REPLACE (refreshed_at + toIntervalDay(2) AS refreshed_at) "
            f"FROM assay_base.rollup_{bucket} FINAL"
        )
    for number in range(5, 15, 5):
        before += (more := [candidate(each) for each in range(number, number + 5)])
        store(owner, "candidates", more)
        refresh_rollups(owner, MINUTELY_REFRESHES)
        assert_rollups_hold(owner, {"candidates": before})


def test_absurd_latencies_and_scores_make_no_sum_infinite(owner: Client) -> None:
    absurd = [candidate(number, latency_ms=1e308, retrieved_scores=[1e308, 0.5]) for number in range(3)]
    store(owner, "candidates", absurd)
    store(owner, "answers", [answer(number, latency_ms=1.7e308) for number in range(3)])
    refresh_rollups(owner)
    for bucket in BUCKETS:
        found = owner.query(
            f"SELECT count(), countIf(isFinite(latency_ms_sum)), countIf(isFinite(top_score_sum)) FROM assay.rollup_{bucket}"
        ).result_rows[0]
        assert found[0] >= 2
        assert found == (found[0], found[0], found[0])


def test_a_sum_that_became_infinite_in_an_earlier_version_is_counted_anew(owner: Client) -> None:
    store(owner, "candidates", [candidate(number, latency_ms=2.0) for number in range(3)])
    refresh_rollups(owner)

    def spoil() -> bool:
        for bucket in BUCKETS:
            owner.command(
                f"INSERT INTO assay_base.rollup_{bucket} SELECT * REPLACE (inf AS latency_ms_sum, "
                f"refreshed_at + toIntervalMillisecond(1) AS refreshed_at) FROM assay_base.rollup_{bucket} FINAL"
            )
        return bool(owner.query("SELECT sum(latency_ms_sum) FROM assay.rollup_minute").result_rows == [(math.inf,)])

    until(spoil)  # a refresh by the store's own clock may come between
    refresh_rollups(owner, ("rollup_minute_repair", "rollup_hour_refresh", "rollup_day_refresh"))
    for bucket in BUCKETS:
        assert owner.query(f"SELECT sum(latency_ms_sum) FROM assay.rollup_{bucket}").result_rows == [(6.0,)]
