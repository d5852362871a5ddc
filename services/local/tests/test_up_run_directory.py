"""`<data>/run`: the lock, and cleaning up after an `assay up` that was killed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assay_local.run_directory import RunDirectory
from assay_operations.errors import OperationError

SLEEPER = "import time; time.sleep(60)"
#: Dies and leaves a child in its process group.
ORPHANING = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}])
print(child.pid, flush=True)
"""


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def start(processes: list[subprocess.Popen[str]], text: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", text], start_new_session=True, stdout=subprocess.PIPE, text=True)
    processes.append(process)
    return process


def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    holder = (
        "import os, sys, pathlib, time; from assay_local.run_directory import RunDirectory;"
        "run = RunDirectory(pathlib.Path(sys.argv[1])); run.lock(); print(os.getpid(), flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        with pytest.raises(OperationError, match=rf"pid {process.pid}.*kill {process.pid}.*--data"):
            RunDirectory(tmp_path / "run").lock()
        process.kill()
    run = RunDirectory(tmp_path / "run")
    run.lock()  # the lock ended with its holder
    run.unlock()


def test_a_lock_that_was_given_back_can_be_taken_again(tmp_path: Path) -> None:
    first, second = RunDirectory(tmp_path), RunDirectory(tmp_path)
    first.lock()
    first.unlock()
    second.lock()
    second.unlock()


def test_what_a_killed_predecessor_left_running_is_ended(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    left = start(processes, SLEEPER)
    RunDirectory(tmp_path).record({"store": left.pid})
    assert RunDirectory(tmp_path).clean_up() == [f"store (pid {left.pid})"]
    assert not psutil.pid_exists(left.pid)
    assert RunDirectory(tmp_path).clean_up() == []


def test_a_process_that_was_left_and_ignores_the_request_is_killed(
    tmp_path: Path, processes: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_local.run_directory._GRACE_S", 0.2)
    left = start(
        processes, "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
    )
    assert left.stdout
    left.stdout.readline()
    RunDirectory(tmp_path).record({"store": left.pid})
    RunDirectory(tmp_path).clean_up()
    assert not psutil.pid_exists(left.pid)


def test_a_child_that_outlived_the_recorded_process_is_ended(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    leader = start(processes, f"{ORPHANING}\n{SLEEPER}")
    assert leader.stdout
    orphan = psutil.Process(int(leader.stdout.readline()))
    RunDirectory(tmp_path).record({"scrubber": leader.pid})
    leader.kill()
    leader.wait()
    assert orphan.is_running()
    RunDirectory(tmp_path).clean_up()
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    "change", [{"started": 1_000_000_000.0}, {"program": "/usr/bin/something-else"}], ids=["start time", "program"]
)
def test_a_foreign_process_that_has_the_same_pid_now_is_never_touched(
    tmp_path: Path, processes: list[subprocess.Popen[str]], change: dict[str, object]
) -> None:
    foreign = start(processes, SLEEPER)
    run = RunDirectory(tmp_path)
    run.record({"store": foreign.pid})
    (entry,) = json.loads((tmp_path / "processes.json").read_text())
    (tmp_path / "processes.json").write_text(json.dumps([entry | change]))
    assert run.clean_up() == []
    assert foreign.poll() is None


@pytest.mark.parametrize("text", ["", "[", "{}", '[{"pid": 1}]', "null", "[1]"])
def test_a_damaged_list_of_processes_is_no_reason_not_to_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "processes.json").write_text(text)
    assert RunDirectory(tmp_path).clean_up() == []
