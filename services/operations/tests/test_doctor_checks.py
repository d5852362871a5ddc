"""What `assay doctor` makes of what it measured."""

from dataclasses import replace

import pytest

from assay_operations.doctor import (
    audit_checks,
    clock_checks,
    finding,
    host_checks,
    quality_checks,
    redis_checks,
    store_checks,
)
from assay_operations.doctor.finding import Finding, Status
from assay_operations.doctor.host_checks import MemoryFacts, SpoolFacts
from assay_operations.doctor.redis_checks import GroupFacts, RedisFacts, StreamFacts
from assay_operations.doctor.store_checks import FailureFacts
from assay_schema.settings import DeliverySettings
from assay_sessions.readers import Problem
from assay_store.account import Reason

HEALTHY = RedisFacts(
    "7.0.15",
    append_only=True,
    last_write_ok=True,
    memory=10 * 1024**2,
    memory_limit=0,
    eviction="noeviction",
    evicted=0,
)
GIB = 1024**3


@pytest.mark.parametrize(
    ("version", "status"),
    [("7.0.0", Status.OK), ("7.2.4", Status.OK), ("8.10.0", Status.OK), ("6.2.21", Status.FAIL), ("5.0", Status.FAIL)],
)
def test_redis_before_7_0_fails_and_the_hint_says_what_to_install(version: str, status: Status) -> None:
    finding = redis_checks.redis_version(replace(HEALTHY, version=version))
    assert finding.status is status
    assert ("upgrade the server to Redis 7.0 or newer, or Valkey" in finding.hint) is (status is Status.FAIL)


@pytest.mark.parametrize(
    ("append_only", "written", "status"),
    [(True, True, Status.OK), (False, True, Status.FAIL), (True, False, Status.FAIL)],
)
def test_redis_without_a_working_append_only_file_fails(append_only: bool, written: bool, status: Status) -> None:
    assert (
        redis_checks.redis_persistence(replace(HEALTHY, append_only=append_only, last_write_ok=written)).status
        is status
    )


@pytest.mark.parametrize(
    ("memory", "limit", "eviction", "status"),
    [
        (GIB, 0, "noeviction", Status.OK),
        (GIB, 0, "allkeys-lru", Status.FAIL),  # services do not start
        (GIB, 2 * GIB, "noeviction", Status.OK),
        (GIB, 2 * GIB, "allkeys-lru", Status.FAIL),
        (int(1.6 * GIB), 2 * GIB, "noeviction", Status.WARN),
        (int(1.95 * GIB), 2 * GIB, "noeviction", Status.FAIL),
    ],
)
def test_redis_memory_warns_before_it_is_full_and_eviction_fails(
    memory: int, limit: int, eviction: str, status: Status
) -> None:
    finding = redis_checks.redis_memory(replace(HEALTHY, memory=memory, memory_limit=limit, eviction=eviction))
    assert finding.status is status
    assert bool(finding.hint) is (status is not Status.OK)


READ = GroupFacts("writer", consumers=1, pending=0, lag=0)
JUDGE = replace(READ, name="judge", silent_ms=16_000)
VISION = Problem("unknown_type", "a.jsonl", 3, "part vision")
CUT = Problem("damaged", "b.jsonl", 1, "line 7")
EVENTS = StreamFacts("events", 0, 10, ("writer",), (READ,))


