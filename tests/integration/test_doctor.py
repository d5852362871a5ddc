"""`assay doctor` against real servers, as the identity that can read no entry."""

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from pydantic import SecretStr

from assay_access.acl_file import acl_file, password_hash
from assay_access.identities import REDIS_IDENTITIES
from assay_capture import Capture
from assay_operations.doctor.examine import examine
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import first_row_at
from assay_schema.settings import CaptureSettings, RedisSettings, Settings
from assay_schema.streams import ALERTS, CAPTURE, DEAD, EVENTS, FAILURES, FIELD, SCORES, SPANS, unassembled_key
from tests.support.cli import Cli
from tests.support.redis import SERVERS, RedisServer
from tests.support.sample_rows import failure, lines, session_part
from tests.support.store import StoreServer


@dataclass
class System:
    """A healthy, idle system: every group exists and has one consumer."""

    cli: Cli
    redis: redis.Redis
    redis_server: RedisServer
    store: StoreServer
    owner: Client

    def doctor(self, *arguments: str, code: int = 0, extra: str = "") -> dict[str, dict[str, str]]:
        done = self.cli.call("doctor", "--json", *arguments, role="owner", extra=extra)
        assert (done.returncode, done.stderr) == (code, b""), done.stdout.decode()
        return {finding["check"]: finding for finding in json.loads(done.stdout)}


@pytest.fixture
def system(request: pytest.FixtureRequest, migrated: StoreServer, tmp_path: Path) -> Iterator[System]:
    program = SERVERS[getattr(request, "param", "installed")]
    directory = tmp_path / "redis"
    directory.mkdir()
    hashes = {identity.name: password_hash(f"{identity.name}-password") for identity in REDIS_IDENTITIES}
    identities = [
        line for line in acl_file(hashes, program.version).splitlines() if not line.startswith("user default")
    ]
    (directory / "users.acl").write_text("\n".join([*identities, "user default on nopass ~* &* +@all\n"]))
    server = RedisServer(directory, "--aclfile", str(directory / "users.acl"), binary=program.path).start()
    owner = connect(migrated.settings().store)
    for table in ("capture_failures", "watermarks"):
        owner.command(f"TRUNCATE TABLE assay_base.{table}")
    owner.command("INSERT INTO assay_base.watermarks VALUES (0, 1, now64(3))")
    with server.client() as client:
        for stream in (ALERTS, CAPTURE, EVENTS, FAILURES, SCORES, SPANS):
            for group in stream.groups:
                client.xgroup_create(stream.key(), group, id="0", mkstream=True)
                client.xgroup_createconsumer(stream.key(), group, "consumer")
        url = f"redis://{{role}}:{{role}}-password@127.0.0.1:{server.port}/0"
        yield System(Cli(tmp_path, store_url=migrated.url, redis_url=url), client, server, migrated, owner)
    owner.close()
    server.stop()


@pytest.mark.parametrize("system", SERVERS, indirect=True)
def test_a_healthy_system_is_all_ok_in_json_and_for_people(system: System) -> None:
    found = {name: finding for name, finding in system.doctor().items() if not name.startswith("memory of the ")}
    assert {finding["status"] for finding in found.values()} <= {"ok"}, found
    assert {set(finding) == {"check", "status", "summary", "hint"} for finding in found.values()} == {True}
    assert {
        "configuration", "redis", "redis version", "redis persistence", "redis memory", "clock of redis",
        "stream capture", "stream spans", "spans", "stream events", "stream failures", "stream dead",
        "stream scores", "stream alerts", "stream ids",
        "store", "schema", "watermark", "views", "failures in 24 h", "judging", "sessions", "alerts", "nightly evaluation",
        "contradictions", "operations", "audit log", "audit verification",
        "clock of the store", "store's process", "store's parts", "spool", "disk", "secrets",
    } == set(found)  # fmt: skip
    done = system.cli.run("doctor", role="owner")
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[-1] == f"{len(found)} ok, 0 warnings, 0 failed"


@pytest.mark.parametrize("system", SERVERS, indirect=True)
def test_waiting_pending_and_given_up_entries_are_counted(system: System) -> None:
    for n in range(5):
        system.redis.xadd(CAPTURE.key(), {FIELD: "secret words"}, id=f"{n + 1}-0")
        system.redis.xadd(DEAD.key(), {FIELD: "secret words"})
    system.redis.xreadgroup("scrubber", "consumer", {CAPTURE.key(): ">"}, count=2)
    found = system.doctor()
    assert found["stream capture"]["summary"].startswith("5 entries, scrubber: lag 3, 2 pending (oldest ")
    assert (found["stream capture"]["status"], found["stream dead"]["status"]) == ("warn", "warn")
    assert "5 dead letters, " in found["stream dead"]["summary"]
    assert "secret words" not in json.dumps(found)


