"""What is checked before anything starts."""

import contextlib
import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_access.errors import AccessError
from assay_access.settings_files import Ports
from assay_local import preflight
from assay_local.preflight import bundled_redis, check_directory, check_ports, find_redis, redis_program
from assay_local.process_logs import BoundedLog, ProcessLogs, Terminal
from assay_local.processes import child_environment
from assay_operations.errors import OperationError
from tests.support.ports import free_port, free_ports


def fake_redis(directory: Path, version: str, name: str = "redis-server") -> None:
    directory.mkdir(exist_ok=True)
    program = directory / name
    said = "Valkey" if name == "valkey-server" else "Redis"
    program.write_text(f"#!/bin/sh\necho '{said} server v={version} sha=00000000:0 malloc=libc bits=64'\n")
    program.chmod(0o755)


def test_an_occupied_port_is_named_with_its_holder_and_a_free_base_to_use_instead() -> None:
    port = free_ports(101)  # so that nobody takes the first one that is looked at
    with socket.create_server(("127.0.0.1", port)), pytest.raises(OperationError) as caught:
        check_ports({"redis": port})
    assert f"port {port} (redis) is in use by " in str(caught.value)
    assert f"(pid {os.getpid()})" in str(caught.value)
    base = re.search(r"--port-base (\d+) \(or PORT_BASE=(\d+) make run\)", str(caught.value))
    assert base
    assert base[1] == base[2]
    check_ports({"redis": int(base[1])})


def test_free_ports_pass() -> None:
    check_ports({"redis": free_port()})


def written(data: Path, magic: str) -> Path:
    """A Redis directory whose append-only log begins with a database file of this format."""
    (data / "appendonlydir").mkdir(parents=True)
    (data / "appendonlydir/appendonly.aof.1.base.rdb").write_bytes(f"{magic}\xfa".encode())
    return data


def test_redis_from_path_comes_before_the_bundled_one(tmp_path: Path) -> None:
    fake_redis(tmp_path / "bin", "7.0.15")
    fake_redis(tmp_path / "bin", "8.1.0", name="valkey-server")
    found = find_redis(tmp_path / "data", search_path=str(tmp_path / "bin"))
    assert (found.path, str(found), found.passed_over) == (str(tmp_path / "bin/redis-server"), "Redis 7.0", ())


def test_valkey_on_path_is_as_good(tmp_path: Path) -> None:
    fake_redis(tmp_path / "bin", "8.1.0", name="valkey-server")
    found = find_redis(tmp_path / "data", search_path=str(tmp_path / "bin"))
    assert (found.path, str(found)) == (str(tmp_path / "bin/valkey-server"), "Valkey 8.1")


def test_the_bundled_valkey_serves_when_path_has_no_server(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = find_redis(tmp_path / "data", search_path=str(tmp_path / "empty"))
    assert (found.path, found.is_valkey, found.passed_over) == (bundled_redis(), True, ())
    assert found.version >= (9, 1)


def test_the_bundled_valkey_serves_when_path_has_an_old_redis_and_it_is_said_why(tmp_path: Path) -> None:
    fake_redis(tmp_path / "old", "6.2.21")
    found = find_redis(tmp_path / "data", search_path=str(tmp_path / "old"))
    assert found.path == bundled_redis()
    assert found.passed_over == (f"{tmp_path}/old/redis-server is Redis 6.2, older than 7.0",)


def test_without_any_redis_that_fits_the_message_says_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "OLDEST_REDIS", (99, 0))
    fake_redis(tmp_path / "old", "5.0.14")
    with pytest.raises(
        OperationError, match=r"old/redis-server is Redis 5\.0, older.*install redis-server or valkey-s"
    ):
        find_redis(tmp_path / "data", search_path=str(tmp_path / "old"))


def test_on_a_platform_without_a_wheel_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "bundled_redis", lambda: None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        OperationError, match=r"no bundled one for this platform; install redis-server or valkey-server, 7"
    ):
        find_redis(tmp_path / "data", search_path=str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("name", "version", "magic", "fits"),
    [
        ("redis-server", "7.0.15", "REDIS0010", True),
        ("redis-server", "7.0.15", "REDIS0011", False),
        ("redis-server", "7.2.4", "REDIS0011", True),
        ("redis-server", "7.2.4", "REDIS0012", False),
        ("redis-server", "8.0.1", "REDIS0012", True),
        ("redis-server", "8.0.1", "VALKEY080", False),
        ("valkey-server", "8.1.0", "REDIS0011", True),
        ("valkey-server", "8.1.0", "VALKEY080", False),
        ("valkey-server", "9.0.0", "VALKEY080", True),
        ("valkey-server", "9.0.0", "REDIS0012", False),
    ],
)
def test_a_server_that_cannot_read_the_data_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str, magic: str, fits: bool
) -> None:
    monkeypatch.setattr(preflight, "bundled_redis", lambda: None)
    fake_redis(tmp_path / "bin", version, name)
    data = written(tmp_path / "data", magic)
    if fits:
        assert find_redis(data, search_path=str(tmp_path / "bin")).path == str(tmp_path / "bin" / name)
    else:
        with pytest.raises(OperationError, match=r"which cannot read .*/data, written by .*--data"):
            find_redis(data, search_path=str(tmp_path / "bin"))


def test_data_of_the_bundled_valkey_is_not_opened_with_a_redis_that_was_installed_since(tmp_path: Path) -> None:
    fake_redis(tmp_path / "bin", "7.0.15")
    found = find_redis(written(tmp_path / "data", "VALKEY080"), search_path=str(tmp_path / "bin"))
    assert found.path == bundled_redis()
    assert "cannot read" in found.passed_over[0]