@pytest.mark.parametrize(
    ("facts", "status", "said"),
    [
        (EVENTS, Status.OK, "10 entries, writer: lag 0, 0 pending"),
        (replace(EVENTS, length=1), Status.OK, "1 entry, "),
        (replace(EVENTS, groups=(), length=0), Status.OK, "group writer missing"),
        (replace(EVENTS, groups=()), Status.WARN, "group writer missing"),
        (replace(EVENTS, expected=("writer", "judge"), optional=("judge",)), Status.OK, "10 entries, writer: lag 0"),
        (replace(EVENTS, expected=("writer", "judge")), Status.WARN, "group judge missing"),
        (replace(EVENTS, groups=(replace(READ, consumers=0),)), Status.WARN, "unread stream: no writer is running"),
        (replace(EVENTS, groups=(replace(READ, consumers=0, hears_askers=False),)), Status.OK, "writer: lag 0"),
        (replace(EVENTS, groups=(replace(READ, lag=5, consumers=0),)), Status.FAIL, "unread stream"),
        (
            replace(EVENTS, groups=(replace(READ, lag=5, silent_ms=16_000),)),
            Status.FAIL,
            "no sign of life of the writer for 16 s",
        ),
        (
            replace(EVENTS, groups=(replace(READ, pending=1, silent_ms=16_000),)),
            Status.FAIL,
            "no sign of life of the writer",
        ),
        (replace(EVENTS, groups=(replace(READ, silent_ms=16_000),)), Status.WARN, "no sign of life of the writer"),
        (replace(EVENTS, groups=(replace(READ, lag=5, silent_ms=14_000),)), Status.OK, "lag 5, 0 pending"),
        (
            replace(EVENTS, groups=(replace(READ, silent_ms=16_000, hears_askers=False),)),
            Status.OK,
            "10 entries, writer: lag 0, 0 pending",
        ),
        (
            replace(EVENTS, groups=(replace(READ, pending=1, silent_ms=44_000, hears_askers=False),)),
            Status.OK,
            "1 pending",
        ),
        (
            replace(EVENTS, groups=(replace(READ, pending=1, silent_ms=46_000, hears_askers=False),)),
            Status.FAIL,
            "no sign of life of the writer for 46 s",
        ),
        (
            replace(EVENTS, groups=(replace(READ, lag=1, silent_ms=16_000, hears_askers=False),)),
            Status.FAIL,
            "no sign of life of the writer",
        ),
        (
            replace(
                EVENTS,
                expected=("writer", "judge"),
                optional=("judge",),
                groups=(READ, replace(JUDGE, lag=1)),
            ),
            Status.WARN,
            "no sign of life of the judge for 16 s",
        ),
        (
            replace(
                EVENTS,
                expected=("writer", "judge"),
                optional=("judge",),
                groups=(READ, JUDGE),
            ),
            Status.OK,
            "judge: lag 0, 0 pending",
        ),
        (replace(EVENTS, groups=(replace(READ, lag=100_001),)), Status.WARN, "lag 100,001"),
        (replace(EVENTS, groups=(replace(READ, lag=100_001, consumers=0),)), Status.FAIL, "lag 100,001"),
        (
            replace(EVENTS, groups=(replace(READ, pending=3, oldest_pending_ms=80_000),)),
            Status.OK,
            "3 pending (oldest 80 s)",
        ),
        (
            replace(EVENTS, groups=(replace(READ, pending=3, oldest_pending_ms=95_000),)),
            Status.WARN,
            "3 pending (oldest 95 s)",
        ),
        (StreamFacts("dead", 0, 0, (), ()), Status.OK, "empty"),
        (StreamFacts("dead", 0, 2, (), ()), Status.WARN, "2 dead letters"),
        (StreamFacts("dead", 0, 2, (), (), memory=256 * 1024**2), Status.FAIL, "no room for more"),
    ],
)
def test_a_stream_is_well_while_its_group_keeps_up(facts: StreamFacts, status: Status, said: str) -> None:
    finding = redis_checks.stream(facts, DeliverySettings())
    assert finding.status is status
    assert said in finding.summary
    assert bool(finding.hint) is (status is not Status.OK)


@pytest.mark.parametrize(
    ("configured", "outcomes", "status", "words"),
    [
        (False, [], "ok", "not configured"),
        (True, [], "ok", "has not run yet"),
        (True, [("pass", 30.0, ""), ("rate_limited", 7.0, "not due"), ("pass", 6.0, "")], "ok", "2 pass in a week"),
        (True, [("fail", 30.0, "mrr"), ("pass", 6.0, "")], "warn", "1 fail, 1 pass"),
        (True, [("pass", 70.0, "")], "warn", "70 h ago"),
        (True, [("pass", 30.0, ""), ("inconclusive", 6.0, "")], "ok", "1 pass, 1 inconclusive"),
        (True, [("started", 5.0, "")], "warn", "1 started"),
    ],
)
def test_nights_that_did_not_pass_or_were_missed_are_warned_of(
    configured: bool, outcomes: list[tuple[str, float, str]], status: str, words: str
) -> None:
    found = quality_checks.nightly_evaluation(configured, outcomes)
    assert (found.status.value, words in found.summary) == (status, True)


