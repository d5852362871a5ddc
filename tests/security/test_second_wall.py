"""With no check of statements and no roles, the kernel alone keeps the store's process from other files and the network."""

import contextlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay_store import landlock
from assay_store.landlock import OLDEST_VERSION
from tests.support.store import StoreServer

MARK = "planted-secret-7391"

needs_landlock = pytest.mark.skipif(landlock.version() < OLDEST_VERSION, reason="the kernel has no Landlock")
needs_network_rules = pytest.mark.skipif(
    not landlock.controls_network(landlock.version()), reason="the kernel's Landlock cannot refuse TCP"
)

READS = {
    "table function": "SELECT * FROM file('{secret}', LineAsString)",
    "function": "SELECT file('{secret}')",
    "column transformer": "SELECT * APPLY(file) FROM (SELECT '{secret}' AS x)",
    "function by name": "SELECT arrayMap(file, ['{secret}'])",
    "wildcard": "SELECT * FROM file('{up}/secrets/*', LineAsString)",
    "relative path": "SELECT * FROM file('{up}/store/../secrets/passwords.json', LineAsString)",
    "table engine": "SELECT * FROM (SELECT * FROM file('{up}/redis/appendonly.aof', LineAsString))",
    "sqlite": "SELECT * FROM sqlite('{up}/redis/db.sqlite', 't')",
    "from infile": "INSERT INTO taken FROM INFILE '{secret}' FORMAT LineAsString; SELECT * FROM taken",
    "own environment": "SELECT * FROM file('/proc/self/environ', LineAsString)",
    "parent's environment": "SELECT * FROM file('/proc/{parent}/environ', LineAsString)",
}
WRITES = {
    "insert into function": "INSERT INTO FUNCTION file('{new}', TSV, 'x String') SELECT 'planted'",
    "into outfile": "SELECT 'planted' INTO OUTFILE '{new}'",
    "append": "SELECT 'planted' INTO OUTFILE '{existing}' APPEND",
    "truncate": "SELECT 'planted' INTO OUTFILE '{existing}' TRUNCATE",
}
CONNECTS = {
    "url": "SELECT * FROM url('http://127.0.0.1:{port}/', LineAsString, 'x String') SETTINGS http_max_tries = 1",
    "insert into url": "INSERT INTO FUNCTION url('http://127.0.0.1:{port}/', TSV, 'x String') SETTINGS http_max_tries = 1 SELECT 'planted'",
    "remote": "SELECT * FROM remote('127.0.0.1:{port}', system.one) SETTINGS connections_with_failover_max_tries = 1",
}
PYTHON = {
    "open": "said = open('{secret}').read()",
    "list": "import os; said = os.listdir('{up}/secrets')",
    "link": "import os; os.link('{secret}', '{up}/store/link'); said = open('{up}/store/link').read()",
    "symlink": "import os; os.symlink('{secret}', '{up}/store/symlink'); said = open('{up}/store/symlink').read()",
    "rename": "import os; os.rename('{up}/redis/movable', '{up}/store/movable'); said = open('{up}/store/movable').read()",
    "rename out": "import os; open('{up}/store/mine', 'w').close(); os.rename('{up}/store/mine', '{up}/redis/mine')",
    "delete": "import os; os.remove('{up}/redis/deletable')",
    "run a program": "import subprocess; said = subprocess.run(['/bin/true'], check=True)",
    "memory of its own": "open('/proc/self/mem', 'rb')",
    "home": "import os, pathlib; said = os.listdir(pathlib.Path.home())",
    "working directory": "import os; said = os.listdir('.')",
}
OWN = {
    "its tables": "CREATE TABLE IF NOT EXISTS own (a Int64, b String) ENGINE = MergeTree ORDER BY a",
    "insert": "INSERT INTO own SELECT number, toString(number) FROM numbers(100000)",
    "mutation": "ALTER TABLE own DELETE WHERE a = 1 SETTINGS mutations_sync = 2",
    "merge": "OPTIMIZE TABLE own FINAL",
    "rename": "RENAME TABLE own TO renamed",
    "sort on disk": "SELECT b FROM renamed GROUP BY b ORDER BY b LIMIT 1 SETTINGS max_bytes_before_external_group_by = 1000000",
    "zones": "SELECT toTimeZone(toDateTime(0, 'UTC'), 'Asia/Tokyo')",
    "drop": "DROP TABLE renamed SYNC",
}


