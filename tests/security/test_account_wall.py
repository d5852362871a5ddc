"""On a kernel without Landlock, a store that root starts has an account of its own, which keeps it from what others closed."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from assay_runtime.store import connect
from assay_store.account import DEFAULT_UID
from tests.security.test_second_wall import MARK, OWN, PYTHON, READS, WRITES, Trial, _read, _trial, _written
from tests.support.ports import free_ports
from tests.support.stack import PORTS, System, begin_with
from tests.support.store import StoreServer

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can take another account"
)

#: What a uid does not refuse: the checkout may be read by everybody, and programs may run.
_OPEN_TO_ALL = {"working directory", "run a program"}


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    """A directory that every account can reach; pytest's own are closed."""
    directory = Path(tempfile.mkdtemp(prefix="assay-account-", dir="/tmp"))  # the name is random
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def python(room: Path) -> Path:
    """An interpreter and packages that every account may read, wherever this one's are."""
    base = room / "python"
    ignored = shutil.ignore_patterns("site-packages", "test")
    library = Path(os.__file__).parent
    shutil.copytree(library, base / "lib" / library.name, symlinks=True, ignore=ignored)
    for shared in library.parent.glob("libpython*"):
        shutil.copy(shared, base / "lib")
    (base / "bin").mkdir()
    program = base / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    shutil.copy(Path(sys.executable).resolve(), program)
    packages = room / "venv/lib" / library.name
    packages.mkdir(parents=True)
    (packages / "site-packages").symlink_to(Path(sys.prefix) / "lib" / library.name / "site-packages")
    (room / "venv/pyvenv.cfg").write_text(f"home = {base / 'bin'}\n")
    (room / "venv/bin").mkdir()
    (room / "venv/bin/python").symlink_to(program)
    # Relocated: it finds its shared library beside it.
    (room / "run").write_text(
        f'#!/bin/sh\nLD_LIBRARY_PATH={base / "lib"} exec {sys.executable} -m tests.security.without_landlock {room}/venv/bin/python "$@"\n'
    )
    (room / "run").chmod(0o755)
    return room / "run"


@pytest.fixture(scope="module")
def confined(room: Path, python: Path) -> Iterator[Trial]:
    with _trial(room / "up", "0", str(python)) as trial:
        (room / "up").chmod(0o711)
        yield trial


def _owners(data: Path) -> set[int]:
    """Who owns what is there. A store may be at work in it: what vanishes as it is looked at is passed over."""
    found = {data.lstat().st_uid}
    for folder, folders, files in os.walk(data):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(os.path.join(folder, name))  # noqa: PTH118  # beside `os.walk`, which bears that folders vanish
                if not stat.S_ISLNK(status.st_mode):
                    found.add(status.st_uid)
    return found


def _metrics(server: StoreServer) -> str:
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("way", READS)
def test_the_account_reads_no_file_that_is_closed_to_others(confined: Trial, way: str) -> None:
    assert not _read(confined, way)


@pytest.mark.parametrize("way", WRITES)
def test_the_account_writes_no_file_that_is_closed_to_others(confined: Trial, way: str) -> None:
    assert not _written(confined, way)


@pytest.mark.parametrize("way", sorted(PYTHON.keys() - _OPEN_TO_ALL))
def test_not_even_python_gets_past_the_account(confined: Trial, way: str) -> None:
    well, said = confined.attempt("python", PYTHON[way])
    assert not well
    assert "Permission denied" in said or "not permitted" in said


def test_the_account_is_for_good_and_the_engine_does_its_own_work(confined: Trial) -> None:
    for program in ("os.setresuid(0, 0, 0)", "os.setresgid(0, 0, 0)", "os.setgroups([0])"):
        well, said = confined.attempt("python", f"import os; {program}")
        assert (well, "not permitted" in said) == (False, True)
    lines = confined.attempt("python", "said = open('/proc/self/status').read()")[1]
    assert f"Uid:\t{DEFAULT_UID}\t{DEFAULT_UID}\t{DEFAULT_UID}\t{DEFAULT_UID}\n" in lines
    assert f"Gid:\t{DEFAULT_UID}\t{DEFAULT_UID}\t{DEFAULT_UID}\t{DEFAULT_UID}\n" in lines
    assert "Groups:\t \n" in lines
    assert "CapPrm:\t0000000000000000\n" in lines
    assert "NoNewPrivs:\t1\n" in lines
    for sql in OWN.values():
        well, said = confined.attempt("sql", sql)
        assert well, said