@pytest.mark.parametrize(
    ("failed", "rate", "high", "status", "words"),
    [
        (False, 0.02, 0, "ok", "shop: 2.0% of pairs (1.0% to 4.0%), 0 open high finding(s), 3 h ago"),
        (False, 0.02, 2, "warn", "2 open high finding(s)"),
        (True, None, 0, "warn", "the judge failed, so there is no rate"),
    ],
)
def test_high_contradictions_and_failed_judges_are_warned_of(
    failed: bool, rate: float | None, high: int, status: str, words: str
) -> None:
    found = quality_checks.contradictions(
        [quality_checks.ContradictionsFacts("shop", failed, rate, 0.01, 0.04, 3.2, high)]
    )
    assert (found.status.value, words in found.summary) == (status, True)
    assert "--project shop" in found.hint or not high
    assert quality_checks.contradictions([]).status is Status.OK


def test_shards_after_the_first_are_named() -> None:
    assert redis_checks.stream(EVENTS, DeliverySettings()).check == "stream events"
    assert redis_checks.stream(replace(EVENTS, shard=3), DeliverySettings()).check == "stream events (shard 3)"


@pytest.mark.parametrize(("applied", "status"), [(2, Status.OK), (1, Status.FAIL), (0, Status.FAIL), (3, Status.FAIL)])
def test_the_schema_must_be_the_one_this_version_works_with(applied: int, status: Status) -> None:
    assert store_checks.schema(applied, 2).status is status


@pytest.mark.parametrize(
    ("skip_indexes", "exact", "status"),
    [(True, True, Status.OK), (False, False, Status.OK), (False, True, Status.OK), (True, False, Status.FAIL)],
)
def test_reading_with_skip_indexes_needs_exact_mode(skip_indexes: bool, exact: bool, status: Status) -> None:
    assert store_checks.final_reads(skip_indexes, exact).status is status


@pytest.mark.parametrize(
    ("moved_s_ago", "waiting", "status"),
    [(5, 0, Status.OK), (5, 9, Status.OK), (86_400, 0, Status.OK), (61, 1, Status.WARN)],
)
def test_a_watermark_that_stands_still_matters_only_while_entries_wait(
    moved_s_ago: float, waiting: int, status: Status
) -> None:
    assert store_checks.watermark(7, moved_s_ago, waiting).status is status


def test_failures_are_counted_by_reason_most_first_with_dead_letters_and_what_was_stored_since() -> None:
    assert store_checks.failures([]) == Finding("failures in 24 h", Status.OK, "none")
    finding = store_checks.failures([FailureFacts("other", 3, given_up=3, recovered=2), FailureFacts("db_down", 1_200)])
    assert finding.status is Status.WARN
    assert finding.summary == "db_down 1,200, other 3 (3 dead letters, 2 stored since)"


def test_failures_of_events_that_were_all_stored_since_are_no_warning() -> None:
    finding = store_checks.failures([FailureFacts("other", 3, given_up=3, recovered=3)])
    assert (finding.status, finding.hint) == (Status.OK, "")


@pytest.mark.parametrize(
    ("spools", "status"),
    [
        ([], Status.OK),
        ([SpoolFacts("redis-a", 10, 5.0)], Status.OK),
        ([SpoolFacts("redis-a", 10, 61.0)], Status.WARN),
        ([SpoolFacts("redis-a", 95, 5.0)], Status.FAIL),
        ([SpoolFacts("redis-a", 50, 5.0), SpoolFacts("redis-b", 50, 5.0)], Status.OK),
    ],
)
def test_a_spool_that_does_not_empty_warns_and_a_full_one_fails(spools: list[SpoolFacts], status: Status) -> None:
    assert host_checks.spool(spools, "redis-a", 100).status is status


def test_a_spool_for_another_redis_is_named_with_the_setting_that_sends_it() -> None:
    finding = host_checks.spool([SpoolFacts("redis-a", 10, 5.0), SpoolFacts("unnamed", 10, 7_300.0)], "redis-a", 100)
    assert finding.status is Status.WARN
    assert "unnamed (10 B, 2 h)" in finding.summary
    assert "capture.spool_adopt" in finding.hint


@pytest.mark.parametrize(("free", "status"), [(50 * GIB, Status.OK), (GIB, Status.WARN), (10 * 1024**2, Status.FAIL)])
def test_a_disk_warns_before_it_is_full(free: int, status: Status) -> None:
    assert host_checks.disk(free, 100 * GIB, "/data").status is status


@pytest.mark.parametrize(
    ("ahead_s", "status", "said"),
    [
        (0.002, Status.OK, "2 ms ahead of this host"),
        (-0.5, Status.OK, "500 ms behind this host"),
        (-3.0, Status.WARN, "3 s behind"),
        (90.0, Status.FAIL, "90 s ahead"),
    ],
)
def test_clocks_may_differ_by_less_than_a_second(ahead_s: float, status: Status, said: str) -> None:
    finding = clock_checks.clock("redis", ahead_s)
    assert finding.status is status
    assert said in finding.summary


@pytest.mark.parametrize(
    ("ahead_s", "status"),
    [(-1_795_000_000.0, Status.OK), (-0.1, Status.OK), (0.5, Status.OK), (2.0, Status.WARN), (86_400.0, Status.FAIL)],
)
def test_stream_ids_may_not_run_ahead_of_the_clock(ahead_s: float, status: Status) -> None:
    finding = clock_checks.stream_ids(ahead_s)
    assert finding.status is status
    assert bool(finding.hint) is (status is not Status.OK)


@pytest.mark.parametrize(
    ("mode", "status"), [(0o600, Status.OK), (0o400, Status.OK), (0o640, Status.FAIL), (0o604, Status.FAIL)]
)
def test_secrets_that_others_may_read_fail_by_name(mode: int, status: Status) -> None:
    finding = host_checks.secrets([("a.toml", 0o600), ("b.toml", mode)])
    assert finding.status is status
    assert ("b.toml" in finding.hint) is (status is Status.FAIL)


def test_no_secrets_on_this_host_is_well() -> None:
    assert host_checks.secrets([]).status is Status.OK


def test_the_worst_of_several_decides() -> None:
    assert finding.worst(Status.OK, Status.FAIL, Status.WARN) is Status.FAIL
    assert finding.worst() is Status.OK


@pytest.mark.parametrize(
    ("facts", "status", "said"),
    [
        ((0, 0, None, {}), Status.OK, "none imported in a week"),
        ((0, 0, 9 * 86_400.0, {}), Status.OK, "none imported in a week, the latest 9 d ago"),
        ((36, 0, 90.0, {}), Status.OK, "36 sessions imported in a week, the latest 90 s ago"),
        (
            (1, 1, 900.0, {}),
            Status.WARN,
            "1 session imported in a week, the latest 15 min ago; 1 not complete: parts are missing",
        ),
        ((0, 2, 9 * 86_400.0, {}), Status.WARN, "2 not complete: parts are missing"),
        (
            (0, 0, None, {"codex": [VISION]}),
            Status.WARN,
            "codex did not read: unknown type (part vision) in a.jsonl: 3",
        ),
        (
            (2, 1, 90.0, {"codex": [VISION], "jsonl": [CUT, VISION, VISION, VISION]}),
            Status.WARN,
            (
                "1 not complete: parts are missing; the last import from codex did not read: unknown type (part vision) in a.jsonl: 3; "
                "the last import from jsonl did not read: damaged (line 7) in b.jsonl, unknown type (part vision) in a.jsonl: 3, "
            ),
        ),
        ((2, 0, 90.0, {"jsonl": [CUT, VISION, VISION, VISION]}), Status.WARN, ", and 1 more"),
    ],
)
def test_sessions_that_are_not_complete_or_not_read_are_a_warning(
    facts: tuple[int, int, float | None, dict[str, list[Problem]]], status: Status, said: str
) -> None:
    finding = store_checks.sessions(*facts)
    assert (finding.status, said in finding.summary) == (status, True), finding
    assert bool(finding.hint) is (status is not Status.OK)
    assert ("parts are missing" in finding.summary) is ("assay query failures" in finding.hint)
    assert ("part vision" in finding.summary) is ("update Assay" in finding.hint)


