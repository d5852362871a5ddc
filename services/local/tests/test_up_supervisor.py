"""The supervisor, with real processes: small Python programs that misbehave on purpose."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import psutil
import pytest

from assay_local.supervisor import Backoff, Spec, State, Supervisor, describe_exit
from assay_operations.errors import OperationError
from tests.support.wait import until_async

#: Says its name, marks itself ready, sleeps; on SIGTERM it writes that it drained.
POLITE = """
import pathlib, signal, sys, time
name, directory = sys.argv[1], pathlib.Path(sys.argv[2])
def end(*_):
    with (directory / "order").open("a") as file:
        file.write(f"{name}\\n")
    print("drained", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("hello from", name, flush=True)
(directory / f"{name}.ready").touch()
while True:
    time.sleep(60)
"""
STUBBORN = (
    "import signal, time, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('no', flush=True); time.sleep(60)"
)


class Watched:
    """A supervisor and what it said."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.announced: list[str] = []
        self.changes: list[dict[str, int]] = []
        self.supervisors: list[Supervisor] = []

    def of(self, *specs: Spec) -> Supervisor:
        def on_change(pids: Mapping[str, int]) -> None:
            self.changes.append(dict(pids))

        supervisor = Supervisor(
            [[spec] for spec in specs],
            on_line=lambda name, line: self.lines.append((name, line)),
            announce=self.announced.append,
            on_change=on_change,
            backoff=Backoff(first=0.01, longest=0.05),
        )
        self.supervisors.append(supervisor)
        return supervisor


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    everything = Watched()
    yield everything
    for supervisor in everything.supervisors:
        supervisor.kill()
        await supervisor.stop()


def polite(name: str, directory: Path) -> Spec:
    async def ready() -> str | None:
        return None if (directory / f"{name}.ready").exists() else "not there yet"

    return Spec(name, (sys.executable, "-c", POLITE, name, str(directory)), os.environ, ready, start_deadline_s=60)


def program(name: str, text: str, **options: object) -> Spec:
    return Spec(name, (sys.executable, "-c", text), os.environ, **options)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_processes_start_in_order_and_stop_in_reverse(watched: Watched, tmp_path: Path) -> None:
    supervisor = watched.of(polite("one", tmp_path), polite("two", tmp_path), polite("three", tmp_path))
    await supervisor.start()
    assert [line.split()[0] for line in watched.announced] == ["one", "two", "three"]
    assert supervisor.states == dict.fromkeys(["one", "two", "three"], State.READY)
    pids = supervisor.pids
    await supervisor.stop()
    assert (tmp_path / "order").read_text().split() == ["three", "two", "one"]
    assert all(gone(pid) for pid in pids.values())
    assert watched.changes[-1] == {}


async def test_the_processes_of_one_stage_start_together(watched: Watched, tmp_path: Path) -> None:
    def needs(other: str, name: str) -> Spec:
        async def ready() -> str | None:
            return None if (tmp_path / f"{other}.ready").exists() else f"{other} is missing"

        return Spec(name, (sys.executable, "-c", POLITE, name, str(tmp_path)), os.environ, ready, start_deadline_s=60)

    supervisor = Supervisor(
        [[needs("right", "left"), needs("left", "right")]],
        on_line=lambda *_: None,
        announce=watched.announced.append,
        on_change=lambda _: None,
    )
    watched.supervisors.append(supervisor)
    await supervisor.start()
    assert supervisor.states == {"left": State.READY, "right": State.READY}


async def test_output_is_passed_on_line_by_line_to_the_last(watched: Watched, tmp_path: Path) -> None:
    supervisor = watched.of(polite("one", tmp_path))
    await supervisor.start()
    await supervisor.stop()
    assert watched.lines == [("one", "hello from one"), ("one", "drained")]


async def test_a_process_that_ends_while_starting_is_reported_with_its_last_lines(watched: Watched) -> None:
    supervisor = watched.of(program("broken", "import sys; sys.exit('no such table')"))
    with pytest.raises(
        OperationError, match=r"broken ended while starting \(exit code 1\); its last lines:\n  no such table"
    ):
        await supervisor.start()


async def test_a_process_that_is_not_ready_in_time_is_reported_with_what_is_missing(watched: Watched) -> None:
    async def never() -> str | None:
        return "no answer on port 1"

    supervisor = watched.of(program("slow", "import time; time.sleep(60)", ready=never, start_deadline_s=0.3))
    with pytest.raises(OperationError, match=r"slow is not ready after 0 s \(no answer on port 1\); it wrote nothing"):
        await supervisor.start()


async def test_a_process_that_is_alive_past_its_deadline_is_left_to_become_ready(watched: Watched) -> None:
    async def lagging() -> str | None:
        return "lags by 9 entries"

    async def alive() -> bool:
        return True

    supervisor = watched.of(
        program("busy", "import time; time.sleep(60)", ready=lagging, alive=alive, start_deadline_s=0.3)
    )
    await supervisor.start()
    assert watched.lines == [("busy", "alive but not ready yet (lags by 9 entries); continuing without it")]


async def test_a_program_that_does_not_exist_is_named(watched: Watched) -> None:
    supervisor = watched.of(Spec("ghost", ("/nonexistent/ghost",), os.environ))
    with pytest.raises(OperationError, match=r"cannot start ghost \(/nonexistent/ghost\): No such file"):
        await supervisor.start()


async def test_a_once_process_must_end_with_success_before_the_next_starts(watched: Watched, tmp_path: Path) -> None:
    done = tmp_path / "done"
    supervisor = watched.of(
        program("prepare", f"import pathlib; pathlib.Path({str(done)!r}).touch()", once=True), polite("one", tmp_path)
    )
    await supervisor.start()
    assert done.exists()
    assert watched.announced[0].startswith("prepare done")
    assert supervisor.states == {"one": State.READY}


async def test_a_process_that_dies_is_restarted_and_the_others_keep_running(watched: Watched, tmp_path: Path) -> None:
    supervisor = watched.of(polite("one", tmp_path), polite("two", tmp_path))
    await supervisor.start()
    before = supervisor.pids
    os.kill(before["one"], signal.SIGKILL)
    await until_async(lambda: "one is back" in watched.announced)
    after = supervisor.pids
    assert after["one"] != before["one"]
    assert after["two"] == before["two"]
    assert any(line.startswith("one died (killed by SIGKILL); restarting it in 0.0 s") for line in watched.announced)


async def test_a_process_that_keeps_dying_is_tried_again_and_again(watched: Watched, tmp_path: Path) -> None:
    supervisor = watched.of(polite("one", tmp_path))
    await supervisor.start()
    for _ in range(3):
        backs = watched.announced.count("one is back")
        os.kill(supervisor.pids["one"], signal.SIGKILL)
        await until_async(lambda backs=backs: watched.announced.count("one is back") > backs)  # type: ignore[misc]
    assert supervisor.states == {"one": State.READY}


async def test_stopping_during_a_restart_leaves_nothing(watched: Watched, tmp_path: Path) -> None:
    others = psutil.Process().children(recursive=True)  # of earlier tests in this process
    supervisor = watched.of(polite("one", tmp_path))
    await supervisor.start()
    os.kill(supervisor.pids["one"], signal.SIGKILL)
    await until_async(lambda: any(line.startswith("one died") for line in watched.announced))
    await supervisor.stop()
    assert supervisor.pids == {}
    assert set(psutil.Process().children(recursive=True)) <= set(others)


async def test_a_process_that_ignores_the_request_to_stop_is_killed_after_its_deadline(watched: Watched) -> None:
    lines = watched.lines

    async def ready() -> str | None:
        return None if lines else "silent"

    supervisor = watched.of(program("stubborn", STUBBORN, ready=ready, stop_deadline_s=0.2))
    await supervisor.start()
    pid = supervisor.pids["stubborn"]
    await supervisor.stop()
    assert gone(pid)
    assert watched.announced[-1] == "stubborn killed: it did not stop within 0 s"


async def test_a_childs_own_children_end_with_it(watched: Watched, tmp_path: Path) -> None:
    text = (
        "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    lines = watched.lines

    async def ready() -> str | None:
        return None if lines else "silent"

    supervisor = watched.of(program("parent", text, ready=ready))
    await supervisor.start()
    grandchild = int(lines[0][1])
    assert not gone(grandchild)
    await supervisor.stop()
    await until_async(lambda: gone(grandchild))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends children with their parent")
async def test_when_the_supervisor_is_killed_its_children_are_gone_too(tmp_path: Path) -> None:
    text = f"""
import asyncio, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from assay_local.supervisor import Spec, Supervisor
async def main():
    async def ready():
        return None
    spec = Spec("one", (sys.executable, "-c", "import time; time.sleep(60)"), os.environ, ready)
    supervisor = Supervisor([[spec]], on_line=print, announce=print, on_change=lambda pids: print("pids", pids["one"], flush=True))
    await supervisor.start()
    await asyncio.sleep(60)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", text, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        pid = int((await asyncio.wait_for(process.stdout.readline(), 60)).split()[1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    await until_async(lambda: gone(pid))


async def test_a_process_run_beside_the_others_gives_its_answer(watched: Watched, tmp_path: Path) -> None:
    supervisor = watched.of(polite("one", tmp_path))
    await supervisor.start()
    text = "import sys; print('progress', file=sys.stderr); print('first'); print('{\"n\": 1}')"
    child = await supervisor.run(program("guest", text, once=True, stdout_is_log=False))
    assert (child.answer, child.exit_code) == ('{"n": 1}', 0)
    assert ("guest", "progress") in watched.lines
    assert ("guest", "first") not in watched.lines
    assert supervisor.pids.keys() == {"one"}


async def test_a_line_without_end_is_cut_not_collected(watched: Watched) -> None:
    supervisor = watched.of(program("chatty", "import sys; sys.stdout.write('x' * 1_000_000)", once=True))
    await supervisor.start()
    assert sum(len(line) for _, line in watched.lines) == 1_000_000
    assert max(len(line) for _, line in watched.lines) < 200_000


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(first=0.5, longest=30)
    assert [backoff.pause(failures) for failures in (1, 2, 3, 7, 8, 1000)] == [0.5, 1, 2, 30, 30, 30]


def test_exit_codes_are_told_in_words() -> None:
    assert [describe_exit(code) for code in (0, 3, -9, -250)] == [
        "exit code 0",
        "exit code 3",
        "killed by SIGKILL",
        "killed by signal 250",
    ]