class Listener:
    """Counts who connects, and hangs up."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                connection.close()

    def close(self) -> None:
        self._socket.close()


@dataclass
class Trial:
    """A directory as `assay up` has it, and an engine in it."""

    up: Path
    listener: Listener
    process: "subprocess.Popen[str]"
    places: dict[str, str] = field(default_factory=dict)

    def attempt(self, kind: str, text: str) -> tuple[bool, str]:
        """Whether it went well, and what came back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for name, value in self.places.items():
            text = text.replace("{" + name + "}", value)
        said = ""
        for each in text.split("; ") if kind == "sql" else [text]:
            self.process.stdin.write(json.dumps({kind: each}) + "\n")
            self.process.stdin.flush()
            well, said = json.loads(self.process.stdout.readline())
            if not well:
                return False, str(said)
        return True, said


@contextlib.contextmanager
def _trial(up: Path, speaks: str, python: str = sys.executable) -> Iterator[Trial]:
    for name in ("store", "secrets", "redis", "new", "home"):
        (up / name).mkdir(parents=True)
    for name in (
        "secrets/passwords.json",
        "redis/appendonly.aof",
        "redis/movable",
        "redis/deletable",
        "redis/existing",
    ):
        (up / name).write_text(MARK)
    with contextlib.closing(sqlite3.connect(up / "redis/db.sqlite")) as database, database:
        database.execute("CREATE TABLE t (x TEXT)")
        database.execute("INSERT INTO t VALUES (?)", (MARK,))
    for each in up.rglob("*"):  # as `assay up` has them
        each.chmod(0o700 if each.is_dir() else 0o600)
    listener = Listener()
    with subprocess.Popen(
        [python, "-m", "tests.security.unguarded_engine", str(up / "store"), speaks],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"ASSAY_TEST_SECRET": MARK, "HOME": str(up / "home")},
    ) as process:
        trial = Trial(up, listener, process)
        trial.places = {
            "up": str(up),
            "secret": str(up / "secrets/passwords.json"),
            "existing": str(up / "redis/existing"),
            "port": str(listener.port),
            "parent": str(process.pid),
        }
        try:
            assert trial.attempt("sql", "CREATE TABLE taken (x String) ENGINE = MergeTree ORDER BY x")[0]
            yield trial
        finally:
            listener.close()
            process.kill()


@pytest.fixture(scope="module")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    with _trial(tmp_path_factory.mktemp("walled"), str(landlock.version())) as trial:
        yield trial


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    with _trial(tmp_path_factory.mktemp("open"), "none") as trial:
        yield trial


def _read(trial: Trial, way: str) -> bool:
    well, said = trial.attempt("sql", READS[way])
    assert well or "SYNTAX" not in said
    return MARK in said


def _written(trial: Trial, way: str) -> bool:
    existing = trial.up / "redis/existing"
    existing.write_text(MARK)
    trial.places["new"] = str(trial.up / "new" / way.replace(" ", "-"))
    well, said = trial.attempt("sql", WRITES[way])
    assert well or "SYNTAX" not in said
    return existing.read_text() != MARK or Path(trial.places["new"]).exists()


def _connected(trial: Trial, way: str) -> bool:
    before = trial.listener.connections
    trial.attempt("sql", CONNECTS[way])
    return trial.listener.connections > before


@pytest.mark.parametrize("way", READS)
def test_without_the_wall_the_engine_reads_any_file(open_to_all: Trial, way: str) -> None:
    assert _read(open_to_all, way)


@needs_landlock
@pytest.mark.parametrize("way", READS)
def test_behind_the_wall_the_engine_reads_no_file_but_its_own(walled: Trial, way: str) -> None:
    assert not _read(walled, way)


@pytest.mark.parametrize("way", WRITES)
def test_without_the_wall_the_engine_writes_any_file(open_to_all: Trial, way: str) -> None:
    assert _written(open_to_all, way)


@needs_landlock
@pytest.mark.parametrize("way", WRITES)
def test_behind_the_wall_the_engine_writes_no_file_but_its_own(walled: Trial, way: str) -> None:
    assert not _written(walled, way)


@pytest.mark.parametrize("way", CONNECTS)
def test_without_the_wall_the_engine_connects_to_anything(open_to_all: Trial, way: str) -> None:
    assert _connected(open_to_all, way)