def test_open_alerts_are_a_warning_that_says_where_to_look() -> None:
    assert quality_checks.open_alerts({}).status == Status.OK
    found = quality_checks.open_alerts({"warn": 2, "critical": 1})
    assert (found.status, found.summary, found.hint) == (Status.WARN, "1 critical, 2 warn open", "assay alerts list")


@pytest.mark.parametrize(
    ("held", "peak", "status", "said"),
    [
        (100, 138, Status.OK, "100.0 MiB of 150.0 MiB, peak 138.0 MiB"),
        (100, 0, Status.OK, "100.0 MiB of 150.0 MiB"),
        (100, 151, Status.WARN, "100.0 MiB of 150.0 MiB, peak 151.0 MiB"),
        (140, 140, Status.WARN, "140.0 MiB of 150.0 MiB, peak 140.0 MiB"),
        (151, 151, Status.FAIL, "151.0 MiB of 150.0 MiB, peak 151.0 MiB"),
    ],
)
def test_the_memory_of_a_service_is_shown_against_its_bound(held: int, peak: int, status: Status, said: str) -> None:
    found = host_checks.memory("writer", MemoryFacts(held << 20, 150 << 20, peak << 20))
    assert (found.check, found.status, found.summary) == ("memory of the writer", status, said)


@pytest.mark.parametrize(
    ("keeps_from", "status", "said"),
    [
        ({}, Status.OK, "not the embedded store"),
        ({"files": False, "network": False}, Status.WARN, "can open every file of its account"),
        ({"files": False, "closed_files": True, "network": False}, Status.WARN, "has a separate uid"),
        ({"files": True, "network": False}, Status.WARN, "can open connections"),
        ({"files": True, "network": True}, Status.OK, "only its own files"),
    ],
)
def test_a_store_that_the_kernel_does_not_confine_is_a_warning(
    keeps_from: dict[str, bool], status: Status, said: str
) -> None:
    found = store_checks.wall(keeps_from)
    assert (found.status, said in found.summary) == (status, True)


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_why_the_store_has_no_uid_of_its_own_is_told(reason: Reason) -> None:
    found = store_checks.wall({"files": False, "closed_files": False, "network": False}, reason.value)
    assert (found.status, "no Landlock; no separate uid: " in found.summary) == (Status.WARN, True)
    assert ("warning in its log" in found.hint) == (reason is not Reason.NOT_ROOT)


def test_the_wall_of_a_newer_store_that_gives_another_reason_is_told_too() -> None:
    assert store_checks.wall({"files": False}, "some_day").summary.endswith("(no Landlock)")


def test_parts_that_could_not_be_read_are_named_by_table_as_a_warning() -> None:
    assert store_checks.broken_parts({}).status is Status.OK
    found = store_checks.broken_parts({"assay_base.scores": 1, "assay_base.answers": 2})
    assert (found.status, found.summary.partition(": ")[2]) == (
        Status.WARN,
        "2 of assay_base.answers, 1 of assay_base.scores",
    )