def test_a_store_of_root_changes_to_its_account_and_back_with_its_rows(room: Path, python: Path) -> None:
    directory = room / "server"
    with StoreServer(directory) as server:  # as root, behind Landlock where the kernel has it
        client = _client(server)
        client.command("CREATE TABLE kept (a Int64) ENGINE = MergeTree ORDER BY a")
        client.command("INSERT INTO kept VALUES (1)")
    assert _owners(directory / "data") == {0}
    confined = StoreServer(directory, python=[str(python)])
    with confined:
        assert psutil.Process(confined.pid).uids().real == DEFAULT_UID
        assert _owners(directory / "data") == {DEFAULT_UID}
        client = _client(confined)
        client.command("INSERT INTO kept VALUES (2)")
        metrics = _metrics(confined)
        for label, value in (("files", 0), ("closed_files", 1), ("network", 0)):
            assert f'assay_store_wall{{keeps_from="{label}"}} {value}.0' in metrics
        assert "assay_store_account_kept{" not in metrics
    with confined:  # again, on its own files
        assert _client(confined).command("SELECT sum(a) FROM kept") == 3
    assert f"second wall: uid {DEFAULT_UID}" in (directory / "store.log").read_text()
    with StoreServer(directory) as server:
        client = _client(server)
        client.command("INSERT INTO kept VALUES (4)")
        assert client.command("SELECT sum(a) FROM kept") == 7
    with confined:
        assert _client(confined).command("SELECT sum(a) FROM kept") == 7
        assert _owners(directory / "data") == {DEFAULT_UID}


def test_a_store_whose_python_is_closed_to_its_account_stays_as_it_was_and_says_why(room: Path, python: Path) -> None:
    closed = room / "venv/closed"
    closed.mkdir(mode=0o700)
    launcher = room / "closed"
    launcher.write_text(
        python.read_text().replace("LD_LIBRARY_PATH=", f"PYTHONPATH={closed}/site-packages LD_LIBRARY_PATH=")
    )
    launcher.chmod(0o755)
    (closed / "site-packages").mkdir()
    with StoreServer(room / "kept", python=[str(launcher)]) as server:
        assert psutil.Process(server.pid).uids().real == 0
        assert _owners(room / "kept/data") == {0}
        assert 'assay_store_account_kept{reason="python"} 1.0' in _metrics(server)
    said = (room / "kept/store.log").read_text()
    assert f"{closed}, where Python or its packages are, is closed to uid {DEFAULT_UID}" in said


def test_a_store_whose_path_is_closed_to_its_account_stays_as_it_was_and_says_why(room: Path, python: Path) -> None:
    (room / "shut").mkdir(mode=0o700)
    with StoreServer(room / "shut/store", python=[str(python)]) as server:
        assert psutil.Process(server.pid).uids().real == 0
        assert 'assay_store_account_kept{reason="path"} 1.0' in _metrics(server)
    said = (room / "shut/store/store.log").read_text()
    assert f"{room / 'shut'}, on the path to the data directory, is closed to uid {DEFAULT_UID}" in said
    assert (room / "shut").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("names", [1, 2])
def test_root_gives_away_no_file_that_a_broken_store_linked_into_its_data(room: Path, python: Path, names: int) -> None:
    directory = room / f"linked-{names}"
    secret = _secret(directory)
    links = [directory / f"data/engine/link-{number}" for number in range(names)]
    for link in links:
        os.link(secret, link)
    with StoreServer(directory, python=[str(python)]) as server:
        assert 'assay_store_account_kept{reason="links"} 1.0' in _metrics(server)
        assert psutil.Process(server.pid).uids().real == 0
    assert _owners(directory) == {0}
    assert "data/engine/link-" in (directory / "store.log").read_text()
    for link in links:
        link.unlink()
    with StoreServer(directory, python=[str(python)]) as server:
        assert psutil.Process(server.pid).uids().real == DEFAULT_UID, (directory / "store.log").read_text()
    assert secret.stat().st_uid == 0


