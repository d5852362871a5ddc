"""A spool whose process dies, or whose disk fails, at any one of its system calls: what it promised to keep is there for the next."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_capture.owners import private_directory
from assay_capture.spool import Spool
from assay_capture.stats import Problems
from tests import system_calls

#: What a spool calls that changes anything, and what it looks with.
CALLS = ("mkdir", "openat", "flock", "write", "fsync", "ftruncate", "rename", "unlink", "rmdir", "getdents64", "read")
ERRORS = {
    "flock": "ENOLCK",
    "write": "ENOSPC",
    "mkdir": "ENOSPC",
    "rename": "EROFS",
    "unlink": "EROFS",
    "rmdir": "EROFS",
}

#: For each directory it is given, a child waits for a signal (so that strace is there in time), spools, ends, and sends all as the next
#: process would. It says what is safe, and what was delivered.
PROGRAM = """
import logging, os, signal, sys
from pathlib import Path
from assay_capture.spool import Spool
from assay_capture.stats import Problems

logging.disable()

def opened(directory, adopt=()):
    return Spool(directory, "redis-a", 1 << 20, True, lambda _: 0, Problems(), adopt)

def say(*words):
    os.write(1, (" ".join(words) + "\\n").encode())

def kept(spool, *names, place=None):
    entries = [(0, b'{"name":"%b"}' % name.encode()) for name in names]
    for _ in range(3):  # the publisher tries again and again
        if spool.write(entries, place) is None:
            say("safe", *names)
            return

def run(directory):
    spool = opened(directory)
    place = spool.reserve()
    kept(spool, "c", "d")
    kept(spool, "a", "b", place=place)
    kept(spool, "e")
    spool.close()
    heir = opened(directory, ["all"])
    for _ in range(3):
        heir.adopt()
        while entries := heir.read(2, 1 << 20):
            say("delivered", *[data.decode()[9:-2] for _, data in entries])
            heir.sent()
    heir.close()

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.sigwait([signal.SIGUSR1])
        run(Path(line.strip()))
        os._exit(0)
    say("child", str(child))
    say("ended", str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


def entries_left(directory: Path) -> Counter[str]:
    """What the next process finds, after which nothing is left."""
    heir = Spool(directory, "redis-a", 1 << 20, True, lambda _: 0, Problems(), ["all"])
    found: Counter[str] = Counter()
    heir.adopt()
    while read := heir.read(100, 1 << 20):
        found.update(data.decode()[9:-2] for _, data in read)
        heir.sent()
    heir.close()
    return found


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[Path]:
    """A spool directory with an event for another Redis and one of the version before; both are to be adopted."""
    directory = tmp_path / "spool"
    other = Spool(directory, "redis-b", 1 << 20, True, lambda _: 0, Problems())
    other.write([(0, b'{"name":"other"}')])
    other.close()
    (private_directory(directory) / "dead-0000000001.jsonl").write_text('{"name":"before"}\n')
    (private_directory(directory) / "dead.lock").touch()
    yield directory
    shutil.rmtree(directory)


class Traced:
    """Runs the program's children under strace."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, directory: Path, *options: str) -> tuple[int, str, str]:
        """A child's exit code, what it said, and the trace."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(directory, file=self._process.stdin, flush=True)
        child = self._process.stdout.readline().split()[1]
        trace = directory.parent / "trace"
        command = ["strace", "-y", "-o", str(trace), "-e", f"trace={','.join(CALLS)}", *options, "-p", child]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            attached = tracer.stderr.readline()
            os.kill(int(child), signal.SIGUSR1)
            said = ""
            while not (line := self._process.stdout.readline()).startswith("ended"):
                said += line
            tracer.communicate(timeout=60)
        assert "attached" in attached
        return int(line.split()[1]), said, trace.read_text(errors="replace")

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def traced() -> Iterator[Traced]:
    if why := system_calls.missing():
        pytest.skip(why)
    running = Traced()
    yield running
    running.stop()


def places(trace: str, directory: Path) -> list[tuple[str, int]]:
    """Each system call on the spool's files: its name, and how many of that name came before it and itself."""
    counts: Counter[str] = Counter()
    found = []
    for line in trace.splitlines():
        if match := re.match(r"(\w+)\(", line):
            counts[match[1]] += 1
            if str(directory) in line:
                found.append((match[1], counts[match[1]]))
    return found


def named(said: str, word: str) -> set[str]:
    return {name for line in said.splitlines() for name in line.split()[1:] if line.startswith(word)}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill", "error"])
def test_what_is_safe_stays_so_whichever_system_call_is_the_last_or_fails(
    fault: str, prepared: Path, traced: Traced
) -> None:
    untouched = prepared.parent / "untouched"
    shutil.copytree(prepared, untouched)
    code, said, trace = traced.run(prepared)
    assert code == 0
    assert named(said, "safe") == set("abcde")
    assert named(said, "delivered") == {"other", "before", *"abcde"}
    calls = places(trace, prepared)
    assert {name for name, _ in calls} >= {"mkdir", "openat", "flock", "write", "fsync", "rename", "unlink", "rmdir"}
    for name, number in calls:
        shutil.rmtree(prepared)
        shutil.copytree(untouched, prepared)
        what = "signal=KILL" if fault == "kill" else f"error={ERRORS.get(name, 'EIO')}"
        code, said, trace = traced.run(prepared, "-e", f"inject={name}:{what}:when={number}")
        at = f"{fault} at {name} {number}: {trace.splitlines()[-3:]}"
        assert code == (0 if fault == "error" else -9), at
        left = entries_left(prepared)
        assert {"other", "before"} | named(said, "safe") <= named(said, "delivered") | set(left), at
        assert max(left.values(), default=0) <= 2, at
        assert entries_left(prepared) == Counter(), at
        assert list(prepared.rglob("*.jsonl")) == [], at