@pytest.mark.parametrize(
    ("is_up", "status", "said"),
    [
        ({"log": True}, Status.WARN, "no alert reaches a person"),
        ({"log": True, "webhook-1": True}, Status.OK, "webhook-1: no notice was refused"),
        ({"log": True, "webhook-1": False}, Status.FAIL, "webhook-1 does not accept notices: HTTP 500"),
    ],
)
def test_a_channel_that_refuses_notices_fails_and_none_at_all_is_a_warning(
    is_up: dict[str, bool], status: Status, said: str
) -> None:
    found = host_checks.channels(is_up, ["other", "webhook-1 does not accept notices: HTTP 500"])
    assert found.status is status
    assert said in found.summary
    assert "other" not in found.summary


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        ((0, 0, 0.0, 0.0, False), Status.OK, "empty"),
        ((0, 0, 0.0, 901.0, False), Status.WARN, "empty"),
        ((5, 5, 0.0, 0.0, False), Status.OK, "5 leaves, 5 covered by a signed checkpoint"),
        ((5, 4, 899.0, 899.0, False), Status.OK, "5 leaves, 4 covered by a signed checkpoint"),
        ((5, 4, 3_600.0, 0.0, False), Status.WARN, "the others have none for "),
        ((5, 5, 0.0, 3_600.0, False), Status.WARN, "are not in it"),
        ((5, 5, 0.0, 0.0, True), Status.WARN, "a place that no event has reached"),
    ],
)
def test_an_audit_log_that_lags_or_is_not_signed_is_a_warning(
    facts: tuple[int, int, float, float, bool], status: Status, words: str
) -> None:
    found = audit_checks.audit_log(*facts)
    assert (found.status, words in found.summary, bool(found.hint)) == (status, True, status is Status.WARN), found


@pytest.mark.parametrize(
    ("first_s", "last", "status", "words"),
    [
        (None, None, Status.OK, "none yet"),
        (audit_checks.UNVERIFIED_S, None, Status.OK, "none yet"),
        (audit_checks.UNVERIFIED_S + 1, None, Status.WARN, "the log is 7 d old, and no verification"),
        (9e6, ("done", 0, audit_checks.UNVERIFIED_S), Status.OK, "intact 7 d ago"),
        (9e6, ("done", 0, audit_checks.UNVERIFIED_S + 1), Status.WARN, "the last one of all rows was 7 d ago"),
        (9e6, ("failed", 1, 60.0), Status.FAIL, "found 1 mismatch 60 s ago"),
        (60.0, ("failed", 2, 9e6), Status.FAIL, "found 2 mismatches"),
        (60.0, ("failed", 0, 1.0), Status.FAIL, "found a mismatch"),
    ],
)
def test_a_verification_that_failed_is_a_failure_and_one_that_is_due_a_warning(
    first_s: float | None, last: tuple[str, int, float] | None, status: Status, words: str
) -> None:
    found = audit_checks.audit_verification(first_s, last)
    assert (found.status, words in found.summary, bool(found.hint)) == (status, True, status is not Status.OK), found


def test_rows_of_the_audit_log_that_should_have_expired_are_a_warning() -> None:
    assert audit_checks.audit_log(5, 5, 0.0, 0.0, False, overdue=0).status is Status.OK
    found = audit_checks.audit_log(5, 5, 0.0, 0.0, False, overdue=3)
    assert (found.status, "3 rows are" in found.summary) == (Status.WARN, True)
    assert "assay audit expire" in found.hint


@pytest.mark.parametrize(
    ("found", "status", "words"),
    [
        ([("w1", 5, 0.0)], Status.OK, "w1 has 5 leaves"),
        ([("w1", 5, 899.0), ("w2", 4, 0.0)], Status.OK, "w1 has 5 leaves; w2 has 4 leaves"),
        (
            [("w1", 5, 0.0), ("w2", 0, 3_600.0)],
            Status.WARN,
            "w2 has 0 leaves, and a newer checkpoint was signed 60 min ago",
        ),
    ],
)
def test_an_anchor_that_lacks_the_newest_checkpoint_is_a_warning(
    found: list[tuple[str, int, float]], status: Status, words: str
) -> None:
    finding = audit_checks.audit_anchors(found, audit_checks.UNANCHORED_S)
    assert (finding.status, words in finding.summary, bool(finding.hint)) == (status, True, status is Status.WARN), (
        finding
    )
