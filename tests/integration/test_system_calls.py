"""The tests' tracer breaks the calls that it is asked to break, and no others."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import system_calls

pytestmark = pytest.mark.skipif(bool(system_calls.missing()), reason=system_calls.missing())

#: Answers each line of paths by renaming the first to the second, in a thread or a process of its own if it says so, with what came of it.
PROGRAM = """
import errno, os, sys, threading, time

def rename(source, target):
    began = time.monotonic()
    try:
        os.rename(source, target)
        print("renamed", time.monotonic() - began, flush=True)
    except OSError as failure:
        print(errno.errorcode[failure.errno], time.monotonic() - began, flush=True)

threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
for line in sys.stdin:
    how, *paths = line.split()
    if how == "thread":
        thread = threading.Thread(target=rename, args=paths)
        thread.start()
        thread.join()
    elif how == "process":
        if not (child := os.fork()):
            rename(*paths)
            os._exit(0)
        os.waitpid(child, 0)
    else:
        rename(*paths)
"""
Rename = Callable[..., tuple[str, float]]


@pytest.fixture
def program() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True) as running:
        yield running
        running.kill()


@pytest.fixture
def rename(program: "subprocess.Popen[str]", tmp_path: Path) -> Rename:
    (tmp_path / "a").touch()

    def renamed(how: str = "here", folder: Path = tmp_path) -> tuple[str, float]:
        """What came of it, and the seconds it took."""
        assert program.stdin is not None
        assert program.stdout is not None
        print(how, folder / "a", folder / "a", file=program.stdin, flush=True)
        result, seconds = program.stdout.readline().split()
        return result, float(seconds)

    return renamed


@pytest.mark.parametrize(
    ("when", "results"),
    [
        ("", ["EIO", "EIO", "EIO", "EIO"]),
        (":when=2", ["renamed", "EIO", "renamed", "renamed"]),
        (":when=2+", ["renamed", "EIO", "EIO", "EIO"]),
        (":when=1+2", ["EIO", "renamed", "EIO", "renamed"]),
    ],
)
def test_an_error_meets_the_calls_whose_turn_it_is(
    program: "subprocess.Popen[str]", rename: Rename, when: str, results: list[str]
) -> None:
    with system_calls.broken(program.pid, "rename", f"error=EIO{when}"):
        assert [rename()[0] for _ in results] == results
    assert rename()[0] == "renamed"


@pytest.mark.parametrize("how", ["thread", "process"])
def test_new_threads_and_processes_meet_it_too(program: "subprocess.Popen[str]", rename: Rename, how: str) -> None:
    with system_calls.broken(program.pid, "rename", "error=ENOSPC"):
        assert rename(how)[0] == "ENOSPC"
    assert rename(how)[0] == "renamed"


def test_other_calls_and_other_files_are_left_alone(
    program: "subprocess.Popen[str]", rename: Rename, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/a").touch()
    with system_calls.broken(program.pid, "renameat2,unlink", "error=EIO"):
        assert rename()[0] == "renamed"
    with system_calls.broken(program.pid, "rename", "error=EIO", path=tmp_path / "b"):
        assert rename()[0] == "renamed"
        assert rename("here", tmp_path / "b")[0] == "EIO"


def test_a_signal_comes_before_the_call(program: "subprocess.Popen[str]", rename: Rename, tmp_path: Path) -> None:
    with system_calls.broken(program.pid, "rename", "signal=SIGKILL:when=2"):
        assert rename()[0] == "renamed"
        with pytest.raises(ValueError, match="unpack"):
            rename()
    assert program.wait(60) == -9


def test_a_delay_holds_up_the_call_and_the_others_go_on(program: "subprocess.Popen[str]", rename: Rename) -> None:
    with system_calls.broken(program.pid, "rename", "delay_enter=300000:when=1"):
        result, seconds = rename()
        assert (result, seconds >= 0.3) == ("renamed", True)


def test_calls_are_listed_in_their_order(program: "subprocess.Popen[str]", rename: Rename, tmp_path: Path) -> None:
    with system_calls.broken(program.pid, "rename,write", "list", path=tmp_path) as tracer:
        rename()
        rename()
        program.kill()
        assert tracer.communicate(timeout=60)[0].split() == ["rename", "rename"]


def test_what_cannot_be_traced_is_told() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{ended.pid}").exists():
        assert time.monotonic() < deadline
    with pytest.raises(RuntimeError, match="cannot be traced"), system_calls.broken(ended.pid, "rename", "error=EIO"):
        pytest.fail("it is traced")
