"""Which tests run with the PATH of a bare machine: one of each module that ran on the installed Redis, however it comes to it, and those
that run nowhere else. Which `make check` leaves out: those that start any process."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.redis import EACH_SERVER, SERVERS, RedisServer, half, usual_binary


def begun(directory: Path) -> RedisServer:
    return RedisServer(directory)


@pytest.fixture
def server(tmp_path: Path) -> RedisServer:
    return begun(tmp_path)


def marks(request: pytest.FixtureRequest) -> set[str]:
    return {mark.name for mark in request.node.iter_markers()} & {"redis", "each_server", "server", "bare", "bare_only"}


def test_a_helper_that_names_redis_marks_the_test(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    assert not begun(tmp_path).running
    assert marks(request) == {"redis", "server", "bare"}


def test_so_does_a_fixture_that_a_helper_is_behind(request: pytest.FixtureRequest, server: RedisServer) -> None:
    assert marks(request) - {"bare"} == {"redis", "server"}


def test_one_test_of_each_module_of_the_installed_redis_runs_there_and_each_test_of_the_whole_system_once() -> None:
    on_bundled = next(path for path in sorted(Path("tests/chaos").glob("test_*.py")) if half(path))
    modules = __file__, "tests/e2e/test_up.py", str(on_bundled)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "bare and not bare_only"]
    said = subprocess.run([*command, *modules], capture_output=True, text=True, check=True).stdout
    names = [line.partition("[")[0] for line in said.splitlines() if "::" in line]
    found = Counter(Path(name.partition("::")[0]).name for name in names)
    assert found[Path(__file__).name] == 1
    assert found["test_up.py"] > 1
    assert found[on_bundled.name] == 0
    assert len(names) == len(set(names)), "the first case of each"


def test_half_of_the_modules_use_each_redis() -> None:
    programs = Counter(usual_binary(path) for path in Path().glob("*/**/test_*.py") if ".venv" not in path.parts)
    assert set(programs) == {server.path for server in SERVERS.values()}
    assert max(programs.values()) < 1.5 * programs.total() / len(SERVERS)


@pytest.mark.bare_only
@pytest.mark.parametrize("case", ["first", "second"])
def test_each_case_of_one_that_runs_nowhere_else_runs_there(request: pytest.FixtureRequest, case: str) -> None:
    assert marks(request) == {"bare", "bare_only"}


@EACH_SERVER
def test_what_runs_on_each_server_is_told_apart(request: pytest.FixtureRequest, redis_binary: str) -> None:
    assert marks(request) == {"redis", "each_server", "server"}


def test_what_starts_another_process_is_marked(request: pytest.FixtureRequest) -> None:
    assert subprocess.run(["true"], check=True).returncode == 0
    assert marks(request) == {"server"}


def test_a_test_beside_them_that_needs_neither_is_not_marked(request: pytest.FixtureRequest) -> None:
    assert marks(request) == set()
