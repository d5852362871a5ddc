"""The embedded store as a process: it loses nothing it acknowledged, and says what is wrong when it cannot start or write."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import clickhouse_connect
import psutil
import pytest
from clickhouse_connect.driver.client import Client

from tests.support import small_disk
from tests.support.ports import free_port
from tests.support.store import PASSWORD, ROLES, StoreServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreServer]:
    server = StoreServer(tmp_path).start()
    try:
        yield server
    finally:
        server.stop()


def _client(server: StoreServer) -> Client:
    return clickhouse_connect.get_client(
        host="127.0.0.1", port=server.port, username="owner", password=PASSWORD, autogenerate_session_id=False
    )


def _pid(server: StoreServer) -> int:
    [holder] = [
        connection.pid
        for connection in psutil.net_connections("tcp4")
        if connection.status == "LISTEN" and connection.laddr.port == server.port
    ]
    assert holder
    return holder


def _users(directory: Path) -> Path:
    path = directory / "users.json"
    path.write_text(json.dumps({role: {"role": role, "password": PASSWORD} for role in ROLES}))
    path.chmod(0o600)
    return path


def _start_in_vain(*arguments: str) -> str:
    """Start a store that must give up at once with exit code 2; returns what it says."""
    command = [sys.executable, "-m", "assay_store", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    return ended.stderr


def test_every_acknowledged_batch_survives_kill_9(server: StoreServer) -> None:
    with _client(server) as client:
        client.command("CREATE TABLE kept (batch UInt32, id UInt32) ENGINE = MergeTree ORDER BY (batch, id)")
    acknowledged: list[int] = []
    batch = 0
    for _ in range(4):
        client = _client(server)
        killer = threading.Event()

        def kill_after_three(goal: int = len(acknowledged) + 3, killer: threading.Event = killer) -> None:
            while len(acknowledged) < goal and not killer.is_set():
                pass
            server.kill()

        thread = threading.Thread(target=kill_after_three)
        thread.start()
        with suppress(Exception):
            while True:
                batch += 1
                summary = client.insert("kept", [[batch, number] for number in range(2000)], ["batch", "id"])
                if summary.written_rows == 2000:
                    acknowledged.append(batch)
        killer.set()
        thread.join()
        client.close()
        server.start()
    with _client(server) as client:
        stored = dict(client.query("SELECT batch, count() FROM kept GROUP BY batch").result_rows)
    assert len(acknowledged) >= 12
    assert {number: stored.get(number) for number in acknowledged} == dict.fromkeys(acknowledged, 2000)
    # One block in one partition is all or nothing.
    assert set(stored.values()) == {2000}


def test_databases_and_views_are_there_after_a_restart(server: StoreServer) -> None:
    with _client(server) as client:
        for sql in (
            "CREATE DATABASE assay_base",
            "CREATE DATABASE assay",
            "CREATE TABLE assay_base.t (id UInt8) ENGINE = MergeTree ORDER BY id",
            "CREATE VIEW assay.t DEFINER = CURRENT_USER SQL SECURITY DEFINER AS SELECT id FROM assay_base.t",
            "CREATE TABLE default.d (id UInt8) ENGINE = MergeTree ORDER BY id",
            "INSERT INTO assay_base.t VALUES (1)",
            "INSERT INTO default.d VALUES (2)",
        ):
            client.command(sql)
    for _ in range(2):
        server.stop()
        server.start()
        with _client(server) as client:
            assert client.query(
                "SELECT id FROM assay.t UNION ALL SELECT id FROM default.d ORDER BY id"
            ).result_rows == [
                (1,),
                (2,),
            ]


def test_a_backup_goes_to_the_named_disk_and_comes_back(server: StoreServer, tmp_path: Path) -> None:
    with _client(server) as client:
        client.command("CREATE DATABASE b")
        client.command("CREATE TABLE b.t (id UInt32) ENGINE = MergeTree ORDER BY id")
        client.command("INSERT INTO b.t SELECT number FROM numbers(1000)")
        assert "BACKUP_CREATED" in str(client.command("BACKUP DATABASE b TO Disk('backups', 'first/')"))
        client.command("DROP DATABASE b SYNC")
        client.command("RESTORE DATABASE b AS c FROM Disk('backups', 'first/')")
        assert client.query("SELECT count(), sum(id) FROM c.t").result_rows == [(1000, 499500)]
    assert (tmp_path / "data" / "backups" / "first").is_dir()


def test_a_second_store_on_the_same_directory_names_the_first(server: StoreServer, tmp_path: Path) -> None:
    said = _start_in_vain(
        "--data", str(tmp_path / "data"), "--port", str(free_port()), "--users", str(_users(tmp_path))
    )
    assert f"process id {_pid(server)}" in said
    assert "--data" in said
    with _client(server) as client:
        assert client.command("SELECT 1") == 1


def test_the_lock_of_a_killed_store_needs_no_care(server: StoreServer) -> None:
    server.kill()
    server.start()
    with _client(server) as client:
        assert client.command("SELECT 1") == 1


def test_an_occupied_port_is_named_with_the_flag(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        said = _start_in_vain("--data", str(tmp_path / "d"), "--port", str(port), "--users", str(_users(tmp_path)))
    assert f"127.0.0.1:{port}" in said
    assert "--port" in said


def test_a_directory_that_cannot_be_written_is_named_with_the_flag(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = _start_in_vain("--data", str(tmp_path / "file" / "d"), "--port", "0", "--users", str(_users(tmp_path)))
    assert "--data" in said


def test_an_address_others_can_reach_needs_a_flag_and_passwords(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "d"), "--port", "0", "--host", "0.0.0.0")  # noqa: S104
    said = _start_in_vain(*data, "--users", str(_users(tmp_path)))
    assert "--allow-remote" in said
    assert "TLS" in said
    users = _users(tmp_path)
    users.write_text('{"open": {"password": "", "role": "sre"}}')
    assert "open" in _start_in_vain(*data, "--allow-remote", "--users", str(users))


def test_an_open_users_file_is_refused(tmp_path: Path) -> None:
    users = _users(tmp_path)
    users.chmod(0o644)
    assert "chmod 600" in _start_in_vain("--data", str(tmp_path / "d"), "--port", "0", "--users", str(users))


def test_sigterm_lets_a_running_request_end_and_exits_0(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "assay_store", "--data", str(tmp_path / "d"), "--port", str(port)]
    with subprocess.Popen(
        [*command, "--users", str(_users(tmp_path))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("assay-store ready on http://127.0.0.1:")
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                headers = {"X-ClickHouse-User": "owner", "X-ClickHouse-Key": PASSWORD}
                connection.request("POST", "/", "SELECT sleep(3)", headers)
                _wait_for_two_queries(port, headers)
                process.send_signal(signal.SIGTERM)
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (200, b"0\n")
            assert process.wait(60) == 0
            assert process.stderr
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()
    with closing(socket.socket()) as closed:
        assert closed.connect_ex(("127.0.0.1", port)) != 0


def test_a_small_disk_that_fills_up_answers_an_error_and_works_again_when_there_is_room(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    try:
        small_disk.mount(small, 24 << 20)
    except PermissionError:
        pytest.skip("mounting is not allowed here")
    server = StoreServer(small, "--keep-free-bytes", str(8 << 20))
    try:
        server.start()
        with _client(server) as client:
            client.command("CREATE TABLE full (id UInt64, text String) ENGINE = MergeTree ORDER BY id")
            with pytest.raises(Exception, match=r"[Cc]ode: (243|75|74)"):
                _fill(client)
            assert shutil.disk_usage(small).free > 4 << 20, "merges need room to end"
            assert client.command("SELECT 1") == 1
            # Not TRUNCATE: it writes an empty part first, and whether 1 MiB is left for it depends on where the disk became full.
            client.command("DROP TABLE full SYNC")
            client.command("CREATE TABLE full (id UInt64, text String) ENGINE = MergeTree ORDER BY id")
            assert client.insert("full", [[1, "x"]], ["id", "text"]).written_rows == 1
    finally:
        server.stop()
        small_disk.unmount(small)


def test_sigterm_cancels_what_does_not_end_in_time(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "assay_store", "--data", str(tmp_path / "d"), "--port", str(port)]
    command += ["--users", str(_users(tmp_path)), "--stop-seconds", "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("assay-store ready")
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                headers = {"X-ClickHouse-User": "owner", "X-ClickHouse-Key": PASSWORD}
                endless = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"
                connection.request("POST", "/", endless, headers)
                _wait_for_two_queries(port, headers)
                process.send_signal(signal.SIGTERM)
                answer = connection.getresponse()
                assert (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) == (500, "394")
                answer.read()
            assert process.wait(60) == 0
        finally:
            process.kill()


def _wait_for_two_queries(port: int, headers: dict[str, str]) -> None:
    deadline = time.monotonic() + 60
    running = ""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as other:
        while running.strip() != "2":
            other.request("POST", "/", "SELECT count() FROM system.processes", headers)
            running = other.getresponse().read().decode()
            assert time.monotonic() < deadline


def _fill(client: Client) -> None:
    for start in range(0, 1_000_000, 20_000):
        rows = [[start + number, os.urandom(50).hex()] for number in range(20_000)]
        client.insert("full", rows, ["id", "text"])


def test_logs_hold_no_statement_and_no_row(server: StoreServer, tmp_path: Path) -> None:
    with _client(server) as client:
        client.command("CREATE TABLE logged (text String) ENGINE = MergeTree ORDER BY text")
        client.insert("logged", [["secret-of-a-row"]], ["text"])
        with suppress(Exception):
            client.command("SELECT 'secret-of-a-query' FROM nothing_here")
        with suppress(Exception):
            client.raw_insert("logged", insert_block=b'{"text": secret-of-a-bad-row', fmt="JSONEachRow")
    server.stop()
    text = (tmp_path / "store.log").read_text()
    assert "secret-of" not in text
    assert "nothing_here" not in text