def test_a_log_without_a_database_file_is_read_by_every_server(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/appendonly.aof").write_bytes(
        b"REDIS0009"
    )  # of Redis 6.2: one file, which later versions take over
    fake_redis(tmp_path / "bin", "7.0.15")
    assert find_redis(tmp_path / "data", search_path=str(tmp_path / "bin")).path == str(tmp_path / "bin/redis-server")


def test_a_program_that_says_no_version_is_no_redis(tmp_path: Path) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    assert redis_program(str(program)) is None


def test_the_data_directory_is_made_private(tmp_path: Path) -> None:
    check_directory(tmp_path / "some" / "data")
    assert stat.S_IMODE((tmp_path / "some" / "data").stat().st_mode) == 0o700


def test_a_data_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessError, match=r"file/data.*--data"):
        check_directory(tmp_path / "file" / "data")


@contextlib.contextmanager
def without_roots_rights() -> Iterator[None]:
    """Root may write everywhere, so it is nobody for a moment."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_data_directory_without_write_permission_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    with without_roots_rights(), pytest.raises(AccessError, match="--data"):
        check_directory(tmp_path / "data" / "inner")


def test_a_disk_that_is_nearly_full_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "DISK_REFUSE_BYTES", 2**62)
    with pytest.raises(OperationError, match="MiB free on the disk of"):
        check_directory(tmp_path)


def test_a_disk_that_is_filling_up_is_worth_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "DISK_REFUSE_BYTES", 0)
    monkeypatch.setattr(preflight, "DISK_WARN_BYTES", 2**62)
    assert "MiB free" in str(check_directory(tmp_path))


def test_ports_follow_from_their_base() -> None:
    names = (
        "redis",
        "store",
        "scrubber",
        "writer",
        "judge",
        "drift",
        "notifier",
        "alertmanager",
        "gateway_http",
        "gateway",
        "assembler",
        "otlp_exporter",
        "console_http",
        "console",
        "auditor",
    )
    assert vars(Ports.from_base(9200)) == {name: 9200 + place for place, name in enumerate(names)}


def test_the_environment_cannot_lead_a_process_past_its_own_identity() -> None:
    environment = {
        "PATH": "/bin",
        "ASSAY_CONFIG": "elsewhere.toml",
        "ASSAY_CAPTURE": "1",
        "ASSAY_REDIS_URL": "redis://elsewhere",
        "ASSAY_REDIS_SHARDS": "2",
        "ASSAY_STORE_PASSWORD": "x",
        "ASSAY_STORE_TIMEOUT_S": "5",
        "ASSAY_WRITER_PORT": "1",
        "ASSAY_WRITER_BATCH_ROWS": "9",
        "ASSAY_DELIVERY_CONSUMER": "me",
    }
    kept = child_environment(environment)
    assert {name: value for name, value in kept.items() if name.startswith("ASSAY_")} == {
        "ASSAY_REDIS_SHARDS": "2",
        "ASSAY_STORE_TIMEOUT_S": "5",
        "ASSAY_WRITER_BATCH_ROWS": "9",
    }
    assert kept["PATH"] == "/bin"


def test_keys_in_the_shell_that_starts_the_system_reach_no_process_of_it() -> None:
    shell = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C",
        "OTEL_SDK_DISABLED": "true",
        "https_proxy": "http://proxy",
    }
    keys = {
        "AWS_SECRET_ACCESS_KEY": "x",
        "GITHUB_TOKEN": "x",
        "ANTHROPIC_API_KEY": "x",
        "PGPASSWORD": "x",
        "DATABASE_URL": "x",
    }
    assert child_environment(shell | keys) == shell | {"PYTHONUNBUFFERED": "1"}


def test_a_log_never_grows_beyond_twice_its_limit(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "x.log", keep=False, limit=100)
    for number in range(1_000):
        log.write(f"line {number}")
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["x.log", "x.log.1"]
    assert max(file.stat().st_size for file in files) <= 100
    assert (tmp_path / "x.log").read_text().splitlines()[-1] == "line 999"
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_logs_of_earlier_runs_are_replaced_unless_kept(tmp_path: Path) -> None:
    for keep, expected in ((False, "one\n"), (True, "one\none\n"), (False, "one\n")):
        log = BoundedLog(tmp_path / "x.log", keep=keep)
        log.write("one")
        log.close()
        assert (tmp_path / "x.log").read_text() == expected


def test_lines_reach_the_terminal_with_a_prefix_and_the_file_as_they_are(tmp_path: Path) -> None:
    with (tmp_path / "terminal").open("w") as terminal:
        logs = ProcessLogs(tmp_path / "logs", Terminal(file=terminal, width=20), keep=False)
        line = json.dumps({"message": "[bold]a line that is longer than the terminal is wide[/bold]"})
        logs.line("writer", line)
        logs.announce("hello")
        logs.close()
    assert (tmp_path / "logs" / "writer.log").read_text() == f"{line}\n"
    assert (tmp_path / "terminal").read_text() == f"  writer | {line}\n   assay | hello\n"


def test_a_terminal_that_was_closed_only_falls_silent(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as closed:
        logs = ProcessLogs(tmp_path / "logs", Terminal(file=closed), keep=False)
        logs.line("writer", "one")
        logs.line("writer", "two")
        logs.announce("still here")
        logs.close()
        with contextlib.suppress(BrokenPipeError):
            closed.close()
    assert (tmp_path / "logs" / "writer.log").read_text() == "one\ntwo\n"