def test_root_gives_away_no_file_that_a_symbolic_link_in_the_data_leads_to(room: Path, python: Path) -> None:
    directory = room / "symlinks"
    secret = _secret(directory)
    for name, target in (("engine/file", secret), ("user_files", directory), ("tmp", directory)):
        (directory / "data" / name).symlink_to(target)
    with StoreServer(directory, python=[str(python)]) as server:
        assert psutil.Process(server.pid).uids().real == DEFAULT_UID
    assert (secret.stat().st_uid, secret.read_text()) == (0, MARK)
    assert directory.stat().st_uid == 0
    assert not (directory / "data/tmp").is_symlink()


def test_root_hands_over_hard_links_within_the_data(room: Path, python: Path) -> None:
    directory = room / "inside"
    _secret(directory)
    (directory / "data/engine/one").write_text("x")
    os.link(directory / "data/engine/one", directory / "data/engine/two")  # as the engine does for a mutation
    with StoreServer(directory, python=[str(python)]) as server:
        assert psutil.Process(server.pid).uids().real == DEFAULT_UID
    assert _owners(directory / "data") == {DEFAULT_UID}


@pytest.mark.parametrize("foreign", ["another program's file", "another account's file"])
def test_a_data_directory_that_holds_what_is_not_the_stores_is_not_given_away(
    room: Path, python: Path, foreign: str
) -> None:
    directory = room / foreign.replace(" ", "-").replace("'", "")
    _secret(directory)
    other = directory / "data" / ("passwd" if "program" in foreign else "engine/other")
    other.write_text("x")
    owner = 0 if "program" in foreign else 12345
    os.chown(other, owner, owner)
    with StoreServer(directory, python=[str(python)]) as server:
        assert psutil.Process(server.pid).uids().real == 0
        assert 'assay_store_account_kept{reason="foreign"} 1.0' in _metrics(server)
    assert str(other) in (directory / "store.log").read_text()
    assert _owners(directory / "data") == {0, owner}


def test_a_store_that_root_did_not_start_keeps_its_account_and_says_why(room: Path, python: Path) -> None:
    data = room / "not-root"
    data.mkdir()
    os.chown(data, 12345, 12345)
    become = "os.setgroups([]); os.setresgid(12345, 12345, 12345); os.setresuid(12345, 12345, 12345)"
    program = (
        f"import logging, os, pathlib, sys; logging.basicConfig(); {become}\nfrom assay_store.wall import raise_wall\n"
        "print(raise_wall(pathlib.Path(sys.argv[1])))"
    )
    done = subprocess.run([str(python), "-c", program, str(data)], capture_output=True, text=True, timeout=60)
    assert "kept=<Reason.NOT_ROOT" in done.stdout
    assert "It has no separate account either: it was not started as root" in done.stderr


@pytest.mark.parametrize("right", ["chown", "dac_override", "setgid", "setuid"])
def test_a_root_that_may_not_give_the_account_leaves_everything_as_it_was(room: Path, python: Path, right: str) -> None:
    numbers = {"chown": [0], "dac_override": [1, 2], "setgid": [6], "setuid": [7]}[right]
    program = (  # 24: take it out of the bounding set, which whatever is run next begins with
        f"import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, each, 0, 0, 0) for each in {numbers}]; os.execv(sys.argv[1], sys.argv[1:])"
    )
    launcher = room / f"without-{right}"
    launcher.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{program}' {python} \"$@\"\n")
    launcher.chmod(0o755)
    directory = room / f"store-without-{right}"
    with StoreServer(directory, python=[str(launcher)]) as server:
        assert psutil.Process(server.pid).uids().real == 0
        assert 'assay_store_account_kept{reason="refused"} 1.0' in _metrics(server)
    assert _owners(directory / "data") == {0}


