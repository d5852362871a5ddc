"""`assay migrate` against the real store: what it shows, what it asks, and what its audit record says."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_operations.actor import Actor, local_actor
from assay_operations.errors import OperationError
from assay_operations.migrate import apply, plan_migrate
from assay_runtime import migrate as runner
from assay_runtime import retention
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.settings import RetentionSettings, Settings
from tests.support.cli import Cli, stop
from tests.support.sample_rows import answer, candidate, lines
from tests.support.store import StoreServer

ANA = Actor("ana", "laptop", "command line")


class Database:
    """A test's own databases in a running store, and the command."""

    def __init__(self, server: StoreServer, name: str, directory: Path) -> None:
        self.settings: Settings = server.settings(base_database=f"{name}_base", database=name)
        self.name, self.base = name, f"{name}_base"
        self.cli = Cli(directory, store_url=server.url)
        #: Audit records of earlier tests.
        self.earlier = 0
        self.owner: Client = connect(self.settings.store, database="default")

    def more(self, days: int | None = None, projects: str = "") -> str:
        kept = f"[retention]\ndays = {days}\n" if days else ""
        of = f"[retention.projects]\n{projects}\n" if projects else ""
        return f'database = "{self.name}"\nbase_database = "{self.base}"\n{kept}{of}'

    def assay(self, *arguments: str, days: int | None = None, projects: str = "", code: int = 0) -> str:
        done = self.cli.call("migrate", *arguments, role="owner", extra=self.more(days, projects))
        assert done.returncode == code, (done.stdout, done.stderr)
        return (done.stdout + done.stderr).decode()

    def days(self, table: str = "candidates") -> retention.Days | None:
        found = self.owner.query(
            f"SELECT engine_full FROM system.tables WHERE database = '{self.base}' AND name = '{table}'"
        )
        return retention.days_of(str(found.result_rows[0][0]))

    def records(self) -> list[dict[str, Any]]:
        rows = self.owner.query(f"SELECT * FROM {self.name}.operations ORDER BY started_at").named_results()
        return [dict(row) | {"target": orjson.loads(row["target"])} for row in rows][self.earlier :]

    def keep(self, *ages: float) -> None:
        rows = [candidate(number, days_old=age) for number, age in enumerate(ages)]
        insert_json_rows(self.owner, f"{self.base}.candidates", lines(rows), len(rows))


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"store{number}" for number in range(100))


@pytest.fixture
def fresh(migrated: StoreServer, names: Iterator[str], tmp_path: Path) -> Iterator[Database]:
    """Databases that do not exist yet."""
    database = Database(migrated, next(names), tmp_path)
    yield database
    database.owner.close()


@pytest.fixture
def store(migrated: StoreServer, tmp_path: Path) -> Iterator[Database]:
    """A store with all tables and no row but audit records of earlier tests, in which rows are kept for 90 days."""
    database = Database(migrated, "assay", tmp_path)
    for table in ("candidates", "answers", "feedback", "scores"):
        database.owner.command(f"TRUNCATE TABLE assay_base.{table}")
    runner.migrate(database.settings)
    database.earlier = len(database.records())
    yield database
    database.owner.close()


@pytest.fixture
def data(store: Database, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of a process with the owner's settings, which keep rows for 5 days."""
    monkeypatch.setenv("ASSAY_CONFIG", str(store.cli.settings_file("owner", store.more(5))))
    return store.cli.directory / "data"


def test_a_fresh_store_is_migrated_without_a_question_and_recorded_afterwards(fresh: Database) -> None:
    names = [migration.name for migration in runner.migrations()]
    assert fresh.assay("--dry-run").splitlines() == [f"would apply {name}" for name in names]
    said = fresh.assay("--comment", "first start").splitlines()
    assert said == [*(f"applied {name}" for name in names), "the store's tables are up to date"]
    [row] = fresh.records()
    assert (row["operation"], row["outcome"], row["actor"]) == ("migrate", "done", local_actor().name)
    assert (row["planned"], row["changed"], row["comment"]) == (len(names), len(names), "first start")
    assert row["target"] == {"migrations": names}
    assert fresh.days() == retention.Days(90)


def test_a_store_that_is_up_to_date_is_not_recorded(store: Database) -> None:
    assert store.assay("--dry-run") == store.assay() == "the store's tables are up to date\n"
    assert store.records() == []


def test_a_store_without_the_table_of_audit_records_gets_it_and_then_the_record(
    fresh: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = runner.migrations()
    with monkeypatch.context() as older:
        older.setattr(runner, "migrations", lambda: every[:12])
        runner.migrate(fresh.settings)
    said = fresh.assay()
    assert f"applied {every[12].name}" in said
    [row] = fresh.records()
    assert (row["outcome"], row["planned"], row["changed"]) == ("done", len(every) - 12, len(every) - 12)
    assert not (fresh.cli.directory / "data").exists()


def test_the_plan_shows_old_and_new_days_and_the_rows_that_expire(store: Database) -> None:
    store.keep(10, 20, 1)
    said = store.assay("--dry-run", days=5, projects="acme = 2")
    assert "would keep rows of candidates for 5 days (acme 2), not 90 days: about 2 of 3 stored row(s) expire" in said
    assert "would keep rows of answers for 5 days (acme 2), not 90 days: about 0 of 0 stored row(s) expire" in said
    assert store.days() == retention.Days(90)
    assert store.records() == []


def test_without_a_terminal_a_shorter_retention_needs_yes(store: Database) -> None:
    store.keep(10, 1)
    said = store.assay(days=5, code=2)
    assert "nothing was changed; pass --yes to confirm, or --dry-run to show what would expire" in said
    assert store.days() == retention.Days(90)
    assert store.records() == []
    store.assay("--yes", days=5)
    assert store.days() == retention.Days(5)
    [row] = store.records()
    assert (row["outcome"], row["identity"], row["planned"]) == ("done", "owner", len(retention.TABLES))
    assert row["changed"] == row["planned"]
    assert "candidates: 90 days to 5 days, about 1 rows expire" in row["target"]["retention"]


@pytest.mark.parametrize(("days", "projects"), [(91, ""), (90, "acme = 200")])
def test_a_longer_retention_is_recorded_and_needs_no_confirmation(store: Database, days: int, projects: str) -> None:
    store.keep(10)
    store.assay(days=days, projects=projects)
    assert store.days() == retention.Days(days, {"acme": 200} if projects else {})
    assert [row["outcome"] for row in store.records()] == ["done"]


def test_a_shorter_retention_of_one_project_needs_confirmation_too(store: Database) -> None:
    store.assay(days=90, projects="acme = 200")
    store.keep(10)
    store.assay(days=90, projects="acme = 199", code=2)
    assert store.days() == retention.Days(90, {"acme": 200})


@pytest.mark.parametrize(("typed", "kept"), [(b"n\n", 90), (b"y\n", 5)])
def test_on_a_terminal_it_shows_the_plan_and_asks(store: Database, typed: bytes, kept: int) -> None:
    store.keep(10)
    person, terminal = os.openpty()
    process = store.cli.start("migrate", role="owner", extra=store.more(5), stdin=terminal)
    try:
        os.write(person, typed)
        assert process.wait(60) == 0
        assert process.stderr is not None
        said = process.stderr.read()
        assert b"will keep rows of candidates for 5 days, not 90 days: about 1 of 1 stored row(s) expire" in said
        assert b"Delete the rows that expire?" in said
        assert store.days() == retention.Days(kept)
        assert len(store.records()) == (kept == 5)
    finally:
        stop(process)
        os.close(person)
        os.close(terminal)


def test_a_kill_between_the_record_and_the_change_leaves_a_start_and_the_old_retention(store: Database) -> None:
    store.keep(10)
    program = (
        "import os, signal; from assay_runtime import migrate\n"
        "migrate.apply_settings = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from assay_cli.main import app; app()\n"
    )
    environment = {"ASSAY_CONFIG": str(store.cli.settings_file("owner", store.more(5))), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", program, "migrate", "--yes"],
        cwd=store.cli.directory,
        env=environment,
        check=False,
        timeout=200,
    )
    assert done.returncode == -signal.SIGKILL
    assert [(row["outcome"], row["changed"]) for row in store.records()] == [("started", 0)]
    assert store.days() == retention.Days(90)
    store.assay("--yes", days=5)
    assert [row["outcome"] for row in store.records()] == ["started", "done"]


def test_two_at_once_both_succeed_on_a_fresh_store(fresh: Database) -> None:
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(fresh.cli.run, "migrate", role="owner", extra=fresh.more()) for _ in range(2)]
    assert [(run.result().returncode, run.result().stderr[-200:]) for run in runs if run.result().returncode] == []
    assert {row["outcome"] for row in fresh.records()} == {"done"}
    assert fresh.days() == retention.Days(90)


def test_a_retention_that_another_run_changed_meanwhile_is_a_conflict(store: Database, data: Path) -> None:
    plan = plan_migrate(data)
    store.keep(10)
    runner.apply_settings(store.owner, store.settings.model_copy(update={"retention": RetentionSettings(days=365)}))
    with pytest.raises(OperationError, match="was changed meanwhile") as refused:
        apply(plan, ANA)
    assert refused.value.kind == "conflict"
    assert store.days() == retention.Days(365)
    assert [(row["outcome"], row["changed"]) for row in store.records()] == [("failed", 0)]


def test_the_settings_of_the_plan_count_and_not_those_of_later(
    store: Database, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_migrate(data)
    monkeypatch.setenv("ASSAY_CONFIG", str(store.cli.settings_file("owner", store.more(1))))
    apply(plan, ANA)
    assert store.days() == retention.Days(5)


def test_a_wrong_password_is_refused_and_changes_nothing(store: Database) -> None:
    path = store.cli.settings_file("owner", store.more(5))
    said = subprocess.run(
        [str(Path(sys.executable).parent / "assay"), "migrate", "--yes"],
        cwd=store.cli.directory,
        env={"ASSAY_CONFIG": str(path), "ASSAY_STORE_PASSWORD": "wrong", "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
        timeout=200,
    )
    assert said.returncode == 2
    assert b"see store.user and store.password" in said.stderr
    assert store.days() == retention.Days(90)


def test_a_rule_that_is_not_of_assay_is_unknown() -> None:
    assert retention.days_of("MergeTree ORDER BY id TTL created_at + toIntervalDay(3)") is None
    assert retention.days_of("") is None
    projects = {"a-b": 3, "c": 4}
    assert retention.days_of(f"MergeTree TTL {retention.expression(retention.Days(7, projects))}") == retention.Days(
        7, projects
    )


def test_answers_and_other_tables_change_together(store: Database) -> None:
    insert_json_rows(store.owner, f"{store.base}.answers", lines([answer(1, days_old=30)]), 1)
    said = store.assay("--dry-run", days=5)
    assert "answers for 5 days, not 90 days: about 1 of 1 stored row(s) expire" in said