def test_spans_without_an_event_are_a_warning_that_says_how_to_turn_content_on(system: System) -> None:
    today = unassembled_key(0, datetime.now(UTC).date())
    system.redis.hset(today, mapping={"shop/merged": 7})
    assert (found := system.doctor()["spans"])["status"] == "ok"
    assert found["summary"] == "without a separate event today: shop: merged 7"
    system.redis.hset(today, mapping={"shop/no_content": 1200, "help/desk/dropped_attributes": 3})
    found = system.doctor()["spans"]
    listed = "help/desk: dropped_attributes 3; shop: no_content 1,200, merged 7"
    assert (found["status"], found["summary"]) == ("warn", f"without a separate event today: {listed}")
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in found["hint"]
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000" in found["hint"]


def test_spans_that_wait_without_an_assembler_fail_in_one_line(system: System) -> None:
    system.redis.xgroup_delconsumer(SPANS.key(), "assembler", "consumer")
    system.redis.xadd(SPANS.key(), {FIELD: "secret words"})
    found = system.doctor(code=1)["spans"]
    assert (found["status"], found["summary"]) == ("fail", "1 batch of spans waits, and no assembler is running")


@pytest.mark.parametrize("system", SERVERS, indirect=True)
def test_an_entry_whose_producer_chose_an_id_ahead_of_the_clock_fails_once_it_was_delivered(system: System) -> None:
    seconds, _ = system.redis.time()
    system.redis.xadd(CAPTURE.key(), {FIELD: "x"}, id=f"{(seconds + 10 * 86_400) * 1_000}-0")
    assert system.doctor()["stream ids"]["status"] == "ok"
    system.redis.xreadgroup("scrubber", "consumer", {CAPTURE.key(): ">"})
    found = system.doctor(code=1)["stream ids"]
    assert (found["status"], found["summary"]) == ("fail", "10 d ahead of Redis's clock")
    assert "deploy/redis/README.md" in found["hint"]


def test_a_group_nobody_made_is_named_with_the_service_to_start(system: System) -> None:
    system.redis.xgroup_destroy(CAPTURE.key(), "scrubber")
    system.redis.xadd(CAPTURE.key(), {FIELD: "x"})
    found = system.doctor()["stream capture"]
    assert (found["status"], "start the scrubber" in found["hint"]) == ("warn", True)


def test_a_watermark_that_stands_still_while_entries_wait_is_a_warning(system: System) -> None:
    place = first_row_at(1_790_000_000_000)
    system.owner.command(f"INSERT INTO assay_base.watermarks VALUES (0, {place}, now64(3) - toIntervalMinute(10))")
    assert system.doctor()["watermark"]["status"] == "ok"
    system.redis.xadd(CAPTURE.key(), {FIELD: "x"})
    found = system.doctor()["watermark"]
    assert found["status"] == "warn"
    assert re.fullmatch(rf"{place}, moved 1\d min ago, while 1 entry waits", found["summary"])


def test_failures_of_the_last_day_are_a_warning_by_reason(system: System) -> None:
    made = [failure(n, reason="check_violation") for n in range(3)] + [
        failure(9, reason="db_down", entry_id=None, event_id=None)
    ]
    made.append(failure(10, days_old=1.5, reason="other"))
    insert_json_rows(system.owner, "assay_base.capture_failures", lines(made), len(made))
    found = system.doctor()["failures in 24 h"]
    listed = "check_violation 3, db_down 1 (1 outage without loss)"
    assert (found["status"], found["summary"]) == ("warn", listed)
    assert found["hint"] == "assay query failures"


def test_sessions_that_are_incomplete_and_logs_that_were_not_read_are_a_warning_weeks_after_the_import(
    system: System,
) -> None:
    system.owner.command("TRUNCATE TABLE assay_base.session_parts")
    old = [session_part(1, days_old=9, parts=2), session_part(2, days_old=9)]
    insert_json_rows(system.owner, "assay_base.session_parts", lines(old), len(old))
    found = system.doctor()["sessions"]
    assert (found["status"], found["summary"]) == (
        "warn", "none imported in a week, the latest 9 d ago; 1 not complete: parts are missing",
    )  # fmt: skip
    system.owner.command("TRUNCATE TABLE assay_base.session_parts")
    assert system.doctor()["sessions"]["summary"] == "none imported in a week"


