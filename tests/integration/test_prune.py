"""`assay prune` against the real store."""

import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_operations.actor import Actor
from assay_operations.export.sql import SOURCES
from assay_operations.prune import apply, plan_prune
from assay_operations.time_bounds import duration_ms
from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.fields import Kind
from tests.support.cli import Cli, stop
from tests.support.sample_rows import (
    MAKE,
    Json,
    answer,
    candidate,
    contradiction_label,
    contradiction_pair,
    dataset_case,
    event_id_at,
    failure,
    iso,
    label,
    lines,
    score,
)
from tests.support.store import StoreServer

TABLES = (
    "candidates",
    "answers",
    "feedback",
    "tool_calls",
    "server_events",
    "session_parts",
    "scores",
    "labels",
    "capture_failures",
    "contradiction_pairs",
    "contradiction_labels",
)
DAY_MS = 86_400_000
#: Copies stay apart: the engine merges nothing, but still rewrites what it is told to.
UNMERGED = ("max_bytes_to_merge_at_max_space_in_pool = 1", "max_bytes_to_merge_at_min_space_in_pool = 1")


def a_score(_: int, **fields: Any) -> Json:
    """A score, as the others are made."""
    return score(faithfulness=1.0, **fields)


MAKERS = (*(MAKE[kind] for kind in SOURCES), a_score, label, failure, contradiction_pair, contradiction_label)


class Sink:
    """The store, and the command that prunes it."""

    def __init__(self, owner: Client, cli: Cli) -> None:
        self.owner, self.cli = owner, cli

    def insert(self, table: str, *rows: Json) -> None:
        for row in rows:  # each in a part of its own, so that parts are of every sort
            insert_json_rows(self.owner, f"assay_base.{table}", lines([row]), 1)

    def count(self, table: str, where: str = "1", base: bool = False) -> int:
        database = "assay_base" if base else "assay"
        return int(self.owner.query(f"SELECT count() FROM {database}.{table} WHERE {where}").result_rows[0][0])

    def prune(self, *arguments: str) -> dict[str, tuple[int, int]]:
        """Visible and stored rows that the command says it deleted, by table."""
        done = self.cli.call("prune", "--yes", *arguments, role="owner")
        assert done.returncode == 0
        # Where deleting takes long, it also shows how far it is.
        assert [line for line in done.stderr.splitlines() if b" rows/s, " not in line] == []
        table = [line.split() for line in done.stdout.decode().splitlines()[1:-1]]
        return {name: (int(visible), int(stored)) for name, visible, stored in table}


@pytest.fixture(scope="module")
def server(migrated: StoreServer) -> StoreServer:
    migrate(migrated.settings(days=36_500))
    owner = connect(migrated.settings().store)
    for table in TABLES:
        owner.command(f"ALTER TABLE assay_base.{table} MODIFY SETTING {', '.join(UNMERGED)}")
    owner.close()
    return migrated


@pytest.fixture
def sink(server: StoreServer, tmp_path: Path) -> Iterator[Sink]:
    """Two rows of every kind, one of today and one ten days old, and as many failures."""
    owner = connect(server.settings().store)
    sink = Sink(owner, Cli(tmp_path, store_url=server.url))
    for table, make in zip(TABLES, MAKERS, strict=True):
        owner.command(f"TRUNCATE TABLE assay_base.{table}")
        sink.insert(table, make(1, days_old=10), make(2, days_old=0.01))
    yield sink
    owner.close()


def test_what_is_older_goes_from_every_table_as_a_dry_run_counts_it_and_the_rest_stays(sink: Sink) -> None:
    assert sink.prune("--older-than", "5d", "--dry-run") == dict.fromkeys(TABLES, (1, 1))
    assert [sink.count(table) for table in TABLES] == [2] * len(TABLES)
    assert sink.prune("--older-than", "5d") == dict.fromkeys(TABLES, (1, 1))
    assert [sink.count(table) for table in TABLES] == [1] * len(TABLES)
    old = "created_at < now() - toIntervalDay(5)"
    assert [sink.count(table, old, base=True) for table in TABLES] == [0] * len(TABLES)


def test_zero_days_is_everything_even_from_a_clock_ahead_but_the_watermark(sink: Sink) -> None:
    sink.insert("candidates", candidate(3, days_old=-0.5))
    before = sink.owner.query("SELECT * FROM assay_base.watermarks").result_rows
    assert sink.prune("--older-than", "0d") == {**dict.fromkeys(TABLES, (2, 2)), "candidates": (3, 3)}
    assert [sink.count(table, base=True) for table in TABLES] == [0] * len(TABLES)
    assert sink.owner.query("SELECT * FROM assay_base.watermarks").result_rows == before
    assert before
    assert sink.prune("--older-than", "0d") == dict.fromkeys(TABLES, (0, 0)), "an empty store is pruned in peace"


def test_a_kind_leaves_other_tables_and_failures_alone(sink: Sink) -> None:
    assert sink.prune("--older-than", "0d", "--kind", "answer") == dict.fromkeys(
        ("answers", "scores", "labels"), (2, 2)
    )
    left = [0 if table in ("answers", "scores", "labels") else 2 for table in TABLES]
    assert [sink.count(table) for table in TABLES] == left


def test_a_label_goes_with_its_answer_however_late_it_was_given(sink: Sink) -> None:
    for days_old, number in ((10, 7), (1, 8)):
        labelled = answer(number, days_old=days_old)
        sink.insert("answers", labelled)
        given = {name: labelled[name] for name in ("event_id", "created_at")}
        sink.insert("labels", label(**given, labelled_at=iso(int(time.time() * 1000)), note="seen"))
    assert sink.prune("--older-than", "5d", "--kind", "answer")["labels"] == (2, 2)
    assert sink.count("labels", "note = 'seen'", base=True) == 1
    assert sink.count("labels", "event_id IN (SELECT event_id FROM assay.answers)") == 1


def test_cases_of_datasets_stay_unless_their_whole_project_is_erased(sink: Sink) -> None:
    sink.owner.command("TRUNCATE TABLE assay_base.dataset_cases")
    for project in ("left", "gone"):
        sink.insert("dataset_cases", dataset_case(1, project=project), dataset_case(1, project=project, version=2))
    for kept in (["5d"], ["0d"], ["5d", "--project", "gone"], ["0d", "--project", "gone", "--kind", "answer"]):
        assert "dataset_cases" not in sink.prune("--older-than", *kept)
        assert sink.count("dataset_cases", base=True) == 4
    assert sink.prune("--older-than", "0d", "--project", "gone")["dataset_cases"] == (1, 2)
    assert sink.count("dataset_cases", "project = 'left'", base=True) == 2
    assert sink.count("dataset_cases", base=True) == 2


def test_a_project_leaves_others_alone_even_in_the_same_part(sink: Sink) -> None:
    mixed = [candidate(n, project=project) for n, project in enumerate(["left", "gone", "left", "gone", "gone"], 10)]
    insert_json_rows(sink.owner, "assay_base.candidates", lines(mixed), 5)
    assert sink.prune("--older-than", "0d", "--project", "gone")["candidates"] == (3, 3)
    assert sink.count("candidates", "project = 'left'", base=True) == 2
    assert sink.count("candidates", "project = 'gone'", base=True) == 0
    assert sink.count("candidates") == 4


def test_arrival_decides_not_the_events_own_time(sink: Sink) -> None:
    late = candidate(5, days_old=0.01)
    long_ago = int(time.time() * 1000) - 30 * DAY_MS
    spooled = {**late, "event_id": event_id_at(long_ago), "occurred_at": iso(long_ago)}
    sink.insert("candidates", spooled)
    sink.prune("--older-than", "5d")
    assert sink.count("candidates", f"event_id = '{spooled['event_id']}'") == 1


def test_copies_are_counted_apart_and_a_later_copy_does_not_come_into_sight(sink: Sink) -> None:
    first = candidate(7, days_old=8)
    copies = [
        {**first, "id": first["id"] + 2, "created_at": iso(int(time.time() * 1000) - age)}
        for age in (7 * DAY_MS, 1_000, 900)
    ]
    sink.insert("candidates", first, *copies)
    lost = failure(8, days_old=8)
    sink.insert("capture_failures", lost, {**lost, "created_at": iso(int(time.time() * 1000))})
    assert sink.count("candidates") == 3
    pruned = sink.prune("--older-than", "5d")
    assert pruned["candidates"] == (2, 5)
    assert pruned["capture_failures"] == (2, 3)
    assert sink.count("candidates", f"event_id = '{first['event_id']}'", base=True) == 0
    assert sink.count("capture_failures", f"failure_id = '{lost['failure_id']}'", base=True) == 0


@pytest.fixture
def owner_settings(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of a process that has the owner's settings."""
    monkeypatch.setenv("ASSAY_CONFIG", str(sink.cli.settings_file("owner")))
    return sink.cli.directory / "data"


ANA = Actor("ana", "laptop", "command line")


@pytest.mark.parametrize(
    ("age", "of"),
    [("0d", {}), ("5d", {}), ("4s", {}), ("0d", {"project": "default"}), ("5d", {"kind": Kind.ANSWER})],
    ids=str,
)
def test_what_is_stored_between_the_plan_and_its_application_stays(
    sink: Sink, owner_settings: Path, age: str, of: dict[str, Any]
) -> None:
    """Rows of every age, and rows that a clock ahead dated: the count that was agreed to is what is deleted."""
    age_ms = duration_ms(age, "--older-than")
    upto_ms = int(time.time() * 1000) - age_ms if age_ms else None
    planned = plan_prune(owner_settings, upto_ms=upto_ms, **of)
    by_table = {table.table: table.stored for table in planned.tables if table.table != "dataset_cases"}
    assert set(by_table.values()) == {1 if age == "5d" else 2}
    time.sleep(0.002)  # the store's clock has milliseconds
    for table, make in zip(TABLES, MAKERS, strict=True):
        sink.insert(table, make(1, days_old=10), make(7, days_old=10), make(8, days_old=0.01), make(9, days_old=-0.5))
    before = {table: sink.count(table, base=True) for table in TABLES}
    pruned = [table for table in apply(pickle.loads(pickle.dumps(planned)), ANA) if table.table != "dataset_cases"]  # noqa: S301
    assert {table.table: table.stored for table in pruned} == by_table
    assert all(table.left for table in pruned)
    assert {table: sink.count(table, base=True) for table in TABLES} == {
        table: before[table] - by_table.get(table, 0) for table in TABLES
    }
    again = plan_prune(owner_settings, upto_ms=upto_ms, **of)
    assert sum(table.visible for table in again.tables) == sum(table.left for table in pruned)


def test_a_copy_that_is_stored_after_the_plan_stays_as_an_event_that_is_sent_again(
    sink: Sink, owner_settings: Path
) -> None:
    first = candidate(7, days_old=8)
    sink.insert("candidates", first)
    planned = plan_prune(owner_settings, upto_ms=int(time.time() * 1000) - 5 * DAY_MS, kind=Kind.RETRIEVAL)
    time.sleep(0.002)
    sink.insert("candidates", {**first, "id": first["id"] + 2, "created_at": iso(int(time.time() * 1000))})
    [pruned] = apply(planned, ANA)
    assert (pruned.visible, pruned.stored, pruned.left) == (2, 2, 0)
    assert sink.count("candidates", f"event_id = '{first['event_id']}'") == 1


def test_on_a_terminal_it_asks_first(sink: Sink) -> None:
    for typed, kept in ((b"n\n", 2), (b"\n", 2), (b"y\n", 0)):
        person, terminal = os.openpty()
        process = sink.cli.start("prune", "--older-than", "0d", role="owner", stdin=terminal)
        try:
            os.write(person, typed)
            assert process.wait(60) == 0
            assert process.stderr is not None
            assert b"Delete them permanently?" in process.stderr.read()
            assert [sink.count(table) for table in TABLES] == [kept] * len(TABLES), typed
        finally:
            stop(process)
            os.close(person)
            os.close(terminal)


def test_where_nobody_can_be_asked_it_deletes_nothing_unless_told_to(sink: Sink) -> None:
    done = sink.cli.run("prune", "--older-than", "0d", role="owner")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"nothing was deleted; pass --yes" in done.stderr
    assert [sink.count(table) for table in TABLES] == [2] * len(TABLES)
    assert sink.cli.run("prune", "--older-than", "0d", "--dry-run", role="owner").returncode == 0


def test_bad_usage_or_another_role_deletes_nothing_and_exits_2(sink: Sink) -> None:
    for arguments, complaint in (
        (["--older-than", "30"], b"--older-than: '30' is not a duration"),
        (["--older-than", "2026-01-01"], b"--older-than"),
        (["--older-than", "1d", "--kind", "vision"], b"--kind: 'vision' is not one of"),
        ([], b"--older-than"),
    ):
        done = sink.cli.call("prune", *arguments, role="owner")
        assert (done.returncode, complaint in done.stderr) == (2, True), done.stderr
    done = sink.cli.call("prune", "--older-than", "0d", role="sre")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert [sink.count(table) for table in TABLES] == [2] * len(TABLES)