def test_assay_up_without_landlock_works_as_a_whole(room: Path, python: Path, tables: Path) -> None:
    data = room / "whole/data"
    data.mkdir(parents=True, mode=0o700)
    begin_with(data, tables)
    ports, settings = free_ports(PORTS), {"ASSAY_STORE_UID": "65524"}
    with _up(System(data, ports, "--no-quality", settings=settings)) as system:  # an installation that begins as root
        assert system.child("assay_store").uids().real == 0
        _capture(data)
        _until_stored(system, 1)
        assert data.stat().st_mode & 0o777 == 0o700
    with _up(System(data, ports, "--no-quality", settings=settings, python=[str(python)])) as system:
        store = system.child("assay_store")
        assert store.uids() == (65524, 65524, 65524)
        assert _owners(data / "store") == {65524}
        assert "second wall: uid 65524" in system.log()
        assert data.stat().st_mode & 0o777 == 0o711
        assert all(each.stat().st_mode & 0o077 == 0 for each in data.iterdir())
        _capture(data)
        _until_stored(system, 2)
        store.kill()
        store.wait(60)
        _capture(data)
        _until_stored(system, 3)
        assert system.child("assay_store").uids().real == 65524
        _until_exported(data, 3)
        assert "has a separate uid" in _assay(data, "owner", "doctor").stdout
        with system.store("owner") as owner:
            owner.command("BACKUP DATABASE assay_base TO Disk('backups', 'first/')")
            owner.command("RESTORE DATABASE assay_base AS restored FROM Disk('backups', 'first/')")
            assert owner.command("SELECT count() FROM restored.candidates") == 3
        root, *_ = system.processes()
        store = system.child("assay_store")
        root.kill()
        store.wait(60)  # it dies with its parent, whatever its account
    with _up(System(data, ports, "--no-quality", settings=settings, python=[str(python)])) as system:
        _until_stored(system, 3)
    with _up(System(data, ports, "--no-quality", settings=settings)) as system:  # with Landlock again
        assert system.child("assay_store").uids().real == 0
        _capture(data)
        _until_stored(system, 4)
        assert data.stat().st_mode & 0o777 == 0o700
    with _up(System(data, ports, "--no-quality", settings=settings, python=[str(python)])) as system:
        assert system.child("assay_store").uids().real == 65524
        _until_stored(system, 4)


@contextlib.contextmanager
def _up(system: System) -> Iterator[System]:
    """Up; stopped in order unless the test has killed it, and whatever that left."""
    running: list[psutil.Process] = []
    try:
        system.start()
        running = system.processes()
        yield system
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            running = system.processes()
        system.stop()
        for process in running:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()  # by pid and start time


def _capture(data: Path) -> None:
    """One event, as a producer of the installation."""
    program = (
        "from assay_capture import Capture\ncapture = Capture.from_env(service='shop')\ncapture.retrieval(tool_name='query', "
        "query='boots', retrieved_slugs=['a'], retrieved_chunk_ids=[1], latency_ms=1.0)\ncapture.close()"
    )
    environment = _environment(data, "producer") | {"ASSAY_CAPTURE": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=60)


def _until_stored(system: System, count: int) -> None:
    deadline = time.monotonic() + 120
    found = -1
    while found != count:
        assert time.monotonic() < deadline, f"{found} of {count} events are stored"
        time.sleep(0.1)
        with contextlib.suppress(ClickHouseError, OSError), system.store("exporter") as exporter:
            found = exporter.query("SELECT count() FROM assay.candidates").result_rows[0][0]


def _until_exported(data: Path, count: int) -> None:
    """Wait for the watermark, which follows the rows: an export ends there."""
    deadline = time.monotonic() + 120
    while (exported := len(_assay(data, "exporter", "export", "--since", "1d").stdout.splitlines())) != count:
        assert time.monotonic() < deadline, f"{exported} of {count} events are exported"
        time.sleep(0.1)


def _assay(data: Path, identity: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "assay_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=_environment(data, identity), timeout=120)


def _environment(data: Path, identity: str) -> dict[str, str]:
    return os.environ | {"ASSAY_CONFIG": str(data / f"secrets/{identity}.toml"), "COLUMNS": "300"}


def _secret(directory: Path) -> Path:
    """A file of root's beside a data directory."""
    (directory / "data/engine").mkdir(parents=True)
    secret = directory / "secret"
    secret.write_text(MARK)
    secret.chmod(0o600)
    return secret


def _client(server: StoreServer) -> Client:
    return connect(server.settings().store, database="default")