def test_a_redis_that_is_down_fails_and_the_rest_is_examined_all_the_same(system: System) -> None:
    system.redis_server.kill(signal.SIGKILL)
    found = system.doctor(code=1)
    assert found["redis"]["status"] == "fail"
    assert "ASSAY_REDIS_URL" in found["redis"]["hint"]
    assert (found["store"]["status"], found["disk"]["status"]) == ("ok", "ok")
    assert "-password" not in json.dumps(found)


def test_a_redis_that_may_lose_or_evict_events_fails(system: System) -> None:
    system.redis.config_set("appendonly", "no")
    system.redis.config_set("maxmemory", "1gb")
    system.redis.config_set("maxmemory-policy", "allkeys-lru")
    found = system.doctor(code=1)
    assert (found["redis persistence"]["status"], found["redis memory"]["status"]) == ("fail", "fail")
    assert "appendonly yes" in found["redis persistence"]["hint"]
    assert "noeviction" in found["redis memory"]["hint"]


def test_an_identity_without_the_rights_is_told_which_it_needs(system: System) -> None:
    done = system.cli.call("doctor", "--json", role="producer")
    findings = {finding["check"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 1
    assert "owner" in findings["redis server"]["hint"]


def test_a_store_that_is_down_or_refuses_the_user_fails(system: System, tmp_path: Path) -> None:
    down = Cli(tmp_path, redis_url=system.cli._redis_url).call("doctor", "--json", role="owner")
    found = {finding["check"]: finding for finding in json.loads(down.stdout)}
    assert (down.returncode, found["store"]["status"], found["redis"]["status"]) == (1, "fail", "ok")
    assert "store.url" in found["store"]["summary"] + found["store"]["hint"]
    stranger = system.cli.call("doctor", "--json", role="stranger")
    assert stranger.returncode == 1


def test_a_schema_that_is_older_than_the_code_names_the_command(system: System) -> None:
    system.owner.command("RENAME TABLE assay_base.schema_migrations TO assay_base.hidden")
    try:
        found = system.doctor(code=1)
    finally:
        system.owner.command("RENAME TABLE assay_base.hidden TO assay_base.schema_migrations")
    assert (found["schema"]["status"], found["schema"]["hint"]) == ("fail", "run: assay migrate")


def test_secrets_that_others_may_read_fail(system: System) -> None:
    secrets = system.cli.directory / "data" / "secrets"
    secrets.mkdir(parents=True, mode=0o700)
    (secrets / "owner.toml").write_text("")
    (secrets / "owner.toml").chmod(0o644)
    found = system.doctor(code=1)["secrets"]
    assert found["status"] == "fail"
    assert found["hint"] == "chmod go= data/secrets/owner.toml"


def test_events_that_wait_in_the_spool_are_a_warning(system: System, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    producer = Capture(
        Settings(
            redis=RedisSettings(url=SecretStr("redis://127.0.0.1:1/0"), connect_timeout_s=1),
            capture=CaptureSettings(spool_dir=spool, exit_deadline_s=1),
        ),
        service="away",
        enabled=True,
    )
    producer.feedback(target_event_id="0197a1c4-8a3e-7b21-9f00-5d2c8e4b6a10", verdict="positive")
    producer.close()
    [segment] = spool.rglob("*.jsonl")
    os.utime(segment, (1, 1))
    found = system.doctor(extra=f'[capture]\nspool_dir = "{spool}"\n')["spool"]
    assert found["status"] == "warn"


def test_settings_that_do_not_fit_are_a_finding(system: System) -> None:
    found = system.doctor(code=1, extra="[writer]\nbatch_rows = 0\n")
    assert found["configuration"]["status"] == "fail"
    assert "writer.batch_rows" in found["configuration"]["summary"]


def test_a_notifier_that_could_not_start_is_a_finding(system: System) -> None:
    found = system.doctor(code=1, extra='[notifier]\nwebhook_urls = "https://a.example"\n')["channels"]
    assert (found["status"], found["summary"].partition(" ")[0]) == ("fail", "notifier.webhook_secret")


def test_settings_that_others_may_read_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_CONFIG", raising=False)
    (tmp_path / "data/secrets").mkdir(parents=True)
    file = tmp_path / "data/secrets/owner.toml"
    file.write_text("")
    file.chmod(0o644)
    [finding] = examine(Path("data"))
    assert (finding.check, finding.status) == ("secrets", "fail")
    assert "run chmod 600 data/secrets/owner.toml" in finding.summary


def test_bad_usage_exits_2(system: System) -> None:
    assert system.cli.call("doctor", "--nonsense", role="owner").returncode == 2