@needs_network_rules
@pytest.mark.parametrize("way", CONNECTS)
def test_behind_the_wall_the_engine_connects_to_nothing(walled: Trial, way: str) -> None:
    assert not _connected(walled, way)


@pytest.mark.parametrize("way", PYTHON)
def test_without_the_wall_python_reaches_what_its_account_can(open_to_all: Trial, way: str) -> None:
    assert open_to_all.attempt("python", PYTHON[way])[0]


@needs_landlock
@pytest.mark.parametrize("way", PYTHON)
def test_behind_the_wall_not_even_python_gets_out(walled: Trial, way: str) -> None:
    well, said = walled.attempt("python", PYTHON[way])
    assert not well
    assert re.search("Permission denied|cross-device", said)


@needs_landlock
def test_behind_the_wall_the_engine_does_its_own_work(walled: Trial) -> None:
    for sql in OWN.values():
        well, said = walled.attempt("sql", sql)
        assert well, said
    used = walled.attempt("python", "import tempfile; said = tempfile.mkdtemp()")
    assert used[0]
    assert used[1].startswith(str(walled.up / "store/tmp"))
    well, said = walled.attempt(
        "python", "import zoneinfo, lzma, sqlite3, uuid; said = zoneinfo.ZoneInfo('Asia/Tokyo')"
    )
    assert well, said


@needs_landlock
def test_a_kernel_that_cannot_refuse_connections_still_refuses_files(tmp_path: Path) -> None:
    with _trial(tmp_path, str(OLDEST_VERSION)) as trial:
        assert not _read(trial, "table function")
        assert not _written(trial, "append")
        assert _connected(trial, "url")
        for sql in OWN.values():
            assert trial.attempt("sql", sql)[0], sql


@needs_landlock
def test_every_thread_of_a_store_is_behind_the_wall_and_its_metrics_say_so(tmp_path: Path) -> None:
    with StoreServer(tmp_path) as server:
        threads = list(Path(f"/proc/{server.pid}/task").iterdir())
        assert len(threads) > 1
        assert all("NoNewPrivs:\t1\n" in (thread / "status").read_text() for thread in threads)
        with urllib.request.urlopen(f"{server.url}/metrics") as answer:
            metrics = answer.read().decode()
        assert 'assay_store_wall{keeps_from="files"} 1.0' in metrics
        assert float(re.findall(r"(?m)^assay_store_resident_bytes (\S+)$", metrics)[0]) > 1e6
    assert "a gap" not in (tmp_path / "store.log").read_text() or not landlock.controls_network(landlock.version())


def test_a_store_without_landlock_says_what_its_process_can_open(tmp_path: Path) -> None:
    said = _raise(tmp_path, 0)
    assert "no second wall: the store's process can open everything that its account can" in said
    assert "Wall(files=False, network=False, uid=None" in said


@needs_landlock
def test_a_store_whose_kernel_cannot_refuse_connections_says_so(tmp_path: Path) -> None:
    assert "a gap in the second wall: the store's process can open connections" in _raise(tmp_path, OLDEST_VERSION)


@needs_landlock
def test_a_process_with_other_threads_raises_no_wall(tmp_path: Path) -> None:
    before = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    assert "WallError" in _raise(tmp_path, OLDEST_VERSION, before)


def test_a_users_file_in_the_data_directory_is_refused(tmp_path: Path) -> None:
    users = tmp_path / "users.json"
    users.write_text('{"owner": {"password": "p", "role": "owner"}}')
    users.chmod(0o600)
    command = [sys.executable, "-m", "assay_store", "--data", str(tmp_path), "--users", str(users), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "move it out" in done.stderr


def test_temporary_files_of_a_killed_store_are_cleared(tmp_path: Path) -> None:
    (tmp_path / "tmp/assay-insert-x").mkdir(parents=True)
    (tmp_path / "tmp/assay-insert-x/rows").write_text(MARK)
    _raise(tmp_path, 0)
    assert list((tmp_path / "tmp").iterdir()) == []


def _raise(data: Path, speaks: int, before: str = "") -> str:
    program = (
        f"{before}\nimport logging, pathlib; logging.basicConfig()\nfrom assay_store.wall import raise_wall\n"
        f"print(raise_wall(pathlib.Path({str(data)!r}), {speaks}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr
